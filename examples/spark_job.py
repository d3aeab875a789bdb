"""Aggregation as a job: spark-submit examples/spark_job.py aggregate --input labels.parquet --output out

All options: python examples/spark_job.py aggregate --help
"""

import sys

from manyhands.spark.job import main

if __name__ == "__main__":
    sys.exit(main())

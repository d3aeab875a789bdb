"""`python -m manyhands.spark`: the program `manyhands-spark`."""

import sys

from manyhands.spark.job import main

sys.exit(main())

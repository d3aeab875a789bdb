"""Dawid-Skene on Spark beside the same fit in memory and beside a plain PySpark program with joins.

    .venv-spark/bin/python benchmarks/spark.py                   10 million labels, local[2]; some ten minutes
    .venv-spark/bin/python benchmarks/spark.py --labels 1000000

It prints a row for each step, in seconds of wall-clock time, and the processor time of this process and its children.
`benchmarks/` is no part of the installation; the folder for data is removed at the end.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

N_WORKERS, N_CLASSES, PER_ITEM = 1_000, 4, 5
TOL = 1e-15  # no fit ends before its passes are done
TICKS = os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--labels", type=int, default=10_000_000)
    parser.add_argument("--passes", type=int, default=10, help="passes of our fits")
    parser.add_argument("--naive-passes", type=int, default=2, help="passes of the plain program")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/labels.parquet"
        pq.write_table(labels(options.labels), path, row_group_size=1 << 20)
        builder = SparkSession.builder.master(options.master).config("spark.ui.enabled", "false")
        spark = builder.config("spark.driver.memory", "4g").config("spark.sql.shuffle.partitions", "16").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        in_memory(path, options.passes)
        on_spark(spark, path, folder, options.passes)
        if options.naive_passes:
            naive(spark.read.parquet(path), options.naive_passes)
        spark.stop()


def labels(n):
    """Text ids, as exports have them; workers of different accuracy."""
    rng = np.random.default_rng(0)
    n_items = n // PER_ITEM
    truth = rng.integers(N_CLASSES, size=n_items)
    first = rng.integers(N_WORKERS, size=n_items)
    item = np.repeat(np.arange(n_items), PER_ITEM)
    worker = (first[item] + 37 * np.tile(np.arange(PER_ITEM), n_items)) % N_WORKERS  # all different on an item
    right = rng.random(len(item)) < rng.uniform(0.5, 0.95, N_WORKERS)[worker]
    label = np.where(right, truth[item], rng.integers(N_CLASSES, size=len(item)))
    names = pa.array([f"w{w:04d}" for w in range(N_WORKERS)])
    text = pa.array(item).cast(pa.string())
    return pa.table({"item": text, "worker": names.take(pa.array(worker)), "label": label.astype(np.int32)})


def in_memory(path, n_passes):
    from manyhands import Annotations, DawidSkene
    from manyhands.sharded.fit import fit
    from manyhands.sharded.labels import InMemoryShards

    table = pq.read_table(path)
    with step("memory: coded and put into shards"):
        columns = (table.column(name).to_pylist() for name in ("item", "worker", "label"))
        shards = InMemoryShards.from_annotations(Annotations.from_triples(*columns))
    with step("memory: fit") as took:
        found = fit(DawidSkene(max_iter=n_passes, tol=TOL), shards)
        took.n_passes = found.n_iter
    with step("memory: items"):
        list(shards.run(found.final_task, ""))


def on_spark(spark, path, folder, n_passes):
    from manyhands.spark import DawidSkene

    frame = spark.read.parquet(path)
    estimator = DawidSkene(checkpointDir=f"{folder}/checkpoint", maxIter=1, tol=TOL)
    with step("Spark: coded, written in shards, votes, one pass"):
        estimator.fit(frame)
    size = sum(file.stat().st_size for file in Path(folder, "checkpoint").rglob("*.parquet"))
    print(json.dumps({"step": "Spark: checkpoint", "megabytes": round(size / 1e6)}), flush=True)
    with step("Spark: a second fit on the same checkpoint, one pass"):
        estimator.fit(frame)
    with step("Spark: the same with all passes") as took:
        model = estimator.copy({"maxIter": n_passes}).fit(frame)
        took.n_passes = model.summary["n_iter"]
    with step("Spark: items written as Parquet"):
        model.items.write.parquet(f"{folder}/items")


def naive(frame, n_passes):
    """EM as joins and group-bys: the parameters are a DataFrame, and so are the posteriors."""
    import pyspark.sql.functions as f
    from pyspark.sql import Window

    frame = frame.repartition("item").cache()
    classes = frame.select(f.col("label").alias("truth")).distinct().cache()
    votes = frame.groupBy("item", f.col("label").alias("truth")).count()
    share = Window.partitionBy("item")
    posterior = votes.withColumn("p", f.col("count") / f.sum("count").over(share)).select("item", "truth", "p")
    for number in range(n_passes):
        with step(f"plain program with joins, pass {number + 1}"):
            counts = frame.join(posterior, "item").groupBy("worker", "truth", "label").agg(f.sum("p").alias("n"))
            rows = Window.partitionBy("worker", "truth")
            sizes = f.sum("n").over(rows)
            confusion = counts.withColumn("log_p", f.log((f.col("n") + 0.01) / (sizes + 0.01 * N_CLASSES)))
            prior = posterior.groupBy("truth").agg(f.log(f.sum("p")).alias("log_prior"))
            pairs = frame.crossJoin(f.broadcast(classes)).join(confusion, ["worker", "truth", "label"], "left")
            scores = pairs.groupBy("item", "truth").agg(f.sum(f.coalesce("log_p", f.lit(-12.0))).alias("score"))
            scores = scores.join(f.broadcast(prior), "truth").withColumn("score", f.col("score") + f.col("log_prior"))
            power = scores.withColumn("e", f.exp(f.col("score") - f.max("score").over(share)))
            posterior = power.withColumn("p", f.col("e") / f.sum("e").over(share)).select("item", "truth", "p")
            posterior = posterior.localCheckpoint()  # otherwise the plan grows with every pass


class step:
    """Prints how long a step took."""

    def __init__(self, name):
        self.name, self.n_passes = name, None

    def __enter__(self):
        self.began, self.cpu = time.monotonic(), processor_time()
        return self

    def __exit__(self, *_):
        wall = time.monotonic() - self.began
        row = {"step": self.name, "seconds": round(wall, 2), "cpu": round(processor_time() - self.cpu, 1)}
        if self.n_passes:
            row |= {"passes": self.n_passes, "seconds_per_pass": round(wall / self.n_passes, 2)}
        print(json.dumps(row | {"load": round(os.getloadavg()[0], 1)}), flush=True)


def processor_time():
    """Seconds of processor time of this process and all below it, from /proc."""
    parents, used = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            used[int(folder.name)] = sum(map(int, fields[11:15])) / TICKS  # with children that have ended
    total = 0.0
    for pid in used:
        above = pid
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        total += used[pid] if above else 0.0
    return total


if __name__ == "__main__":
    main()

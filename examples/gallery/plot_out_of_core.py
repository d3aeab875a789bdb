"""
Out of core: labels in shards
=============================

A file that does not fit into the memory that is allowed: its labels are coded into a folder on disk and read shard by
shard. The result is that of an ordinary run.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars

import manyhands as mh
from manyhands.jobs.aggregate import aggregate

crowd = mh.simulate.make_crowd(n_items=80_000, n_workers=200, n_classes=2, random_state=0)
votes = crowd.annotations
folder = Path(tempfile.mkdtemp())
columns = {"item": votes.item.astype(str), "worker": votes.worker.astype(str), "label": votes.label.astype(str)}
polars.DataFrame(columns).write_parquet(folder / "huge.parquet")

# %%
# A limit below what the file needs in memory sends the job to disk. It is the same call.
run = aggregate([folder / "huge.parquet"], out=folder / "out", method="dawid-skene", max_memory="280MB")
print(run.route.reason)
labels = polars.read_csv(folder / "out" / "labels.csv")
print(run.summary["n_items"], "items;", sorted(path.name for path in (folder / "out").iterdir()))

# %%
# Beside a fit in memory: equal up to the six digits of the file.
model = mh.DawidSkene().fit(votes)
in_memory = dict(zip(map(str, model.item_ids_.tolist()), model.posterior_.max(axis=1).tolist()))
difference = np.abs([in_memory[str(item)] - value for item, value in zip(labels["item"], labels["confidence"])])
print(f"largest difference of the confidence: {difference.max():.1e}")

# %%
figure, axes = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
axes.hist(labels["confidence"], bins=40, color="#0072b2")
axes.set(xlabel="confidence", ylabel="items")
plt.show()

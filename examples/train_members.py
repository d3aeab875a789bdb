"""An ensemble with one member per process; rank 0 writes the mean posterior, whole or not at all.

torchrun --nproc-per-node 2 examples/train_members.py FOLDER     (without torchrun: one process trains all members)
"""

import io
import os
import sys
from datetime import timedelta

import numpy as np
import torch.distributed as dist

import manyhands as mh
from manyhands._core.writing import write_files

BLOCK = 2**20  # bytes of one value: the store takes a few megabytes


def train(folder: str, members: int = 2) -> None:
    """Train the members rank, rank + n_processes, ...: the result is the same for any number of processes."""
    store, rank, n_processes = dist.HashStore(), 0, 1  # type: ignore[attr-defined]
    if "RANK" in os.environ:  # set by torchrun and by Spark's TorchDistributor
        store, rank, n_processes = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    store.set_timeout(timedelta(days=1))  # of waiting for the slowest rank
    data = mh.datasets.make_blobs(400, 20, n_features=8, random_state=0)  # your own data, the same on every rank
    assert data.annotations is not None
    shape = (data.annotations.n_items, data.annotations.n_classes)
    starts = range(0, 8 * shape[0] * shape[1], BLOCK)  # 8 bytes a value
    for member in range(rank, members, n_processes):
        method = mh.classifiers.CrowdLayer(max_epochs=10, random_state=member)
        posterior = method.fit(data.X, data.annotations, verbose=0).posterior_.tobytes()
        for start in starts:
            store.set(f"{member}/{start}", posterior[start : start + BLOCK])  # type: ignore[arg-type]
    if rank == 0:
        received = [b"".join(store.get(f"{member}/{start}") for start in starts) for member in range(members)]
        mean = np.mean([np.frombuffer(posterior).reshape(shape) for posterior in received], axis=0)
        np.save(content := io.BytesIO(), mean)
        write_files(folder, {"posterior.npy": content.getvalue()}, force=True)
        print(f"mean posterior of {members} members (processes: {n_processes}): {folder}/posterior.npy")


if __name__ == "__main__":
    train(sys.argv[1] if len(sys.argv) > 1 else "members")

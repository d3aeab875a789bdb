"""An ensemble with one member per process; rank 0 writes the mean posterior, whole or not at all.

torchrun --nproc-per-node 2 examples/train_members.py FOLDER     (without torchrun: one process trains all members)
"""

import io
import os
import sys
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

import manyhands as mh
from manyhands._core.writing import write_files


def train(folder, members=2):
    """Train the members rank, rank + n_processes, ...: the result is the same for any number of processes."""
    several = "RANK" in os.environ  # set by torchrun and by Spark's TorchDistributor
    if several:
        dist.init_process_group("gloo", timeout=timedelta(days=1))  # of waiting for the slowest rank
    rank, n_processes = (dist.get_rank(), dist.get_world_size()) if several else (0, 1)
    data = mh.datasets.make_blobs(400, 20, n_features=8, random_state=0)  # your own data, the same on every rank
    posteriors = torch.zeros(members, 400, len(data.annotations.classes), dtype=torch.float64)
    for member in range(rank, members, n_processes):
        method = mh.classifiers.CrowdLayer(max_epochs=10, random_state=member)
        posteriors[member] = torch.from_numpy(method.fit(data.X, data.annotations, verbose=0).posterior_)
    if several:
        dist.reduce(posteriors, dst=0)  # every member is zero on all ranks but one, so the sum is exact
        dist.barrier()  # a rank that ends while another one still reads from it would be aborted
        dist.destroy_process_group()
    if rank == 0:
        np.save(content := io.BytesIO(), posteriors.mean(0).numpy())
        write_files(folder, {"posterior.npy": content.getvalue()}, force=True)
        print(f"mean posterior of {members} members (processes: {n_processes}): {folder}/posterior.npy")


if __name__ == "__main__":
    train(sys.argv[1] if len(sys.argv) > 1 else "members")

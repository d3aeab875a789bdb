"""What an epoch of the network methods costs, beside the network alone and beside the peers: `make bench`.

    python benchmarks/learning.py [THREADS] [--rounds 3]

10,000 items x 512 features, 5 labels per item, 8 classes, a perceptron of 128 hidden units with dropout, Adam, batches
of 512 items, at 100 and 1,000 workers. Every figure is the least of many epochs in whole fits; methods take turns, so
that a busy machine slows them all. CPU time on one thread, else wall time. Prints Markdown, then one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from learning_peers import PEERS
from torch.nn import functional as F

from manyhands import Annotations, registry
from manyhands._core.progress import listening
from manyhands.nn.backbones import mlp

N_ITEMS, N_FEATURES, N_CLASSES, PER_ITEM, BATCH, N_EPOCHS = 10_000, 512, 8, 5, 512, 5
CROWDS = 100, 1000
SETTINGS = {"batch_size": BATCH, "max_epochs": N_EPOCHS, "patience": None, "random_state": 0}
ALONE = "two-stage"  # a vote, then the network alone: what others are compared with
METHODS: dict[str, dict[str, Any]] = {
    ALONE: {"aggregator": "majority-vote"},
    "crowd-layer": {},
    "spee-lfc": {},
    "trace-reg": {"warm_up": 0},  # the penalty from the first epoch on
    "conal": {},
}
LIMITS = {"crowd-layer": (2.0, 1.3), "spee-lfc": (1.5, 1.3), "trace-reg": (1.5, 1.3)}  # of ALONE; growth
GOALS = {"crowd-kit CrowdLayer, as documented": 4.0, "crowd-kit CoNAL, as documented": 6.0}
BARE = "a bare loop of torch"

Epochs = Callable[[np.ndarray, Annotations], list[float]]  # seconds of each epoch but the first


def main(threads: int, rounds: int) -> None:
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    clock = time.process_time if threads == 1 else time.perf_counter
    seconds = _least(_jobs(clock), rounds)
    print(f"## Epochs\n\n{threads} threads, load {os.getloadavg()[0]:.1f}.\n")
    epochs = _epoch_table(seconds)
    print("\n## Beside the peers\n\nSeconds of an epoch; the ratio is the peer's to ours in the same run.\n")
    peers = _peer_table(seconds)
    print("\n## Memory\n\nHighest resident size during a fit beyond that before it, MB; 50,000 labels.\n")
    memory = _memory_table()
    print("\n" + json.dumps({"threads": threads, "epochs": epochs, "peers": peers, "memory_mb": memory}))


def make_crowd(n_workers: int) -> tuple[np.ndarray, Annotations]:
    """Random features and labels: the time does not depend on what they say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ITEMS, N_FEATURES)).astype(np.float32)
    worker = (rng.integers(0, n_workers, (N_ITEMS, 1)) + np.arange(PER_ITEM) * (n_workers // PER_ITEM)) % n_workers
    item, label = np.repeat(np.arange(N_ITEMS), PER_ITEM), rng.integers(0, N_CLASSES, N_ITEMS * PER_ITEM)
    ids = {"item_ids": np.arange(N_ITEMS), "worker_ids": np.arange(n_workers), "classes": np.arange(N_CLASSES)}
    return X, Annotations(item, worker.ravel(), label, **ids)


def _jobs(clock: Callable[[], float]) -> dict[str, Epochs]:
    def ours(name: str) -> Epochs:
        def run(X: np.ndarray, votes: Annotations) -> list[float]:
            stamps: list[float] = []
            with listening(lambda done, total, what: stamps.append(clock()) if what == "training" else None):
                _create(name).fit(X, votes)
            return np.diff(stamps).tolist()

        return run

    def peer(run: Callable[..., list[float]]) -> Epochs:
        return lambda X, votes: run(X, votes, BATCH, 3, clock)

    jobs: dict[str, Epochs] = {BARE: lambda X, votes: _bare(X, clock)}
    jobs |= {name: ours(name) for name in METHODS}
    return jobs | {name: peer(run) for name, (run, _) in PEERS.items()}


def _create(name: str) -> Any:
    return registry.create(name, **METHODS[name], **SETTINGS)


def _bare(X: np.ndarray, clock: Callable[[], float]) -> list[float]:
    """The network alone, without a line of this library's training: one label per item, ready tensors."""
    network, x, label = mlp((N_FEATURES, 128, N_CLASSES)), torch.from_numpy(X), torch.randint(N_CLASSES, (len(X),))
    optimizer, stamps = torch.optim.Adam(network.parameters()), []
    for _ in range(N_EPOCHS):
        for chosen in torch.randperm(len(x)).split(BATCH):
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(network(x[chosen]), label[chosen]).backward()
            optimizer.step()
        stamps.append(clock())
    return np.diff(stamps).tolist()


def _least(jobs: dict[str, Epochs], rounds: int) -> dict[str, list[float]]:
    """Seconds of the shortest epoch of every job, for each crowd."""
    crowds = [make_crowd(n_workers) for n_workers in CROWDS]
    least = {name: [float("inf")] * len(crowds) for name in jobs}
    for turn in range(rounds):
        for name, run in jobs.items():
            if name in PEERS and turn and "documented" in name:  # its epochs are long
                continue
            for i, crowd in enumerate(crowds):
                least[name][i] = min(least[name][i], *run(*crowd))
    return least


def _epoch_table(seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    _row("method", *(f"{n:,} workers s" for n in CROWDS), "of the network alone", "limit", "growth", "limit")
    _row(*["---"] * 7)
    found = {}
    for name in (BARE, *METHODS):
        few, many = seconds[name]
        ratio, growth = few / min(seconds[ALONE]), many / few
        limits = [f"{limit:.1f}x" for limit in LIMITS.get(name, ())] or ["", ""]
        _row(name, f"{few:.4f}", f"{many:.4f}", f"{ratio:.2f}x", limits[0], f"{growth:.2f}x", limits[1])
        found[name] = {"few_s": round(few, 5), "many_s": round(many, 5), "ratio": round(ratio, 3)}
        found[name]["growth"] = round(growth, 3)
    return found


def _peer_table(seconds: dict[str, list[float]]) -> dict[str, list[float]]:
    _row("peer", "ours", *(cell for n in CROWDS for cell in (f"{n:,} workers s", "ratio")), "goal")
    _row(*["---"] * (3 + 2 * len(CROWDS)))
    found = {}
    for peer, (_, name) in PEERS.items():
        ratios = [theirs / ours for theirs, ours in zip(seconds[peer], seconds[name])]
        cells = [cell for s, r in zip(seconds[peer], ratios) for cell in (f"{s:.3f}", f"{r:.1f}x")]
        _row(peer, name, *cells, f"{GOALS[peer]:.0f}x" if peer in GOALS else "")
        found[peer] = [round(ratio, 2) for ratio in ratios]
    return found


def _memory_table() -> dict[str, list[float]]:
    crowds = 100, 10_000
    _row("method", *(f"{n:,} workers" for n in crowds), "of items x workers in bytes")
    _row(*["---"] * (2 + len(crowds)))
    found = {}
    for name in ("crowd-layer", "trace-reg", "conal"):
        megabytes = [_in_a_process(name, n) for n in crowds]
        share = (megabytes[1] - megabytes[0]) * 1e6 / (N_ITEMS * (crowds[1] - crowds[0]))
        _row(name, *(f"{m:.0f}" for m in megabytes), f"{share:.2f}")
        found[name] = [round(m, 1) for m in megabytes]
    return found


def _in_a_process(name: str, n_workers: int) -> float:
    command = [sys.executable, __file__, "--fit", name, str(n_workers)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _extra_megabytes(name: str, n_workers: int) -> float:
    """What a fit needs beyond the data, the libraries and torch's own start."""
    warnings.simplefilter("ignore")
    X, votes = make_crowd(n_workers)
    few = np.arange(BATCH)
    registry.create(name, **SETTINGS | {"max_epochs": 1}).fit(X[few], votes[few])
    Path("/proc/self/clear_refs").write_text("5")  # the highest size begins anew
    before = psutil.Process().memory_info().rss
    _create(name).fit(X, votes)
    highest = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(highest.split()[1]) * 1024 - before) / 1e6


def _row(*cells: Any) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("threads", nargs="?", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fit", nargs=2, metavar=("METHOD", "N_WORKERS"), help="print the megabytes of one fit")
    chosen = parser.parse_args()
    if chosen.fit:
        print(_extra_megabytes(chosen.fit[0], int(chosen.fit[1])))
    else:
        main(chosen.threads, chosen.rounds)

"""Nearest neighbours as ICED's synthesis needs them, by several libraries: `python benchmarks/neighbours.py`.

Five neighbours of 20,000 points among 5,000 in 64 dimensions; then the 45,000 points that balance 50,000 and 5,000,
beside imbalanced-learn's SMOTE. Processor seconds, the better of two. Libraries that are not installed are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
from sklearn.neighbors import NearestNeighbors

from manyhands.classifiers.iced import synthetic_points

K, N_KNOWN, N_ASKED, N_DIMENSIONS = 5, 5_000, 20_000, 64


def embedding(n: int, rng: np.random.Generator) -> np.ndarray:
    """Points that lie about a few centres in eight of the dimensions, as those of a network do."""
    centre = rng.normal(size=(20, 8))[rng.integers(20, size=n)]
    turned = (centre + 0.3 * rng.normal(size=(n, 8))) @ rng.normal(size=(8, N_DIMENSIONS))
    return (turned + 0.1 * rng.normal(size=(n, N_DIMENSIONS))).astype(np.float32)


def say(name: str, work: Callable[[], object]) -> None:
    """The processor seconds of the better of two runs."""
    seconds = []
    for _ in range(2):
        began = time.process_time()
        work()
        seconds.append(time.process_time() - began)
    print(f"{name}: {min(seconds):.2f} s", flush=True)


def main() -> None:
    rng = np.random.default_rng(0)
    known, asked = embedding(N_KNOWN, rng), embedding(N_ASKED, rng)
    for algorithm in ("brute", "kd_tree", "ball_tree"):
        search = NearestNeighbors(n_neighbors=K, algorithm=algorithm)
        say(f"scikit-learn, {algorithm}", lambda s=search: s.fit(known).kneighbors(asked, return_distance=False))
    if find_spec("faiss"):
        import faiss

        faiss.omp_set_num_threads(1)
        index = faiss.IndexFlatL2(N_DIMENSIONS)
        index.add(known)
        say("faiss, flat", lambda: index.search(asked, K))
    large, small = embedding(50_000, rng), embedding(5_000, rng)
    say("our points", lambda: synthetic_points(small, np.ones(5_000), 45_000, np.random.default_rng(0)))
    if find_spec("imblearn"):
        from imblearn.over_sampling import SMOTE

        X, y = np.concatenate([large, small]), np.repeat([0, 1], [50_000, 5_000])
        say("imbalanced-learn's SMOTE", lambda: SMOTE(random_state=0).fit_resample(X, y))


if __name__ == "__main__":
    main()

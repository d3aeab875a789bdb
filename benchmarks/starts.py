"""Initial noise layers: the identity, or confusion matrices estimated by an aggregator.

    MANYHANDS_DATA=FOLDER python benchmarks/starts.py

Real crowds: the mean held-out log-likelihood in three folds of the items, without ground truth. Simulated crowds: three
workers of accuracy 0.8 against four spammers who always give the first class; accuracy on new items, mean and minimum
of five seeds. Prints Markdown.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.datasets import make_classification

from manyhands import Annotations, compare, datasets, registry
from manyhands.exceptions import CrowdWarning

CROWDS = ("music", "labelme", "leaves", "reports_mozilla", "cifar10s", "snow2008/rte", "weather_text")
METHODS = ("crowd-layer", "spee-lfc", "trace-reg", "conal")
INITS = ("identity", "dawid-skene")
N_TRAIN = 600


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", CrowdWarning)
    columns = [f"{method}, {init}" for method in METHODS for init in INITS]
    print(f"| crowd | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    for name in CROWDS:
        print(f"| {name} | {' | '.join(f'{score:.3f}' for score in _heldout_scores(name))} |", flush=True)
    for n_classes in (2, 3):
        cells = [_spammer_majority(method, init, n_classes) for method in METHODS for init in INITS]
        print(f"| spammer majority, {n_classes} classes: accuracy | {' | '.join(cells)} |", flush=True)


def _heldout_scores(name: str) -> list[float]:
    data = datasets.load(name)
    X = (data.X - data.X.mean(axis=0)) / (data.X.std(axis=0) + 1e-9)
    methods = [(method, {"init": init}) for method in METHODS for init in INITS]
    found = compare.compare(methods, data.annotations, X, n_folds=3, random_state=0)
    return found.mean.tolist()


def _spammer_majority(method: str, init: str, n_classes: int) -> str:
    accuracy = []
    for seed in range(5):
        X, y = make_classification(
            N_TRAIN + 1000, 20, n_informative=8, n_classes=n_classes, n_clusters_per_class=1, random_state=seed
        )
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        rng = np.random.default_rng(seed)
        wrong = (y[:N_TRAIN, None] + rng.integers(1, n_classes, (N_TRAIN, 3))) % n_classes
        correct = np.where(rng.random((N_TRAIN, 3)) < 0.8, y[:N_TRAIN, None], wrong)
        votes = Annotations.from_matrix(np.hstack([correct, np.zeros((N_TRAIN, 4), int)]))
        model = registry.create(method, init=init, random_state=seed).fit(X[:N_TRAIN], votes)
        accuracy.append(float(np.mean(model.predict(X[N_TRAIN:]) == y[N_TRAIN:])))
    return f"{np.mean(accuracy):.2f} ({min(accuracy):.2f})"


if __name__ == "__main__":
    main()

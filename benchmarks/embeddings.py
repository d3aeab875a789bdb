"""NeuCrowd's embedding and sampling network, evaluated: `python benchmarks/embeddings.py`.

1. Logistic regression on the embedding and on the features, for 500 labels: two clusters in each of two classes, 20
   informative features, five workers of accuracy 0.8. Accuracy on 1,000 new items, ten seeds.
2. Whether the sampling network finds hard tuplets, on Hotel: the rank correlation of predicted and actual losses of new
   tuplets, and the mean loss of the quarter of highest predicted loss, against that of all.

The losses by epoch (Figure 2 of the paper) are the table neucrowd/figure-2.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegressionCV

from manyhands import MajorityVote, NeuCrowd, datasets
from manyhands.annotations import Annotations
from manyhands.nn.losses import safe_sqrt, tuplet_losses
from manyhands.representation.neucrowd_training import Pool, robust_anchor

SWITCHES = {
    "NeuCrowd": {},
    "-SA": {"safety": None},
    "-SA-RA": {"safety": None, "anchor": None},
}


def five_hundred_labels(n_items: int, n_workers: int, seed: int) -> tuple[Any, Annotations, Any, Any]:
    """Features, labels, and new items with their classes."""
    X, y = make_classification(
        n_items + 1000, 20, n_informative=20, n_redundant=0, n_clusters_per_class=2, random_state=seed
    )
    rng = np.random.default_rng(seed)
    truth = y[:n_items, None].repeat(n_workers, axis=1)
    labels = np.where(rng.random(truth.shape) < 0.2, 1 - truth, truth)
    X = (X - X[:n_items].mean(axis=0)) / X[:n_items].std(axis=0)
    return X[:n_items], Annotations.from_matrix(labels), X[n_items:], y[n_items:]


def compare_with_features() -> None:
    """Print the accuracy of a linear classifier on both."""
    for n_items, n_workers in ((100, 5), (500, 1)):
        found: dict[str, list[float]] = {}
        for seed in range(9200, 9210):
            X, votes, X_test, y_test = five_hundred_labels(n_items, n_workers, seed)
            models = {
                "embedding, as published": NeuCrowd(random_state=seed).fit(X, votes),
                "embedding, plus": NeuCrowd.plus(head__skip=False, random_state=seed).fit(X, votes),
                "embedding and features, plus": NeuCrowd.plus(random_state=seed).fit(X, votes),
            }
            vote = MajorityVote().fit(votes).labels_
            features = LogisticRegressionCV(Cs=9, cv=5, l1_ratios=(0,), use_legacy_attributes=False).fit(X, vote)
            found.setdefault("features", []).append(float(np.mean(features.predict(X_test) == y_test)))
            for name, model in models.items():
                found.setdefault(name, []).append(float(np.mean(model.predict(X_test) == y_test)))
        print(f"{n_items} items with {n_workers} labels each:")
        for name, accuracies in found.items():
            print(f"  {name:38} {np.mean(accuracies):.3f} ± {np.std(accuracies, ddof=1):.3f}")


def fit_hotel() -> Iterator[tuple[str, NeuCrowd, Any]]:
    """NeuCrowd with and without its parts, as published, on Hotel."""
    hotel = datasets.load("neucrowd_hotel")
    X = (hotel.X - hotel.X.mean(axis=0)) / hotel.X.std(axis=0)
    ones = hotel.votes[:, 1]
    votes = Annotations.from_matrix(np.arange(hotel.votes.sum(axis=1).max()) < ones[:, None])
    for name, switches in SWITCHES.items():
        yield name, NeuCrowd(search=None, patience=None, max_epochs=25, random_state=0, **switches).fit(X, votes), X


def show_samplers() -> None:
    """Print the evaluation of each sampling network."""
    for name, model, X in fit_hotel():
        print(f"{name:10} " + evaluate_sampler(model, X))


@torch.no_grad()
def evaluate_sampler(model: NeuCrowd, X: Any) -> str:
    """How well the sampling network predicts the losses of new tuplets."""
    code = model.aggregator_.posterior_.argmax(axis=1)
    pool, rng = Pool.of(code, np.ones(len(code), bool)), np.random.default_rng(1)
    tuplets = np.vstack([pool.draw(own, 2000, model.tuplets.size - 2, rng) for own in (0, 1)])
    x = torch.from_numpy(X).float()
    embedding, confidence = torch.from_numpy(model.transform(X)), torch.from_numpy(model.confidence_)
    anchors = embedding[tuplets[:, 0]].unsqueeze(1)
    if model.anchor is not None:
        halves = [
            robust_anchor(embedding[own[:, 0]], confidence[own[:, 0]], "weighted") for own in np.split(tuplets, 2)
        ]
        anchors = torch.stack(halves).repeat_interleave(2000, 0).unsqueeze(1)
    similarity = 1 - safe_sqrt((embedding[tuplets[:, 1:]] - anchors).square().sum(2))
    losses = tuplet_losses(similarity, confidence[tuplets[:, 1:]], model.loss.scale, inside=True).numpy()
    predicted = model.samplers_[0](x, tuplets).numpy()
    hard = np.argsort(-predicted)[: len(predicted) // 4]
    return (
        f"new tuplets: rank correlation {spearmanr(predicted, losses).statistic:.2f}, mean loss of those predicted "
        f"hardest {losses[hard].mean():.3f}, of all {losses.mean():.3f}"
    )


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    warnings.simplefilter("ignore")
    compare_with_features()
    show_samplers()

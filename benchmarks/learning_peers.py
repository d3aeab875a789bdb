"""The peers of benchmarks/learning.py: seconds of each of some epochs of crowd-kit's and scikit-activeml's methods.

All train the same perceptron with Adam, in steps of the labels of 512 items.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from manyhands import Annotations
from manyhands.nn.backbones import mlp

Clock = Callable[[], float]


def crowd_kit_crowd_layer(X: np.ndarray, votes: Annotations, batch: int, epochs: int, clock: Clock) -> list[float]:
    """As documented, a row per label: `CrowdLayer(n_classes, n_workers)(network(x), workers)`."""
    from crowdkit.learning import CrowdLayer

    network, layer = _network(X, votes), CrowdLayer(votes.n_classes, votes.n_workers)

    def answers(x: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        return layer(network(x), worker)

    return _row_per_label(answers, [network, layer], X, votes, batch, epochs, clock)


def crowd_kit_conal(X: np.ndarray, votes: Annotations, batch: int, epochs: int, clock: Clock) -> list[float]:
    """As documented, a row per label: `CoNAL(n_classes, n_workers)(embeddings, logits, workers)`."""
    from crowdkit.learning import CoNAL

    network, layer = _network(X, votes), CoNAL(votes.n_classes, votes.n_workers)
    layer(torch.from_numpy(X[:2]), network(torch.from_numpy(X[:2])), torch.zeros(2, dtype=torch.long))  # sets its sizes

    def answers(x: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        return layer(x, network(x), worker)

    return _row_per_label(answers, [network, layer], X, votes, batch, epochs, clock)


def scikit_activeml(X: np.ndarray, votes: Annotations, batch: int, epochs: int, clock: Clock) -> list[float]:
    """`CrowdLayerClassifier`, which takes a matrix items x workers; its own figures of what each epoch took."""
    from skactiveml.classifier.multiannotator import CrowdLayerClassifier
    from skorch.callbacks import Callback

    class Stamps(Callback):
        def on_epoch_end(self, net: Any, **_: Any) -> None:
            stamps.append(clock())

    stamps: list[float] = []
    matrix = np.full((votes.n_items, votes.n_workers), np.nan)
    matrix[votes.item, votes.worker] = votes.label
    settings = {"max_epochs": epochs, "batch_size": batch, "optimizer": torch.optim.Adam, "verbose": 0}
    settings |= {"iterator_train__shuffle": True, "callbacks": [("stamps", Stamps())], "callbacks__print_log": None}
    model = CrowdLayerClassifier(
        _network(X, votes), classes=np.arange(votes.n_classes), neural_net_param_dict=settings, random_state=0
    )
    model.fit(X, matrix)
    return np.diff(stamps).tolist()


# Each peer, and the method of ours that it stands beside.
PEERS = {
    "crowd-kit CrowdLayer": (crowd_kit_crowd_layer, "crowd-layer"),
    "crowd-kit CoNAL": (crowd_kit_conal, "conal"),
    "scikit-activeml CrowdLayerClassifier": (scikit_activeml, "crowd-layer"),
}


def _network(X: np.ndarray, votes: Annotations) -> nn.Module:
    return mlp((X.shape[1], 128, votes.n_classes))


def _row_per_label(
    answers: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    modules: list[nn.Module],
    X: np.ndarray,
    votes: Annotations,
    batch: int,
    epochs: int,
    clock: Clock,
) -> list[float]:
    """The loop a user of crowd-kit writes, with ready tensors instead of a slower DataLoader, and as many steps."""
    x = torch.from_numpy(X)
    item, worker, label = (torch.from_numpy(c.astype(np.int64)) for c in (votes.item, votes.worker, votes.label))
    optimizer = torch.optim.Adam([p for module in modules for p in module.parameters() if p.requires_grad])
    size, stamps = batch * len(item) // len(x), [clock()]
    for _ in range(epochs):
        for chosen in torch.randperm(len(item)).split(size):
            loss = F.cross_entropy(answers(x[item[chosen]], worker[chosen]), label[chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        stamps.append(clock())
    return np.diff(stamps[1:]).tolist()  # the first epoch warms up

"""The peers of benchmarks/learning.py: seconds of each of some epochs of crowd-kit's and scikit-activeml's methods.

All train the same perceptron with Adam, in steps of the labels of 512 items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from manyhands import Annotations
from manyhands.nn.backbones import mlp

Clock = Callable[[], float]


def crowd_kit_crowd_layer(
    X: np.ndarray, votes: Annotations, batch: int, epochs: int, clock: Clock, *, loader: bool
) -> list[float]:
    """A row per label: `CrowdLayer(n_classes, n_workers)(network(x), workers)`."""
    from crowdkit.learning import CrowdLayer

    network, layer = _network(X, votes), CrowdLayer(votes.n_classes, votes.n_workers)

    def answers(x: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        return layer(network(x), worker)

    rows = _loaded_rows(X, votes, batch) if loader else _ReadyRows(X, votes, batch)
    return _train(answers, [network, layer], rows, epochs, clock)


def crowd_kit_conal(
    X: np.ndarray, votes: Annotations, batch: int, epochs: int, clock: Clock, *, loader: bool
) -> list[float]:
    """A row per label: `CoNAL(n_classes, n_workers)(embeddings, logits, workers)`, of x as in ours."""
    from crowdkit.learning import CoNAL

    network, layer = _network(X, votes), CoNAL(votes.n_classes, votes.n_workers)
    layer(torch.from_numpy(X[:2]), network(torch.from_numpy(X[:2])), torch.zeros(2, dtype=torch.long))  # sets its sizes

    def answers(x: torch.Tensor, worker: torch.Tensor) -> torch.Tensor:
        return layer(x, network(x), worker)

    rows = _loaded_rows(X, votes, batch) if loader else _ReadyRows(X, votes, batch)
    return _train(answers, [network, layer], rows, epochs, clock)


def scikit_activeml(X: np.ndarray, votes: Annotations, batch: int, epochs: int, clock: Clock) -> list[float]:
    """`CrowdLayerClassifier`, which takes a matrix items x workers; only the items without any label are left out."""
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


# Each peer, and the method of ours that it stands beside. crowd-kit's example feeds its layers by a DataLoader over a
# Dataset of one row per label; with ready tensors instead, only the layers and the repeated rows are compared.
PEERS: dict[str, tuple[Callable[..., list[float]], str]] = {
    "crowd-kit CrowdLayer, as documented": (partial(crowd_kit_crowd_layer, loader=True), "crowd-layer"),
    "crowd-kit CrowdLayer, ready tensors": (partial(crowd_kit_crowd_layer, loader=False), "crowd-layer"),
    "crowd-kit CoNAL, as documented": (partial(crowd_kit_conal, loader=True), "conal"),
    "crowd-kit CoNAL, ready tensors": (partial(crowd_kit_conal, loader=False), "conal"),
    "scikit-activeml CrowdLayerClassifier": (scikit_activeml, "crowd-layer"),
}


def _network(X: np.ndarray, votes: Annotations) -> nn.Module:
    return mlp((X.shape[1], 128, votes.n_classes))


class _Labels(Dataset[tuple[torch.Tensor, ...]]):
    """A row per label: the features of its item, its worker, its class."""

    def __init__(self, X: np.ndarray, votes: Annotations) -> None:
        self.x, self.columns = torch.from_numpy(X), _columns(votes)

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, i: int) -> tuple[torch.Tensor, ...]:
        item, worker, label = (column[i] for column in self.columns)
        return self.x[item], worker, label


def _loaded_rows(X: np.ndarray, votes: Annotations, batch: int) -> Iterable[Any]:
    return DataLoader(_Labels(X, votes), batch_size=batch * votes.n_annotations // len(X), shuffle=True)


class _ReadyRows:
    """The same batches without a Python object per label."""

    def __init__(self, X: np.ndarray, votes: Annotations, batch: int) -> None:
        self.x, self.columns = torch.from_numpy(X), _columns(votes)
        self.size = batch * votes.n_annotations // len(X)

    def __iter__(self) -> Iterator[tuple[torch.Tensor, ...]]:
        item, worker, label = self.columns
        for chosen in torch.randperm(len(item)).split(self.size):
            yield self.x[item[chosen]], worker[chosen], label[chosen]


def _columns(votes: Annotations) -> list[torch.Tensor]:
    return [torch.from_numpy(codes.astype(np.int64)) for codes in (votes.item, votes.worker, votes.label)]


def _train(
    answers: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    modules: list[nn.Module],
    rows: Iterable[Any],
    epochs: int,
    clock: Clock,
) -> list[float]:
    """The loop that a user of crowd-kit writes; seconds of each epoch but the first."""
    optimizer, stamps = torch.optim.Adam([p for m in modules for p in m.parameters() if p.requires_grad]), []
    for _ in range(epochs):
        for x, worker, label in rows:
            optimizer.zero_grad()
            F.cross_entropy(answers(x, worker), label).backward()
            optimizer.step()
        stamps.append(clock())
    return np.diff(stamps).tolist()

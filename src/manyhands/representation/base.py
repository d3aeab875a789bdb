"""The base of all learners of representations: their parameters, and `transform`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.base import AGGREGATOR, FeatureMethod
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkMethod, NetworkParameters
from manyhands.em.kernels import Array
from manyhands.validation import Constraint, Number

if TYPE_CHECKING:
    from torch import nn

# What the parameters of every learner of representations may be.
REPRESENTATION_CONSTRAINTS: dict[str, Constraint] = NETWORK_CONSTRAINTS | {
    "labels": AGGREGATOR,
    "embedding_size": Number(whole=True, least=1),
}


class RepresentationParameters(NetworkParameters, total=False):
    """The parameters of every learner of representations, for `**others: Unpack[RepresentationParameters]`."""

    labels: Any
    embedding_size: int


class RepresentationLearner(NetworkMethod, FeatureMethod):
    """A network that puts items of a class near each other, learnt from a crowd's labels.

    Any classifier can follow, in a scikit-learn `Pipeline` for instance. A method implements `_learn_network`.

    Parameters
    ----------
    labels : the aggregator that gives items their classes, by its name or as an instance; "one-coin" is "+EM"
    embedding_size : numbers in an embedding
    network : the parameters of `NetworkMethod`; a batch holds about batch_size items, in equal shares of its classes

    Attributes
    ----------
    aggregator_, posterior_ : the aggregator, fitted to all labels, and what it says of the training items
    module_ : the network from features to embeddings
    others : as in `FeatureMethod`
    """

    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS

    def __init__(
        self,
        *,
        labels: Any = "majority-vote",
        embedding_size: int = 32,
        dropout: float = 0.2,
        **network: Any,
    ) -> None:
        super().__init__(dropout=dropout, **network)
        self.labels = labels
        self.embedding_size = embedding_size

    def transform(self, X: Any) -> Array:
        """(n_rows, embedding_size) the embedding of each row."""
        from manyhands.nn.inference import outputs

        rows = self._like_fitted(X)
        if len(rows) == 0:
            return np.zeros((0, self.embedding_size))
        return np.hstack([outputs(embedder, rows).numpy() for embedder in self._embedders()])

    def fit_transform(self, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Array:
        """`fit`, then the embedding of each row."""
        return self.fit(X, annotations, gold).transform(X)

    def _embedders(self) -> list[nn.Module]:
        """The networks whose outputs, side by side, are the embedding; a method whose module is more overrides it."""
        return [self.module_]

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return super()._new_module(row_shape, self.embedding_size, n_workers)

"""The base of all learners of representations: the door of `fit`, the one place that stores results, `transform`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.base import AGGREGATOR, Learned, Task, expected_accuracy
from manyhands.classifiers.network import NETWORK_CONSTRAINTS, NetworkMethod, NetworkParameters
from manyhands.exceptions import AlignmentError, CrowdWarning
from manyhands.kernels import Array
from manyhands.nn.inputs import as_rows, check_rows
from manyhands.priors import gold_codes
from manyhands.validation import Constraint, Number, check_annotations

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


class RepresentationLearner(NetworkMethod):
    """A network that puts items of a class near each other, learnt from a crowd's labels.

    Any classifier can follow, in a scikit-learn `Pipeline` for instance. A method implements `_learn_network`.

    Parameters
    ----------
    labels : the aggregator that gives items their classes, by its name or as an instance; "one-coin" is "+EM"
    embedding_size : numbers in an embedding
    network : the parameters of `NetworkMethod`; a batch holds about batch_size items, in equal shares of its classes

    Attributes
    ----------
    classes_, worker_ids_ : as in the annotations
    aggregator_, posterior_ : the aggregator, fitted to all labels, and what it says of the training items
    worker_accuracy_ : (n_workers,) expected share of right labels, drawn toward 0.7 by one label
    history_ : one dict per epoch, the mean of each loss and "heldout" where labels were held out
    module_ : the network from features to embeddings
    notes_ : what the data do not allow to conclude, by code; each was raised as a CrowdWarning
    """

    _fit_takes: ClassVar[str] = "(X, annotations)"
    _constraints: ClassVar[dict[str, Constraint]] = REPRESENTATION_CONSTRAINTS

    classes_: npt.NDArray[Any]
    worker_ids_: npt.NDArray[Any]
    worker_accuracy_: Array
    posterior_: Array
    history_: list[dict[str, float]]
    module_: Any
    notes_: dict[str, str]
    _row_shape: tuple[int, ...]

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

    def fit(self, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Self:
        """Learn an embedding; row i of X is item i of the annotations.

        Parameters
        ----------
        X : array, mapped file, sparse matrix, images (n, channels, height, width), tensor, or a getter of rows
        annotations : the crowd's labels; items without any are legal
        gold : {item: class} where the truth is known
        """
        self._check_parameters()
        check_annotations(annotations)
        rows = as_rows(X)
        check_rows(rows, annotations.n_items)
        task = Task(rows, annotations, gold_codes(gold, annotations.item_ids, annotations.classes))
        self._store(task, self._learn(task))
        return self

    def transform(self, X: Any) -> Array:
        """(n_rows, embedding_size) the embedding of each row."""
        from manyhands.nn.networks import outputs

        self._check_fitted()
        rows = as_rows(X)
        if rows.shape != self._row_shape:
            raise AlignmentError(
                f"A row of X has shape {rows.shape}, but this {type(self).__name__} was fitted with {self._row_shape}."
            )
        if len(rows) == 0:
            return np.zeros((0, self.embedding_size))
        return np.asarray(outputs(self.module_, rows).numpy())

    def fit_transform(self, X: Any, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Array:
        """`fit`, then the embedding of each row."""
        return self.fit(X, annotations, gold).transform(X)

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the fitted learner as JSON and safetensors; `manyhands.load_model` reads it in any process."""
        from manyhands.classifiers.saving import save_model

        self._check_fitted()
        save_model(self, folder, force=force)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return super()._new_module(row_shape, self.embedding_size, n_workers)

    def _store(self, task: Task, learned: Learned) -> None:
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)  # a second fit forgets the first
        annotations, posterior = task.annotations, learned.posterior
        assert posterior is not None
        self._row_shape = task.rows.shape
        self.classes_, self.worker_ids_ = annotations.classes, annotations.worker_ids
        self.module_, self.history_ = learned.module, learned.history
        self.posterior_ = posterior
        self.worker_accuracy_ = expected_accuracy(annotations, posterior)
        for name, value in learned.results.items():
            setattr(self, name, value)
        self.notes_ = dict(learned.notes)
        for code_word, sentence in self.notes_.items():
            warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=3)

"""A method whose posterior is mapped to the truth by answers."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, vote_share
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.trust.answer_map import Consensus, MapParameters
from manyhands.validation import Constraint


@dataclass(frozen=True)
class _InstanceOf:
    """An object of a class."""

    type_text: str
    kinds: tuple[type, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is an object of the class."""
        return isinstance(value, self.kinds)

    def __str__(self) -> str:
        return f"an object of the type {self.type_text}"


class CalibratedAggregator(Aggregator):
    """A fitted method whose posterior was recalibrated; made by `manyhands.calibrate`.

    Fitting it fits the method and maps its posterior with the same parameters. All attributes of aggregators are those
    of the mapped posterior.

    Parameters
    ----------
    model : Aggregator
        The method.
    parameters : MapParameters or None, default=None
        The map from its posterior to the truth; None leaves the posterior as it is.
    hidden : collection of items, default=()
        Items whose gold makes the result certain but is not seen by the method: the answers that the map was fitted to.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `posterior_`.
    item_ids_ : ndarray of shape (n_items,)
        The items, in the order of the rows of `posterior_`.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers.
    posterior_ : ndarray of shape (n_items, n_classes)
        Calibrated p(truth | labels) of each item; rows sum to 1.
    labels_ : ndarray of shape (n_items,)
        Inferred class of each item, in the caller's own values; None for an item without labels.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of right labels under `posterior_`, with one pseudo-count of accuracy 0.7.
    tied_ : ndarray of shape (n_items,) of bool
        Items on which several classes have the largest probability.
    unlabelled_ : ndarray of shape (n_items,) of bool
        Items without a label and without gold.
    n_iter_ : int
        Number of passes over the data.
    converged_ : bool
        Whether the method converged within `max_iter`.
    history_ : list of float
        Objective after each iteration; empty for methods without one.
    notes_ : dict of str to str
        Limitations of the result, by code, such as "no_redundancy"; each was also issued as a CrowdWarning.
    annotations_ : Annotations
        The annotations that were passed to `fit`.
    model_ : Aggregator
        The fitted method.

    Examples
    --------
    >>> from manyhands import Annotations, DawidSkene
    >>> from manyhands.trust.answer_map import tempered
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    >>> CalibratedAggregator(DawidSkene(), tempered(2)).fit(votes).labels_.tolist()
    [0, 1, 0]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "model": _InstanceOf("Aggregator", (Aggregator,)),
        "parameters": _InstanceOf("MapParameters or None", (MapParameters, type(None))),
        "hidden": _InstanceOf("collection of items", (tuple, list, set, frozenset, dict)),
    }

    model_: Aggregator
    calibration_: Any
    selection_: Any

    def __init__(
        self, model: Aggregator, parameters: MapParameters | None = None, hidden: Collection[Any] = ()
    ) -> None:
        self.model = model
        self.parameters = parameters
        self.hidden = hidden

    def predict_proba(self, annotations: Annotations) -> Array:
        """Calibrated posterior of items given their labels and the worker parameters estimated by `fit`.

        Parameters
        ----------
        annotations : Annotations
            Labels of any items, by workers who need not have been in `fit`.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Rows sum to 1. Items that had gold in `fit` are certain.
        """
        posterior = self.model_.predict_proba(annotations)
        share = vote_share(self._align(annotations))
        return self._map(posterior, share, annotations.n_labels == 0, self._known_gold(annotations))

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Refused: save the method, and its labels as a table.

        Parameters
        ----------
        folder : str or Path
            Not written.
        force : bool, default=False
            Not used.

        Raises
        ------
        ParameterError
            Always.
        """
        raise ParameterError("A calibrated model cannot be saved: save its model_, and label_frame(model) as a table.")

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        model = type(self.model)(**self.model.get_params(deep=False))
        hidden = set(self.hidden)
        values = {} if gold is None else _values(annotations, gold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # the notes of this model are the same
            model.fit(annotations, {item: label for item, label in values.items() if item not in hidden} or None)
        posterior = self._map(model.posterior_, vote_share(annotations), annotations.n_labels == 0, gold)
        confusion = getattr(model, "confusion_", None)
        results = {"model_": model} | ({} if confusion is None else {"confusion_": confusion})
        return Inference(posterior, None, model.n_iter_, model.converged_, list(model.history_), results, model.notes_)

    def _map(self, posterior: Array, share: Array, unlabelled: Any, gold: Gold) -> Array:
        """Map the posterior of items with labels, and make gold certain."""
        mapped = np.array(posterior)
        if self.parameters is not None:
            share = np.where(unlabelled[:, None], 1.0 / posterior.shape[1], share)
            mapped = self.parameters.apply(Consensus.of(posterior, share))
            mapped[unlabelled] = posterior[unlabelled]
        if gold is not None:
            rows = np.flatnonzero(gold >= 0)
            mapped[rows] = np.eye(posterior.shape[1])[gold[rows]]
        return mapped


def _values(annotations: Annotations, gold: Any) -> dict[Any, Any]:
    """Gold codes as a mapping of item to class."""
    rows = np.flatnonzero(gold >= 0)
    return dict(zip(annotations.item_ids[rows].tolist(), annotations.classes[gold[rows]].tolist()))

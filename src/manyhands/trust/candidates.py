"""Candidates: the methods among which answers decide, fitted to the same annotations."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning
from manyhands.progress import report

DEFAULT = registry.DEFAULT
VOTE = "majority-vote"
CANDIDATES = (  # all that need nothing but labels; more candidates would need more answers
    DEFAULT, VOTE, "dawid-skene", "glad", "ibcc", "kos", "mace", "one-coin", "vote-difficulty-em", "wawa",
)  # fmt: skip
ALWAYS, NEVER = f"{DEFAULT}-always", f"{DEFAULT}-never"
VARIANTS = {ALWAYS: {"overrule": "always"}, NEVER: {"overrule": "never"}}  # of the default: answers decide its rule
_TWO_CLASSES = ("kos",)  # methods that are defined for two classes only


def candidate_names(annotations: Annotations, methods: Sequence[str] | None = None) -> list[str]:
    """Return the names of the candidates, the default first.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    methods : sequence of str or None, default=None
        Registry names of aggregators; None takes the ten of `CANDIDATES`, "kos" for two classes only, and the two
        `VARIANTS` of the default.

    Returns
    -------
    list of str
        The default, the majority vote, then the others in alphabetical order.

    Raises
    ------
    ParameterError
        If a name is not that of an aggregator.
    """
    for name in methods or ():
        registry.check_name(name if name not in VARIANTS else DEFAULT, "aggregator")
    usable = [name for name in CANDIDATES if name not in _TWO_CLASSES or annotations.n_classes == 2]
    chosen = [*usable, *VARIANTS] if methods is None else list(methods)
    return list(dict.fromkeys([DEFAULT, VOTE, *sorted(chosen)]))


def create_candidate(name: str, random_state: int = 0) -> Aggregator:
    """Create a candidate.

    Parameters
    ----------
    name : str
        Registry name of an aggregator, or a variant of the default.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Aggregator
        Not fitted.
    """
    model: Aggregator = registry.create_seeded(registry_name(name), random_state)
    return model.set_params(**VARIANTS.get(name, {}))


def registry_name(name: str) -> str:
    """Return the name under which a candidate is registered.

    Parameters
    ----------
    name : str
        Name of a candidate.

    Returns
    -------
    str
        That of the default for its variants.

    Examples
    --------
    >>> registry_name("wawa"), registry_name("pooled-dawid-skene-never")
    ('wawa', 'pooled-dawid-skene')
    """
    return DEFAULT if name in VARIANTS else name


def fit_candidates(
    annotations: Annotations,
    methods: Sequence[str] | None = None,
    random_state: int = 0,
    gold: Mapping[Any, Any] | None = None,
) -> dict[str, Aggregator]:
    """Fit every candidate to the annotations, without the answers.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    methods : sequence of str or None, default=None
        Registry names of aggregators; None takes the ten of `CANDIDATES`.
    random_state : int, default=0
        Seed of the methods that use random numbers.
    gold : mapping of item to class or None, default=None
        Known classes that are no answers.

    Returns
    -------
    dict of str to Aggregator
        The fitted methods, the default first.
    """
    names = candidate_names(annotations, methods)
    fitted: dict[str, Aggregator] = {}
    for done, name in enumerate(names):
        report(done, len(names), "Fitting the candidates")
        fitted[name] = fit_one(create_candidate(name, random_state), annotations, gold)
    report(len(names), len(names), "Fitting the candidates")
    return fitted


def fit_one(model: Aggregator, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Aggregator:
    """Fit one method without its notes, which are about the labels and the same for every candidate.

    Parameters
    ----------
    model : Aggregator
        The method.
    annotations : Annotations
        The crowd's labels.
    gold : mapping of item to class or None, default=None
        Known classes.

    Returns
    -------
    Aggregator
        The fitted method.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return model.fit(annotations, gold=dict(gold or {}) or None)


def label_codes(model: Aggregator) -> npt.NDArray[np.int64]:
    """Return the class code of each item's label.

    Parameters
    ----------
    model : Aggregator
        A fitted method.

    Returns
    -------
    ndarray of shape (n_items,) of int64
        Codes, -1 for an item without labels.
    """
    code = {label: k for k, label in enumerate(model.classes_.tolist())}
    return np.array([code.get(label, -1) for label in model.labels_.tolist()], np.int64)


def gold_of(model: Aggregator) -> dict[Any, Any]:
    """Return the gold that a fitted method was given.

    Parameters
    ----------
    model : Aggregator
        A fitted method.

    Returns
    -------
    dict of item to class
        The gold.
    """
    model.annotations_  # noqa: B018  # raises an error if the model is not fitted
    return dict(model._gold)


def vote_counts(annotations: Annotations) -> npt.NDArray[np.int64]:
    """Return the number of votes of each item for each class.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    ndarray of shape (n_items, n_classes) of int64
        The counts.
    """
    pair = annotations.item.astype(np.int64) * annotations.n_classes + annotations.label
    size = annotations.n_items * annotations.n_classes
    return np.bincount(pair, minlength=size).reshape(annotations.n_items, annotations.n_classes)

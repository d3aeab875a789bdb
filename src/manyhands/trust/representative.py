"""Which answers represent all items, and a model that has not seen them: what every estimate from answers needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.em.kernels import vote_share
from manyhands.exceptions import AnnotationError
from manyhands.trust.answers import CONTESTED, RANDOM, UNKNOWN, Answers
from manyhands.trust.calibrated_model import CalibratedAggregator
from manyhands.trust.candidates import fit_one, gold_of

Array = npt.NDArray[np.float64]


def usable_answers(answers: Answers, what: str) -> tuple[Answers, dict[Any, float]]:
    """Return the answers that represent all items, and the weight of each.

    Parameters
    ----------
    answers : Answers
        Answers of any kind.
    what : str
        What they are used for, as the beginning of a sentence.

    Returns
    -------
    answers : Answers
        Those about random items; all, if every stratum is known and has answers.
    weights : dict of item to float
        Mean 1.

    Raises
    ------
    AnnotationError
        If no answer is about a random item.
    """
    kinds = answers.kinds
    if set(kinds) == {RANDOM}:
        return answers, dict.fromkeys(answers.values, 1.0)
    random = answers.of_kind(RANDOM)
    if len(random):
        covered = {answers.stratum.get(item) for item in answers.values}
        whole = {name for name, size in answers.sizes.items() if size}
        is_complete = sum(answers.sizes.values()) == answers.n_items and whole <= covered
        if UNKNOWN not in kinds and is_complete and all(item in answers.stratum for item in answers.values):
            return answers, answers.weights()
        return random, dict.fromkeys(random.values, 1.0)
    if CONTESTED in kinds:
        raise AnnotationError(
            f"{what} needs answers about random items: these {len(answers)} are about contested ones, on which the "
            f"methods disagree and err more often than elsewhere, and no weight can replace answers about the others. "
            f"Draw random ones: manyhands ask --purpose confidence, or mh.random_items."
        )
    raise AnnotationError(
        f"{what} needs answers about random items, and it is not known how the items of these {len(answers)} were "
        f"drawn. If each item had the same probability, say so: mh.Answers(answers, sampled='random')."
    )


def without_answers(model: Aggregator, answers: Answers) -> Aggregator:
    """Return a fitted model that has not seen the answers.

    Parameters
    ----------
    model : Aggregator
        A fitted model.
    answers : Answers
        The answers.

    Returns
    -------
    Aggregator
        The model itself if none of the answers was gold of its fit, else one that was fitted without them; of a
        calibrated model, the method that it is made of, with the posterior as it is.
    """
    gold = gold_of(model)
    kept = {item: label for item, label in gold.items() if item not in answers.values}
    if isinstance(model, CalibratedAggregator):
        fresh: Aggregator = CalibratedAggregator(model.model, None, model.hidden)
    elif len(kept) == len(gold):
        return model
    else:
        fresh = type(model)(**model.get_params(deep=False))
    return fit_one(fresh, model.annotations_, kept)


def shares_of(annotations: Annotations) -> Array:
    """Return the shares of the votes; 1 / n_classes for an item without votes.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Rows sum to 1.
    """
    share = np.array(vote_share(annotations))
    share[annotations.n_labels == 0] = 1.0 / annotations.n_classes
    return share


def power_of(model: Aggregator) -> float:
    """Return the power that was learnt across crowds, as far as a model has applied it to its posterior.

    Parameters
    ----------
    model : Aggregator
        A fitted model.

    Returns
    -------
    float
        1 for methods that do not temper their posterior.
    """
    method = model.model_ if isinstance(model, CalibratedAggregator) else model
    return float(getattr(method, "crowd_power_", 1.0))

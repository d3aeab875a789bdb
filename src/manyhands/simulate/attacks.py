"""Bad workers: the labels that they give in place of honest ones, and the confusion matrix that results on average.

Most attacks are not described by a confusion matrix: the errors of colluding workers, copycats and families are
dependent between workers, and those of sleepers change with time. The confusion matrix of such a worker is an average,
and does not contain the dependence that makes the attack effective.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.sorting import Codes

Array = npt.NDArray[np.float64]

GOLD_SHARE = 0.1  # share of items, from the first on, on which "gold-only" workers are right
FAMILY_SHARE = 0.9  # probability that a member of a family gives the label of its first member
CARE = 0.25  # probability that a careless worker gives an honest label
SYBIL_LABELS = 3  # labels of each sybil identity


@dataclass(frozen=True, eq=False)
class AttackContext:
    """Annotations of the bad workers, with the labels that they would give if they were honest.

    Attributes
    ----------
    item : ndarray of int of shape (n_annotations,)
        Items of the bad workers' annotations, ascending.
    worker : ndarray of int of shape (n_annotations,)
        Their workers.
    honest : ndarray of int of shape (n_annotations,)
        Honest labels.
    truth : ndarray of int of shape (n_items,)
        True class of each item.
    n_classes : int
        Number of classes.
    target : int
        The class that a targeted or constant attack is about.
    model_labels : ndarray of int of shape (n_items,)
        Labels that one worker, the model of copycats and families, gives to all items.
    """

    item: Codes
    worker: Codes
    honest: Codes
    truth: Codes
    n_classes: int
    target: int
    model_labels: Codes

    def random_labels(self, rng: np.random.Generator, n: int | None = None) -> Codes:
        """Draw uniform labels.

        Parameters
        ----------
        rng : Generator
            Source of random numbers.
        n : int or None, default=None
            Number of labels; one for each annotation if None.

        Returns
        -------
        ndarray of int32
            The labels.
        """
        return rng.integers(self.n_classes, size=len(self.item) if n is None else n, dtype=np.int32)


@dataclass(frozen=True)
class Attack:
    """Behaviour of bad workers.

    Attributes
    ----------
    labels : callable
        ``labels(context, rng)`` gives the labels in place of the honest ones.
    confusion : callable
        ``confusion(honest, model, target)`` gives the average confusion matrix of a worker whose honest matrix is
        `honest`, where `model` is the matrix of the worker whose labels are copied.
    model_is_bad : bool, default=False
        Whether the worker whose labels are copied is one of the bad workers (a family) or an honest one (copycats).
    """

    labels: Callable[[AttackContext, np.random.Generator], Codes]
    confusion: Callable[[Array, Array, int], Array]
    model_is_bad: bool = False


def _random(context: AttackContext, rng: np.random.Generator) -> Codes:
    """Uniform labels: a spammer."""
    return context.random_labels(rng)


def _uniform_confusion(honest: Array, model: Array, target: int) -> Array:
    return np.full_like(honest, 1 / len(honest))


def _constant(context: AttackContext, rng: np.random.Generator) -> Codes:
    """The target class for every item."""
    return np.full(len(context.item), context.target, np.int32)


def _constant_confusion(honest: Array, model: Array, target: int) -> Array:
    return np.tile(np.eye(len(honest))[target], (len(honest), 1))


def _inverted(context: AttackContext, rng: np.random.Generator) -> Codes:
    """The class after the honest label, cyclically: an adversarial worker."""
    return (context.honest + 1) % context.n_classes


def _inverted_confusion(honest: Array, model: Array, target: int) -> Array:
    return np.roll(honest, 1, axis=1)


def _colluding(context: AttackContext, rng: np.random.Generator) -> Codes:
    """One list of random labels that all bad workers share."""
    return context.random_labels(rng, len(context.truth))[context.item]


def _sleeper(context: AttackContext, rng: np.random.Generator) -> Codes:
    """Honest in the first half of their labels, in the order of items, and random from then on."""
    order = np.argsort(context.worker, kind="stable")
    n_done = np.bincount(context.worker)
    start = np.cumsum(n_done) - n_done
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - start[context.worker[order]]
    return np.where(2 * nth < n_done[context.worker], context.honest, context.random_labels(rng))


def _sleeper_confusion(honest: Array, model: Array, target: int) -> Array:
    return honest / 2 + _uniform_confusion(honest, model, target) / 2


def _copycat(context: AttackContext, rng: np.random.Generator) -> Codes:
    """The labels of one honest worker."""
    return context.model_labels[context.item]


def _copycat_confusion(honest: Array, model: Array, target: int) -> Array:
    return model


def _targeted(context: AttackContext, rng: np.random.Generator) -> Codes:
    """Honest, except that items of the target class get the next class."""
    is_target = context.truth[context.item] == context.target
    return np.where(is_target, (context.target + 1) % context.n_classes, context.honest)


def _targeted_confusion(honest: Array, model: Array, target: int) -> Array:
    changed = honest.copy()
    changed[target] = np.eye(len(honest))[(target + 1) % len(honest)]
    return changed


def _gold_only(context: AttackContext, rng: np.random.Generator) -> Codes:
    """Right on the first items, which may serve as gold, and random on all others."""
    is_gold = context.item < GOLD_SHARE * len(context.truth)
    return np.where(is_gold, context.truth[context.item], context.random_labels(rng))


def _gold_only_confusion(honest: Array, model: Array, target: int) -> Array:
    return GOLD_SHARE * np.eye(len(honest)) + (1 - GOLD_SHARE) * _uniform_confusion(honest, model, target)


def _family(context: AttackContext, rng: np.random.Generator) -> Codes:
    """Mostly the label of the first member, which is as accurate as an honest one: right or wrong together."""
    is_copied = rng.random(len(context.item)) < FAMILY_SHARE
    return np.where(is_copied, context.model_labels[context.item], context.honest)


def _family_confusion(honest: Array, model: Array, target: int) -> Array:
    return FAMILY_SHARE * model + (1 - FAMILY_SHARE) * honest


def _careless(context: AttackContext, rng: np.random.Generator) -> Codes:
    """Honest on a random quarter of the items, random labels on the others."""
    return np.where(rng.random(len(context.item)) < CARE, context.honest, context.random_labels(rng))


def _careless_confusion(honest: Array, model: Array, target: int) -> Array:
    return CARE * honest + (1 - CARE) * _uniform_confusion(honest, model, target)


ATTACKS = {
    "random": Attack(_random, _uniform_confusion),
    "constant": Attack(_constant, _constant_confusion),
    "inverted": Attack(_inverted, _inverted_confusion),
    "colluding": Attack(_colluding, _uniform_confusion),
    "sleeper": Attack(_sleeper, _sleeper_confusion),
    "copycat": Attack(_copycat, _copycat_confusion),
    "sybil": Attack(_colluding, _uniform_confusion),  # split into identities of few labels by `make_crowd`
    "targeted": Attack(_targeted, _targeted_confusion),
    "gold-only": Attack(_gold_only, _gold_only_confusion),
    "family": Attack(_family, _family_confusion, model_is_bad=True),
    "careless": Attack(_careless, _careless_confusion),
}

"""Crowds with known truth and known workers: honest and bad ones, nominal and ordered classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.encoding import Codes
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.simulate.workers import (
    Accuracy,
    accuracy_to_ability,
    assign,
    difficulty_accuracy,
    draw_accuracy,
    draw_labels,
    draw_right_or_wrong,
    one_coin,
    random_confusion,
)
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

# ----------------------------------------------------------------------------------------------------
# Bad workers: the labels that they give in place of honest ones, and the confusion matrix that results on average.
#
# Most attacks are not described by a confusion matrix: the errors of colluding workers, copycats and families are
# dependent between workers, and those of sleepers change with time. The confusion matrix of such a worker is an
# average, and does not contain the dependence that makes the attack effective.

GOLD_SHARE = 0.1  # share of items, from the first on, on which "gold-only" workers are right
FAMILY_SHARE = 0.9  # probability that a member of a family gives the label of its first member
CARE = 0.25  # probability that a careless worker gives an honest label
SYBIL_LABELS = 3  # labels of each sybil identity


@dataclass(frozen=True, eq=False)
class AttackContext:
    """Annotations of the bad workers, with the labels that they would give if they were honest."""

    item: Codes  # (n_annotations,); items of the bad workers' annotations, ascending
    worker: Codes  # (n_annotations,)
    honest: Codes  # (n_annotations,)
    truth: Codes  # (n_items,); true class of each item
    n_classes: int
    target: int  # the class that a targeted or constant attack is about
    model_labels: Codes  # (n_items,); labels that one worker, the model of copycats and families, gives to all items

    def random_labels(self, rng: np.random.Generator, n: int | None = None) -> Codes:
        """Draw uniform labels."""
        return rng.integers(self.n_classes, size=len(self.item) if n is None else n, dtype=np.int32)


@dataclass(frozen=True)
class Attack:
    """Behaviour of bad workers."""

    # ``labels(context, rng)`` gives the labels in place of the honest ones
    labels: Callable[[AttackContext, np.random.Generator], Codes]
    # ``confusion(honest, model, target)`` gives the average confusion matrix of a worker whose honest matrix is
    # `honest`, where `model` is the matrix of the worker whose labels are copied
    confusion: Callable[[Array, Array, int], Array]
    # whether the worker whose labels are copied is one of the bad workers (a family) or an honest one (copycats)
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


# ----------------------------------------------------------------------------------------------------
# `Crowd`, and labels drawn from confusion matrices.


@dataclass(frozen=True, eq=False)
class Crowd:
    """Simulated crowd labels with the truth and the workers behind them.

    Attributes
    ----------
    annotations : Annotations
        The crowd's labels.
    truth : ndarray of int32 of shape (n_items,)
        True class of each item.
    confusion : ndarray of shape (n_workers, n_classes, n_classes) or None
        Confusion matrices [worker, truth, label]; None where labels depend on more of an item than its truth.
    is_bad : ndarray of bool of shape (n_workers,)
        Which workers are bad: spammers, adversarial or colluding workers and others.
    difficulty : ndarray of shape (n_items,) or None, default=None
        Difficulty of each item, larger is harder; None where the model has none.
    expertise : ndarray of shape (n_workers, n_classes) or None, default=None
        Accuracy of each worker on the easiest items of each class; None where the model has none.
    """

    annotations: Annotations
    truth: Codes
    confusion: Array | None
    is_bad: npt.NDArray[np.bool_]
    difficulty: Array | None = None
    expertise: Array | None = None


def make_truth(n_items: int, classes: int | npt.ArrayLike, random_state: Seed = None) -> Codes:
    """Draw the true class of every item.

    Parameters
    ----------
    n_items : int
        Number of items.
    classes : int or array-like of shape (n_classes,)
        Number of equally frequent classes, or the share of each class; shares need not sum to 1.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of int32 of shape (n_items,)
        The class codes.

    Examples
    --------
    >>> make_truth(5, 2, random_state=0).tolist()
    [1, 1, 1, 0, 0]
    >>> np.bincount(make_truth(1000, [10, 1], random_state=0)).tolist()
    [908, 92]
    """
    constraints: dict[str, Constraint] = {"n_items": Number(whole=True, least=1), "random_state": RandomState()}
    check_parameters("make_truth", {"n_items": n_items, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    if np.ndim(classes) == 0:
        check_parameters("make_truth", {"classes": classes}, {"classes": Number(whole=True, least=1)})
        return rng.integers(int(np.asarray(classes)), size=n_items).astype(np.int32)
    share = np.asarray(classes, float)
    if share.ndim != 1 or not np.all(share >= 0) or not 0 < share.sum() < np.inf:
        raise ParameterError(
            f"Class shares must be numbers at least 0, one for each class and not all 0. Got {classes!r}."
        )
    return rng.choice(len(share), n_items, p=share / share.sum()).astype(np.int32)


def label_items(
    truth: npt.ArrayLike,
    confusion: Array,
    labels_per_item: float | npt.NDArray[np.integer] | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> Crowd:
    """Simulate labels of workers with given confusion matrices on items with given truth.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].
    labels_per_item : float or ndarray of int of shape (n_items,), default=None
        Number of labels of every item, or of each item, as in :func:`assign`; every worker labels every item if None.
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,), default="uniform"
        How labels are distributed over workers, as in :func:`assign`.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices; no worker is bad.

    Examples
    --------
    >>> from manyhands.simulate import one_coin
    >>> crowd = label_items([0, 1, 1], one_coin([1.0, 1.0, 0.9], 2), labels_per_item=2, random_state=0)
    >>> crowd.annotations
    Annotations(6 labels on 3 items by 3 workers, 2 classes)
    """
    check_parameters("label_items", {"random_state": random_state}, {"random_state": RandomState()})
    rng = make_generator(random_state)
    n_workers, n_classes = confusion.shape[:2]
    codes = check_truth(truth, n_classes)
    n_each = n_workers if labels_per_item is None else labels_per_item
    item, worker = assign(len(codes), n_workers, n_each, activity, rng)
    label = draw_labels(confusion, worker, codes[item], rng)
    annotations = make_annotations(item, worker, label, len(codes), n_workers, n_classes)
    return Crowd(annotations, codes, confusion, np.zeros(n_workers, bool))


def check_truth(truth: npt.ArrayLike, n_classes: int) -> Codes:
    """Convert the truth to class codes.

    Shapes: truth (n_items,); returns (n_items,).
    """
    codes = np.asarray(truth)
    is_valid = codes.ndim == 1 and codes.size > 0 and codes.dtype.kind in "iu"
    if not is_valid or codes.min() < 0 or codes.max() >= n_classes:
        raise ParameterError(
            f"`truth` must be one class code from 0 to {n_classes - 1} for each item, and at least one item."
        )
    return codes.astype(np.int32)


def make_annotations(
    item: Codes, worker: Codes, label: Codes, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    """Build annotations whose ids are their codes.

    Shapes: item (n_annotations,); worker (n_annotations,); label (n_annotations,).
    """
    ids = {"item_ids": np.arange(n_items), "worker_ids": np.arange(n_workers), "classes": np.arange(n_classes)}
    return Annotations(item, worker, label, **ids)


# ----------------------------------------------------------------------------------------------------
# `make_crowd`: a simulated crowd of honest and bad workers.
#
# The steps are: draw the truth, assign workers to items, draw honest labels, and replace those of the bad workers.

LabelFunction = Callable[[Codes, Codes], Codes]  # (item, worker) -> label
KINDS = ("honest", "confusion", "glad", "difficulty")


def make_crowd(
    n_items: int = 400,
    n_workers: int = 40,
    n_classes: int = 2,
    labels_per_item: float | npt.NDArray[np.integer] = 5,
    *,
    class_shares: npt.ArrayLike | None = None,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> Crowd:
    """Simulate a crowd of honest and bad workers.

    Parameters
    ----------
    n_items : int, default=400
        Number of items.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=2
        Number of classes.
    labels_per_item : float or ndarray of int of shape (n_items,), default=5
        Number of labels of every item, or of each item, as in :func:`assign`.
    class_shares : array-like of shape (n_classes,), default=None
        Share of each class; equal shares if None.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        Label noise of honest workers.

        - ``"honest"``: one-coin model.
        - ``"confusion"``: a random confusion matrix for each worker around the one-coin model.
        - ``"glad"``: right with probability sigma(ability * easiness), where log easiness is standard normal and
          `accuracy` is that on an item of easiness 1.
        - ``"difficulty"``: right with probability sigma(ability * (p - 1/2)^2), where p is uniform and `accuracy` is
          that on the easiest items.
    accuracy : float, tuple of (low, high) or array-like of shape (n_workers,), default=0.8
        Accuracy of honest workers: one for all, the range of a uniform distribution, or one for each worker.
    spread : float, default=0.0
        Standard deviation of the workers' accuracies around a single `accuracy`.
    bad : str, default="random"
        Behaviour of bad workers, a key of `ATTACKS`.

        - ``"random"``: spammers, uniform labels.
        - ``"constant"``: one-class spammers, always `target`.
        - ``"inverted"``: adversarial, the class after the honest label (two classes are swapped).
        - ``"colluding"``: one list of random labels for all bad workers.
        - ``"sleeper"``: honest in the first half of their labels, random in the second.
        - ``"copycat"``: all copy one honest worker.
        - ``"sybil"``: colluding workers, each split into many ids of three labels, so that the crowd has more than
          `n_workers` workers.
        - ``"targeted"``: honest, except that items of class `target` always get another label.
        - ``"gold-only"``: right on the first tenth of the items, random on the rest.
        - ``"family"``: accurate workers who make their errors together.
        - ``"careless"``: an honest label on a random quarter of the items, random labels on the rest.
    bad_share : float, default=0.0
        Share of workers who are bad; drawn at random.
    target : int, default=None
        Class code for ``"constant"`` (the most frequent class if None) and ``"targeted"`` (the rarest if None).
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,), default="uniform"
        How labels are distributed over workers, as in :func:`assign`.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth, confusion matrices or difficulties, and the mask of bad workers.

    Examples
    --------
    >>> crowd = make_crowd(100, 10, labels_per_item=3, bad="constant", bad_share=0.3, target=1, random_state=0)
    >>> crowd.annotations
    Annotations(300 labels on 100 items by 10 workers, 2 classes)
    >>> crowd.confusion[crowd.is_bad][0].tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    constraints: dict[str, Constraint] = {
        "n_classes": Number(whole=True, least=2),
        "kind": OneOf(KINDS),
        "bad": OneOf(tuple(ATTACKS)),
        "bad_share": Number(least=0, most=1),
        "random_state": RandomState(),
    }
    checked = [n_classes, kind, bad, bad_share, random_state]
    check_parameters("make_crowd", dict(zip(constraints, checked)), constraints)
    rng = make_generator(random_state)
    if class_shares is not None and np.size(class_shares) != n_classes:
        raise ParameterError(
            f"There are {np.size(class_shares)} class shares for {n_classes} classes; give one for each."
        )
    truth = make_truth(n_items, n_classes if class_shares is None else class_shares, rng)
    item, worker = assign(n_items, n_workers, labels_per_item, activity, rng)
    right = draw_accuracy(n_workers, accuracy, spread, rng)
    draw_honest, confusion, difficulty = _honest_labels(kind, right, truth, n_classes, rng)
    annotations = make_annotations(item, worker, draw_honest(item, worker), n_items, n_workers, n_classes)
    is_bad = np.zeros(n_workers, bool)
    is_bad[rng.permutation(n_workers)[: round(bad_share * n_workers)]] = True
    crowd = Crowd(annotations, truth, confusion, is_bad, difficulty)
    if not is_bad.any():
        return crowd
    crowd = _apply_attack(crowd, draw_honest, ATTACKS[bad], _target(target, bad, truth, n_classes), rng)
    return _split_identities(crowd) if bad == "sybil" else crowd


def _honest_labels(
    kind: str, right: Array, truth: Codes, n_classes: int, rng: np.random.Generator
) -> tuple[LabelFunction, Array | None, Array | None]:
    """Function that draws honest labels, with the confusion matrices or the item difficulties behind it."""
    if kind in ("honest", "confusion"):
        confusion = one_coin(right, n_classes) if kind == "honest" else random_confusion(right, n_classes, 10.0, rng)
        return (lambda item, worker: draw_labels(confusion, worker, truth[item], rng)), confusion, None
    if kind == "glad":
        ability, easiness = accuracy_to_ability(right) / 4, np.exp(rng.normal(size=len(truth)))
        difficulty, n_random = 1 / easiness, 2  # in GLAD, ability 0 means accuracy 1/2 for any number of classes
    else:
        ability, easiness = accuracy_to_ability(right, n_classes), (rng.random(len(truth)) - 0.5) ** 2
        difficulty, n_random = 1 - 4 * easiness, n_classes

    def draw(item: Codes, worker: Codes) -> Codes:
        p_right = difficulty_accuracy(ability[worker], easiness[item], n_random)
        return draw_right_or_wrong(p_right, truth[item], n_classes, rng)

    return draw, None, difficulty


def _target(target: int | None, bad: str, truth: Codes, n_classes: int) -> int:
    """The given target class; otherwise the rarest for a targeted attack and the most frequent for the others."""
    if target is not None:
        check_parameters("make_crowd", {"target": target}, {"target": Number(whole=True, least=0, most=n_classes - 1)})
        return target
    n_of_class = np.bincount(truth, minlength=n_classes)
    return int(n_of_class.argmin() if bad == "targeted" else n_of_class.argmax())


def _apply_attack(
    crowd: Crowd, draw_honest: LabelFunction, attack: Attack, target: int, rng: np.random.Generator
) -> Crowd:
    """Replace the honest labels of bad workers by those of the attack."""
    old, is_bad = crowd.annotations, crowd.is_bad
    model = int(np.argmax(is_bad) if attack.model_is_bad else np.argmin(is_bad))  # the first worker of this kind
    model_labels = draw_honest(np.arange(len(old), dtype=np.int32), np.full(len(old), model, np.int32))
    model_labels[old.item[old.worker == model]] = old.label[old.worker == model]
    theirs = np.flatnonzero(is_bad[old.worker])
    context = AttackContext(
        old.item[theirs], old.worker[theirs], old.label[theirs], crowd.truth, old.n_classes, target, model_labels
    )
    label = old.label.copy()
    label[theirs] = attack.labels(context, rng)
    annotations = make_annotations(old.item, old.worker, label, len(old), old.n_workers, old.n_classes)
    confusion = _attacked_confusion(crowd.confusion, is_bad, model, attack, target)
    return replace(crowd, annotations=annotations, confusion=confusion)


def _attacked_confusion(
    confusion: Array | None, is_bad: npt.NDArray[np.bool_], model: int, attack: Attack, target: int
) -> Array | None:
    """Confusion matrices with those of the bad workers replaced by their averages under the attack."""
    if confusion is None:
        return None
    attacked = confusion.copy()
    attacked[is_bad] = [attack.confusion(one, confusion[model], target) for one in confusion[is_bad]]
    return attacked


def _split_identities(crowd: Crowd) -> Crowd:
    """Split every bad worker into identities with a few labels each; the honest workers come first."""
    old = crowd.annotations
    start, order = old.by_worker
    n_ids = np.where(crowd.is_bad, np.maximum(1, -(-np.diff(start) // SYBIL_LABELS)), 1)  # (n_workers,)
    rank = np.argsort(crowd.is_bad, kind="stable")
    first = np.empty_like(n_ids)
    first[rank] = np.cumsum(n_ids[rank]) - n_ids[rank]
    owner = np.repeat(rank, n_ids[rank])  # (n_ids,)
    nth = np.empty(old.n_annotations, np.int64)
    nth[order] = np.arange(old.n_annotations) - np.repeat(start[:-1], np.diff(start))
    worker = first[old.worker] + crowd.is_bad[old.worker] * (nth // SYBIL_LABELS)
    annotations = make_annotations(old.item, worker.astype(np.int32), old.label, len(old), len(owner), old.n_classes)
    confusion = None if crowd.confusion is None else crowd.confusion[owner]
    return replace(crowd, annotations=annotations, confusion=confusion, is_bad=crowd.is_bad[owner])


# ----------------------------------------------------------------------------------------------------
# Crowds with ordered classes: the label of a worker is the grade of a noisy perception of the truth.
#
# label  =  the grade nearest to  truth + bias[w] + spread[w] * standard normal noise

_CONSTRAINTS: dict[str, Constraint] = {
    "n_items": Number(whole=True, least=1),
    "n_workers": Number(whole=True, least=1),
    "n_classes": Number(whole=True, least=2),
    "bias_sd": Number(least=0),
    "spread": Number(above=0),
    "spread_sd": Number(least=0),
    "random_state": RandomState(),
}


def ordinal_confusion(bias: npt.ArrayLike, spread: npt.ArrayLike, n_classes: int) -> Array:
    """Confusion matrices of workers with a bias and a spread, in steps of the scale.

    p(label <= l | truth t)  =  Phi((l + 1/2 - t - bias) / spread)

    Parameters
    ----------
    bias : array-like of shape (n_workers,)
        Mean error of each worker's perception; above 0 they grade too high.
    spread : array-like of shape (n_workers,)
        Standard deviation of it, above 0.
    n_classes : int
        Number of grades.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Indexed [worker, truth, label]; rows sum to 1.

    Raises
    ------
    ParameterError
        If a spread is not above 0.

    Examples
    --------
    >>> ordinal_confusion([0.0], [0.5], 3).round(2)[0].tolist()
    [[0.84, 0.16, 0.0], [0.16, 0.68, 0.16], [0.0, 0.16, 0.84]]
    """
    from scipy.special import ndtr

    shift, scale = np.asarray(bias, float), np.asarray(spread, float)
    if not np.all(np.isfinite(shift)) or not np.all((scale > 0) & np.isfinite(scale)):
        raise ParameterError("`bias` must hold numbers and `spread` numbers above 0, one of each for every worker.")
    truth, threshold = np.arange(n_classes), np.arange(n_classes - 1) + 0.5
    below = ndtr((threshold - truth[:, None] - shift[:, None, None]) / scale[:, None, None])
    return np.diff(below, axis=2, prepend=0.0, append=1.0)


def make_ordinal_crowd(
    n_items: int = 500,
    n_workers: int = 40,
    n_classes: int = 5,
    labels_per_item: float = 5,
    *,
    bias_sd: float = 0.4,
    spread: float = 0.7,
    spread_sd: float = 0.3,
    random_state: Seed = None,
) -> Crowd:
    """Simulate workers with different biases and spreads on an ordered scale.

    Parameters
    ----------
    n_items : int, default=500
        Number of items; all grades are equally frequent.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=5
        Number of grades.
    labels_per_item : float, default=5
        Mean number of labels of an item, as in :func:`assign`.
    bias_sd : float, default=0.4
        Standard deviation of the workers' biases around 0, in steps of the scale.
    spread : float, default=0.7
        Median of the workers' spreads, in steps of the scale.
    spread_sd : float, default=0.3
        Standard deviation of the logarithm of the spreads.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices; no worker is bad.

    Examples
    --------
    >>> make_ordinal_crowd(100, 10, random_state=0).annotations
    Annotations(500 labels on 100 items by 10 workers, 5 classes)
    """
    given = {
        "n_items": n_items,
        "n_workers": n_workers,
        "n_classes": n_classes,
        "bias_sd": bias_sd,
        "spread": spread,
        "spread_sd": spread_sd,
        "random_state": random_state,
    }
    check_parameters("make_ordinal_crowd", given, _CONSTRAINTS)
    rng = make_generator(random_state)
    bias = rng.normal(0.0, bias_sd, n_workers)
    scale = spread * np.exp(rng.normal(0.0, spread_sd, n_workers))
    truth = make_truth(n_items, n_classes, rng)
    return label_items(truth, ordinal_confusion(bias, scale, n_classes), labels_per_item, random_state=rng)

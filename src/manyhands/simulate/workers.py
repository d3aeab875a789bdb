"""Which worker labels which item, and how workers err.

Confusion matrices are indexed [worker, truth, label]; accuracies may depend on the item:

    confusion    p(label | truth) = confusion[worker, truth, label]
    GLAD         p(right) = sigma(ability * easiness)
    difficulty   p(right) = sigma(ability * d),  d = (p - 1/2)^2  in [0, 1/4]

For K classes sigma(s) becomes exp(s) / (exp(s) + K - 1) in the last model, and a wrong label is uniform over the other
classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.encoding import Codes
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_annotations, check_parameters

# ----------------------------------------------------------------------------------------------------
# Assignment of workers to items: a given number of labels per item, each worker at most once, unequal activity.
#
# The workers of an item are drawn without replacement, with probabilities proportional to their activity. All items are
# drawn at once, and only repeated pairs are drawn again, so time and memory are proportional to the number of labels.

Keys = npt.NDArray[np.int64]
ACTIVITIES = ("uniform", "zipf", "dirichlet")
_ROUNDS = 16  # redraws of repeated pairs; the rest (nearly dense or very skewed) is drawn exactly, item by item
_BLOCK = 1 << 20  # pairs held at a time in the exact draw


def assign(
    n_items: int,
    n_workers: int,
    labels_per_item: float | npt.NDArray[np.integer],
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> tuple[Codes, Codes]:
    """Draw distinct pairs (item, worker), sorted by item.

    Parameters
    ----------
    n_items : int
        Number of items.
    n_workers : int
        Number of workers.
    labels_per_item : float or ndarray of int of shape (n_items,)
        Number of labels of every item, or of each item. A fraction is the mean: 2.5 gives two labels to half of the
        items and three to the others.
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,), default="uniform"
        How labels are distributed over workers, or one positive weight for each worker. Zipf's weights are
        1 / (rank + 2.7), where worker 0 is the most active; Dirichlet's are one draw with parameter 0.6.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    item : ndarray of int32 of shape (n_annotations,)
        Item of each annotation, ascending.
    worker : ndarray of int32 of shape (n_annotations,)
        Worker of each annotation.

    Examples
    --------
    >>> item, worker = assign(3, 10, 2, random_state=0)
    >>> item.tolist()
    [0, 0, 1, 1, 2, 2]
    >>> len(set(zip(item.tolist(), worker.tolist())))
    6
    """
    whole = Number(whole=True, least=1)
    checked = {"n_items": n_items, "n_workers": n_workers, "random_state": random_state}
    check_parameters("assign", checked, {"n_items": whole, "n_workers": whole, "random_state": RandomState()})
    rng = make_generator(random_state)
    n_labels = _labels_of_each(labels_per_item, n_items, n_workers, rng)
    share = activity_shares(activity, n_workers, rng)
    if n_labels.min() == n_workers:
        key = np.arange(n_items * n_workers)  # dense: every worker labels every item
    else:
        key = np.repeat(np.arange(n_items) * n_workers, n_labels)
        key += _draw_workers(len(key), share, rng)
        key.sort()
        _redraw_repeats(key, share, rng)
    item, worker = np.divmod(key, n_workers)
    return item.astype(np.int32), worker.astype(np.int32)


def activity_shares(activity: str | Array, n_workers: int, random_state: Seed = None) -> Array:
    """Expected share of the labels that each worker gives.

    Parameters
    ----------
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,)
        Distribution of activity as in :func:`assign`, or one positive weight for each worker.
    n_workers : int
        Number of workers.
    random_state : int, Generator or None, default=None
        Seed or generator for "dirichlet".

    Returns
    -------
    ndarray of shape (n_workers,)
        The shares, which sum to 1.

    Examples
    --------
    >>> activity_shares("zipf", 3).round(3).tolist()
    [0.41, 0.323, 0.266]
    """
    if not isinstance(activity, str):
        return _given_shares(np.asarray(activity, float), n_workers)
    check_parameters("the crowd", {"activity": activity}, {"activity": OneOf(ACTIVITIES)})
    if activity == "uniform":
        return np.full(n_workers, 1 / n_workers)
    if activity == "dirichlet":
        return make_generator(random_state).dirichlet(np.full(n_workers, 0.6))
    weight = 1 / (np.arange(1, n_workers + 1) + 2.7)
    return weight / weight.sum()


def thin(annotations: Annotations, share: float, keep_one: bool = True, random_state: Seed = None) -> Annotations:
    """Remove a random share of the annotations; items, workers and classes are kept.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    share : float
        Share of the annotations to remove, between 0 and 1.
    keep_one : bool, default=True
        Whether every item keeps at least one of its labels, as in the sparsity study of CrowdInG; then fewer are
        removed where `share` would need more. The study of Self-Crowd corresponds to False.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Annotations
        The remaining annotations.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 1, 1, 0], [1, 1, 0, 1]])
    >>> thin(votes, 0.5, random_state=0)
    Annotations(4 labels on 2 items by 4 workers, 2 classes)
    >>> thin(votes, 1.0, random_state=0).n_labels.tolist()
    [1, 1]
    """
    annotations = check_annotations(annotations)
    constraints: dict[str, Constraint] = {"share": Number(least=0, most=1), "random_state": RandomState()}
    check_parameters("thin", {"share": share, "random_state": random_state}, constraints)
    order = make_generator(random_state).permutation(annotations.n_annotations)
    if keep_one:  # the first annotation of each item, in random order, is kept
        first = np.unique(annotations.item[order], return_index=True)[1]
        spared = np.zeros(len(order), bool)
        spared[first] = True
        order = order[~spared]
    keep = np.ones(annotations.n_annotations, bool)
    keep[order[: round(share * annotations.n_annotations)]] = False
    return annotations.keep(keep)


def _labels_of_each(
    labels_per_item: float | npt.NDArray[np.integer], n_items: int, n_workers: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """(n_items,) number of labels of each item."""
    if isinstance(labels_per_item, np.ndarray):
        if labels_per_item.shape != (n_items,) or labels_per_item.dtype.kind not in "iu":
            raise ParameterError(
                f"`labels_per_item` must be a number or {n_items} whole numbers, one for each item; "
                f"got {labels_per_item.dtype} of shape {labels_per_item.shape}."
            )
        n_labels = labels_per_item.astype(np.int64)
    else:
        limits = Number(above=0, most=n_workers)
        check_parameters("the crowd", {"labels_per_item": labels_per_item}, {"labels_per_item": limits})
        base = int(labels_per_item)
        n_labels = np.full(n_items, base)
        n_labels[rng.permutation(n_items)[: round((labels_per_item - base) * n_items)]] += 1
    if n_labels.min() < 0 or n_labels.max() > n_workers:
        raise ParameterError(
            f"An item cannot get {n_labels.min() if n_labels.min() < 0 else n_labels.max()} labels from "
            f"{n_workers} workers who label it once each. Lower `labels_per_item` or raise `n_workers`."
        )
    return n_labels


def _given_shares(weight: Array, n_workers: int) -> Array:
    """Normalise the caller's weights."""
    if weight.shape != (n_workers,) or not (np.all(np.isfinite(weight)) and np.all(weight > 0)):
        raise ParameterError(
            f"`activity` must be one of {', '.join(ACTIVITIES)} or a positive weight for each of the {n_workers} "
            f"workers."
        )
    return weight / weight.sum()


def _draw_workers(n: int, share: Array, rng: np.random.Generator) -> npt.NDArray[np.integer]:
    """Draw n workers with these probabilities, with replacement."""
    if share.min() == share.max():
        return rng.integers(len(share), size=n)
    drawn = np.searchsorted(np.cumsum(share), rng.random(n), side="right")
    return np.minimum(drawn, len(share) - 1)  # rounding may leave the last cumulative share below 1


def _redraw_repeats(key: Keys, share: Array, rng: np.random.Generator) -> None:
    """Make sorted keys `item * n_workers + worker` distinct in place, redrawing only repeated pairs."""
    n_workers = len(share)
    affected = np.unique(key[_repeats(key)] // n_workers)
    if len(affected) == 0:
        return
    is_affected = np.zeros(int(affected[-1]) + 2, bool)  # the last entry stands for all later items
    is_affected[affected] = True
    where = np.flatnonzero(is_affected[np.minimum(key // n_workers, affected[-1] + 1)])
    part = key[where]
    for _ in range(_ROUNDS):
        again = _repeats(part)
        if len(again) == 0:
            break
        part[again] += _draw_workers(len(again), share, rng) - part[again] % n_workers
        part.sort()
    _draw_exactly(part, _repeats(part), share, rng)
    key[where] = part


def _repeats(key: Keys) -> npt.NDArray[np.intp]:
    """Positions in sorted keys that equal their predecessor."""
    return np.flatnonzero(key[1:] == key[:-1]) + 1


def _draw_exactly(key: Keys, again: npt.NDArray[np.intp], share: Array, rng: np.random.Generator) -> None:
    """Replace the repeated pairs by exact draws without replacement, a block of items at a time.

    The order of independent exponential times with the shares as rates is distributed as successive draws without
    replacement, so the workers with the smallest times are the next distinct draws.
    """
    n_workers = len(share)
    item = key[again] // n_workers
    items = np.unique(item)
    step = max(1, _BLOCK // n_workers)
    for first in range(0, len(items), step):
        block = items[first : first + step]
        time = rng.exponential(size=(len(block), n_workers)) / share
        held = key[np.isin(key // n_workers, block)]
        time[np.searchsorted(block, held // n_workers), held % n_workers] = np.inf
        by_time = np.argsort(time, axis=1)  # (block, n_workers)
        mine = again[np.isin(item, block)]
        row = np.searchsorted(block, key[mine] // n_workers)
        nth = np.arange(len(row)) - np.searchsorted(row, row)  # the item's first repeat, its second, ...
        key[mine] = block[row] * n_workers + by_time[row, nth]
    key.sort()


# ----------------------------------------------------------------------------------------------------
# Random labels for given annotations: from confusion matrices, or from probabilities of being right.

_CHUNK = 1 << 20  # labels drawn at a time, to bound the memory of temporary arrays


def draw_labels(confusion: Array, worker: Codes, truth: Codes, random_state: Seed = None) -> Codes:
    """Draw one label from `confusion[worker, truth]` for each annotation.

    Parameters
    ----------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].
    worker : ndarray of int of shape (n_annotations,)
        Worker of each annotation.
    truth : ndarray of int of shape (n_annotations,)
        True class of the item of each annotation.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of int32 of shape (n_annotations,)
        The labels.

    Examples
    --------
    >>> always_next = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> draw_labels(always_next, np.zeros(3, np.int32), np.array([0, 1, 1], np.int32)).tolist()
    [1, 0, 0]
    """
    rng = make_generator(random_state)
    n_workers, n_classes, _ = confusion.shape
    width = 1 << (n_classes - 1).bit_length()
    cumulative = np.full((n_workers * n_classes, width), np.inf)  # no draw exceeds the last class, even after rounding
    cumulative[:, : n_classes - 1] = np.cumsum(confusion, axis=2).reshape(-1, n_classes)[:, :-1]
    label = np.empty(len(worker), np.int32)
    for first in range(0, len(worker), _CHUNK):
        part = slice(first, first + _CHUNK)
        row = worker[part].astype(np.int64) * n_classes + truth[part]
        label[part] = _find(cumulative, row, rng.random(len(row)))
    return label


def _find(cumulative: Array, row: npt.NDArray[np.int64], u: Array) -> npt.NDArray[np.int64]:
    """How many entries of `cumulative[row]` are at most u: a vectorised binary search."""
    flat, width = cumulative.ravel(), cumulative.shape[1]
    begin = row * width
    place = begin.copy()
    step = width // 2
    while step:
        place += step * (flat[place + step - 1] <= u)
        step //= 2
    return place - begin


def draw_right_or_wrong(accuracy: Array, truth: Codes, n_classes: int, random_state: Seed = None) -> Codes:
    """Draw the true class with probability `accuracy`, and otherwise one of the other classes uniformly.

    Parameters
    ----------
    accuracy : ndarray of shape (n_annotations,)
        Probability that the label of each annotation is right.
    truth : ndarray of int of shape (n_annotations,)
        True class of the item of each annotation.
    n_classes : int
        Number of classes.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of int32 of shape (n_annotations,)
        The labels.

    Examples
    --------
    >>> draw_right_or_wrong(np.array([1.0, 0.0]), np.array([1, 1]), n_classes=2).tolist()
    [1, 0]
    """
    rng = make_generator(random_state)
    is_wrong = rng.random(len(truth)) >= accuracy
    step = 1 + rng.integers(max(n_classes - 1, 1), size=len(truth))
    return np.asarray((truth + is_wrong * step) % n_classes, np.int32)


# ----------------------------------------------------------------------------------------------------
# Confusion matrices, accuracies and abilities of workers.

Accuracy = float | tuple[float, float] | npt.ArrayLike


def draw_accuracy(n_workers: int, accuracy: Accuracy = 0.8, spread: float = 0.0, random_state: Seed = None) -> Array:
    """Draw the accuracy of each worker.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    accuracy : float, tuple of (low, high) or array-like of shape (n_workers,), default=0.8
        One accuracy for all workers, the range of a uniform distribution, or one accuracy for each worker.
    spread : float, default=0.0
        Standard deviation of a normal distribution around a single `accuracy`, clipped to [0.02, 0.98]; not used with
        a range or with one accuracy for each worker.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of shape (n_workers,)
        The accuracies.

    Examples
    --------
    >>> draw_accuracy(3, 0.8).tolist()
    [0.8, 0.8, 0.8]
    >>> bool(np.all(draw_accuracy(50, (0.6, 0.7), random_state=0) >= 0.6))
    True
    """
    rng = make_generator(random_state)
    given = np.asarray(accuracy, float)
    if not (np.all(given >= 0) and np.all(given <= 1)):
        raise ParameterError(f"`accuracy` must be between 0 and 1. Got {accuracy!r}.")
    check_parameters("the crowd", {"spread": spread}, {"spread": Number(least=0)})
    if given.ndim == 0:
        same = np.full(n_workers, float(given))
        return np.clip(rng.normal(same, spread), 0.02, 0.98) if spread > 0 else same
    if isinstance(accuracy, tuple) and given.shape == (2,) and given[0] <= given[1]:
        return rng.uniform(given[0], given[1], n_workers)
    if given.shape == (n_workers,):
        return given.copy()
    raise ParameterError(
        f"`accuracy` must be a number, a pair (low, high) or one number for each of the {n_workers} workers. "
        f"Got {accuracy!r}."
    )


def one_coin(accuracy: npt.ArrayLike, n_classes: int) -> Array:
    """Confusion matrices of the one-coin model: equal accuracy in every class, errors uniform over the other classes.

    Parameters
    ----------
    accuracy : array-like of shape (n_workers,)
        Accuracy of each worker.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].

    Examples
    --------
    >>> one_coin([0.8], 3)[0].round(3).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    right = np.asarray(accuracy, float)[:, None, None]
    wrong = (1 - right) / max(n_classes - 1, 1)
    same = np.eye(n_classes)
    return right * same + wrong * (1 - same) if n_classes > 1 else np.ones((len(right), 1, 1))


def two_coin(sensitivity: npt.ArrayLike, specificity: npt.ArrayLike) -> Array:
    """Confusion matrices of the two-coin model: two classes with sensitivity and specificity of each worker.

    Parameters
    ----------
    sensitivity : array-like of shape (n_workers,)
        Accuracy on class 1.
    specificity : array-like of shape (n_workers,)
        Accuracy on class 0.

    Returns
    -------
    ndarray of shape (n_workers, 2, 2)
        Confusion matrices [worker, truth, label].

    Examples
    --------
    >>> two_coin([0.9], [0.6])[0].round(3).tolist()
    [[0.6, 0.4], [0.1, 0.9]]
    """
    one, zero = np.asarray(sensitivity, float), np.asarray(specificity, float)
    if one.shape != zero.shape or one.ndim != 1:
        raise ParameterError(
            f"Each worker needs a sensitivity and a specificity; got {one.size} sensitivities "
            f"and {zero.size} specificities."
        )
    return np.stack([np.stack([zero, 1 - zero], 1), np.stack([1 - one, one], 1)], 1)  # (n_workers, 2, 2)


def random_confusion(
    accuracy: npt.ArrayLike, n_classes: int, strength: float = 10.0, random_state: Seed = None
) -> Array:
    """Confusion matrices whose rows are Dirichlet draws around those of the one-coin model.

    Parameters
    ----------
    accuracy : array-like of shape (n_workers,)
        Mean accuracy of each worker.
    n_classes : int
        Number of classes.
    strength : float, default=10.0
        Sum of the Dirichlet parameters; large values give matrices close to the one-coin model.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].

    Examples
    --------
    >>> rows = random_confusion([0.8, 0.6], 3, random_state=0)
    >>> rows.shape, bool(np.allclose(rows.sum(-1), 1))
    ((2, 3, 3), True)
    """
    check_parameters("random_confusion", {"strength": strength}, {"strength": Number(above=0)})
    centre = one_coin(accuracy, n_classes)
    weight = make_generator(random_state).gamma(strength * centre)
    weight += np.finfo(float).tiny * centre  # all gammas of a row may underflow when strength is tiny
    return weight / weight.sum(-1, keepdims=True)


def hammer_spammer(
    n_workers: int, n_classes: int, hammers: float, class_wise: bool = False, random_state: Seed = None
) -> Array:
    """Confusion matrices of the hammer-spammer model: a worker is always right, or labels at random.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    hammers : float
        Probability that a worker is a hammer, who is always right; the others are spammers with uniform labels.
    class_wise : bool, default=False
        Whether hammer or spammer is drawn for each true class of a worker in place of once for each worker.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices [worker, truth, label].

    References
    ----------
    Karger, Oh and Shah (2014), "Budget-optimal task allocation for reliable crowdsourcing systems".
    Khetan, Lipton and Anandkumar (2018), "Learning from noisy singly-labeled data" (MBEM).

    Examples
    --------
    >>> hammer_spammer(2, 2, hammers=1.0).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
    """
    constraints: dict[str, Constraint] = {"hammers": Number(least=0, most=1), "random_state": RandomState()}
    check_parameters("hammer_spammer", {"hammers": hammers, "random_state": random_state}, constraints)
    rows = (n_workers, n_classes if class_wise else 1)
    is_hammer = make_generator(random_state).random(rows) < hammers
    return np.where(is_hammer[:, :, None], np.eye(n_classes), 1 / n_classes)


def glad_accuracy(ability: npt.ArrayLike, easiness: npt.ArrayLike) -> Array:
    """Probability of a right label in GLAD: sigma(ability * easiness).

    Parameters
    ----------
    ability : array-like
        Ability of the worker; negative for an adversarial worker.
    easiness : array-like
        Easiness of the item, at least 0; 1 / easiness is the difficulty.

    Returns
    -------
    ndarray
        The probabilities, in the shape to which the arguments broadcast.

    References
    ----------
    Whitehill et al. (2009), "Whose vote should count more: optimal integration of labels from labelers of unknown
    expertise".

    Examples
    --------
    >>> glad_accuracy(2.0, [0.0, 1.0]).round(3).tolist()
    [0.5, 0.881]
    """
    return difficulty_accuracy(ability, easiness, 2)


def difficulty_accuracy(ability: npt.ArrayLike, easiness: npt.ArrayLike, n_classes: int = 2) -> Array:
    """Probability of a right label in the model of difficulty EM.

    It is 1 / (1 + (n_classes - 1) exp(-ability * easiness)): that of a random label where the easiness is 0.

    Parameters
    ----------
    ability : array-like
        Ability of the worker.
    easiness : array-like
        Easiness (p - 1/2)^2 of the item, where p is the probability of class 1 given its features.
    n_classes : int, default=2
        Number of classes.

    Returns
    -------
    ndarray
        The probabilities, in the shape to which the arguments broadcast.

    Examples
    --------
    >>> difficulty_accuracy(accuracy_to_ability(0.8), [0.0, 0.25]).round(3).tolist()
    [0.5, 0.8]
    """
    score = np.asarray(ability, float) * np.asarray(easiness, float)
    return np.asarray(1 / (1 + (n_classes - 1) * np.exp(-score)))


def accuracy_to_ability(accuracy: npt.ArrayLike, n_classes: int = 2) -> Array:
    """Convert the accuracy on the easiest items, those with d = 1/4, to the ability of difficulty EM.

    Parameters
    ----------
    accuracy : array-like
        Accuracy on the easiest items.
    n_classes : int, default=2
        Number of classes.

    Returns
    -------
    ndarray
        The abilities.

    Examples
    --------
    >>> accuracy_to_ability([0.5, 0.8]).round(3).tolist()
    [0.0, 5.545]
    """
    right = np.clip(np.asarray(accuracy, float), 1e-6, 1 - 1e-6)
    return np.asarray(4 * np.log((n_classes - 1) * right / (1 - right)))

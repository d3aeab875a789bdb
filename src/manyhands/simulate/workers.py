"""How workers err: confusion matrices indexed [worker, truth, label], and accuracies that depend on the item.

    table        p(label | truth) = confusion[worker, truth, label]
    GLAD         p(right) = sigma(ability * easiness)
    difficulty   p(right) = sigma(ability * d),  d = (p - 1/2)^2  in [0, 1/4]

For K classes sigma(s) becomes exp(s) / (exp(s) + K - 1) in the last model, and a wrong label is any other class.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.sorting import Codes
from manyhands.validation import Constraint, Number, RandomState, check_parameters

Array = npt.NDArray[np.float64]
Accuracy = float | tuple[float, float] | npt.ArrayLike

_CHUNK = 1 << 20  # labels drawn at a time, so that ten million need little memory beyond themselves


def draw_accuracy(n_workers: int, accuracy: Accuracy = 0.8, spread: float = 0.0, random_state: Seed = None) -> Array:
    """(n_workers,) one accuracy for each worker.

    `accuracy` is one number for all (with `spread` the mean of a normal, cut off at 0.02 and 0.98), a pair
    (low, high) for a uniform draw, or one number for each worker.

    >>> draw_accuracy(3, 0.8).tolist()
    [0.8, 0.8, 0.8]
    >>> bool(np.all(draw_accuracy(50, (0.6, 0.7), random_state=0) >= 0.6))
    True
    """
    rng = make_generator(random_state)
    given = np.asarray(accuracy, float)
    if not (np.all(given >= 0) and np.all(given <= 1)):
        raise ParameterError(f"An accuracy lies between 0 and 1. Got {accuracy!r}.")
    check_parameters("the crowd", {"spread": spread}, {"spread": Number(least=0)})
    if given.ndim == 0:
        same = np.full(n_workers, float(given))
        return np.clip(rng.normal(same, spread), 0.02, 0.98) if spread > 0 else same
    if isinstance(accuracy, tuple) and given.shape == (2,) and given[0] <= given[1]:
        return rng.uniform(given[0], given[1], n_workers)
    if given.shape == (n_workers,):
        return given.copy()
    raise ParameterError(
        f"accuracy must be a number, a pair (low, high) or one number for each of the {n_workers} workers. "
        f"Got {accuracy!r}."
    )


def one_coin(accuracy: npt.ArrayLike, n_classes: int) -> Array:
    """Confusion matrices of workers who are right equally often in every class and wrong anywhere else alike.

    >>> one_coin([0.8], 3)[0].round(3).tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    right = np.asarray(accuracy, float)[:, None, None]
    wrong = (1 - right) / max(n_classes - 1, 1)
    same = np.eye(n_classes)
    return right * same + wrong * (1 - same) if n_classes > 1 else np.ones((len(right), 1, 1))


def two_coin(sensitivity: npt.ArrayLike, specificity: npt.ArrayLike) -> Array:
    """Confusion matrices of two classes: right with `sensitivity` on class 1 and with `specificity` on class 0.

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
    """Confusion matrices whose rows are Dirichlet draws around the one-coin rows; `strength` keeps them close.

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
    """MBEM's workers: with probability `hammers` always right, otherwise guessing; class by class if `class_wise`.

    >>> hammer_spammer(2, 2, hammers=1.0).tolist()
    [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
    """
    constraints: dict[str, Constraint] = {"hammers": Number(least=0, most=1), "random_state": RandomState()}
    check_parameters("hammer_spammer", {"hammers": hammers, "random_state": random_state}, constraints)
    rows = (n_workers, n_classes if class_wise else 1)
    is_hammer = make_generator(random_state).random(rows) < hammers
    return np.where(is_hammer[:, :, None], np.eye(n_classes), 1 / n_classes)


def glad_accuracy(ability: npt.ArrayLike, easiness: npt.ArrayLike) -> Array:
    """GLAD's probability of a right label, sigma(ability * easiness); a negative ability means to deceive.

    >>> glad_accuracy(2.0, [0.0, 1.0]).round(3).tolist()
    [0.5, 0.881]
    """
    return difficulty_accuracy(ability, easiness, 2)


def difficulty_accuracy(ability: npt.ArrayLike, easiness: npt.ArrayLike, n_classes: int = 2) -> Array:
    """Difficulty EM's probability of a right label; a guess where `easiness` = (p - 1/2)^2 is 0.

    >>> difficulty_accuracy(accuracy_to_ability(0.8), [0.0, 0.25]).round(3).tolist()
    [0.5, 0.8]
    """
    score = np.asarray(ability, float) * np.asarray(easiness, float)
    return np.asarray(1 / (1 + (n_classes - 1) * np.exp(-score)))


def accuracy_to_ability(accuracy: npt.ArrayLike, n_classes: int = 2) -> Array:
    """The ability of a worker who has this accuracy on the easiest items, those with d = 1/4.

    >>> accuracy_to_ability([0.5, 0.8]).round(3).tolist()
    [0.0, 5.545]
    """
    right = np.clip(np.asarray(accuracy, float), 1e-6, 1 - 1e-6)
    return np.asarray(4 * np.log((n_classes - 1) * right / (1 - right)))


def draw_labels(confusion: Array, worker: Codes, truth: Codes, random_state: Seed = None) -> Codes:
    """Draw one label from `confusion[worker, truth]` for each annotation; `truth` is that of the item it is about.

    >>> always_next = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    >>> draw_labels(always_next, np.zeros(3, np.int32), np.array([0, 1, 1], np.int32)).tolist()
    [1, 0, 0]
    """
    rng = make_generator(random_state)
    n_workers, n_classes, _ = confusion.shape
    width = 1 << (n_classes - 1).bit_length()
    upto = np.full((n_workers * n_classes, width), np.inf)  # no draw lies beyond the last class, whatever rounding does
    upto[:, : n_classes - 1] = np.cumsum(confusion, axis=2).reshape(-1, n_classes)[:, :-1]
    label = np.empty(len(worker), np.int32)
    for first in range(0, len(worker), _CHUNK):
        part = slice(first, first + _CHUNK)
        row = worker[part].astype(np.int64) * n_classes + truth[part]
        label[part] = _find(upto, row, rng.random(len(row)))
    return label


def _find(upto: Array, row: npt.NDArray[np.int64], u: Array) -> npt.NDArray[np.int64]:
    """How many entries of `upto[row]` are at most u: a binary search in all rows at once."""
    flat, width = upto.ravel(), upto.shape[1]
    begin = row * width
    found = begin.copy()
    step = width // 2
    while step:
        found += step * (flat[found + step - 1] <= u)
        step //= 2
    return found - begin


def draw_right_or_wrong(accuracy: Array, truth: Codes, n_classes: int, random_state: Seed = None) -> Codes:
    """Draw the truth with probability `accuracy`, otherwise any of the other classes; one entry per annotation.

    >>> draw_right_or_wrong(np.array([1.0, 0.0]), np.array([1, 1]), n_classes=2).tolist()
    [1, 0]
    """
    rng = make_generator(random_state)
    is_wrong = rng.random(len(truth)) >= accuracy
    step = 1 + rng.integers(max(n_classes - 1, 1), size=len(truth))
    return np.asarray((truth + is_wrong * step) % n_classes, np.int32)

"""Models of label noise: confusion matrices indexed [worker, truth, label], and accuracies that depend on the item.

    confusion    p(label | truth) = confusion[worker, truth, label]
    GLAD         p(right) = sigma(ability * easiness)
    difficulty   p(right) = sigma(ability * d),  d = (p - 1/2)^2  in [0, 1/4]

For K classes sigma(s) becomes exp(s) / (exp(s) + K - 1) in the last model, and a wrong label is uniform over the other
classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, Number, RandomState, check_parameters

Array = npt.NDArray[np.float64]
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

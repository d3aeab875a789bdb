"""Crowds as simulated in the papers of the methods, for items with given truth.

ICED (Wang et al.), difficulty EM ("Data Difficulty Specified Crowdsourcing"), MBEM (Khetan et al. 2018) and
Max-MIG (Cao et al. 2019). Those with features are in `feature_crowds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate.assignment import assign
from manyhands.simulate.crowds import Crowd, check_truth, label_items, make_annotations
from manyhands.simulate.label_draws import draw_right_or_wrong
from manyhands.simulate.workers import (
    accuracy_to_ability,
    difficulty_accuracy,
    hammer_spammer,
    one_coin,
    two_coin,
)
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ICEDSetting:
    """Simulation setting of one data set of ICED.

    Attributes
    ----------
    n_of_class : tuple of (int, int)
        Number of items of class 0 and of class 1.
    n_workers : int
        Number of workers.
    error : tuple of (float, float)
        Range of the uniform distribution of the workers' error rates.
    """

    n_of_class: tuple[int, int]
    n_workers: int
    error: tuple[float, float]


# The appendix of the paper with the error rates is not available; these ranges reproduce its counts by certainty.
ICED_SETTINGS = {
    "gisette": ICEDSetting((2800, 280), 7, (0.20, 0.40)),
    "usps": ICEDSetting((668, 66), 9, (0.25, 0.42)),
    "gsad": ICEDSetting((2341, 234), 11, (0.25, 0.45)),
}

# Gaussian data of difficulty EM: sensitivity and specificity of the five workers on the easiest items.
SENSITIVITY = (0.8, 0.6, 0.6, 0.7, 0.6)
SPECIFICITY = (0.6, 0.7, 0.6, 0.7, 0.7)

# Max-MIG, Dogs vs. Cats: (sensitivity, specificity) of the seniors, and which senior each junior copies in case 3.
_SENIORS = {
    "high": ((0.9, 0.6, 0.6, 0.7, 0.6), (0.6, 0.8, 0.6, 0.7, 0.7)),
    "low": ((0.55,) * 10, (0.55,) * 10),
}
_N_JUNIORS = {"high": 5, "low": 15}
_COPIED = {"high": (0, 0, 0, 1, 1), "low": (0, 1)}


def make_iced(
    setting: str = "gisette",
    truth: npt.ArrayLike | None = None,
    random_state: Seed = None,
    error: Sequence[float] | None = None,
) -> Crowd:
    """Simulate the imbalanced crowds of ICED: one-coin workers who label all items, class sizes of ten to one.

    Parameters
    ----------
    setting : {"gisette", "usps", "gsad"}, default="gisette"
        Data set of the paper, a key of :data:`ICED_SETTINGS`.
    truth : array-like of int of shape (n_items,), default=None
        True classes of real items; if None, as many items of each class as in the paper, in random order.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.
    error : tuple of (low, high), default=None
        Range of the workers' error rates; that of the setting if None.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices.

    Examples
    --------
    >>> crowd = make_iced("usps", random_state=0)
    >>> crowd.annotations, np.bincount(crowd.truth).tolist()
    (Annotations(6606 labels on 734 items by 9 workers, 2 classes), [668, 66])
    """
    constraints: dict[str, Constraint] = {"setting": OneOf(tuple(ICED_SETTINGS)), "random_state": RandomState()}
    check_parameters("make_iced", {"setting": setting, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    given = ICED_SETTINGS[setting]
    low, high = given.error if error is None else _checked_range(error)
    codes = rng.permutation(np.repeat([0, 1], given.n_of_class)) if truth is None else np.asarray(truth)
    n_classes = max(2, int(codes.max(initial=0)) + 1)
    wrong = rng.uniform(low, high, given.n_workers)
    return label_items(codes, one_coin(1 - wrong, n_classes), random_state=rng)


def _checked_range(error: Sequence[float]) -> Sequence[float]:
    """The range of error rates, if it is one."""
    share = Number(least=0, most=1)
    if len(error) != 2 or not all(map(share.allows, error)) or error[0] > error[1]:
        raise ParameterError(f"error must be a pair (low, high) of shares, such as (0.1, 0.3). Got {error!r}.")
    return error


def make_structural(
    truth: npt.ArrayLike,
    p: npt.ArrayLike,
    sensitivity: npt.ArrayLike = SENSITIVITY,
    specificity: npt.ArrayLike = SPECIFICITY,
    random_state: Seed | np.random.RandomState = None,
) -> Crowd:
    """Simulate the structural labels of difficulty EM: right with probability sigma(ability * (p - 1/2)^2).

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item, 0 or 1.
    p : array-like of shape (n_items,)
        Probability of class 1 given the features; items with p = 1/2 are the most difficult.
    sensitivity : array-like of shape (n_workers,), default=(0.8, 0.6, 0.6, 0.7, 0.6)
        Accuracy of each worker on the easiest items (p = 0 or 1) of class 1.
    specificity : array-like of shape (n_workers,), default=(0.6, 0.7, 0.6, 0.7, 0.7)
        Accuracy of each worker on the easiest items of class 0.
    random_state : int, Generator, RandomState or None, default=None
        Seed or generator of all random draws; a legacy ``RandomState`` is accepted because the reference data were
        drawn with one.

    Returns
    -------
    Crowd
        Labels of all workers on all items, with difficulty and expertise.

    Examples
    --------
    >>> crowd = make_structural([0, 1, 1], p=[0.1, 0.5, 0.9], random_state=0)
    >>> crowd.annotations
    Annotations(15 labels on 3 items by 5 workers, 2 classes)
    >>> crowd.difficulty.round(2).tolist()
    [0.36, 1.0, 0.36]
    """
    rng = random_state if isinstance(random_state, np.random.RandomState) else make_generator(random_state)
    codes = check_truth(truth, 2)
    easiness = (np.asarray(p, float) - 0.5) ** 2
    if easiness.shape != codes.shape:
        raise ParameterError(f"p must be one probability for each of the {len(codes)} items.")
    expertise = two_coin(sensitivity, specificity)  # (n_workers, truth, label)
    ability = accuracy_to_ability(np.stack([expertise[:, 0, 0], expertise[:, 1, 1]]))  # (truth, n_workers)
    right = difficulty_accuracy(ability[codes], easiness[:, None])  # (n_items, n_workers): the data are dense
    p_one = np.where(codes[:, None] == 1, right, 1 - right)
    is_one = rng.random(right.shape) >= 1 - p_one  # as RandomState.choice converts a draw to a label
    label = is_one.astype(np.int32)
    own = np.diagonal(expertise, axis1=1, axis2=2)
    return replace(_dense(codes, label), difficulty=1 - 4 * easiness, expertise=own)


def make_nonstructural(
    truth: npt.ArrayLike, n_workers: int = 5, most: int = 5, n_classes: int = 2, random_state: Seed = None
) -> Crowd:
    """Simulate the non-structural labels of difficulty EM: wrong with probability 1 / (3 + k), k random per label.

    As k is drawn for every label, the crowd is equivalent to one-coin workers whose error rate is the mean of
    1 / (3 + k); this is what `confusion` contains.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    n_workers : int, default=5
        Number of workers; all label all items.
    most : int, default=5
        Largest k, which is uniform from 0; the text of the paper has 5, its code 4.
    n_classes : int, default=2
        Number of classes.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices.

    Examples
    --------
    >>> crowd = make_nonstructural([0, 1] * 50, random_state=0)
    >>> (1 - crowd.confusion[0, 0, 0]).round(3).item()
    0.203
    """
    whole = Number(whole=True, least=0)
    constraints: dict[str, Constraint] = {
        "n_workers": Number(whole=True, least=1),
        "most": whole,
        "random_state": RandomState(),
    }
    check_parameters("make_nonstructural", dict(zip(constraints, (n_workers, most, random_state))), constraints)
    rng = make_generator(random_state)
    codes = check_truth(truth, n_classes)
    error = 1 / (3 + np.arange(most + 1))
    item, worker = assign(len(codes), n_workers, n_workers, random_state=rng)
    label = draw_right_or_wrong(1 - rng.choice(error, len(item)), codes[item], n_classes, rng)
    annotations = make_annotations(item, worker, label, len(codes), n_workers, n_classes)
    return Crowd(
        annotations, codes, one_coin(np.full(n_workers, 1 - error.mean()), n_classes), np.zeros(n_workers, bool)
    )


def make_mbem(
    truth: npt.ArrayLike,
    n_classes: int,
    n_workers: int = 100,
    hammers: float = 0.4,
    labels_per_item: float = 1,
    class_wise: bool = False,
    random_state: Seed = None,
) -> Crowd:
    """Simulate the crowd of MBEM: hammers, who are always right, and spammers with random labels; few labels per item.

    In the released code the labels of spammers are right slightly more often than at random (by 0.01, to avoid zeros);
    here they are uniform.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    n_classes : int
        Number of classes.
    n_workers : int, default=100
        Number of workers.
    hammers : float, default=0.4
        Probability that a worker is a hammer.
    labels_per_item : float, default=1
        Number of labels of each item.
    class_wise : bool, default=False
        Whether hammer or spammer is drawn for each true class of a worker.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices; bad workers are those who are hammers in no class.

    References
    ----------
    Khetan, Lipton and Anandkumar (2018), "Learning from noisy singly-labeled data".

    Examples
    --------
    >>> crowd = make_mbem([0, 1, 2] * 20, n_classes=3, random_state=0)
    >>> crowd.annotations
    Annotations(60 labels on 60 items by 100 workers, 3 classes)
    """
    check_parameters("make_mbem", {"random_state": random_state}, {"random_state": RandomState()})
    rng = make_generator(random_state)
    confusion = hammer_spammer(n_workers, n_classes, hammers, class_wise, rng)
    crowd = label_items(truth, confusion, labels_per_item, random_state=rng)
    return replace(crowd, is_bad=np.all(confusion < 1, axis=(1, 2)))


def make_max_mig(truth: npt.ArrayLike, case: int = 1, expertise: str = "high", random_state: Seed = None) -> Crowd:
    """Simulate the senior and junior workers of Max-MIG on two classes; all label all items.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item, 0 or 1.
    case : {1, 2, 3}, default=1
        1: independent seniors only. 2: also juniors who always label class 0. 3: also juniors who copy a senior.
    expertise : {"high", "low"}, default="high"
        ``"high"``: five seniors of different accuracies and five juniors. ``"low"``: ten seniors of accuracy .55 and
        fifteen juniors (two in case 3).
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices; juniors are the bad workers.

    References
    ----------
    Cao, Xu, Kong and Wang (2019), "Max-MIG: an information theoretic approach for joint learning from crowds".

    Examples
    --------
    >>> crowd = make_max_mig([0, 1, 1, 0], case=2, random_state=0)
    >>> crowd.annotations, crowd.is_bad.sum().item()
    (Annotations(40 labels on 4 items by 10 workers, 2 classes), 5)
    """
    constraints: dict[str, Constraint] = {
        "case": Number(whole=True, least=1, most=3),
        "expertise": OneOf(tuple(_SENIORS)),
    }
    check_parameters("make_max_mig", {"case": case, "expertise": expertise}, constraints)
    seniors = label_items(truth, two_coin(*_SENIORS[expertise]), random_state=random_state)
    if case == 1:
        return seniors
    of_seniors = seniors.annotations.label.reshape(len(seniors.truth), -1)  # (n_items, n_seniors): dense
    assert seniors.confusion is not None
    if case == 2:
        juniors = np.zeros((len(of_seniors), _N_JUNIORS[expertise]), np.int32)
        confusion = np.tile([1.0, 0.0], (juniors.shape[1], 2, 1))
    else:
        juniors, confusion = of_seniors[:, _COPIED[expertise]], seniors.confusion[list(_COPIED[expertise])]
    is_bad = np.repeat([False, True], [of_seniors.shape[1], juniors.shape[1]])
    crowd = _dense(seniors.truth, np.hstack([of_seniors, juniors]))
    return replace(crowd, confusion=np.concatenate([seniors.confusion, confusion]), is_bad=is_bad)


def _dense(truth: npt.NDArray[np.int32], label: npt.NDArray[np.int32]) -> Crowd:
    """A crowd of two classes in which every worker labelled every item; `label` is (n_items, n_workers)."""
    n_items, n_workers = label.shape
    item, worker = np.divmod(np.arange(label.size, dtype=np.int32), n_workers)
    annotations = make_annotations(item, worker, label.ravel(), n_items, n_workers, 2)
    return Crowd(annotations, truth, None, np.zeros(n_workers, bool))

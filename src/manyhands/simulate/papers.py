"""The crowds of the papers, for given items: how each study made its labels from the truth.

ICED (Wang et al.), difficulty EM ("Data Difficulty Specified Crowdsourcing"), MBEM (Khetan et al. 2018) and
Max-MIG (Cao et al. 2019). Those that come with features of their own are in `features`.
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
from manyhands.simulate.workers import (
    accuracy_to_ability,
    difficulty_accuracy,
    draw_right_or_wrong,
    hammer_spammer,
    one_coin,
    two_coin,
)
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ICEDSetting:
    """Items of the two classes, workers, and the range of their error rates."""

    n_of_class: tuple[int, int]
    n_workers: int
    error: tuple[float, float]


# The paper's appendix with the error rates is lost; these ranges give its counts of items by certainty.
ICED_SETTINGS = {
    "gisette": ICEDSetting((2800, 280), 7, (0.20, 0.40)),
    "usps": ICEDSetting((668, 66), 9, (0.25, 0.42)),
    "gsad": ICEDSetting((2341, 234), 11, (0.25, 0.45)),
}

# Gaussian data of difficulty EM: what the five workers know of class 1 and of class 0, on the easiest items.
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
    """ICED's imbalanced crowds: one-coin workers who label everything, ten items of class 0 to one of class 1.

    `truth` gives the classes of real items; without it there are as many of each as in the paper's data set. `error` is
    the range from which the workers' error rates are drawn, if not that of the setting.

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
    """Difficulty EM's structural labels: right with sigma(ability * (p - 1/2)^2), whoever labels whatever.

    Sensitivity and specificity are those on the easiest items, where a good classifier's p is 0 or 1. A legacy
    `RandomState` is accepted, because the reference data were drawn with one.

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
    says_one = np.where(codes[:, None] == 1, right, 1 - right)
    label = (rng.random(right.shape) >= 1 - says_one).astype(
        np.int32
    )  # as RandomState.choice turns a draw into a label
    own = np.diagonal(expertise, axis1=1, axis2=2)
    return replace(_dense(codes, label), difficulty=1 - 4 * easiness, expertise=own)


def make_nonstructural(
    truth: npt.ArrayLike, n_workers: int = 5, most: int = 5, n_classes: int = 2, random_state: Seed = None
) -> Crowd:
    """Difficulty EM's labels without structure: wrong with 1 / (3 + k), k drawn from 0 to `most` for every label.

    The paper's text has `most` = 5, its code 4. As k is drawn anew each time, the crowd cannot be told
    from one-coin workers whose error is the mean of 1 / (3 + k), which is what `confusion` holds.

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
    """MBEM's crowd of hammers, who are always right, and spammers, who guess; each item goes to a few of them.

    The released code lets spammers lean toward the truth by a hundredth, against zeros; here they guess.

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
    """Max-MIG's seniors and juniors on two classes, all labelling everything.

    Parameters
    ----------
    truth : (n_items,) codes 0 and 1
    case : {1, 2, 3}
        1: the seniors alone, independent. 2: juniors join who always say class 0. 3: juniors join who copy a senior.
    expertise : {"high", "low"}
        Five seniors of mixed skill and five juniors, or ten seniors who are right in .55 of the cases and fifteen
        juniors (two in case 3).

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
    said = seniors.annotations.label.reshape(len(seniors.truth), -1)  # (n_items, n_seniors): dense
    assert seniors.confusion is not None
    if case == 2:
        juniors = np.zeros((len(said), _N_JUNIORS[expertise]), np.int32)
        habit = np.tile([1.0, 0.0], (juniors.shape[1], 2, 1))
    else:
        juniors, habit = said[:, _COPIED[expertise]], seniors.confusion[list(_COPIED[expertise])]
    is_bad = np.repeat([False, True], [said.shape[1], juniors.shape[1]])
    crowd = _dense(seniors.truth, np.hstack([said, juniors]))
    return replace(crowd, confusion=np.concatenate([seniors.confusion, habit]), is_bad=is_bad)


def _dense(truth: npt.NDArray[np.int32], label: npt.NDArray[np.int32]) -> Crowd:
    """The crowd of two classes in which everybody labelled everything; `label` is (n_items, n_workers)."""
    n_items, n_workers = label.shape
    item, worker = np.divmod(np.arange(label.size, dtype=np.int32), n_workers)
    annotations = make_annotations(item, worker, label.ravel(), n_items, n_workers, 2)
    return Crowd(annotations, truth, None, np.zeros(n_workers, bool))

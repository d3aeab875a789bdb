"""Crowds as simulated in the papers of the methods: for items with given truth, with features, and long-tailed.

ICED (Wang et al.), difficulty EM (Xu, Zhang, Zhang and Zhang, "Data difficulty specified crowdsourcing"), MBEM (Khetan
et al. 2018), Max-MIG (Cao et al. 2019) and NeuCrowd (Hao et al. 2022). The crowd for Self-Crowd is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.encoding import Codes
from manyhands._core.randomness import Seed, make_generator
from manyhands.classes import share_out
from manyhands.exceptions import ParameterError
from manyhands.simulate.crowds import Crowd, check_truth, label_items, make_annotations, make_truth
from manyhands.simulate.workers import (
    accuracy_to_ability,
    assign,
    difficulty_accuracy,
    draw_right_or_wrong,
    hammer_spammer,
    one_coin,
    random_confusion,
    two_coin,
)
from manyhands.validation import Boolean, Constraint, Number, OneOf, RandomState, check_parameters


@dataclass(frozen=True)
class ICEDSetting:
    """Simulation setting of one data set of ICED."""

    n_of_class: tuple[int, int]  # number of items of class 0 and of class 1
    n_workers: int
    error: tuple[float, float]  # range of the uniform distribution of the workers' error rates


# Appendix B, with the error rates, is not available; with these ranges the items of the three highest certainties are
# about as many as in Table 3 (2,043 of Gisette, 507 of GSAD); no range gives its 103 of USPS: workers at chance, who
# agree least, leave about 130.
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
        Data set of the paper, a key of `ICED_SETTINGS`.
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
    data_set = ICED_SETTINGS[setting]
    low, high = data_set.error if error is None else _checked_range(error)
    codes = rng.permutation(np.repeat([0, 1], data_set.n_of_class)) if truth is None else np.asarray(truth)
    n_classes = max(2, int(codes.max(initial=0)) + 1)
    error_rate = rng.uniform(low, high, data_set.n_workers)
    return label_items(codes, one_coin(1 - error_rate, n_classes), random_state=rng)


def _checked_range(error: Sequence[float]) -> tuple[float, float]:
    """The range of error rates, if it is one."""
    share = Number(least=0, most=1)
    if len(error) != 2 or not all(map(share.allows, error)) or error[0] > error[1]:
        raise ParameterError(f"error must be a pair (low, high) of shares, such as (0.1, 0.3). Got {error!r}.")
    return error[0], error[1]


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


# ----------------------------------------------------------------------------------------------------
# Crowds of the papers that have features, so that classifiers can be trained on them.
#
# Our simulation for Self-Crowd, Syn1 and Syn2 of NeuCrowd, and the Gaussian reference data of difficulty EM.

CLASS_SHARES = (0.5, 0.3, 0.12, 0.08)  # of the simulation for Self-Crowd; ours


@dataclass(frozen=True, eq=False)
class FeatureCrowd:
    """A crowd with features, and a test set with known truth.

    Attributes
    ----------
    X : ndarray of shape (n_items, n_features)
        Features; row i belongs to item i of the crowd.
    crowd : Crowd
        The labels with their truth.
    X_test : ndarray of shape (n_test, n_features)
        Features of the test items.
    truth_test : ndarray of int of shape (n_test,)
        True classes of the test items.
    """

    X: Array
    crowd: Crowd
    X_test: Array
    truth_test: Codes


def make_self_crowd(separation: float = 0.8, n_test: int = 1000, random_state: Seed = None) -> FeatureCrowd:
    """Simulate a small sparse and imbalanced crowd for the selection rules of Self-Crowd (ours; the paper has LabelMe).

    Four Gaussian classes in ten dimensions with shares .5, .3, .12, .08; 400 items, 20 workers of very unequal
    activity, about two labels per item; a balanced test set. The accuracies are N(.69, .18) clipped to [.2, .98]: those
    of the workers of LabelMe are 69.2 +- 18.1 % (Section 3.1 of the paper), the only data set of the paper.

    Parameters
    ----------
    separation : float, default=0.8
        Standard deviation of the class centres in each dimension. The classes must overlap for the rules to differ;
        with 0.8 a linear classifier trained on the truth has an accuracy of about 5/6.
    n_test : int, default=1000
        Number of test items.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    FeatureCrowd
        Features, labels and test set.

    References
    ----------
    Shi, Li and Huang (2021), "Learning from Crowds with Sparse and Imbalanced Annotations".

    Examples
    --------
    >>> data = make_self_crowd(random_state=0)
    >>> data.X.shape, data.crowd.annotations
    ((400, 10), Annotations(800 labels on 400 items by 20 workers, 4 classes))
    """
    constraints: dict[str, Constraint] = {
        "separation": Number(above=0),
        "n_test": Number(whole=True, least=1),
        "random_state": RandomState(),
    }
    check_parameters("make_self_crowd", dict(zip(constraints, (separation, n_test, random_state))), constraints)
    rng = make_generator(random_state)
    n_classes = len(CLASS_SHARES)
    centre = rng.normal(0, separation, (n_classes, 10))
    truth, truth_test = make_truth(400, CLASS_SHARES, rng), np.arange(n_test, dtype=np.int32) % n_classes
    X, X_test = (centre[classes] + rng.normal(size=(len(classes), 10)) for classes in (truth, truth_test))
    accuracy = np.clip(rng.normal(0.69, 0.18, 20), 0.2, 0.98)  # Section 3.1; the bounds are ours
    crowd = label_items(truth, one_coin(accuracy, n_classes), 2, activity="dirichlet", random_state=rng)
    return FeatureCrowd(X, crowd, X_test, truth_test)


def make_neucrowd(
    n_workers: int = 7,
    n_features: int = 1200,
    error_of: str = "worker",
    random_state: Seed = None,
    error: Sequence[float] | None = None,
) -> FeatureCrowd:
    """Simulate Syn1 (7 workers) and Syn2 (11 workers) of NeuCrowd: 1000 labelled items and 500 test items.

    Items are drawn by scikit-learn's `make_classification` with two clusters per class and informative features only;
    the paper validates on the last 200 of the labelled items. Error rates follow a normal distribution N(.1, .1)
    truncated to [.01, .5], whose mean is .133.

    Parameters
    ----------
    n_workers : int, default=7
        Number of workers; all label all items.
    n_features : int, default=1200
        Number of features.
    error_of : {"worker", "item"}, default="worker"
        One error rate for each worker, as in the paper, or one for each item, which is closer to the released file.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.
    error : tuple of (low, high), default=None
        Range of uniform error rates in place of the paper's, such as (0.3, 0.4), where the majority vote errs too.

    Returns
    -------
    FeatureCrowd
        Features, labels and test set.

    References
    ----------
    Hao et al. (2022), "NeuCrowd: neural sampling network for representation learning with crowdsourced labels".

    Examples
    --------
    >>> data = make_neucrowd(n_features=20, random_state=0)
    >>> data.X.shape, data.X_test.shape, data.crowd.annotations
    ((1000, 20), (500, 20), Annotations(7000 labels on 1000 items by 7 workers, 2 classes))
    """
    constraints: dict[str, Constraint] = {
        "n_workers": Number(whole=True, least=1),
        "n_features": Number(whole=True, least=2),
        "error_of": OneOf(("worker", "item")),
        "random_state": RandomState(),
    }
    check_parameters(
        "make_neucrowd", dict(zip(constraints, (n_workers, n_features, error_of, random_state))), constraints
    )
    from sklearn.datasets import make_classification  # scikit-learn takes a second to import

    rng = make_generator(random_state)
    X, y = make_classification(
        1500,
        n_features,
        n_informative=n_features,
        n_redundant=0,
        n_clusters_per_class=2,
        class_sep=1.0,
        random_state=int(rng.integers(2**31)),
    )
    truth = y.astype(np.int32)
    crowd = _neucrowd_labels(truth[:1000], n_workers, error_of, error, rng)
    return FeatureCrowd(X[:1000], crowd, X[1000:], truth[1000:])


def make_difficulty_gaussians(data_seed: int = 1228, label_seed: int = 1234) -> FeatureCrowd:
    """Reproduce the two-Gaussians data of difficulty EM exactly; other seeds give other data of the same model.

    Classes N((1, 1), I) and N((-1, -1), I), 500 items each in training and test; five workers with structural labels
    and p = sigma(x0 + x1). The reference implementation uses NumPy's global generator; here two separate legacy
    generators with the same seeds give the same numbers.

    Parameters
    ----------
    data_seed : int, default=1228
        Seed of the features.
    label_seed : int, default=1234
        Seed of the labels.

    Returns
    -------
    FeatureCrowd
        Features, labels and test set.

    Examples
    --------
    >>> data = make_difficulty_gaussians()
    >>> vote = data.crowd.annotations.label.reshape(1000, 5).mean(1) > 0.5
    >>> float(np.mean(vote == data.crowd.truth))
    0.647
    """
    rng = np.random.RandomState(data_seed)
    truth = np.repeat([1, 0], 500).astype(np.int32)
    X, X_test = (_two_gaussians(rng) for _ in range(2))
    p = 1 / (1 + np.exp(-X.sum(1)))
    crowd = make_structural(truth, p, random_state=np.random.RandomState(label_seed))
    return FeatureCrowd(X, crowd, X_test, truth.copy())


def _two_gaussians(rng: np.random.RandomState) -> Array:
    """(1000, 2) features in the order of draws of the reference: 500 at a time, first column first, class 1 first."""
    return np.vstack([np.column_stack([rng.randn(500) + mean, rng.randn(500) + mean]) for mean in (1, -1)])


def _neucrowd_labels(
    truth: Codes, n_workers: int, error_of: str, limits: Sequence[float] | None, rng: np.random.Generator
) -> Crowd:
    """Labels of all workers on all items, with error rates by worker or by item."""
    n = n_workers if error_of == "worker" else len(truth)
    low, high = (0.0, 0.0) if limits is None else _checked_range(limits)
    error = _truncated_normal(n, rng) if limits is None else rng.uniform(low, high, n)
    if error_of == "worker":
        return label_items(truth, one_coin(1 - error, 2), random_state=rng)
    item, worker = np.divmod(np.arange(len(truth) * n_workers, dtype=np.int32), n_workers)
    label = draw_right_or_wrong(1 - error[item], truth[item], 2, rng)
    annotations = make_annotations(item, worker, label, len(truth), n_workers, 2)
    return Crowd(annotations, truth, None, np.zeros(n_workers, bool), difficulty=error)


def _truncated_normal(n: int, rng: np.random.Generator) -> Array:
    """(n,) draws from a normal distribution N(.1, .1) truncated to [.01, .5], by its inverse distribution function."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0.01 - 0.1) / 0.1), ndtr((0.5 - 0.1) / 0.1)
    return 0.1 + 0.1 * np.asarray(ndtri(rng.uniform(low, high, n)))


# ----------------------------------------------------------------------------------------------------
# Imbalanced and sparse crowds: long-tailed classes, few labels per item, workers as heterogeneous as LabelMe's.
#
# shares of K classes   ratio ** (-k / (K - 1)),  k = 0 .. K - 1:  the first is `ratio` times the last
# workers               accuracies N(.69, .18) clipped to [.2, .98], as of LabelMe's 59; a random confusion matrix each
# activity              very unequal, a Dirichlet draw

_ACCURACY = (0.69, 0.18)  # mean and standard deviation of LabelMe's workers (Section 3.1 of Self-Crowd)
_WITHIN = (0.2, 0.98)  # bounds of an accuracy; ours
_WHOLE = Number(whole=True, least=1)


def long_tail_shares(n_classes: int, ratio: float = 10.0) -> Array:
    """Share of each class in a long-tailed distribution.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.
    ratio : float, default=10.0
        Size of the first class divided by that of the last; sizes in between form a geometric sequence.

    Returns
    -------
    ndarray of shape (n_classes,)
        The shares, descending; they sum to 1.

    Examples
    --------
    >>> (long_tail_shares(3, 100) / long_tail_shares(3, 100)[-1]).round(6).tolist()
    [100.0, 10.0, 1.0]
    """
    constraints: dict[str, Constraint] = {"n_classes": Number(whole=True, least=2), "ratio": Number(least=1)}
    check_parameters("a long tail", {"n_classes": n_classes, "ratio": ratio}, constraints)
    share = float(ratio) ** (-np.arange(n_classes) / (n_classes - 1))
    return np.asarray(share / share.sum())


def class_sizes(n: int, share: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Distribute items over classes in proportion to their shares, with at least one item for each class.

    Parameters
    ----------
    n : int
        Number of items, at least that of the classes.
    share : array-like of shape (n_classes,)
        Share of each class; need not sum to 1.

    Returns
    -------
    ndarray of int of shape (n_classes,)
        Number of items of each class; they sum to n.

    Examples
    --------
    >>> class_sizes(110, [10, 1]).tolist()
    [100, 10]
    """
    if n < np.size(share):
        raise ParameterError(f"{n} items are too few for {np.size(share)} classes; every class needs at least one.")
    return share_out(n, share)


def label_sparsely(
    truth: npt.ArrayLike,
    n_classes: int,
    n_workers: int = 59,
    labels_per_item: float = 2.5,
    random_state: Seed = None,
) -> Crowd:
    """Simulate few labels per item, by workers with accuracies and activities like those of LabelMe.

    Accuracies are drawn from N(.69, .18) clipped to [.2, .98], each worker has a random confusion matrix around the
    one-coin model, and activities are a Dirichlet draw.

    Parameters
    ----------
    truth : array-like of int of shape (n_items,)
        True class of each item.
    n_classes : int
        Number of classes.
    n_workers : int, default=59
        Number of workers.
    labels_per_item : float, default=2.5
        Mean number of labels of an item.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth and confusion matrices.

    Examples
    --------
    >>> crowd = label_sparsely([0, 1, 2, 0] * 25, 3, random_state=0)
    >>> crowd.annotations
    Annotations(250 labels on 100 items by 59 workers, 3 classes)
    """
    constraints: dict[str, Constraint] = {"n_workers": _WHOLE, "random_state": RandomState()}
    check_parameters("label_sparsely", {"n_workers": n_workers, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    accuracy = np.clip(rng.normal(*_ACCURACY, n_workers), *_WITHIN)
    confusion = random_confusion(accuracy, n_classes, random_state=rng)
    return label_items(truth, confusion, labels_per_item, activity="dirichlet", random_state=rng)


def make_long_tail(
    n_items: int = 1000,
    n_classes: int = 8,
    ratio: float = 10.0,
    n_workers: int = 59,
    labels_per_item: float = 2.5,
    *,
    n_features: int = 10,
    separation: float = 0.8,
    n_test: int = 1000,
    balanced_test: bool = True,
    random_state: Seed = None,
) -> FeatureCrowd:
    """Simulate an imbalanced and sparse crowd on overlapping Gaussian classes.

    Parameters
    ----------
    n_items : int, default=1000
        Number of items.
    n_classes : int, default=8
        Number of classes.
    ratio : float, default=10.0
        Size of class 0 divided by that of the last class; sizes in between form a geometric sequence.
    n_workers : int, default=59
        Number of workers.
    labels_per_item : float, default=2.5
        Mean number of labels of an item; 2.5 gives two labels to half of the items and three to the others.
    n_features : int, default=10
        Number of features.
    separation : float, default=0.8
        Standard deviation of the class centres in each dimension; that of the items around their centre is 1.
    n_test : int, default=1000
        Number of test items.
    balanced_test : bool, default=True
        Whether the test set has equally many items of each class, or the class shares of the training set.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    FeatureCrowd
        Features, labels and test set.

    Examples
    --------
    >>> data = make_long_tail(1100, 2, labels_per_item=2.5, random_state=0)
    >>> np.bincount(data.crowd.truth).tolist(), np.bincount(data.truth_test).tolist()
    ([1000, 100], [500, 500])
    >>> data.crowd.annotations
    Annotations(2750 labels on 1100 items by 59 workers, 2 classes)
    """
    parameters: dict[str, Any] = {"n_items": n_items, "n_features": n_features, "separation": separation}
    parameters |= {"n_test": n_test, "balanced_test": balanced_test, "random_state": random_state}
    constraints: dict[str, Constraint] = {"n_items": _WHOLE, "n_features": _WHOLE, "separation": Number(above=0)}
    constraints |= {"n_test": _WHOLE, "balanced_test": Boolean(), "random_state": RandomState()}
    check_parameters("make_long_tail", parameters, constraints)
    share = long_tail_shares(n_classes, ratio)
    rng = make_generator(random_state)
    classes = np.arange(n_classes, dtype=np.int32)
    truth = rng.permutation(np.repeat(classes, class_sizes(n_items, share)))
    truth_test = np.repeat(classes, class_sizes(n_test, np.ones(n_classes) if balanced_test else share))
    centre = rng.normal(0, separation, (n_classes, n_features))
    X, X_test = (centre[codes] + rng.normal(size=(len(codes), n_features)) for codes in (truth, truth_test))
    crowd = label_sparsely(truth, n_classes, n_workers, labels_per_item, rng)
    return FeatureCrowd(X, crowd, X_test, truth_test)

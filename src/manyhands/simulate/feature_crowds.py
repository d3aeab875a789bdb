"""Crowds of the papers that have features, so that classifiers can be trained on them.

The simulation of Self-Crowd, Syn1 and Syn2 of NeuCrowd, and the Gaussian reference data of difficulty EM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.randomness import Seed, make_generator
from manyhands.simulate.crowds import Crowd, label_items, make_annotations, make_truth
from manyhands.simulate.label_draws import draw_right_or_wrong
from manyhands.simulate.papers import make_structural
from manyhands.simulate.workers import one_coin
from manyhands.sorting import Codes
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

Array = npt.NDArray[np.float64]

CLASS_SHARES = (0.5, 0.3, 0.12, 0.08)  # of the simulation of Self-Crowd


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
    """Simulate the sparse and imbalanced crowd on which the selection rules of Self-Crowd are compared.

    Four Gaussian classes in ten dimensions with shares .5, .3, .12, .08; 400 items, 20 workers of very unequal
    activity, about two labels per item; accuracies N(.69, .18) clipped to [.2, .98]; a balanced test set.

    Parameters
    ----------
    separation : float, default=0.8
        Standard deviation of the class centres in each dimension, which the paper does not state. The classes must
        overlap for the rules to differ; with 0.8 a linear classifier trained on the truth has an accuracy of about 5/6.
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
    accuracy = np.clip(rng.normal(0.69, 0.18, 20), 0.2, 0.98)
    crowd = label_items(truth, one_coin(accuracy, n_classes), 2, activity="dirichlet", random_state=rng)
    return FeatureCrowd(X, crowd, X_test, truth_test)


def make_neucrowd(
    n_workers: int = 7, n_features: int = 1200, error_of: str = "worker", random_state: Seed = None
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
    crowd = _neucrowd_labels(truth[:1000], n_workers, error_of, rng)
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


def _neucrowd_labels(truth: Codes, n_workers: int, error_of: str, rng: np.random.Generator) -> Crowd:
    """Labels of all workers on all items, with error rates by worker or by item."""
    if error_of == "worker":
        return label_items(truth, one_coin(1 - _truncated_normal(n_workers, rng), 2), random_state=rng)
    error = _truncated_normal(len(truth), rng)
    item, worker = np.divmod(np.arange(len(truth) * n_workers, dtype=np.int32), n_workers)
    label = draw_right_or_wrong(1 - error[item], truth[item], 2, rng)
    annotations = make_annotations(item, worker, label, len(truth), n_workers, 2)
    return Crowd(annotations, truth, None, np.zeros(n_workers, bool), difficulty=error)


def _truncated_normal(n: int, rng: np.random.Generator) -> Array:
    """(n,) draws from a normal distribution N(.1, .1) truncated to [.01, .5], by its inverse distribution function."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0.01 - 0.1) / 0.1), ndtr((0.5 - 0.1) / 0.1)
    return 0.1 + 0.1 * np.asarray(ndtri(rng.uniform(low, high, n)))

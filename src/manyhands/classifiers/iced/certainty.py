"""Label certainty of an item (section 2.2 of the paper).

S_i = 1 / (v_i + epsilon),   v_i = half the mean squared distance of one-hot labels from their mean
                                 = (1 - sum_k p_ik^2) / 2,   which is p (1 - p) for two classes

References
----------
W. Wang, G. Thekinen, X. Liu, Z. Liu and J. Tang, Learning from imbalanced crowdsourced labeled data, SDM; Eq. 2.4,
here in a form for any number of classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.classifiers.iced.options import Certainty
from manyhands.em.kernels import vote_share

Array = npt.NDArray[np.float64]


def label_certainty(
    annotations: Annotations,
    gold: npt.NDArray[np.int32] | None = None,
    *,
    epsilon: float = 1e-6,
    smoothing: float = 0.0,
) -> Array:
    """Return the label certainty of each item.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,), default=None
        Codes of known classes, -1 where the class is unknown.
    epsilon : float, default=1e-06
        Added to the variance of the labels.
    smoothing : float, default=0.0
        Pseudo-count of votes for every class of an item; 0 is Eq. 2.4 as printed.

    Returns
    -------
    ndarray of shape (n_items,)
        At most 1 / epsilon, which is the certainty of gold. An item without labels has the lowest certainty.

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 1], [0, -1, -1, -1]])
    >>> label_certainty(votes, epsilon=0.01).round(2).tolist()
    [100.0, 5.06, 3.85, 100.0]
    >>> label_certainty(votes, epsilon=0.01, smoothing=0.5).round(2).tolist()
    [10.0, 4.55, 3.85, 5.06]
    """
    n_labels, n_classes = annotations.n_labels[:, None], max(annotations.n_classes, 1)
    with np.errstate(invalid="ignore"):
        share = (vote_share(annotations) * n_labels + smoothing) / (n_labels + smoothing * n_classes)
    share[annotations.n_labels == 0] = 1.0 / n_classes
    variance = (1.0 - np.square(share).sum(axis=1)) / 2
    if gold is not None:
        variance[gold >= 0] = 0.0
    return np.asarray(1.0 / (np.maximum(variance, 0.0) + epsilon))


def certainty_by(options: Certainty, annotations: Annotations, gold: npt.NDArray[np.int32] | None = None) -> Array:
    """Return the label certainty of each item, with the options of ICED.

    Parameters
    ----------
    options : Certainty
        epsilon and smoothing.
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,), default=None
        Codes of known classes, -1 where the class is unknown.

    Returns
    -------
    ndarray of shape (n_items,)
    """
    return label_certainty(annotations, gold, epsilon=options.epsilon, smoothing=options.smoothing)

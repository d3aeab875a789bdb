"""Class probabilities of one-vs-rest logistic classifiers; no torch."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, softmax

from manyhands.em.kernels import Array
from manyhands.features import Rows

_BLOCK = 1024  # rows in memory at a time


def one_vs_rest_proba(coef: Array, intercept: Array, rows: Rows, n_classes: int) -> Array:
    """Class probabilities: the sigmoid of each class's score, divided by the sum over classes.

    With scores s_ik = coef_k . x_i + intercept_k,

        p(k | x_i) = sigmoid(s_ik) / sum_l sigmoid(s_il)

    as scikit-learn's ``OneVsRestClassifier`` normalises. For two classes there is one problem, whose score is that of
    the second class: p(1 | x) = sigmoid(s). The computation stays in log space and takes a block of rows at a time.

    Parameters
    ----------
    coef : array of shape (n_problems, n_features)
        Coefficients; ``n_problems`` is 1 for two classes, else ``n_classes``.
    intercept : array of shape (n_problems,)
        Intercepts.
    rows : Rows
        Rows of X, as `as_rows` gives them.
    n_classes : int
        Number of classes. With a single class every probability is 1.

    Returns
    -------
    array of shape (n_rows, n_classes)
        Probabilities; each row sums to 1.
    """
    proba = []
    for first in range(0, len(rows), _BLOCK):
        index = np.arange(first, min(first + _BLOCK, len(rows)))
        score = rows.take(index).reshape(len(index), -1).astype(float) @ coef.T + intercept
        log_proba = log_expit(np.hstack([-score, score]) if n_classes == 2 else score)
        proba.append(softmax(log_proba, axis=1) if n_classes > 1 else np.ones((len(index), 1)))
    return np.concatenate(proba)

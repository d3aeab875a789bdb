"""EM with a classifier in the place of the class prior: the steps that several methods share, without torch.

    E step    r_ik  ~  f_k(x_i) prod_w confusion[w, k, label_iw]
    M step    confusion[w, k, l]  ~  pseudo[k, l] + sum of r_ik over the items that worker w labelled l,
              and the classifier f is fitted to the targets r

The E step is `posterior_given` with log f(x) as the log prior of each item, the M step of the confusion matrices is
`log_confusions`; starting points are in `em.starts`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.em.e_step import Gold as Gold
from manyhands.em.e_step import posterior_given as posterior_given
from manyhands.em.kernels import Array
from manyhands.em.starts import initial_posterior as initial_posterior
from manyhands.em.starts import initial_posteriors as initial_posteriors
from manyhands.em.starts import log_confusions as log_confusions
from manyhands.em.starts import posterior_from_gold as posterior_from_gold

__all__ = [
    "Gold",
    "class_names",
    "initial_posteriors",
    "initial_posterior",
    "log_confusions",
    "posterior_from_gold",
    "posterior_given",
]


def class_names(confusion: Array) -> npt.NDArray[np.intp]:
    """Match the estimated classes to the class names, which a classifier fitted by EM may have permuted.

    The classes stay as they are unless all workers together do no better than chance. Otherwise classes are assigned
    to names so that the summed confusion matrices have the largest possible diagonal (Hungarian algorithm).

    Parameters
    ----------
    confusion : ndarray of shape (n_workers, n_classes, n_classes)
        Estimated confusion matrices, indexed [worker, truth, label].

    Returns
    -------
    ndarray of shape (n_classes,) of int
        Entry k is the estimated class that has the name of class k.

    Examples
    --------
    >>> class_names(np.array([[[0.2, 0.8], [0.9, 0.1]]])).tolist()
    [1, 0]
    """
    n_workers, n_classes = confusion.shape[:2]
    if n_classes < 2 or np.trace(confusion, axis1=1, axis2=2).sum() > n_workers:
        return np.arange(n_classes)
    from scipy.optimize import linear_sum_assignment

    assigned: npt.NDArray[np.intp] = linear_sum_assignment(confusion.sum(axis=0).T, maximize=True)[1]
    return assigned

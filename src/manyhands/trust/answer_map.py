"""From the consensus of the crowd to the truth, by a few answers: scale, shift and a K x K table, all shrunk.

    log q[k]  =  scale log(p[k] + .001) + shift [k is the label] + vote log(s[k] + .05) + class_shift[k]
                 + sum_j s[j] table[j, k]  + constant

p is the posterior of a method and s the shares of the votes. Three kinds use a growing part of it:

    plain       scale, shift
    classwise   scale, shift, class_shift
    map         scale, shift, vote, table: the consensus may be shifted or merged, such as a panel that is one grade too
                generous

Parameters are fitted by maximum a posteriori: log scale ~ N(log of the scale learnt across crowds, .6^2), the others
normal with mean 0, so that without answers nothing but the scale is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.em.decisions import pick_classes

CROWD_SCALE = 0.64  # median of the best powers of 17 crowds (docs/trust.md)
KINDS = ("plain", "classwise", "map")
FLOOR, SHARE_FLOOR = 1e-3, 0.05  # added to probabilities and to vote shares before the logarithm
SCALE_SD, SHIFT_SD, VOTE_SD, CLASS_SD, TABLE_SD = 0.6, 0.5, 0.5, 0.5, 1.0  # the first of log scale
MAX_ITER = 300

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the crowd says of each item: the terms that the parameters multiply.

    Attributes
    ----------
    log_posterior : ndarray of shape (n_items, n_classes)
        log(p + .001).
    is_label : ndarray of shape (n_items, n_classes)
        1 for the label of each item, else 0.
    log_share : ndarray of shape (n_items, n_classes)
        log(s + .05).
    share : ndarray of shape (n_items, n_classes)
        Shares of the votes.
    """

    log_posterior: Array
    is_label: Array
    log_share: Array
    share: Array

    @classmethod
    def of(cls, posterior: Array, share: Array) -> Consensus:
        """Build from a posterior and vote shares.

        Parameters
        ----------
        posterior : ndarray of shape (n_items, n_classes)
            Posterior of a method.
        share : ndarray of shape (n_items, n_classes)
            Shares of the votes.

        Returns
        -------
        Consensus
            The terms.
        """
        label, _ = pick_classes(np.ascontiguousarray(posterior), np.zeros(len(posterior), bool))
        is_label = np.eye(posterior.shape[1])[label]
        return cls(np.log(posterior + FLOOR), is_label, np.log(share + SHARE_FLOOR), share)

    def __getitem__(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Consensus:
        """Select items."""
        return Consensus(self.log_posterior[rows], self.is_label[rows], self.log_share[rows], self.share[rows])

    def __len__(self) -> int:
        return len(self.share)


@dataclass(frozen=True, eq=False)
class MapParameters:
    """Parameters of the map; those that a kind does not use are 0.

    Attributes
    ----------
    kind : {"plain", "classwise", "map"}
        Which parameters were fitted.
    scale : float
        Power of the posterior.
    shift : float
        Added to the logarithm of the label's probability.
    vote : float
        Power of the vote shares.
    class_shift : ndarray of shape (n_classes,)
        Added to the logarithm of each class.
    table : ndarray of shape (n_classes, n_classes)
        Added to the logarithm of class k for the votes for class j, [j, k].
    covariance : ndarray of shape (n_parameters, n_parameters)
        Laplace approximation of the posterior of scale, shift, and the others in this order.
    """

    kind: str
    scale: float
    shift: float
    vote: float
    class_shift: Array
    table: Array
    covariance: Array

    def apply(self, consensus: Consensus) -> Array:
        """Return the mapped probabilities.

        Parameters
        ----------
        consensus : Consensus
            What the crowd says of each item.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Rows sum to 1.
        """
        score = self.scale * consensus.log_posterior + self.shift * consensus.is_label + self.class_shift
        score = score + self.vote * consensus.log_share + consensus.share @ self.table
        score = np.exp(score - score.max(axis=1, keepdims=True))
        return score / score.sum(axis=1, keepdims=True)


def tempered(n_classes: int, scale: float = CROWD_SCALE) -> MapParameters:
    """Return the map that raises the posterior to a power and leaves everything else.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    scale : float, default=0.64
        The power.

    Returns
    -------
    MapParameters
        Of the kind "plain", without uncertainty.
    """
    return MapParameters(
        "plain", scale, 0.0, 0.0, np.zeros(n_classes), np.zeros((n_classes, n_classes)), np.zeros((2, 2))
    )


def fit_map(
    consensus: Consensus,
    truth: Codes,
    kind: str = "plain",
    *,
    weight: Array | None = None,
    prior_scale: float = CROWD_SCALE,
) -> MapParameters:
    """Fit the parameters of one kind to answers, by maximum a posteriori.

    Parameters
    ----------
    consensus : Consensus
        What the crowd says of the answered items.
    truth : ndarray of shape (n_answers,)
        Class codes of the answers.
    kind : {"plain", "classwise", "map"}, default="plain"
        Which parameters to fit.
    weight : ndarray of shape (n_answers,) or None, default=None
        Number of answers that each one counts as.
    prior_scale : float, default=0.64
        Median of the prior of the scale.

    Returns
    -------
    MapParameters
        The fitted parameters, with a Laplace approximation of their covariance.
    """
    from scipy.optimize import minimize

    n_classes = consensus.share.shape[1]
    weight = np.ones(len(truth)) if weight is None else weight
    sd = _prior_sd(kind, n_classes)
    centre = np.zeros(len(sd))
    centre[0] = np.log(prior_scale)

    def objective(x: Array) -> tuple[float, Array]:
        q = _unpack(x, kind, n_classes).apply(consensus)
        loss = -float(weight @ np.log(np.maximum(q[np.arange(len(q)), truth], 1e-300)))
        error = q.copy()
        error[np.arange(len(q)), truth] -= 1.0
        gradient = _against(consensus, error * weight[:, None], kind)
        gradient[0] *= np.exp(x[0])  # the scale enters by its logarithm
        pull = (x - centre) / sd
        return loss + 0.5 * float(pull @ pull), gradient + pull / sd

    found = minimize(objective, centre, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER})
    fitted = _unpack(found.x, kind, n_classes)
    precision = _information(consensus, fitted, weight) + np.diag(1 / np.r_[sd[0] * fitted.scale, sd[1:]] ** 2)
    return _unpack(found.x, kind, n_classes, np.asarray(np.linalg.inv(precision), np.float64))


def _prior_sd(kind: str, n_classes: int) -> Array:
    """Standard deviations of the prior of log scale, shift and the other parameters of a kind."""
    more = {
        "plain": [],
        "classwise": [CLASS_SD] * n_classes,
        "map": [VOTE_SD] + [TABLE_SD] * n_classes**2,
    }
    return np.array([SCALE_SD, SHIFT_SD, *more[kind]])


def _unpack(x: Array, kind: str, n_classes: int, covariance: Array | None = None) -> MapParameters:
    """Parameters of a kind from one vector."""
    of_class, table, vote = np.zeros(n_classes), np.zeros((n_classes, n_classes)), 0.0
    if kind == "classwise":
        of_class = x[2:]
    elif kind == "map":
        vote, table = float(x[2]), x[3:].reshape(n_classes, n_classes)
    known = np.zeros((0, 0)) if covariance is None else covariance
    return MapParameters(kind, float(np.exp(x[0])), float(x[1]), vote, of_class, table, known)


def _against(consensus: Consensus, values: Array, kind: str) -> Array:
    """Sum of values[i, k] times the term of each parameter in the score of class k of item i."""
    parts = [np.sum(values * consensus.log_posterior), np.sum(values * consensus.is_label)]
    if kind == "classwise":
        parts.extend(values.sum(axis=0))
    elif kind == "map":
        parts.append(np.sum(values * consensus.log_share))
        parts.extend((consensus.share.T @ values).ravel())
    return np.array(parts, np.float64)


def _information(consensus: Consensus, fitted: MapParameters, weight: Array) -> Array:
    """Fisher information of the parameters, the scale itself in the place of its logarithm."""
    q = fitted.apply(consensus)
    n_classes = q.shape[1]
    total = None
    for i in range(len(q)):
        one = consensus[np.array([i])]
        terms = np.stack([_against(one, np.eye(n_classes)[[k]], fitted.kind) for k in range(n_classes)])
        centred = terms - q[i] @ terms
        added = weight[i] * (centred.T * q[i]) @ centred
        total = added if total is None else total + added
    assert total is not None
    return total

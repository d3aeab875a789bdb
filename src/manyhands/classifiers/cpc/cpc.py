"""CPC, clustering crowds: a classifier per worker, fused with each other and with the target classifier.

    min  sum over labels of log(1 + exp(w_j . x_i)) - y_ij w_j . x_i
         + (mu / W) sum over 0 <= j < k <= W of ||w_j - w_k||  +  eta / 2 ||w_0||^2,      w_0 is the target

The fusion penalty is a norm, not its square, so that workers with similar errors get exactly equal classifiers: a
cluster. The problem is convex. More than two classes are treated one against the rest.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.cpc.fused_logistic import State, Step, max_norm, pooled_state, solve
from manyhands.classifiers.cpc.worker_graph import Graph, choose_edges, clusters
from manyhands.classifiers.cpc.worker_regressions import Nodes, labels_by_node
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData
from manyhands.em.kernels import Array
from manyhands.exceptions import ParameterError
from manyhands.features import Rows
from manyhands.heldout import class_shares, hold_out, predictive_log_likelihood, worker_confusions
from manyhands.linear.one_vs_rest import one_vs_rest_proba
from manyhands.linear.principal_axes import PrincipalAxes, standardise_and_rotate
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, NoneOr, Number, OneOf, RandomState

_STEPS, _EVEN = 6, 0.01  # maximal number of values of mu; a difference in log-likelihood that may be chance
_ROUGHLY = 10.0  # factor of `tol` while mu is chosen


class CPC(CrowdClassifier):
    """One logistic regression per worker, fused with each other and with a target classifier that predicts.

    Use it to find clusters of workers who label alike. Features are standardised internally. Workers without labels
    take no part. Gold counts as labels of the target.

    Parameters
    ----------
    mu : float or None, default=None
        Strength of the fusion penalty: 0 leaves the classifiers independent, so that the target learns from gold alone
        and there must be some; a large value makes all equal. None starts with the value that makes all equal, and
        quarters it until the held-out log-likelihood is clearly lower.
    eta : float, default=1.0
        L2 penalty of the target.
    edges : {"auto", "all", "nearest", "target"}, default="auto"
        Pairs that are fused: all; each worker with the target only; or each worker also with the five workers whose
        gradients at the pooled classifier are most similar. "auto" is all up to 100 workers and 1 GB, otherwise nearest
        within 1 GB.
    validation : float, default=0.1
        Share of the labels held out to choose `mu`.
    rho : float, default=1.0
        Initial step size of the multipliers in ADMM; it is adapted to the residuals.
    tol : float, default=0.003
        Stop when both relative residuals of ADMM are at most this.
    max_iter : int, default=100
        Maximal number of ADMM iterations.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the held-out split.

    Attributes
    ----------
    mu_ : float
        The strength in use.
    worker_coef_ : ndarray of shape (n_workers, n_problems, n_features + 1)
        Classifier of each worker, its intercept last; one problem for two classes, otherwise one per class.
    cluster_ : ndarray of shape (n_workers,)
        Workers with the same number have equal classifiers; 0 is the target's cluster.
    objective_ : ndarray of shape (n_iterations,)
        Augmented Lagrangian after each iteration.
    classes_ : ndarray of shape (n_classes,)
        The classes, as in the annotations.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers, as in the annotations.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of correct labels of each worker, with one pseudo-count of accuracy 0.7.
    posterior_ : ndarray of shape (n_items, n_classes)
        Posterior of the training items given features and labels; rows sum to 1.
    history_ : list of dict
        One dict per iteration.
    module_ : sklearn.linear_model.LogisticRegression
        The weights found, for features as they were given.
    notes_ : dict of str to str
        What the data do not allow to conclude, by code; each was issued as a `CrowdWarning`.
    n_features_in_ : int
        Number of columns of X in `fit`; only where a row is a vector, not an image.
    feature_names_in_ : ndarray of str of shape (n_features_in_,)
        Names of the columns of X in `fit`; only where X was a data frame with string names.

    References
    ----------
    H. Kajino, Y. Tsuboi and H. Kashima (2013), Clustering crowds, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import CPC, Annotations
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> CPC(random_state=0).fit(X, votes).predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "mu": NoneOr(Number(least=0)),
        "eta": Number(above=0),
        "edges": OneOf(("auto", "all", "nearest", "target")),
        "validation": Number(least=0, most=0.5),
        "rho": Number(above=0),
        "tol": Number(above=0),
        "max_iter": Number(whole=True, least=1),
        "random_state": RandomState(),
    }

    def __init__(
        self,
        mu: float | None = None,
        eta: float = 1.0,
        edges: str = "auto",
        *,
        validation: float = 0.1,
        rho: float = 1.0,
        tol: float = 3e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ) -> None:
        self.mu = mu
        self.eta = eta
        self.edges = edges
        self.validation = validation
        self.rho = rho
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, context: TrainingContext) -> FitResult:
        data = context.data
        if self.mu == 0 and (data.gold is None or not (data.gold >= 0).any()):
            raise ParameterError(
                "With mu=0 no worker's labels reach the target classifier, which has nothing to learn from without "
                "gold: set mu above 0, leave it at None (chosen by held-out labels), or give gold."
            )
        standard = standardise_and_rotate(data.rows)
        share = 1.0 if self.mu is not None else self._choose_share(data, standard)
        nodes, graph = self._problem(data, data.annotations, standard.X, standard.shift)
        start = pooled_state(nodes, graph)
        mu = share * self._fusing_mu(start) if self.mu is None else float(self.mu)
        state, history = self._solve(nodes, graph, start, mu, self.tol)
        active, n_workers = np.unique(data.annotations.worker), data.annotations.n_workers
        worker_coef = np.repeat(standard.raw(state.w[0])[None], n_workers, axis=0)
        worker_coef[active] = [standard.raw(w) for w in state.w[1:]]
        cluster = np.zeros(n_workers, np.int64)
        cluster[active] = clusters(graph, state.is_separated)[1:]
        objective = np.array([step.objective for step in history])
        results = {"mu_": mu, "worker_coef_": worker_coef, "cluster_": cluster, "objective_": objective}
        module = as_classifier(standard.raw(state.w[0]), data.annotations.n_classes)
        return FitResult(module, [step._asdict() for step in history], results=results)

    def _problem(self, data: TrainingData, annotations: Annotations, X: Any, shift: Array) -> tuple[Nodes, Graph]:
        """The regressions of all workers and the pairs to fuse; no pairs where mu is 0 or there is one class."""
        labels, n_problems = labels_by_node(annotations, data.gold)
        nodes = Nodes(X, shift, labels, self.eta, n_problems)
        penalised = self.mu != 0 and n_problems > 0
        edges = choose_edges(nodes, self.edges) if penalised else np.zeros((0, 2), np.intp)
        return nodes, Graph(edges, *nodes.shape)

    def _solve(self, nodes: Nodes, graph: Graph, start: State, mu: float, tol: float) -> tuple[State, list[Step]]:
        strength = mu / max(len(nodes.labels) - 1, 1)
        return solve(nodes, graph, start, strength, rho=self.rho, tol=tol, max_iter=self.max_iter)

    def _fusing_mu(self, pooled: State) -> float:
        """An upper bound of the smallest mu that makes all classifiers equal."""
        return max(max_norm(pooled.phi) * (len(pooled.w) - 1), 1e-9)

    def _choose_share(self, data: TrainingData, standard: PrincipalAxes) -> float:
        """Share of that mu: quartered until the held-out log-likelihood is clearly lower."""
        training, heldout = hold_out(data.annotations, self.validation, make_generator(self.random_state))
        best, best_score = 1.0, -np.inf
        if heldout is None:
            return best
        nodes, graph = self._problem(data, training, standard.X, standard.shift)
        state = pooled_state(nodes, graph)
        fusing_mu = self._fusing_mu(state)
        for share in (0.25 ** np.arange(_STEPS)).tolist():
            state, _ = self._solve(nodes, graph, state, share * fusing_mu, _ROUGHLY * self.tol)
            proba = self._proba(as_classifier(standard.raw(state.w[0]), training.n_classes), data.rows)
            confusions, shares = worker_confusions(training, proba), class_shares(training, proba)
            score = predictive_log_likelihood(proba, confusions, shares, heldout)
            if score > best_score:
                best, best_score = share, score
            elif score < best_score - _EVEN:
                break
        return best

    def _trains_network(self) -> bool:
        return False

    def _proba(self, module: Any, rows: Rows) -> Array:
        return one_vs_rest_proba(module.coef_, module.intercept_, rows, len(module.classes_))


def as_classifier(raw: Array, n_classes: int) -> Any:
    """Return coefficients as a scikit-learn LogisticRegression, which can be saved; `CPC` computes its own proba."""
    from sklearn.linear_model import LogisticRegression

    module = LogisticRegression()
    module.coef_, module.intercept_, module.classes_ = raw[:, :-1], raw[:, -1], np.arange(n_classes)
    module.n_features_in_ = raw.shape[1] - 1
    return module

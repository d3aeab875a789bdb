"""CPC, clustering crowds: a classifier for each worker, pulled toward each other's and toward the one that is sought.

    min  sum over labels of log(1 + exp(w_j . x_i)) - y_ij w_j . x_i
         + (mu / W) sum over 0 <= j < k <= W of ||w_j - w_k||  +  eta / 2 ||w_0||^2,      w_0 is the target

The pull has a constant force, so workers who err alike become one: a cluster. The problem is convex. More than two
classes are taken one against the rest.

Reference: H. Kajino, Y. Tsuboi and H. Kashima (2013), Clustering crowds, AAAI.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier, FitResult, TrainingData
from manyhands.classifiers.cpc.fused_logistic import State, Step, longest, pooled_state, solve
from manyhands.classifiers.cpc.worker_graph import Graph, choose_edges, clusters
from manyhands.classifiers.cpc.worker_regressions import Nodes, labels_by_node
from manyhands.em.kernels import Array
from manyhands.features import Rows
from manyhands.heldout import class_shares, hold_out, predictive_log_likelihood, worker_confusions
from manyhands.linear.one_vs_rest import one_against_rest
from manyhands.linear.principal_axes import PrincipalAxes, standardised
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, Maybe, Number, OneOf, RandomState

_STEPS, _EVEN = 6, 0.01  # how often mu is quartered at most; a loss per label that may be chance, near the start
_ROUGHLY = 10.0  # so many times `tol` will do while mu is chosen


class CPC(CrowdClassifier):
    """One logistic regression per worker, fused with each other and with a target that predicts.

    Features are standardised inside. Workers without labels take no part. Gold counts as the target's own labels.

    Parameters
    ----------
    mu : how strongly classifiers attract each other; 0 lets each go alone, much makes them one. None begins with the
        mu that makes all one, and quarters it until that foretells held-out labels clearly worse
    eta : ridge on the target
    edges : "all" pairs attract; "target" only attracts and is attracted; "nearest" ties each worker besides to the five
        whose labels pull the pooled classifier most nearly his way. "auto" means all up to 100 workers and 1 GB, else
        nearest within 1 GB
    validation : share of the labels held out to choose mu
    rho : first step of the multipliers in ADMM; it follows the residuals
    tol, max_iter : stop when both residuals of ADMM are at most this share, or after so many steps
    random_state : seed of which labels are held out

    Attributes
    ----------
    mu_ : the one in use
    worker_coef_ : (n_workers, n_problems, n_features + 1) each worker's classifier, its intercept last; one problem
        for two classes, else one for each class
    cluster_ : (n_workers,) workers with the same number have become one; 0 is the target's cluster
    objective_ : the augmented Lagrangian after each step

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
        "mu": Maybe(Number(least=0)),
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

    def _learn(self, data: TrainingData) -> FitResult:
        standard = standardised(data.rows)
        share = 1.0 if self.mu is not None else self._choose_share(data, standard)
        nodes, graph = self._problem(data, data.annotations, standard.X, standard.shift)
        start = pooled_state(nodes, graph)
        mu = share * self._mu_of_one(start) if self.mu is None else float(self.mu)
        state, history = self._solve(nodes, graph, start, mu, self.tol)
        active, n_workers = np.unique(data.annotations.worker), data.annotations.n_workers
        worker_coef = np.repeat(standard.raw(state.w[0])[None], n_workers, axis=0)
        worker_coef[active] = [standard.raw(w) for w in state.w[1:]]
        cluster = np.zeros(n_workers, np.int64)
        cluster[active] = clusters(graph, state.apart)[1:]
        objective = np.array([step.objective for step in history])
        results = {"mu_": mu, "worker_coef_": worker_coef, "cluster_": cluster, "objective_": objective}
        module = as_classifier(standard.raw(state.w[0]), data.annotations.n_classes)
        return FitResult(module, [step._asdict() for step in history], results=results)

    def _problem(self, data: TrainingData, annotations: Annotations, X: Any, shift: Array) -> tuple[Nodes, Graph]:
        """Who said what, and who pulls whom; all in vain where mu is 0 or there is one class."""
        labels, n_problems = labels_by_node(annotations, data.gold)
        nodes = Nodes(X, shift, labels, self.eta, n_problems)
        attracted = self.mu != 0 and n_problems > 0
        edges = choose_edges(nodes, self.edges) if attracted else np.zeros((0, 2), np.intp)
        return nodes, Graph(edges, *nodes.shape)

    def _solve(self, nodes: Nodes, graph: Graph, start: State, mu: float, tol: float) -> tuple[State, list[Step]]:
        strength = mu / max(len(nodes.labels) - 1, 1)
        return solve(nodes, graph, start, strength, rho=self.rho, tol=tol, max_iter=self.max_iter)

    def _mu_of_one(self, pooled: State) -> float:
        """The least mu that surely makes all classifiers one."""
        return max(longest(pooled.phi) * (len(pooled.w) - 1), 1e-9)

    def _choose_share(self, data: TrainingData, standard: PrincipalAxes) -> float:
        """Of that mu, quarter by quarter until held-out labels are foretold clearly worse."""
        training, heldout = hold_out(data.annotations, self.validation, make_generator(self.random_state))
        best, best_score = 1.0, -np.inf
        if heldout is None:
            return best
        nodes, graph = self._problem(data, training, standard.X, standard.shift)
        state = pooled_state(nodes, graph)
        mu_of_one = self._mu_of_one(state)
        for share in (0.25 ** np.arange(_STEPS)).tolist():
            state, _ = self._solve(nodes, graph, state, share * mu_of_one, _ROUGHLY * self.tol)
            proba = self._proba(as_classifier(standard.raw(state.w[0]), training.n_classes), data.rows)
            confusions, shares = worker_confusions(training, proba), class_shares(training, proba)
            score = predictive_log_likelihood(proba, confusions, shares, heldout)
            if score > best_score:
                best, best_score = share, score
            elif score < best_score - _EVEN:
                break
        return best

    def _proba(self, module: Any, rows: Rows) -> Array:
        return one_against_rest(module.coef_, module.intercept_, rows, len(module.classes_))


def as_classifier(raw: Array, n_classes: int) -> Any:
    """A holder of coefficients that `save` knows; its own predict_proba is not ours, which is one against the rest."""
    from sklearn.linear_model import LogisticRegression

    module = LogisticRegression()
    module.coef_, module.intercept_, module.classes_ = raw[:, :-1], raw[:, -1], np.arange(n_classes)
    module.n_features_in_ = raw.shape[1] - 1
    return module

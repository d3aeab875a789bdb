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
from manyhands.classifiers.base import CrowdClassifier, Learned, Task
from manyhands.classifiers.network import _hold_out
from manyhands.heldout import class_shares, foretelling_log_likelihood, worker_confusions
from manyhands.kernels import Array
from manyhands.nn.fused_logistic import Problem, State, clusters, longest, pooled_state, solve
from manyhands.nn.inputs import Rows
from manyhands.nn.standard_rows import in_raw_features, one_against_rest, standardised
from manyhands.randomness import Seed, make_generator
from manyhands.validation import Constraint, Maybe, Number, OneOf, RandomState, check_memory

_ALL_PAIRS, _BYTES = 100, 1 << 30  # workers and memory; beyond either, "auto" lets only the target attract
_STEPS = 6  # how often mu is quartered at most


class CPC(CrowdClassifier):
    """One logistic regression per worker, fused with each other and with a target that predicts.

    Features are standardised inside. Workers without labels take no part. Gold counts as the target's own labels.

    Parameters
    ----------
    mu : how strongly classifiers attract each other; 0 lets each go alone, much makes them one. None begins with the
        mu that makes all one, and quarters it as long as that foretells held-out labels better
    eta : ridge on the target
    edges : "all" pairs attract, "target" only attracts and is attracted, "auto" means all up to 100 workers and 1 GB
    validation : share of the labels held out to choose mu
    rho : step of the multipliers in ADMM
    tol, max_iter : stop when the augmented Lagrangian changes by less than this share, or after so many steps
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
        "edges": OneOf(("auto", "all", "target")),
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
        tol: float = 1e-4,
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

    def _learn(self, task: Task) -> Learned:
        X, mean, spread = standardised(task.rows)
        problem = self._problem(task, task.annotations, X, mean / spread)
        start = pooled_state(problem)
        mu = self.mu
        if mu is None:
            mu = self._choose_share(task, X, mean, spread) * self._mu_of_one(start)
        state, history = self._solve(problem, start, mu)
        module = as_classifier(state.w[0], mean, spread, task.annotations.n_classes)
        active = np.unique(task.annotations.worker)
        worker_coef = np.repeat(in_raw_features(state.w[0], mean, spread)[None], task.annotations.n_workers, axis=0)
        worker_coef[active] = [in_raw_features(w, mean, spread) for w in state.w[1:]]
        cluster = np.zeros(task.annotations.n_workers, np.int64)
        cluster[active] = clusters(problem, state)[1:]
        results = {"mu_": float(mu), "worker_coef_": worker_coef, "cluster_": cluster, "objective_": np.array(history)}
        return Learned(module, results=results)

    def _problem(self, task: Task, annotations: Annotations, X: Any, shift: Array) -> Problem:
        """The target's labels are gold; then come the workers who gave any."""
        n_classes = annotations.n_classes
        columns = np.arange(n_classes)[(1 if n_classes == 2 else 0) : (0 if n_classes == 1 else None)]
        gold = np.full(annotations.n_items, -1) if task.gold is None else task.gold
        known = np.flatnonzero(gold >= 0)
        labels = [(known, (gold[known, None] == columns).astype(float))]
        order = np.argsort(annotations.worker, kind="stable")
        for mine in np.split(order, np.flatnonzero(np.diff(annotations.worker[order])) + 1):
            said = (annotations.label[mine, None] == columns).astype(float)
            labels.append((annotations.item[mine].astype(np.intp), said))
        n = len(labels)
        need = 8 * 13 * n * (n - 1) // 2 * (len(shift) + 1) * len(columns)
        if self.edges == "all":
            check_memory(need, f"All pairs of {n} classifiers", "Set edges='target', or take fewer features.")
        all_pairs = self.edges == "all" or (self.edges == "auto" and n - 1 <= _ALL_PAIRS and need <= _BYTES)
        pairs = np.column_stack(np.triu_indices(n, 1) if all_pairs else (np.zeros(n - 1, int), np.arange(1, n)))
        attracted = self.mu != 0 and len(columns) > 0
        return Problem(X, shift, labels, pairs if attracted else pairs[:0], self.eta, len(columns))

    def _solve(self, problem: Problem, start: State, mu: float) -> tuple[State, list[float]]:
        strength = mu / max(len(problem.labels) - 1, 1)
        return solve(problem, start, strength, rho=self.rho, tol=self.tol, max_iter=self.max_iter)

    def _mu_of_one(self, pooled: State) -> float:
        """The least mu that surely makes all classifiers one."""
        return max(longest(pooled.phi) * (len(pooled.w) - 1), 1e-9)

    def _choose_share(self, task: Task, X: Any, mean: Array, spread: Array) -> float:
        """Of that mu, quarter by quarter until held-out labels are foretold worse."""
        training, heldout = _hold_out(task.annotations, self.validation, make_generator(self.random_state))
        problem = self._problem(task, training, X, mean / spread)
        pooled = state = pooled_state(problem)
        best, best_score = 1.0, -np.inf
        if heldout is None:
            return best
        for share in 0.25 ** np.arange(_STEPS):
            state, _ = self._solve(problem, state, share * self._mu_of_one(pooled))
            proba = self._proba(as_classifier(state.w[0], mean, spread, training.n_classes), task.rows)
            confusions, shares = worker_confusions(training, proba), class_shares(training, proba)
            score = foretelling_log_likelihood(proba, confusions, shares, heldout)
            if score <= best_score:
                break
            best, best_score = float(share), score
        return best

    def _proba(self, module: Any, rows: Rows) -> Array:
        return one_against_rest(module.coef_, module.intercept_, rows, len(module.classes_))


def as_classifier(w: Array, mean: Array, spread: Array, n_classes: int) -> Any:
    """A holder of coefficients that `save` knows; its own predict_proba is not ours, which is one against the rest."""
    from sklearn.linear_model import LogisticRegression

    module, raw = LogisticRegression(), in_raw_features(w, mean, spread)
    module.coef_, module.intercept_, module.classes_ = raw[:, :-1], raw[:, -1], np.arange(n_classes)
    module.n_features_in_ = len(mean)
    return module

"""CPC: its limits, its optimum, its clusters, and how its memory is bounded."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from manyhands import Annotations
from manyhands.classifiers import CPC
from manyhands.classifiers.cpc import pooled_state, project, solve
from manyhands.exceptions import LimitError, ParameterError
from manyhands.testing.crowds import feature_crowd, features_of


def slow_objective(w, X, votes, strength, eta):
    """The binary problem in plain loops over labels and pairs; w is (1 + n_workers, n_features + 1)."""
    total = eta / 2 * sum(value**2 for value in w[0])
    for item, worker, label in zip(votes.item, votes.worker, votes.label):
        score = sum(a * b for a, b in zip(w[worker + 1], [*X[item], 1.0]))
        total += np.log1p(np.exp(-abs(score))) + max(score, 0.0) - label * score
    for j in range(len(w)):
        for k in range(j + 1, len(w)):
            total += strength * sum((a - b) ** 2 for a, b in zip(w[j], w[k])) ** 0.5
    return total


def standard(X):
    """Mean 0 and spread 1, with a column of ones."""
    return np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("edges", ["all", "target"])
def test_a_strong_penalty_gives_pooled_logistic_regression(n_classes, edges):
    """All workers' classifiers and the target are the one that logistic regression finds on every label."""
    X, votes, _ = feature_crowd(n_classes, accuracy=0.7)
    model = CPC(mu=1e6, eta=2.0, edges=edges).fit(X, votes)
    Z, binary = standard(X), LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000)
    scores = X @ model.module_.coef_.T + model.module_.intercept_
    for column, k in enumerate([1] if n_classes == 2 else range(n_classes)):
        expected = binary.fit(Z[votes.item], votes.label == k).coef_[0]
        np.testing.assert_allclose(scores[:, column], Z @ expected, atol=1e-4)
    ours = np.column_stack([model.module_.coef_, model.module_.intercept_])
    np.testing.assert_array_equal(model.worker_coef_, np.broadcast_to(ours, model.worker_coef_.shape))
    assert (model.cluster_ == 0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_penalty_all_are_independent(n_classes):
    """Each worker has a logistic regression of their own, and the target that of the gold items."""
    X, votes, truth = feature_crowd(n_classes, n_items=200, n_workers=3, per_item=2, accuracy=0.6)
    gold = {item: votes.classes[k] for item, k in zip(votes.item_ids[:30].tolist(), truth[:30], strict=True)}
    model = CPC(mu=0, eta=2.0).fit(X, votes, gold)
    Z, target = standard(X), LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=10_000)
    expected = target.fit(Z[:30], truth[:30] == n_classes - 1).coef_[0]
    scores = X @ model.module_.coef_[-1] + model.module_.intercept_[-1]
    np.testing.assert_allclose(scores, Z @ expected, atol=1e-3)
    assert (model.cluster_ > 0).all() and len(set(model.cluster_)) == 3
    mine = votes.worker == 1
    alone = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    alone.fit(X[votes.item[mine]], votes.label[mine] == n_classes - 1)
    expected = [*alone.coef_[0], alone.intercept_[0]]
    np.testing.assert_allclose(model.worker_coef_[1, -1], expected, rtol=1e-3, atol=1e-4)


def test_without_a_penalty_and_without_gold_nothing_can_be_learned():
    """One sentence with what to do; gold that is unknown everywhere is no gold."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match=r"With mu=0 .* from without gold: set mu above 0, leave it at None"):
        CPC(mu=0).fit(X, votes)
    with pytest.raises(ParameterError, match="With mu=0"):
        CPC(mu=0.0).fit(X, votes, {})


@pytest.mark.parametrize("mu", [0.4, 1.5, 3.0])
def test_between_the_limits_admm_finds_the_optimum(mu):
    """No worse than a general minimiser of the plain-loop objective, started in several places."""
    X, votes, _ = feature_crowd(2, n_items=30, n_workers=3, per_item=2, accuracy=0.7, n_features=2)
    model = CPC(mu, eta=0.5, tol=1e-9, max_iter=3000).fit(X, votes)
    assert len(model.objective_) > 5 and (model.cluster_ > 0).any()  # this is not the pooled solution
    spread, mean = X.std(axis=0), X.mean(axis=0)
    raw = np.concatenate([np.column_stack([model.module_.coef_, model.module_.intercept_])[None], model.worker_coef_])
    w = np.column_stack([raw[:, 0, :-1] * spread, raw[:, 0, -1] + raw[:, 0, :-1] @ mean])
    Z = standard(X)[:, :-1]

    def objective(flat):
        return slow_objective(flat.reshape(4, 3), Z, votes, mu / 3, 0.5)

    found = objective(w.ravel())
    np.testing.assert_allclose(model.objective_[-1], found, rtol=1e-4)
    other = minimize(objective, w.ravel() + 0.01, method="Powell", options={"maxfev": 4000}).fun
    assert found < other + 1e-3
    nearby = np.random.default_rng(0).normal(0, 1e-2, (50, 12))
    assert all(objective(w.ravel() + step) > found for step in nearby)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_perfect_workers_are_supervised_training(n_classes):
    """Within two points of logistic regression on the truth, on new items."""
    X, votes, truth = feature_crowd(n_classes, n_items=120, accuracy=1.0)
    fresh = np.arange(200) % n_classes
    rows = features_of(fresh, seed=7)
    ours = np.mean(CPC(random_state=0).fit(X, votes).predict(rows) == votes.classes[fresh])
    assert ours >= np.mean(LogisticRegression().fit(X, truth).predict(rows) == fresh) - 0.02


def test_workers_with_the_same_errors_form_a_cluster():
    """Two groups that label by different rules get two classifiers."""
    truth = np.arange(200) % 2
    X = features_of(truth, 3) + np.random.default_rng(0).normal(0, 2, (200, 3))
    rule = (X[:, 0] > X[:, 0].mean()).astype(int)
    votes = Annotations.from_matrix(np.column_stack([truth, truth, truth, rule, rule]))
    model = CPC(mu=60.0, tol=1e-7, max_iter=500).fit(X, votes)
    assert len(set(model.cluster_[:3])) == 1 and len(set(model.cluster_[3:])) == 1
    assert model.cluster_[0] != model.cluster_[4]


def test_workers_without_labels_change_nothing():
    """To the last bit, whatever their code; their classifier is the target."""
    X, votes, _ = feature_crowd(3, accuracy=0.7)
    names = votes.worker_ids.tolist()
    ids = {"item_ids": votes.item_ids, "worker_ids": [*names[:4], "inactive", *names[4:]], "classes": votes.classes}
    wider = Annotations(votes.item, votes.worker + (votes.worker >= 4), votes.label, **ids)
    others = np.arange(11) != 4
    for mu in (None, 5.0):
        alone, wider_fit = (CPC(mu, max_iter=10, random_state=0).fit(X, labels) for labels in (votes, wider))
        np.testing.assert_array_equal(wider_fit.predict_proba(X), alone.predict_proba(X))
        np.testing.assert_array_equal(wider_fit.worker_coef_[4, :, :-1], wider_fit.module_.coef_)
        np.testing.assert_array_equal(wider_fit.worker_coef_[others], alone.worker_coef_)
        np.testing.assert_array_equal(wider_fit.cluster_[others], alone.cluster_)


def test_the_projection_is_defined_at_zero():
    """Vectors of a norm up to the radius stay, longer ones get this norm; each class on its own."""
    v = np.array([[[0.0, 0.0], [3.0, 4.0]]])
    np.testing.assert_allclose(project(v, 1.0), [[[0.0, 0.0], [0.6, 0.8]]])
    np.testing.assert_array_equal(project(v, 5.0), v)


def test_the_pooled_solution_is_stationary_with_its_multipliers():
    """ADMM started there does not move, as long as no norm of them exceeds the strength."""
    X, votes, _ = feature_crowd(2, accuracy=0.7)
    model = CPC(mu=1.0)
    data = type("Data", (), {"gold": None})
    nodes, graph = model._problem(data, votes, X, X.mean(axis=0))
    start = pooled_state(nodes, graph)
    gradient = nodes.loss_and_gradient(start.w)[1]
    np.testing.assert_allclose(graph.incidence_transposed(start.phi), gradient, atol=1e-4)
    np.testing.assert_allclose(graph.incidence.T @ start.phi[:, 0], gradient[:, 0], atol=1e-4)
    moved = start._replace(is_separated=~start.is_separated)  # so that it does run
    state, _ = solve(nodes, graph, moved, 1e6, rho=1.0, tol=1e-4, max_iter=5)
    np.testing.assert_allclose(state.w, start.w, atol=1e-3)


def test_edges_are_few_where_workers_are_many():
    """Beyond 100 workers or 1 GB each has five neighbours, or none; all pairs are refused where memory is too small."""
    X, votes, _ = feature_crowd(2, n_workers=101, n_items=300, per_item=3)
    data = type("Data", (), {"gold": None})
    zero = np.zeros(X.shape[1])

    def edges(labels, shift, **settings):
        return CPC(**settings)._problem(data, labels, X, shift)[1].edges

    assert len(edges(votes, zero, edges="target")) == 101
    assert 101 + 101 * 5 // 2 < len(edges(votes, zero)) <= 101 * 6
    np.testing.assert_array_equal(edges(votes, zero), edges(votes, zero, edges="nearest"))
    assert len(edges(votes, zero, edges="all")) == 101 * 102 // 2
    few = feature_crowd(2)[1]
    assert len(edges(few, zero)) == 55
    assert len(edges(few, np.zeros(10**6))) == 10
    with pytest.raises(LimitError, match="All pairs of 102 classifiers need about"):
        edges(votes, np.zeros(10**9), edges="all")
    assert CPC(max_iter=5, random_state=0).fit(X, votes).predict_proba(X).shape == (300, 2)


def two_rules(n_workers=12):
    """Even workers label by the first feature, odd ones by the second; no two label the same item."""
    X = np.random.default_rng(0).normal(size=(n_workers * 30, 2))
    worker = np.repeat(np.arange(n_workers), 30)
    return X, worker, (X[np.arange(len(X)), worker % 2] > 0).astype(int)


def test_nearest_neighbours_are_workers_with_the_same_errors():
    """Without a common item, and whatever the order of the workers."""
    X, worker, label = two_rules()
    data, ids = (
        type("Data", (), {"gold": None}),
        {"item_ids": range(len(X)), "worker_ids": range(12), "classes": [0, 1]},
    )
    new = np.random.default_rng(1).permutation(12)

    def pairs(code):
        votes = Annotations(np.arange(len(X)), code, label, **ids)
        return CPC(edges="nearest")._problem(data, votes, X, np.zeros(2))[1].edges - 1

    found, renamed = pairs(worker), pairs(new[worker])
    assert [tuple(edge) for edge in found[:12]] == [(-1, worker) for worker in range(12)]
    assert all(j < k and (j - k) % 2 == 0 for j, k in found[12:]) and len(found) == 12 + 30
    assert {tuple(sorted(edge)) for edge in new[found[12:]]} == {tuple(edge) for edge in renamed[12:]}


@pytest.mark.parametrize("edges", ["all", "nearest", "target"])
def test_admm_stops_where_both_residuals_are_small(edges):
    """The history has objective and residuals; a smaller tol takes more iterations and comes nearer to the optimum."""
    X, votes, _ = feature_crowd(3, accuracy=0.6)
    coarse, fine, finest = (
        CPC(mu=4.0, edges=edges, tol=tol, max_iter=2000).fit(X, votes) for tol in (1e-2, 1e-4, 1e-6)
    )
    for model, tol in ((coarse, 1e-2), (fine, 1e-4), (finest, 1e-6)):
        assert [step["objective"] for step in model.history_] == model.objective_.tolist()
        last = [max(step["primal"], step["dual"]) <= tol for step in model.history_]
        assert last[-1] and not any(last[:-1])
    assert 1 < len(coarse.history_) < len(fine.history_)
    far, near = (np.abs(model.worker_coef_ - finest.worker_coef_).max() for model in (coarse, fine))
    assert near < 1e-3 < far


def test_sparse_features_without_rotation_give_the_same(monkeypatch):
    """A matrix too large to be rotated stays sparse; more features than items are rotated to as many axes as items."""
    from scipy.sparse import csr_array

    X, votes, _ = feature_crowd(2, accuracy=0.6, n_features=50, n_items=40)
    X = np.where(np.abs(X) > 1, X, 0.0)
    settings = {"mu": 8.0, "tol": 1e-5, "max_iter": 500}
    rotated, rotated_sparse = (CPC(**settings).fit(rows, votes) for rows in (X, csr_array(X)))
    monkeypatch.setattr("manyhands.linear._MAX_SPAN_AXES", 0)
    plain, sparse = (CPC(**settings).fit(rows, votes) for rows in (X, csr_array(X)))
    assert len(rotated.history_) > 5 and (rotated.cluster_ > 0).any()
    for other in (rotated_sparse, plain, sparse):
        np.testing.assert_allclose(other.predict_proba(X), rotated.predict_proba(X), atol=1e-4)
        np.testing.assert_allclose(other.worker_coef_, rotated.worker_coef_, atol=1e-3)


def test_gold_counts_as_labels_of_the_target():
    """Where every worker confuses two classes, gold separates them."""
    truth = np.arange(90) % 3
    label = np.minimum(truth, 1)
    votes = Annotations.from_matrix(np.column_stack([label, label]), classes=[0, 1, 2])
    gold = {i: int(truth[i]) for i in range(45)}
    model = CPC(mu=0.5, eta=0.1).fit(features_of(truth), votes, gold)
    assert np.mean(model.predict(features_of(truth, seed=3)) == truth) > 0.9


def test_mu_is_chosen_by_held_out_labels():
    """It is a power of 1/4 times the mu that makes all classifiers equal; without held-out labels it is that mu."""
    X, votes, _ = feature_crowd(2, n_items=200, accuracy=0.8)
    chosen = CPC(random_state=0, max_iter=20).fit(X, votes).mu_
    pooled = CPC(validation=0.0, random_state=0).fit(X, votes)
    assert (pooled.cluster_ == 0).all()
    steps = np.log(pooled.mu_ / chosen) / np.log(4)
    assert 0 <= steps <= 5 and abs(steps - round(steps)) < 1e-9

"""Difficulty EM as the paper prints it: Algorithms 2 and 3 by plain loops, and each switch that leaves the print."""

import numpy as np
import pytest

from manyhands import Annotations, DifficultyEM, FixedDifficultyEM
from manyhands.classifiers import DifficultyNetwork, difficulty_em
from manyhands.classifiers.difficulty_em import DifficultyTerm, easiness_slope
from manyhands.em import driver
from manyhands.em.ability import Abilities, easiness
from manyhands.exceptions import ParameterError
from manyhands.linear import newton_ascent
from manyhands.simulate import make_difficulty_gaussians
from manyhands.testing.crowds import feature_crowd
from reference import slow_difficulty as slow

NO_PRIORS = {"right": 1e-9, "wrong": 1e-9, "ridge": 1e-7}


@pytest.fixture(scope="module")
def some():
    """A hundred items of each class of the reference data, as features and a matrix of labels."""
    data, rows = make_difficulty_gaussians(), np.arange(400, 600)
    Y = data.crowd.annotations.label.reshape(1000, 5)[rows]
    return data.X[rows], Y, Annotations.from_matrix(Y)


@pytest.fixture(scope="module")
def whole():
    return make_difficulty_gaussians()


def with_one(X):
    return np.column_stack([X, np.ones(len(X))])


def test_adaptive_is_algorithm_2(some):
    """Weights, abilities and posterior at convergence, with the gradient through difficulty and one step a pass."""
    X, Y, votes = some
    w, abilities, mu = slow.algorithm_2(with_one(X), Y.tolist(), 120)
    model = DifficultyEM(tol=1e-12, max_iter=2000, **NO_PRIORS).fit(X, votes)
    np.testing.assert_allclose(model.posterior_[:, 1], mu, atol=2e-3)
    np.testing.assert_allclose(model.ability_[:, ::-1], abilities, atol=0.05)
    np.testing.assert_allclose([*model.module_.coef_[0], *model.module_.intercept_], w, atol=0.01)


def test_a_random_start_is_that_of_random_weights(some, monkeypatch):
    """Line 1 of Algorithm 2 as Section 4.1 says it: from these weights the loops end where the plain ones end."""
    X, Y, votes = some
    drawn, problems = [], []
    theta, data = difficulty_em.DifficultySteps.random_theta, difficulty_em.regression_data
    monkeypatch.setattr(
        difficulty_em.DifficultySteps, "random_theta", lambda *a: drawn.append(theta(*a)) or drawn[-1]
    )
    monkeypatch.setattr(
        difficulty_em, "regression_data", lambda *a, **k: problems.append(data(*a, **k)) or problems[-1]
    )
    model = DifficultyEM(start="random", random_state=0, tol=1e-12, max_iter=2000, **NO_PRIORS).fit(X, votes)
    first = problems[0].rows.in_raw_features(drawn[0].weights).ravel()
    w, _, mu = slow.algorithm_2(with_one(X), Y.tolist(), 80, first)
    np.testing.assert_allclose(model.posterior_[:, 1], mu, atol=2e-3)
    np.testing.assert_allclose([*model.module_.coef_[0], *model.module_.intercept_], w, atol=0.01)
    others = [DifficultyEM(start="random", random_state=n).fit(X, votes).objective_[0] for n in (3, 3, 4)]
    assert others[0] == others[1] != others[2]


def test_the_best_of_several_random_starts_is_kept(some):
    """By the objective, of as many starts as `n_init` says."""
    X, _, votes = some
    one, five = (DifficultyEM(start="random", n_init=n, random_state=0).fit(X, votes).objective_[-1] for n in (1, 5))
    assert five >= one


@pytest.mark.parametrize("passes", [0, 40])
def test_fixed_is_algorithm_3(some, passes):
    """Vote shares as difficulty and as prior; abilities are updated (line 12), or frozen, where EM makes no pass."""
    X, Y, votes = some
    w, abilities, mu = slow.algorithm_3(with_one(X), Y.tolist(), passes)
    how = {"tol": 1e-12, "max_iter": 1000} if passes else {"ability_update": "frozen"}
    model = FixedDifficultyEM(**how, **NO_PRIORS).fit(X, votes)
    np.testing.assert_allclose(model.posterior_[:, 1], mu, atol=1e-6)
    np.testing.assert_allclose([*model.module_.coef_[0], *model.module_.intercept_], w, atol=1e-3)
    np.testing.assert_allclose(model.ability_[:, ::-1], abilities, atol=1e-3)
    np.testing.assert_allclose((1 - model.difficulty_) / 4, (Y.mean(axis=1) - 0.5) ** 2, atol=1e-12)


def softmax(logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def term_of(n_classes, floor=0.0, seed=0):
    _, votes, _ = feature_crowd(n_classes, accuracy=0.7)
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.ones(n_classes), votes.n_items)
    workers = Abilities(rng.uniform(0, 20, (votes.n_workers, n_classes)), None)
    return DifficultyTerm(votes, posterior, workers, floor), rng.normal(size=(votes.n_items, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_the_gradient_through_difficulty_is_that_of_finite_differences(n_classes, floor):
    """Of the easiness and of the likelihood, with respect to every logit of ten items."""
    term, logits = term_of(n_classes, floor)
    slope, d_slope, step = term.slopes(softmax(logits)).slope, easiness_slope(softmax(logits)), 1e-6
    for i, k in np.ndindex(10, n_classes):
        shift = np.zeros_like(logits)
        shift[i, k] = step
        up, down = softmax(logits + shift), softmax(logits - shift)
        assert slope[i, k] == pytest.approx((term.value(up) - term.value(down)) / (2 * step), abs=1e-5)
        assert d_slope[i, k] == pytest.approx((easiness(up)[i] - easiness(down)[i]) / (2 * step), abs=1e-8)
    np.testing.assert_allclose(slope.sum(axis=1), 0, atol=1e-9)


def test_the_curvature_is_the_expected_one():
    """ability^2 P (1 - P), weighted by the posterior and summed over the labels of the item."""
    term, logits = term_of(3)
    found, p = term.slopes(softmax(logits)).curvature[:, 0], softmax(logits)
    expected = np.zeros(len(p))
    for i, w, _ in zip(term.votes.item, term.votes.worker, term.votes.label):
        for c in range(3):
            ability, d = term.workers.ability[w, c], slow.easiness(p[i])
            right = np.exp(ability * d) / (np.exp(ability * d) + 2)
            expected[i] += term.posterior[i, c] * ability**2 * right * (1 - right)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_newton_steps_with_a_further_term_reach_an_optimum(n_classes):
    """The objective rises in every step, to a point where its finite differences nearly vanish."""
    term, _ = term_of(n_classes)
    X = np.random.default_rng(1).normal(size=(term.votes.n_items, 3))
    columns = 1 if n_classes == 2 else n_classes

    def objective(w):
        logits = X @ w[:-1] + w[-1]
        p = softmax(np.column_stack([np.zeros(len(X)), logits]) if columns == 1 else logits)
        ridge = 0.5 * 2.0 * (w[:-1] ** 2).sum() / (2 if columns == 1 else 1)
        return (term.posterior * np.log(p)).sum() - ridge + term.value(p)

    def steepest(w):
        shifts = 1e-5 * np.eye(w.size).reshape(-1, *w.shape)
        return max(abs(objective(w + shift) - objective(w - shift)) / 2e-5 for shift in shifts)

    w = start = 0.3 * np.random.default_rng(2).normal(size=(4, columns))
    for _ in range(100):
        better = newton_ascent(X, term.posterior, w, 2.0, 1, term)
        assert objective(better) >= objective(w) - 1e-9
        w = better
    assert steepest(w) < 1e-2 * steepest(start)  # with three classes the easiness has kinks


def test_with_the_gradient_through_difficulty_the_objective_never_decreases(whole):
    """Accelerated too; with difficulty held fixed in the M step it decreases on the reference data."""
    votes = whole.crowd.annotations
    falls = {}
    for gradient, accelerate in [(True, False), (True, True), (False, False)]:
        model = DifficultyEM(difficulty_gradient=gradient, accelerate=accelerate).fit(whole.X, votes)
        falls[gradient, accelerate] = np.diff(model.objective_).min()
    assert falls[True, False] > -1e-8 and falls[True, True] > -1e-8 and falls[False, False] < -1e-4


def test_one_newton_step_a_pass_and_no_extrapolation(some, monkeypatch):
    """By default; both are switches."""
    X, _, votes = some
    steps, extrapolations = [], []
    ascent, extrapolate = difficulty_em.newton_ascent, driver._extrapolate
    monkeypatch.setattr(difficulty_em, "newton_ascent", lambda *a: steps.append(a[4]) or ascent(*a))
    monkeypatch.setattr(driver, "_extrapolate", lambda *a: extrapolations.append(1) or extrapolate(*a))
    DifficultyEM().fit(X, votes)
    FixedDifficultyEM(prior="classifier").fit(X, votes)
    assert set(steps) == {1} and not extrapolations
    FixedDifficultyEM(prior="classifier", newton_steps=3, accelerate=True).fit(X, votes)
    assert steps[-1] == 3 and extrapolations
    extrapolations.clear()
    DifficultyEM(difficulty_gradient=False, accelerate=True).fit(X, votes)  # its objective may fall
    assert not extrapolations
    DifficultyEM(accelerate=True).fit(X, votes)
    assert extrapolations


def test_vote_shares_are_plain_unless_smoothed(some):
    """Unanimous items are the easiest; with one pseudo-vote (n + 1/2) / (R + 1)."""
    X, Y, votes = some
    plain, smoothed = (FixedDifficultyEM(vote_smoothing=s).fit(X, votes) for s in (0.0, 1.0))
    unanimous = np.isin(Y.sum(axis=1), (0, 5))
    assert (plain.difficulty_[unanimous] == 0).all() and (plain.posterior_[unanimous].max(axis=1) == 1).all()
    share = (Y.sum(axis=1) + 0.5) / 6
    np.testing.assert_allclose((1 - smoothed.difficulty_) / 4, (share - 0.5) ** 2, atol=1e-12)
    assert (smoothed.posterior_[unanimous].max(axis=1) < 1).all()


def test_the_classifier_as_prior_of_fixed_corrects_labels(whole):
    """The program's prior against that of Algorithm 3, on the reference data."""
    votes, truth = whole.crowd.annotations, whole.crowd.truth
    printed, program = (make().fit(whole.X, votes) for make in (FixedDifficultyEM, FixedDifficultyEM.program))
    right = [np.mean(model.posterior_.argmax(axis=1) == truth) for model in (printed, program)]
    assert right[0] == pytest.approx(0.647, abs=0.02) and right[1] > 0.9


@pytest.mark.parametrize("make", [DifficultyEM, FixedDifficultyEM, DifficultyNetwork])
def test_a_threshold_of_two_classes(make):
    """The second class is predicted where its probability reaches the threshold; more classes are refused."""
    network = {"max_epochs": 3, "random_state": 0} if make is DifficultyNetwork else {}
    X, votes, _ = feature_crowd(2)
    model = make(threshold=0.3, **network).fit(X, votes)
    p = model.predict_proba(X)[:, 1]
    assert model.predict(X).tolist() == model.classes_[(p >= 0.3).astype(int)].tolist()
    assert (make(threshold=0.0, **network).fit(X, votes).predict(X) == model.classes_[1]).all()
    X, votes, _ = feature_crowd(3)
    with pytest.raises(ParameterError, match="threshold is for two classes; with 3 classes"):
        make(threshold=0.3, **network).fit(X, votes)
    model = make(**network).fit(X, votes)
    assert model.predict(X).tolist() == model.classes_[model.predict_proba(X).argmax(axis=1)].tolist()


def test_defaults_are_the_papers_and_plus_states_its_own():
    printed = {"difficulty_gradient": True, "vote_smoothing": 0.0, "newton_steps": 1, "accelerate": False, "floor": 0.0}
    ours = {"difficulty_gradient": False, "vote_smoothing": 1.0, "newton_steps": 5, "accelerate": True, "floor": None}
    for model, expected in [(DifficultyEM(), printed), (FixedDifficultyEM(), printed), (DifficultyEM.plus(), ours)]:
        assert {name: getattr(model, name) for name in expected} == expected and model.threshold == 0.5
    assert DifficultyEM().prior == DifficultyEM.plus().prior == "classifier" and FixedDifficultyEM().prior == "votes"
    assert FixedDifficultyEM().ability_update == "mle" and DifficultyEM().start == "votes"
    program = {"prior": "classifier", "ability_update": "frozen"}
    assert FixedDifficultyEM.program().get_params() == FixedDifficultyEM(**program).get_params()

"""GLAD: ranks of abilities and difficulties, and its steps against plain loops and finite differences."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from manyhands import GLAD, Annotations
from manyhands.aggregation.glad import GLADParams, GLADSteps, maximise_ease
from manyhands.em.priors import FixedPrior, class_prior
from manyhands.exceptions import CrowdWarning


def glad_crowd(seed=0, n_items=200, n_workers=20, n_classes=2, share=1.0):
    """A crowd drawn from the model: annotations, truth, ability, ease."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    ability, ease = rng.normal(0.7, 0.7, n_workers), rng.normal(0.5, 0.7, n_items)
    right = rng.random((n_items, n_workers)) < 1 / (1 + np.exp(-ability * np.exp(ease)[:, None]))
    other = (truth[:, None] + rng.integers(1, n_classes, (n_items, n_workers))) % n_classes
    votes = np.where(right, truth[:, None], other)
    votes[rng.random(votes.shape) >= share] = -1
    return Annotations.from_matrix(votes, classes=range(n_classes)), truth, ability, ease


@pytest.mark.parametrize("n_classes", [2, 5])
def test_ability_and_difficulty_are_ranked(n_classes):
    """20 workers, 200 items: Spearman above .8 for workers, clearly positive for items; the truth is found."""
    annotations, truth, ability, ease = glad_crowd(n_classes=n_classes)
    model = GLAD().fit(annotations)
    assert spearmanr(model.ability_, ability).statistic > 0.8
    assert spearmanr(-model.difficulty_, ease).statistic > 0.4
    assert np.mean(model.labels_ == truth) > 0.95


@pytest.mark.parametrize("prior", ["uniform", "estimated", [0.7, 0.2, 0.1]])
@pytest.mark.parametrize("gold", [None, {0: 1, 5: 2}])
def test_objective_never_falls(prior, gold):
    """Log evidence plus log priors rises with every pass, with any class prior."""
    annotations, *_ = glad_crowd(1, n_classes=3, share=0.3)
    model = GLAD(prior=prior).fit(annotations, gold)
    history = np.array(model.history_)
    assert model.converged_ and len(history) > 3
    assert (np.diff(history) >= -1e-8 * np.abs(history[:-1])).all()


def small_steps(n_classes=3, gold=None):
    annotations, *_ = glad_crowd(2, n_items=12, n_workers=4, n_classes=n_classes, share=0.7)
    prior = FixedPrior(np.log(np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1))))
    rng = np.random.default_rng(3)
    params = GLADParams(rng.normal(1, 1, 4), rng.normal(0, 1, 12), prior.log_prior)
    return annotations, GLADSteps.of(annotations, prior, gold), params


def slow_log_joint(annotations, params):
    """log p(truth = k, labels of i) for every item and class, in plain loops."""
    n_classes = annotations.n_classes
    table = [[params.log_prior[k] for k in range(n_classes)] for _ in range(annotations.n_items)]
    for i, w, label in zip(annotations.item, annotations.worker, annotations.label):
        logit = params.ability[w] * math.exp(params.ease[i])
        for k in range(n_classes):
            table[i][k] += -math.log1p(math.exp(-logit)) if label == k else -math.log1p(math.exp(logit))
            table[i][k] -= 0.0 if label == k else math.log(n_classes - 1)
    return np.array(table)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_e_step_is_that_of_the_plain_loops(n_classes):
    """Posterior and evidence, though computed as one weighted vote."""
    annotations, steps, params = small_steps(n_classes)
    joint = slow_log_joint(annotations, params)
    evidence = np.logaddexp.reduce(joint, axis=1)
    posterior, total = steps.e_step(steps.logit(params), params.log_prior)
    np.testing.assert_allclose(posterior.T, np.exp(joint - evidence[:, None]), rtol=1e-10)
    assert total == pytest.approx(evidence[annotations.n_labels > 0].sum(), rel=1e-12)


def test_gold_leaves_one_class():
    """The E step of a gold item knows its class, and the others are as before."""
    gold = np.full(12, -1, np.int32)
    gold[4] = 2
    _, steps, params = small_steps(gold=gold)
    posterior, _ = steps.e_step(steps.logit(params), params.log_prior)
    assert posterior[:, 4].tolist() == [0, 0, 1]
    assert (posterior[:, 5] > 0).all()


def expected_objective(steps, p_right, ability, ease):
    """What the M step maximises."""
    logit = ability[steps.worker] * np.exp(ease)[steps.item]
    labels = p_right * -np.logaddexp(0, -logit) + (1 - p_right) * -np.logaddexp(0, logit)
    return labels.sum() - 0.5 * np.sum((ability - 1) ** 2) - 0.5 * np.sum((ease - 1) ** 2)


def test_m_step_climbs_and_rests_only_where_the_gradient_is_zero():
    """No step lowers the expected objective; where steps end, finite differences in every direction vanish."""
    _, steps, params = small_steps()
    p_right = np.random.default_rng(5).random(len(steps.item))
    values = [expected_objective(steps, p_right, params.ability, params.ease)]
    for _ in range(800):
        ability, ease = steps.m_step(p_right, steps.logit(params), params)
        params = GLADParams(ability, ease, params.log_prior)
        values.append(expected_objective(steps, p_right, ability, ease))
    assert (np.diff(values) >= -1e-10).all() and values[-1] > values[0] + 1
    for i in range(4):
        nudge = np.eye(4)[i] * 1e-5
        up, down = (expected_objective(steps, p_right, params.ability + s * nudge, params.ease) for s in (1, -1))
        assert abs(up - down) / 2e-5 < 1e-4
    for i in range(12):
        nudge = np.eye(12)[i] * 1e-5
        up, down = (expected_objective(steps, p_right, params.ability, params.ease + s * nudge) for s in (1, -1))
        assert abs(up - down) / 2e-5 < 1e-4


def test_fit_rests_where_the_objective_is_flat():
    """At the end of EM the gradient of log evidence plus log priors is zero, by finite differences."""
    annotations, *_ = glad_crowd(3, n_items=15, n_workers=5, n_classes=3)
    model = GLAD(tol=1e-14, max_iter=5000).fit(annotations)
    steps = GLADSteps.of(annotations, class_prior("uniform", 3, 0.0), None)
    ease = -np.log(model.difficulty_)
    log_prior = np.log(model.class_prior_)
    for w in range(5):
        nudge = np.eye(5)[w] * 1e-5
        up, down = (steps.expect(GLADParams(model.ability_ + s * nudge, ease, log_prior))[1] for s in (1, -1))
        assert abs(up - down) / 2e-5 < 1e-3
    for i in range(15):
        nudge = np.eye(15)[i] * 1e-5
        up, down = (steps.expect(GLADParams(model.ability_, ease + s * nudge, log_prior))[1] for s in (1, -1))
        assert abs(up - down) / 2e-5 < 1e-3


def test_ease_problem_is_solved_from_anywhere():
    """The guarded Newton steps never go down and find the best point of a fine grid where there is one peak."""
    rng = np.random.default_rng(0)
    linear, quadratic = rng.normal(0, 3, 50), rng.gamma(1, 2, 50)
    grid = np.linspace(-5, 5, 20001)[:, None]

    def value(b):
        return linear * np.exp(b) - 0.5 * quadratic * np.exp(2 * b) - 0.5 * (b - 1) ** 2

    best = value(grid).max(axis=0)
    for start in (-5.0, 1.0, 5.0):
        ease = np.full(50, start)
        for _ in range(20):
            before, ease = ease, maximise_ease(ease, linear, quadratic)
            assert (value(ease) >= value(before) - 1e-12 * np.abs(value(before))).all()
        one_peak = linear <= 0  # the slope then falls everywhere
        assert one_peak.sum() > 10
        assert (value(ease)[one_peak] >= best[one_peak] - 1e-9).all()


def test_ease_guard_holds_and_lets_go():
    """No single step lowers the value, and two steps move every item with a non-zero slope."""
    rng = np.random.default_rng(0)
    linear = rng.normal(0, 1, 20_000) * 10 ** rng.uniform(-2, 4, 20_000)
    quadratic, ease = 10 ** rng.uniform(-6, 4, 20_000), rng.uniform(-4.9, 4.9, 20_000)
    beta = np.exp(ease)

    def value(b):
        return linear * np.exp(b) - 0.5 * quadratic * np.exp(2 * b) - 0.5 * (b - 1) ** 2

    after = value(maximise_ease(ease, linear, quadratic, steps=1))
    assert (after >= value(ease) - 1e-12 * np.abs(value(ease))).all()
    slope = linear * beta - quadratic * beta**2 - (ease - 1)
    steep = np.abs(slope) > 1e-6 * (np.abs(linear) * beta + quadratic * beta**2 + np.abs(ease - 1))
    assert (maximise_ease(ease, linear, quadratic, steps=2) != ease)[steep].all()


def test_items_and_workers_without_labels_have_the_prior_mean():
    """Without labels: ability 1, difficulty exp(-1), the class prior as posterior."""
    annotations = Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]])
    model = GLAD().fit(annotations)
    assert model.difficulty_[2] == pytest.approx(math.exp(-1))
    assert model.ability_[2] == pytest.approx(1)
    np.testing.assert_allclose(model.posterior_[2], 0.5)
    assert model.labels_.tolist() == [0, 1, None]


def test_inverted_worker_has_negative_ability():
    """Two classes, one worker who always gives the other class."""
    truth = np.arange(40) % 2
    model = GLAD().fit(Annotations.from_matrix(np.column_stack([truth, truth, truth, 1 - truth])))
    assert model.ability_[3] < 0 < model.ability_[0]


def test_new_items_have_the_prior_mean_of_difficulty():
    """Prediction for an item that was not in `fit` weights workers by ability alone."""
    annotations, _, _, _ = glad_crowd(4)
    model = GLAD().fit(annotations)
    w = int(np.argmax(model.ability_))
    proba = model.predict_proba(Annotations.from_triples(["new"], [w], [1]))
    assert proba[0, 1] == pytest.approx(1 / (1 + math.exp(-model.ability_[w] * math.e)))


@pytest.mark.parametrize("matrix", [[[0]], [[0, 0, 0]], [[0], [0]]])
def test_a_single_class(matrix):
    """With a single class every posterior is 1, and abilities are finite."""
    with pytest.warns(CrowdWarning):
        model = GLAD().fit(Annotations.from_matrix(matrix))
    assert (model.posterior_ == 1).all()
    assert np.isfinite(model.ability_).all() and np.isfinite(model.difficulty_).all()

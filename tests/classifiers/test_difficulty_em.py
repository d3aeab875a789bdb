"""Difficulty EM with logistic regression: its limit (Raykar), plain loops, exact likelihoods, degenerate crowds."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from manyhands import Annotations, DifficultyEM, FixedDifficultyEM, load_model
from manyhands.classifiers import Raykar, difficulty_em
from manyhands.classifiers.difficulty_em import DifficultySteps
from manyhands.em import driver as em
from manyhands.em.ability import Abilities, easiness, log_votes, posterior_from_joint
from manyhands.em.e_step import initial_posterior
from manyhands.em.kernels import vote_share
from manyhands.exceptions import ParameterError
from manyhands.testing.crowds import feature_crowd, with_unlabelled
from reference import slow_difficulty as slow


def overlapping(n_classes, n_items=80, seed=0, accuracy=0.75):
    """Overlapping classes, labelled by workers of at least chance accuracy; a third of the labels is missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    X = np.eye(n_classes)[truth] @ rng.normal(0, 1.5, (n_classes, 4)) + rng.normal(size=(n_items, 4))
    right = rng.random((n_items, 6)) < accuracy
    label = np.where(right, truth[:, None], rng.integers(0, n_classes, (n_items, 6)))
    label[rng.random(label.shape) < 1 / 3] = -1
    return X, Annotations.from_matrix(label, classes=range(n_classes)), truth


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("how", [{"difficulty": "constant"}, {"floor": 1.0}])
def test_equal_difficulties_give_raykars_model(n_classes, how):
    """To 1e-8, priors included, where all workers are better than chance; expertise is then sigma(ability / 4)."""
    X, votes, _ = overlapping(n_classes)
    raykar = Raykar(tol=0, max_iter=600).fit(X, votes)
    ours = DifficultyEM.plus(errors="free", tol=0, max_iter=600, **how).fit(X, votes)
    coins = np.einsum("wcc->wc", raykar.confusion_)
    assert (coins > 1 / n_classes).all()
    np.testing.assert_allclose(ours.posterior_, raykar.posterior_, atol=1e-8)
    np.testing.assert_allclose(ours.expertise_, coins, atol=1e-8)
    np.testing.assert_allclose(ours.module_.coef_, raykar.module_.coef_, atol=1e-6)
    assert ours.objective_[-1] == pytest.approx(raykar.objective_[-1], abs=1e-7)
    assert (ours.difficulty_ == 0).all()
    odds = np.exp(ours.ability_ / 4)
    np.testing.assert_allclose(ours.expertise_, odds / (odds + n_classes - 1), rtol=1e-12)


def test_two_classes_are_a_case_of_many_classes(monkeypatch):
    """One column of weights, or one per class as with more classes: the same fit."""
    X, votes, _ = overlapping(2)
    one = DifficultyEM.plus(tol=1e-12).fit(X, votes)
    monkeypatch.setattr(difficulty_em, "n_columns", lambda n_classes: n_classes)
    two = DifficultyEM.plus(tol=1e-12).fit(X, votes)
    np.testing.assert_allclose(two.posterior_, one.posterior_, atol=1e-5)
    np.testing.assert_allclose(two.expertise_, one.expertise_, atol=1e-5)
    np.testing.assert_allclose(two.module_.coef_[1] - two.module_.coef_[0], one.module_.coef_[0], atol=1e-4)


@pytest.mark.parametrize("difficulty", ["classifier", "votes", "posterior", "constant"])
def test_one_em_step_equals_plain_loops(difficulty):
    """Classifier, easiness and abilities from a posterior; then posterior and exact likelihood from those."""
    X, votes, _ = overlapping(3, 30)
    method = DifficultyEM(difficulty, floor=0.25, ability_update="frozen", newton_steps=5, vote_smoothing=1.0)
    steps, start = DifficultySteps(method, X, votes, None, 0.1), initial_posterior(votes, None)
    params = steps.maximise(start.ravel(), None)
    posterior, _ = steps.expect(params)
    proba = np.exp(steps.log_prior(params.weights))
    share = (vote_share(votes) * votes.n_labels[:, None] + 1 / 3) / (votes.n_labels[:, None] + 1)
    q = {"classifier": proba, "votes": share, "posterior": start, "constant": np.eye(3)[[0] * 30]}[difficulty]
    d = [0.25 * 0.25 + 0.75 * slow.easiness(row) for row in q]
    np.testing.assert_allclose(params.d, d, atol=1e-9)
    uniform, triples = (
        np.full((6, 3, 3), 0.5),
        list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist())),
    )
    expected, evidence = slow.posterior_from_joint(np.log(proba), triples, steps.model.start(start).ability, uniform, d)
    np.testing.assert_allclose(posterior.reshape(-1, 3), expected, rtol=1e-8)
    assert steps.likelihood[-1] == pytest.approx(evidence, rel=1e-10)


@pytest.mark.parametrize("update", ["mle", "map", "frozen"])
@pytest.mark.parametrize("errors", ["uniform", "free"])
def test_the_objective_never_decreases_where_difficulty_is_fixed(update, errors):
    """With "votes" and "constant" it is exact EM, with gold too; the log-likelihood is recorded in each iteration."""
    X, votes, truth = overlapping(3)
    for difficulty in ("votes", "constant"):
        model = DifficultyEM(difficulty=difficulty, ability_update=update, errors=errors, floor=0.1)
        model.fit(X, votes, gold={0: int(truth[0]), 5: int(truth[5])})
        assert len(model.objective_) > 3 and (np.diff(model.objective_) >= -1e-8 * np.abs(model.objective_[1:])).all()
        assert len(model.log_likelihood_) == len(model.objective_) == len(model.history_)


def test_the_likelihood_is_exact():
    """The last value is log p(labels | X) at the fitted parameters, by plain loops."""
    X, votes, _ = overlapping(3, 40)
    model = DifficultyEM(floor=0.0).fit(X, votes)
    d = (1 - model.difficulty_) / 4
    log_f = np.log(model.predict_proba(X))
    triples = list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    posterior, evidence = slow.posterior_from_joint(log_f, triples, model.ability_, np.full((6, 3, 3), 0.5), d)
    assert model.log_likelihood_[-1] == pytest.approx(evidence, rel=1e-9)
    np.testing.assert_allclose(model.posterior_, posterior, atol=1e-8)
    np.testing.assert_allclose(d, easiness(model.predict_proba(X)), atol=1e-9)


def test_workers_in_another_order_have_the_same_abilities():
    X, votes, _ = overlapping(3)
    order = np.array([3, 0, 5, 1, 4, 2])
    other = Annotations(
        votes.item, order[votes.worker], votes.label,
        item_ids=votes.item_ids, worker_ids=range(6), classes=votes.classes,
    )  # fmt: skip
    one, two = (DifficultyEM.plus().fit(X, labels) for labels in (votes, other))
    np.testing.assert_allclose(two.ability_[order], one.ability_, atol=1e-5)
    np.testing.assert_allclose(two.expertise_low_[order], one.expertise_low_, atol=1e-5)


@pytest.mark.parametrize("method", [DifficultyEM, DifficultyEM.plus, FixedDifficultyEM])
def test_items_without_labels_have_a_difficulty(method):
    """From the classifier, or the mean of the other items; and the expected accuracy of the crowd."""
    X, votes, _ = feature_crowd(3)
    X = np.vstack([X, X[:1]])
    model = method().fit(X, with_unlabelled(votes))
    d = (1 - model.difficulty_) / 4
    expected = d[:-1].mean() if method is FixedDifficultyEM else d[0]
    assert d[-1] == pytest.approx(expected) and 1 / 3 < model.item_accuracy_[-1] <= 1
    assert model.expertise_[-1] == pytest.approx(2 / 3)  # of the worker without labels
    np.testing.assert_allclose(model.posterior_[-1], model.predict_proba(X[-1:])[0], atol=1e-9)


def test_items_with_gold_but_no_labels_have_the_mean_difficulty():
    """Where difficulty comes from votes; so have items with neither."""
    X, votes, truth = overlapping(2)
    label = np.full((80, 6), -1)
    label[votes.item, votes.worker] = votes.label
    label[:2] = -1
    model = FixedDifficultyEM().fit(X, Annotations.from_matrix(label, classes=[0, 1]), gold={0: int(truth[0])})
    usual = model.difficulty_[(label >= 0).any(axis=1)].mean()
    assert model.difficulty_[:2] == pytest.approx([usual, usual])


def test_log_likelihoods_are_those_of_accepted_iterations(monkeypatch):
    """An extrapolation that is rejected has none, and neither has an earlier run.

    Every second extrapolation is replaced by equal probabilities of all classes. Under these the labels are as likely
    as by chance, far less than under any fit, so that the iteration is rejected on every machine.
    """
    X, votes, _ = overlapping(3, 20)
    start = initial_posterior(votes, None)
    extrapolate, turns = em._extrapolate, itertools.count()
    uniform = np.full(start.size, 1 / 3)
    monkeypatch.setattr(em, "_extrapolate", lambda *pair: uniform if next(turns) % 2 == 0 else extrapolate(*pair))
    for n_iter in range(2, 11):
        turns = itertools.count()
        method = DifficultyEM("constant", floor=1.0, newton_steps=5, max_iter=n_iter, tol=0, accelerate=True)
        steps = DifficultySteps(method, X, votes, None, 0.1)
        steps.run(start)
        turns = itertools.count()
        found, likelihood = steps.run(start)
        weights, workers, d, _ = found.params
        again = posterior_from_joint(steps.log_prior(weights) + log_votes(votes, workers, d), None)[1]
        assert likelihood[-1] == pytest.approx(again, rel=1e-12)
        assert len(likelihood) == len(found.history) and len(steps.likelihood) == found.n_iter
        if n_iter > 2:  # the third iteration is the first extrapolation
            assert 2 not in found.kept and steps.likelihood[2] < min(likelihood) - 10


def test_gold_determines_its_items_and_informs_abilities():
    """The posterior of a gold item is its class; expertise is nearer to the share of correct labels."""
    X, votes, truth = overlapping(2)
    plain = DifficultyEM(difficulty="constant").fit(X, votes)
    gold = {i: int(truth[i]) for i in range(40)}
    with_gold = DifficultyEM(difficulty="constant").fit(X, votes, gold)
    assert (with_gold.posterior_[np.arange(40), truth[:40]] > 1 - 1e-9).all()
    right = votes.label == truth[votes.item]
    share = np.bincount(votes.worker, weights=right) / np.bincount(votes.worker)
    own = [np.abs(model.expertise_.mean(axis=1) - share).mean() for model in (with_gold, plain)]
    assert own[0] < own[1]


def test_more_starts_never_give_a_lower_objective():
    X, votes, _ = overlapping(3)
    one, many, again = (DifficultyEM(difficulty="constant", n_init=n, random_state=0).fit(X, votes) for n in (1, 4, 4))
    assert many.objective_[-1] >= one.objective_[-1]
    np.testing.assert_array_equal(many.objective_, again.objective_)


def test_attributes_of_workers_and_items_are_saved(tmp_path):
    X, votes, _ = overlapping(3)
    model = FixedDifficultyEM(max_ability=50.0).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert type(again) is FixedDifficultyEM and again.max_ability == 50.0 and again.floor_ == model.floor_
    for name in ("ability_", "expertise_", "expertise_low_", "difficulty_", "item_accuracy_", "log_likelihood_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


@pytest.mark.parametrize("bad", [{"difficulty": "x"}, {"floor": 1.5}, {"errors": None}, {"right": 0}, {"prior": "x"}])
def test_invalid_parameters_are_refused(bad):
    X, votes, _ = overlapping(2)
    with pytest.raises(ParameterError, match=next(iter(bad))):
        DifficultyEM(**bad).fit(X, votes)


def test_no_torch_is_needed():
    program = (
        "import sys; from manyhands import Annotations, DifficultyEM;"
        "v = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]]); DifficultyEM().fit([[0.0], [1.0]], v).predict([[0.5]]);"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_extreme_abilities_give_finite_results():
    """A thousand labels on one item, by workers at both bounds of the ability."""
    votes = Annotations.from_matrix(np.tile([0, 1], (1, 500)))
    workers = Abilities(np.tile([0.0, 1000.0], (1000, 1)), None)
    posterior, evidence = posterior_from_joint(np.log([[0.5, 0.5]]) + log_votes(votes, workers, np.array([0.25])), None)
    assert np.isfinite(evidence) and posterior.sum() == pytest.approx(1)

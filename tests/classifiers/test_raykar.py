"""Learning from crowds: against plain loops and scikit-learn, its two forms, an objective that never decreases."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyhands import Annotations
from manyhands.classifiers import Raykar, TwoStage
from manyhands.classifiers.raykar import RaykarSteps
from manyhands.em.e_step import class_names, initial_posterior, posterior_from_gold
from manyhands.em.kernels import pack
from manyhands.linear import log_proba, newton_ascent, penalty
from manyhands.testing.crowds import feature_crowd, features_of, with_unlabelled
from reference.slow_raykar import two_coin_em


def overlapping(n_classes, n_items=60, seed=0):
    """Workers of accuracy 0.7 and overlapping classes, so that neither features nor labels determine the class.

    Features are standardised, so that an implementation that does not standardise has the same L2 penalty.
    """
    X, votes, truth = feature_crowd(n_classes, n_items=n_items, accuracy=0.7, seed=seed)
    return standard(X + np.random.default_rng(seed).normal(0, 2.0, X.shape)), votes, truth


def standard(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def triples_of(votes):
    return list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))


def steps_of(X, votes, n_columns):
    """The two steps of EM with this many columns of weights."""
    return RaykarSteps(X, pack(votes), None, np.ones(votes.n_workers, bool), n_columns, 1.0, Raykar())


def test_two_classes_equal_plain_loops():
    """Posterior, sensitivities and specificities of the paper's EM with full Newton steps, at the same optimum."""
    X, votes, _ = overlapping(2, 40)
    mu, alpha, beta = two_coin_em(X, triples_of(votes), 10, ridge=1.0, right=1.0, wrong=0.5, n_iter=60)
    model = Raykar(ridge=1.0, tol=1e-12, max_iter=1000).fit(X, votes)
    np.testing.assert_allclose(model.posterior_[:, 1], mu, atol=1e-4)
    np.testing.assert_allclose(model.confusion_[:, 1, 1], alpha, atol=1e-4)
    np.testing.assert_allclose(model.confusion_[:, 0, 0], beta, atol=1e-4)


def test_one_iteration_equals_plain_loops():
    """An M step on the vote shares, then an E step."""
    X, votes, _ = overlapping(2, 40)
    mu, alpha, _ = two_coin_em(X, triples_of(votes), 10, ridge=1.0, right=2.0, wrong=0.3, n_iter=1)
    model = Raykar(ridge=1.0, max_iter=1, right=2.0, wrong=0.3, newton_steps=30).fit(X, votes)
    np.testing.assert_allclose(model.confusion_[:, 1, 1], alpha, atol=1e-12)
    np.testing.assert_allclose(model.posterior_[:, 1], mu, atol=1e-6)


def test_many_classes_with_two_is_the_binary_form():
    """A column of weights for each of two classes, or one for both: the same EM in each iteration."""
    X, votes, _ = overlapping(2)
    start = initial_posterior(votes, None)
    binary, general = (steps_of(X, votes, n_columns).run(start) for n_columns in (1, 2))
    np.testing.assert_allclose(general.history, binary.history, rtol=1e-9)
    np.testing.assert_allclose(general.params.log_confusion, binary.params.log_confusion, atol=1e-7)
    difference = general.params.weights @ [[-1.0], [1.0]]
    np.testing.assert_allclose(difference, binary.params.weights, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("newton_steps", [1, 5])
def test_the_objective_never_decreases(n_classes, newton_steps):
    """With and without gold, on items with and without labels, from votes and from random starts."""
    X, votes, truth = overlapping(n_classes)
    votes = with_unlabelled(votes)
    X = np.vstack([X, X[:1]])
    gold = {votes.item_ids[i]: votes.classes[truth[i % 60]] for i in (0, 1, 60)}
    for known in (None, gold):
        model = Raykar(newton_steps=newton_steps, n_init=2, random_state=0, tol=1e-8).fit(X, votes, known)
        assert len(model.objective_) > 3
        assert (np.diff(model.objective_) >= -1e-9 * np.abs(model.objective_[1:])).all()


def test_the_objective_is_the_penalised_log_likelihood():
    """Summed label by label, for two and three classes, with an item that has gold but no labels."""
    for n_classes in (2, 3):
        X, votes, _ = overlapping(n_classes, 20)
        votes, X = with_unlabelled(votes), np.vstack([X, X[:1]])[:21]
        model = Raykar(ridge=0.7, right=2.0, wrong=0.4, max_iter=3)
        model.fit(X, votes, {votes.item_ids[-1]: votes.classes[1]})
        joint = model.predict_proba(X)
        log_gold = np.log(joint[20, 1])
        for i, j, y in triples_of(votes):
            joint[i] *= model.confusion_[j, :, y]
        coef = model.module_.coef_ * X.std(axis=0)
        ridge = 0.7 / 2 if n_classes == 2 else 0.7
        expected = np.log(joint[:20].sum(axis=1)).sum() + log_gold - 0.5 * ridge * (coef**2).sum()
        for j in range(10):
            for k in range(n_classes):
                for y in range(n_classes):
                    labels = 2.0 if k == y else 0.4 / (n_classes - 1)
                    expected += labels * np.log(model.confusion_[j, k, y])
        assert model.objective_[-1] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_newton_finds_what_scikit_learn_finds(n_classes):
    """On soft targets as weighted rows; the fitted LogisticRegression has the corresponding C."""
    X, votes, _ = overlapping(n_classes)
    target = initial_posterior(votes, None)
    start = np.zeros((5, 1 if n_classes == 2 else n_classes))
    weights = newton_ascent(X, target, start, 0.5, 50)
    C = (2 if n_classes == 2 else 1) / 0.5
    row, label = np.nonzero(target)
    other = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X[row], label, sample_weight=target[row, label])
    np.testing.assert_allclose(np.exp(log_proba(X, weights, n_classes)), other.predict_proba(X), atol=1e-5)
    assert Raykar(ridge=0.5).fit(X, votes).module_.C == C


def test_a_newton_step_never_lowers_the_value():
    """From any weights, also where a full step would overshoot."""
    X, votes, _ = overlapping(3)
    target, rng = initial_posterior(votes, None), np.random.default_rng(0)

    def value(weights):
        return float((target * log_proba(X, weights, 3)).sum()) - penalty(weights, 3, 0.01)

    for scale in (0.1, 3.0, 30.0):
        weights = rng.normal(0, scale, (5, 3))
        for _ in range(5):
            better = newton_ascent(X, target, weights, 0.01, 1)
            assert value(better) >= value(weights)
            weights = better


def test_perfect_workers_are_supervised_training():
    """The classifier is that of the truth, up to the effect of the workers' priors."""
    X, votes, truth = feature_crowd(3, n_items=120, accuracy=1.0)
    model = Raykar(ridge=1.0).fit(X, votes)
    expected = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000)).fit(X, truth)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=0.02)
    fresh = features_of(np.arange(120) % 3, seed=7)
    assert (model.predict(fresh) == votes.classes[expected.predict(fresh)]).all()


def test_a_majority_of_spammers_is_identified():
    """Three workers of accuracy 0.9 against four spammers who always give class 0."""
    truth = np.arange(200) % 2
    rng = np.random.default_rng(0)
    correct = np.where(rng.random((200, 3)) < 0.9, truth[:, None], 1 - truth[:, None])
    votes = Annotations.from_matrix(np.hstack([correct, np.zeros((200, 4), int)]))
    X, fresh = features_of(truth), features_of(truth, seed=7)
    model = Raykar().fit(X, votes)
    assert np.mean(model.predict(fresh) == truth) > 0.95
    assert np.mean(TwoStage("majority-vote", "logistic-regression").fit(X, votes).predict(fresh) == truth) < 0.6
    assert model.confusion_[:3, 1, 1].min() > 0.8 > 0.2 > model.confusion_[3:, 1, 1].max()


def test_workers_without_labels_change_nothing():
    """To the last bit; their confusion matrix is that of the prior."""
    X, votes, _ = overlapping(3)
    alone, wider = Raykar().fit(X, votes), Raykar().fit(X, with_unlabelled(votes)[:60])
    np.testing.assert_array_equal(wider.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(wider.posterior_, alone.posterior_)
    np.testing.assert_array_equal(wider.objective_, alone.objective_)
    np.testing.assert_allclose(wider.confusion_[-1, 0], np.array([1.0, 0.25, 0.25]) / 1.5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_exchanged_classes_are_corrected(n_classes):
    """From a posterior with permuted classes, EM ends where it ends from the vote shares."""
    X, votes, truth = feature_crowd(n_classes, accuracy=0.8)
    steps = steps_of(X, votes, 1 if n_classes == 2 else n_classes)
    right, wrong = (steps.run(np.roll(initial_posterior(votes, None), shift, axis=1)) for shift in (0, 1))
    assert wrong.history[-1] == pytest.approx(right.history[-1], rel=1e-5)
    posterior = steps.expect(wrong.params)[0].reshape(-1, n_classes)
    assert np.mean(posterior.argmax(axis=1) == truth) > 0.95


def test_class_names_follow_the_labels():
    """Estimated class 2 is what most workers label 0, and so on; no permutation where workers beat chance."""
    swapped = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    assert class_names(np.stack([swapped, swapped, np.eye(3)[[1, 2, 0]]])).tolist() == [2, 0, 1]
    assert class_names(np.stack([np.eye(3), np.eye(3), swapped])).tolist() == [0, 1, 2]
    assert class_names(np.ones((4, 1, 1))).tolist() == [0]


def test_gold_is_used_for_classes_that_no_worker_gives():
    """Where every worker confuses two classes, gold separates them."""
    truth = np.arange(90) % 3
    label = np.minimum(truth, 1)
    votes = Annotations.from_matrix(np.column_stack([label, label]), classes=[0, 1, 2])
    model = Raykar().fit(features_of(truth), votes, {i: int(truth[i]) for i in range(45)})
    assert np.mean(model.predict(features_of(truth, seed=3)) == truth) > 0.9


def test_gold_that_contradicts_the_vote_prevails():
    """Most workers swap the classes, which only gold shows; EM from the vote alone would follow them."""
    truth = np.arange(120) % 2
    rng = np.random.default_rng(0)
    wrong = rng.random((120, 5)) < [0.9, 0.9, 0.9, 0.9, 0.1]
    votes = Annotations.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None]))
    gold = {i: int(truth[i]) for i in range(30)}
    model = Raykar().fit(features_of(truth), votes, gold)
    assert np.mean(model.predict(features_of(truth, seed=7)) == truth) > 0.95
    assert np.trace(model.confusion_[0]) < 0.6 < 1.4 < np.trace(model.confusion_[4])


def test_gold_is_another_start_only_where_it_contradicts_the_vote():
    """The posterior then follows from the workers' confusion matrices on gold items."""
    votes = Annotations.from_matrix([[0, 0]] * 12 + [[0, 1], [1, 0]])
    pseudo = np.array([[1.0, 0.5], [0.5, 1.0]])
    right, wrong = (np.array([k] * 12 + [-1, -1], np.int32) for k in (0, 1))
    assert posterior_from_gold(votes, None, pseudo) is None
    assert posterior_from_gold(votes, right, pseudo) is None
    start = posterior_from_gold(votes[:13].keep(np.arange(26) < 25), wrong[:13], pseudo)
    np.testing.assert_array_equal(start[:12], [[0.0, 1.0]] * 12)
    as_zero = [1.0 / 1.5, 12.5 / 13.5]  # likelihood of a label 0 under the two classes, after 12 wrong labels
    np.testing.assert_allclose(start[12], np.array(as_zero) / sum(as_zero))


def test_units_of_the_features_do_not_matter():
    """Features are standardised internally; the fitted classifier takes features as given."""
    X, votes, _ = overlapping(3)
    scale, shift = np.array([1e-3, 1.0, 50.0, 1e4]), np.array([0.0, 3.0, -70.0, 2e4])
    one, other = Raykar().fit(X, votes), Raykar().fit(X * scale + shift, votes)
    np.testing.assert_allclose(other.predict_proba(X * scale + shift), one.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(other.module_.predict_proba(X * scale + shift), one.predict_proba(X), atol=1e-5)


def test_the_default_penalty_is_a_tenth_of_the_sum_of_variances():
    """A tenth of the number of features where these are standardised; otherwise it scales with the units."""
    X, votes, _ = overlapping(3)
    assert Raykar().fit(X * [1, 2, 3, 0], votes).ridge_ == pytest.approx(0.3)
    one, other = (Raykar(standardise=False).fit(scale * X, votes) for scale in (1, 100))
    assert other.ridge_ == pytest.approx(1e4 * one.ridge_)
    np.testing.assert_allclose(other.predict_proba(100 * X), one.predict_proba(X), atol=1e-5)
    scaled = Raykar(ridge=0.5, standardise=False).fit(X * [1, 1, 1, 0.01], votes)
    assert (
        np.abs(scaled.predict_proba(X * [1, 1, 1, 0.01]) - Raykar(ridge=0.5).fit(X, votes).predict_proba(X)).max()
        > 0.01
    )
    assert Raykar().fit(np.ones((60, 1)), votes).ridge_ == 1.0


def test_history_has_the_objective_of_each_iteration():
    X, votes, _ = overlapping(2, 20)
    model = Raykar(max_iter=7).fit(X, votes)
    assert [entry["objective"] for entry in model.history_] == model.objective_.tolist()
    assert 1 < len(model.history_) <= 7


def test_more_starts_never_give_a_lower_objective():
    """The best of several starts is kept; the seed determines them."""
    X, votes, _ = overlapping(3)
    one, many, again = (Raykar(n_init=n, random_state=0).fit(X, votes) for n in (1, 4, 4))
    assert many.objective_[-1] >= one.objective_[-1]
    np.testing.assert_array_equal(many.objective_, again.objective_)


def test_no_torch_is_needed():
    """Neither to fit nor to predict."""
    program = (
        "import sys; from manyhands import Annotations; from manyhands.classifiers import Raykar;"
        "v = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]]); Raykar().fit([[0.0], [1.0]], v).predict([[0.5]]);"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_no_torch_is_needed_to_save_and_load(tmp_path):
    program = (
        "import sys; from manyhands import Annotations, load_model; from manyhands.classifiers import Raykar;"
        "v = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]]); Raykar().fit([[0.0], [1.0]], v).save(sys.argv[1]);"
        "load_model(sys.argv[1]).predict([[0.5]]); print('torch' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "False"

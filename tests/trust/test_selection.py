"""Choosing a method by answers."""

import numpy as np
import pytest
from scipy import stats

import manyhands as mh
from manyhands.exceptions import AnnotationError
from manyhands.simulate import make_crowd
from manyhands.trust.selection import MIN_PROBABILITY, choose_method, probability_of_better

DEFAULT = mh.registry.DEFAULT


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (1, 0), (2, 0), (3, 2), (2.5, 1.2), (0, 4)])
def test_the_probability_is_that_of_a_beta_distribution(better, worse):
    assert probability_of_better(better, worse) == pytest.approx(stats.beta(1 + better, 1 + worse).sf(0.5))


def choose(default, other, truth, weight=None):
    said = {DEFAULT: np.array(default), "wawa": np.array(other)}
    return choose_method(said, np.array(truth), weight)


def test_one_answer_is_thin_and_two_are_not():
    """The definition of thin in the documents."""
    one = choose([0, 0, 1], [1, 0, 1], [1, 0, 1])
    assert one.method == DEFAULT and one.best == "wawa" and one.is_thin and "thin" in str(one)
    two = choose([0, 0, 1], [1, 1, 1], [1, 1, 1])
    assert two.method == "wawa" and not two.is_thin and "is followed" in str(two)
    assert (two.better, two.worse) == (2, 0) and two.probability >= MIN_PROBABILITY
    assert choose([0, 0, 0, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]).method == DEFAULT  # three to two


def test_the_default_wins_ties():
    tied = choose([0, 1], [1, 0], [0, 0])
    assert tied.best == tied.method == DEFAULT and "no method is right more often" in str(tied)
    same = choose([0, 1], [0, 1], [0, 0])
    assert same.n_contested == 0 and "agree on all" in str(same)


def test_counts_by_plain_loops():
    rng = np.random.default_rng(0)
    for _ in range(50):
        truth, default, other = rng.integers(0, 3, (3, 12))
        weight = rng.uniform(0.5, 2.0, 12)
        found = choose(default, other, truth, weight)
        right = {DEFAULT: 0.0, "wawa": 0.0}
        better = worse = 0.0
        for t, d, o, w in zip(truth, default, other, weight):
            right[DEFAULT] += w * (d == t) / weight.sum()
            right["wawa"] += w * (o == t) / weight.sum()
            better += w * (o == t and d != t)
            worse += w * (d == t and o != t)
        assert found.right == pytest.approx(right)
        best = "wawa" if right["wawa"] > right[DEFAULT] + 1e-9 else DEFAULT
        assert found.best == best
        if best == "wawa":
            assert (found.better, found.worse) == pytest.approx((better, worse))


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_items=200, n_workers=12, n_classes=3, random_state=5)


def truth_of(crowd):
    return dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))


def test_the_model_counts_answers_as_gold_and_says_how_close_it_was(crowd):
    questions = mh.contested(crowd.annotations, n=10)
    answers = questions.answer({item: truth_of(crowd)[item] for item in questions})
    model = mh.select_by_answers(crowd.annotations, answers)
    at = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    for item, label in answers.values.items():
        assert model.labels_[at[item]] == label
        assert model.posterior_[at[item]].max() == 1.0
    assert model.selection_.n_answers == len(answers) and set(model.selection_.right) >= {DEFAULT, "majority-vote"}
    assert str(model.selection_).endswith(".")


def test_the_right_method_is_found_where_another_fails():
    """Answers that follow the vote make the vote win over a default that inverts these items."""
    crowd = make_crowd(n_items=300, n_workers=15, n_classes=3, bad="inverted", bad_share=0.35, random_state=2)
    questions = mh.contested(crowd.annotations, n=30)
    for method in ("majority-vote", "wawa"):
        said = questions.labels[method]
        model = mh.select_by_answers(crowd.annotations, questions.answer(said))
        assert model.selection_.right[method] == pytest.approx(1.0)
        assert model.selection_.right[model.selection_.method] == pytest.approx(1.0)


def test_a_mapping_will_do_and_bad_answers_will_not(crowd):
    truth = truth_of(crowd)
    some = dict(list(truth.items())[:15])
    assert mh.select_by_answers(crowd.annotations, some).selection_.n_answers == 15
    with pytest.raises(AnnotationError, match="do not have"):
        mh.select_by_answers(crowd.annotations, {"nobody": 0})


def test_answers_of_an_inverted_crowd_are_shown_to_the_fit():
    """Where no candidate is right on half of the answers, they enter the fit, which inverts the solution."""
    crowd = make_crowd(n_items=150, n_workers=15, n_classes=2, bad="inverted", bad_share=0.8, random_state=0)
    truth = truth_of(crowd)
    answers = dict(list(truth.items())[:30])
    model = mh.select_by_answers(crowd.annotations, answers)
    assert max(model.selection_.right.values()) <= 0.5 and model.hidden == ()
    rest = list(truth)[30:]
    found = dict(zip(model.item_ids_.tolist(), model.labels_.tolist()))
    assert sum(found[item] == truth[item] for item in rest) > 0.7 * len(rest)
    contested = mh.contested(crowd.annotations, n=10, methods=["wawa"])
    answers = contested.answer({item: truth[item] for item in contested})
    assert set(mh.select_by_answers(crowd.annotations, answers, methods=["wawa"]).hidden) == set(contested)

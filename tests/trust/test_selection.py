"""Choosing a method by answers."""

import math

import numpy as np
import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError
from manyhands.simulate import make_crowd
from manyhands.trust.selection import ALWAYS, CLOSE, WITH_ANSWERS, choose_method

DEFAULT = mh.registry.DEFAULT


def choose(default, other, truth, weight=None, name="wawa", contested=None):
    """Choose between the default and another method that label all items, of which the first were answered."""
    said = {DEFAULT: np.array(default), name: np.array(other)}
    mask = None if contested is None else np.array(contested, bool)
    return choose_method(said, np.arange(len(truth)), np.array(truth), weight, mask)


def test_one_answer_is_thin_and_two_are_not():
    """The definition of thin in the documents: a departure from the default needs two answers to none."""
    one = choose([0, 0, 1], [1, 0, 1], [1, 0, 1])
    assert one.method == DEFAULT and one.best == "wawa" and one.is_thin and "thin" in str(one)
    two = choose([0, 0, 1], [1, 1, 1], [1, 1, 1])
    assert two.method == "wawa" and not two.is_thin and "is followed" in str(two)
    assert (two.better, two.worse) == (2, 0) and two.gain["wawa"] > two.least["wawa"] > 0
    assert choose([0, 0, 0, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1]).method == DEFAULT  # three to two


@pytest.mark.parametrize("name", CLOSE)
def test_going_back_towards_the_vote_costs_less(name):
    assert choose([0, 0, 1], [1, 0, 1], [1, 0, 1], name=name).method == name


def test_answers_about_contested_items_say_little_about_the_others():
    """Nine right answers to six; the same method departs alone on a hundred items that no answer is about."""
    truth, default = np.zeros(15, int), np.r_[np.ones(9, int), np.zeros(6, int)]
    near = choose(default, 1 - default, truth)
    alone = np.arange(115) < 15
    far = choose(np.r_[default, np.zeros(100, int)], np.r_[1 - default, np.ones(100, int)], truth, contested=alone)
    assert near.method == "wawa" and far.method == DEFAULT and far.is_thin


def test_the_default_wins_ties():
    tied = choose([0, 1], [1, 0], [0, 0])
    assert tied.best == tied.method == DEFAULT and "no method is right more often" in str(tied)
    same = choose([0, 1], [0, 1], [0, 0])
    assert same.n_contested == 0 and "agree on all" in str(same)


def plain_gain(default, other, truth, weight, contested, prior):
    """Expected gain and the same less half a standard deviation, by plain loops."""
    won, differ, decided = [0.0, 0.0], [0.0, 0.0], 0.0  # on contested items, on the others
    for t, d, o, w, c in zip(truth, default, other, weight, contested):
        won[0 if c else 1] += w * (int(o == t) - int(d == t))
        differ[0 if c else 1] += w * (o != d)
        decided += w * ((o == t) != (d == t)) * c
    share = [sum(o != d and c == k for d, o, c in zip(default, other, contested)) / len(default) for k in (1, 0)]
    mean = (won[0] + 4 * prior) / (differ[0] + 4)
    variance = (decided + 4 * abs(prior)) / (differ[0] + 4) - mean**2
    there = (won[1] + 0.5 * won[0] - 3) / (differ[1] + 0.5 * differ[0] + 10)
    gain = share[0] * mean + share[1] * there
    return gain, gain - 0.5 * share[0] * math.sqrt(variance / (differ[0] + 4))


def test_counts_by_plain_loops():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = 12
        truth, default, other = rng.integers(0, 3, (3, 30))
        weight, contested = rng.uniform(0.5, 2.0, n), rng.random(30) < 0.6
        found = choose(default, other, truth[:n], weight, contested=contested)
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
        every = np.r_[weight, np.zeros(18)]  # items without an answer have no weight, but count in the shares
        gain, least = plain_gain(default, other, truth, every, contested, -0.2)
        assert (found.gain["wawa"], found.least["wawa"]) == pytest.approx((gain, least))
        assert found.method == ("wawa" if least > 1e-9 else DEFAULT)
        if "wawa" in (found.method, best):
            assert (found.better, found.worse) == pytest.approx((better, worse))


def test_answers_against_the_default_say_nothing_about_items_on_which_it_agrees_with_the_vote():
    """A method that inverts the default is right where it overrules the vote, and not followed everywhere."""
    default, vote = np.zeros(100, int), np.r_[np.ones(30, int), np.zeros(70, int)]
    said = {DEFAULT: default, "majority-vote": vote, "glad": 1 - default}
    found = choose_method(said, np.arange(20), np.ones(20, int), None, np.arange(100) < 30)
    assert found.right["glad"] == found.right["majority-vote"] == 1 and found.method == "majority-vote"


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_items=200, n_workers=12, n_classes=3, random_state=5)


def truth_of(crowd):
    return dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))


def test_the_model_counts_answers_as_gold_and_says_how_close_it_was(crowd):
    questions = mh.contested(crowd.annotations, n=10)
    answers = questions.answer({item: truth_of(crowd)[item] for item in questions})
    model = mh.trust.select_by_answers(crowd.annotations, answers)
    at = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    for item, label in answers.values.items():
        assert model.labels_[at[item]] == label
        assert model.posterior_[at[item]].max() == 1.0
    assert model.selection_.n_answers == len(answers) and set(model.selection_.right) >= {DEFAULT, "majority-vote"}
    assert str(model.selection_).endswith(".")
    assert {WITH_ANSWERS, ALWAYS} <= set(model.selection_.right)  # gold of a fit only if it is right more often with it
    assert set(model.hidden) == (set() if model.selection_.method == WITH_ANSWERS else set(questions))


@pytest.mark.slow
def test_the_right_method_is_found_where_another_fails():
    """Answers that follow the vote make the vote win over a default that inverts these items."""
    crowd = make_crowd(n_items=300, n_workers=15, n_classes=3, bad="inverted", bad_share=0.35, random_state=2)
    questions = mh.contested(crowd.annotations, n=30)
    for method in ("majority-vote", "wawa"):
        said = questions.labels[method]
        model = mh.trust.select_by_answers(crowd.annotations, questions.answer(said))
        assert model.selection_.right[method] == pytest.approx(1.0)
        assert model.selection_.right[model.selection_.method] == pytest.approx(1.0)


def test_a_mapping_will_do_and_bad_answers_will_not(crowd):
    truth = truth_of(crowd)
    some = dict(list(truth.items())[:15])
    assert mh.trust.select_by_answers(crowd.annotations, some).selection_.n_answers == 15
    with pytest.raises(AnnotationError, match="do not have"):
        mh.trust.select_by_answers(crowd.annotations, {"nobody": 0})


def test_answers_of_an_inverted_crowd_are_shown_to_the_fit():
    """Where no method is right on half of the answers, the default with answers is, which inverts the solution."""
    crowd = make_crowd(n_items=150, n_workers=15, n_classes=2, bad="inverted", bad_share=0.8, random_state=0)
    truth = truth_of(crowd)
    answers = dict(list(truth.items())[:30])
    model = mh.trust.select_by_answers(crowd.annotations, answers)
    right = model.selection_.right
    assert max(share for name, share in right.items() if name != WITH_ANSWERS) <= 0.5
    assert model.selection_.method == WITH_ANSWERS and model.hidden == ()
    rest = list(truth)[30:]
    found = dict(zip(model.item_ids_.tolist(), model.labels_.tolist()))
    assert sum(found[item] == truth[item] for item in rest) > 0.7 * len(rest)


def judges(seed, n_items=200, n_judges=25, n_classes=4):
    """A panel of five families that share errors: ordered grades, each family with its own scale, three good judges."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n_items)
    truth = np.searchsorted([-0.8, 0.1, 0.9], score)
    common, family = 0.8 * rng.normal(size=n_items), 0.5 * rng.normal(size=(5, n_items))
    scale = np.sort(rng.normal([-0.8, 0.1, 0.9], 0.3, (5, 3)), axis=1)
    columns = []
    for judge in range(n_judges):
        own = rng.choice(5, p=[0.36, 0.27, 0.18, 0.12, 0.07])
        if judge < 3:
            columns.append(np.searchsorted([-0.8, 0.1, 0.9], score + 0.4 * rng.normal(size=n_items)))
        else:
            seen = score + common + family[own] + 0.3 + 0.4 * rng.normal(size=n_items)
            columns.append(np.searchsorted(scale[own], seen))
    return mh.Annotations.from_matrix(np.stack(columns, axis=1), classes=np.arange(n_classes)), truth


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_contested_answers_do_not_make_a_panel_of_judges_worse():
    """The default fitted with these answers as gold follows errors that families share: -3 points, confidence +.07."""
    annotations, truth = judges(seed=10)
    plain = mh.PooledDawidSkene().fit(annotations)
    before = plain.labels_ == truth
    lost = []
    for draw in range(2):
        questions = mh.contested(annotations, n=20, random_state=draw)
        model = mh.trust.select_by_answers(annotations, questions.answer({item: truth[item] for item in questions}))
        rest = ~np.isin(annotations.item_ids, list(questions))
        lost.append(before[rest].mean() - (model.labels_ == truth)[rest].mean())
        assert model.posterior_[rest].max(axis=1).mean() <= plain.posterior_[rest].max(axis=1).mean() + 1e-6
    assert np.mean(lost) <= 0.015


@pytest.mark.slow
def test_names_and_order_of_items_do_not_change_the_choice(crowd):
    """Folds follow the names of the items, not the rows."""
    truth = truth_of(crowd)
    questions = mh.contested(crowd.annotations, n=12, random_state=1)
    answers = questions.answer({item: truth[item] for item in questions})
    first = mh.trust.select_by_answers(crowd.annotations, answers)
    a = crowd.annotations
    backwards = mh.Annotations(
        a.n_items - 1 - a.item, a.worker, a.label,
        item_ids=a.item_ids[::-1], worker_ids=a.worker_ids, classes=a.classes,
    )  # fmt: skip
    second = mh.trust.select_by_answers(backwards, answers)
    assert second.selection_.method == first.selection_.method
    assert second.selection_.least == pytest.approx(first.selection_.least)

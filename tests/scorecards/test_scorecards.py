"""Scorecards: numbers by hand, undefined values, planted workers are flagged and honest ones are not."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from manyhands import Annotations, registry
from manyhands.classifiers import TwoStage
from manyhands.exceptions import AlignmentError, AnnotationError, NotFittedError, ParameterError
from manyhands.scorecards import ALERTS, score_workers
from manyhands.simulate import make_crowd, one_coin
from manyhands.testing.crowds import easy_crowd
from small_scorecards import on_gold, scored


def test_agreement_by_hand():
    """The others' labels on Ann's items (0, 0, 1) are 01, 11, 11: 3 of 6 equal; shuffled, 2/3 * 1/6 + 1/3 * 5/6."""
    votes = Annotations.from_matrix([[0, 0, 1], [0, 1, 1], [1, 1, 1]])
    cards = score_workers(votes, np.full((3, 2), 0.5))
    assert cards.agreement[0] == pytest.approx(1 / 2)
    assert cards.agreement_by_chance[0] == pytest.approx(7 / 18)
    assert cards.n_labels.tolist() == cards.n_checked.tolist() == [3, 3, 3]


def test_bias_and_confusion_by_hand():
    """20 labels "dog" on 10 dogs: excess .5, 10 / sqrt(11) deviations; every cat is labelled as a dog."""
    card = on_gold(["dog"] * 20, ["cat", "dog"] * 10)
    assert (card.bias_class, card.bias) == ("dog", 0.5)
    assert card.top_confusions == (("cat", "dog", pytest.approx(10), pytest.approx(1)),)
    some = on_gold(["cat"] * 10 + ["dog"] * 5, ["cat"] * 15)
    assert some.top_confusions == (("cat", "dog", pytest.approx(5), pytest.approx(1 / 3)),)
    fair = on_gold(["cat", "dog"] * 10, ["cat", "dog"] * 10)
    assert fair.bias_class is None and fair.bias is None and fair.top_confusions == ()
    nine = on_gold(["dog"] * 18, ["cat", "dog"] * 9)  # 9 / sqrt(10) = 2.85
    assert nine.bias_class is None


def test_one_class_needs_ten_items_of_other_classes():
    """A worker with recall .4 misses ten in a row with probability .6^10 = .006, nine with .0101."""
    card = on_gold(["dog"] * 20, ["cat", "dog"] * 10)
    assert card.alerts == ("one-class",)
    assert card.reasons == ("label 'dog' on 20 of 20 items; the expected number of 'dog' is 10",)
    assert on_gold(["dog"] * 18, ["cat", "dog"] * 9).alerts == ("too-few-labels",)


def test_without_a_crowd_random_needs_enough_labels_to_reject_a_weak_worker():
    """Half right of 200: 2 * 200 * log(.5 / sqrt(.24)) = 8.2, beyond 2.33^2 = 5.4; of 100 it is 4.1."""
    labels, truth = ["cat", "cat", "dog", "dog"], ["cat", "dog", "cat", "dog"]
    card = on_gold(labels * 50, truth * 50)
    assert card.alerts == ("random",)
    assert card.reasons == ("right on about 100 of 200 items by the leave-one-out posterior; chance agreement is 100",)
    undecided = on_gold(labels * 25, truth * 25)
    assert undecided.alerts == ("undecided",)
    assert undecided.reasons == (
        "right on about 50 of 100 items by the leave-one-out posterior; chance agreement is 50: "
        "neither random labelling nor a weak honest worker can be ruled out",
    )


def test_inverted_and_honest_on_gold():
    """Ten of fifty right is below chance; forty of fifty is informative."""
    truth = ["cat", "dog"] * 25
    swap = {"cat": "dog", "dog": "cat"}
    card = on_gold(truth[:10] + [swap[t] for t in truth[10:]], truth)
    assert card.alerts == ("inverted",) and card.accuracy_high < 0.5
    assert card.reasons[0].endswith("below chance agreement, which is 25")
    assert on_gold(truth[:40] + [swap[t] for t in truth[40:]], truth).alerts == ()


def test_a_single_worker_is_not_identifiable():
    """N4: no label can be checked, so the interval is that of the prior, far from an estimate of 1.0."""
    votes = Annotations.from_matrix([[0], [1], [0]])
    for cards in (score_workers(votes, np.eye(2)[[0, 1, 0]]), scored(votes)):
        card = cards[0]
        assert card.n_labels == 3 and card.n_checked == 0 and card.agreement is None
        assert card.accuracy_low < 0.3 and card.accuracy_high > 0.9 and 0.5 < card.accuracy < 0.8
        assert card.alerts == ("too-few-labels",)
        assert card.reasons == ("no other labels on any of the 3 items they labelled",)


def test_one_label_per_item_gives_the_interval_of_the_prior():
    """N5: no item has two labels; all workers get the same wide interval, whatever their number of labels."""
    votes = Annotations.from_triples(range(100), [0] * 90 + [1] * 10, [0, 1] * 50)
    cards = scored(votes)
    assert cards.n_checked.tolist() == [0, 0]
    assert cards.accuracy_low[0] == cards.accuracy_low[1] < 0.3 and cards.accuracy_high[0] > 0.9


def test_a_worker_without_labels_keeps_a_card():
    """N7: their interval is that of the prior estimated from the crowd."""
    crowd = make_crowd(60, 10, random_state=0).annotations
    votes = Annotations(
        crowd.item, crowd.worker, crowd.label,
        item_ids=crowd.item_ids, worker_ids=[*range(10), "without labels"], classes=crowd.classes,
    )  # fmt: skip
    card = scored(votes)[10]
    assert (card.worker, card.n_labels, card.n_checked) == ("without labels", 0, 0)
    assert card.reasons == ("no labels",) and card.agreement is None and card.agreement_by_chance is None
    assert card.accuracy_high - card.accuracy_low > 0.3


def test_gold_checks_a_single_worker():
    """With gold, a worker without shared items can be checked; without gold they cannot."""
    votes = Annotations.from_triples(range(60), ["ann"] * 60, [0, 1] * 30)
    flat = np.full((60, 2), 0.5)
    card = score_workers(votes, flat, gold={i: i % 2 for i in range(60)})[0]
    assert card.n_checked == 60 and card.accuracy_low > 0.8 and card.accuracy < 1.0 and card.alerts == ()
    assert score_workers(votes, flat, gold={0: 0})[0].n_checked == 1


@pytest.mark.parametrize(("bad", "alert"), [("constant", "one-class"), ("inverted", "inverted"), ("random", "random")])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_planted_workers_are_flagged_and_honest_ones_are_not(n_classes, bad, alert):
    """A fifth of the workers is bad; all have many labels on items that many others labelled."""
    crowd = make_crowd(400, 15, n_classes, 15, bad=bad, bad_share=0.2, random_state=1)
    cards = scored(crowd.annotations)
    np.testing.assert_array_equal(cards.flagged(alert), crowd.is_bad)
    assert all(alerts == () for alerts, is_bad in zip(cards.alerts, crowd.is_bad) if not is_bad)


@pytest.mark.parametrize("class_shares", [[0.5, 0.5], [0.95, 0.05]])
@pytest.mark.parametrize("accuracy", [0.6, 0.9])
def test_honest_workers_are_not_flagged(accuracy, class_shares):
    """Neither weak workers nor those who mostly use the most frequent class; some have too few labels."""
    for seed in range(2):
        crowd = make_crowd(200, 20, accuracy=accuracy, class_shares=class_shares, random_state=seed)
        assert {alert for alerts in scored(crowd.annotations).alerts for alert in alerts} <= {
            "undecided",
            "too-few-labels",
        }


def test_constant_worker_where_the_other_class_is_rare():
    """Two items of the rare class are too few; twenty are enough."""
    many = on_gold(["dog"] * 400, ["dog"] * 380 + ["cat"] * 20)
    few = on_gold(["dog"] * 40, ["dog"] * 38 + ["cat"] * 2)
    assert many.alerts == ("one-class",) and few.alerts == ("undecided",)


def test_names_and_order_do_not_matter():
    """Permuted items, workers, classes and rows give the same reports."""
    crowd = make_crowd(150, 15, 3, bad="constant", bad_share=0.2, random_state=0)
    votes, rng = crowd.annotations, np.random.default_rng(0)
    item, worker, label = (rng.permutation(n) for n in (150, 15, 3))
    rows = rng.permutation(votes.n_annotations)
    other = Annotations(
        item[votes.item][rows], worker[votes.worker][rows], label[votes.label][rows],
        item_ids=range(150), worker_ids=range(15), classes=range(3),
    )  # fmt: skip
    before, after = scored(votes), scored(other)
    for name in ("n_checked", "accuracy", "accuracy_low", "accuracy_high", "agreement", "agreement_by_chance", "bias"):
        np.testing.assert_allclose(getattr(after, name)[worker], getattr(before, name), atol=1e-4, err_msg=name)
    assert [after.alerts[w] for w in worker] == list(before.alerts)
    renamed = np.append(label, -1)
    np.testing.assert_array_equal(after.bias_class[worker], renamed[before.bias_class])


@pytest.mark.parametrize("method", ["majority-vote", "dawid-skene", "glad"])
def test_confusion_matrices_are_derived_from_any_posterior(method):
    """Without confusion matrices they are derived; unanimous votes do not give an accuracy of 1."""
    crowd = make_crowd(200, 20, 5, bad="random", bad_share=0.2, random_state=0)
    model = registry.create(method).fit(crowd.annotations)
    cards = score_workers(crowd.annotations, model.posterior_, confusion=getattr(model, "confusion_", None))
    true = np.trace(crowd.confusion, axis1=1, axis2=2) / 5
    assert np.corrcoef(cards.accuracy, true)[0, 1] > 0.9
    assert np.mean((cards.accuracy_low < true) & (true < cards.accuracy_high)) >= 0.8
    assert np.all(cards.accuracy_high < 1)


def test_unlabelled_items_one_class_and_single_labels_stay_finite():
    """Items without labels, one class in the file, one label in all."""
    unlabelled = Annotations.from_triples([0, 0, 2], ["a", "b", "a"], [1, 1, 0], item_ids=range(4), classes=range(5))
    for votes in (unlabelled, Annotations.from_matrix([[0, 0, 0]] * 8), Annotations.from_matrix([[0]])):
        for card in scored(votes):
            assert 0 < card.accuracy_low < card.accuracy < card.accuracy_high < 1
            assert card.alerts == ("too-few-labels",) and card.top_confusions == ()


def test_cards_can_be_written_as_json_and_reasons_are_single_lines():
    """Line breaks in names are escaped, and long names are truncated."""
    truth = ["a\nb", "x" * 100] * 10
    card = on_gold(["a\nb"] * 20, truth, classes=("a\nb", "x" * 100))
    assert json.loads(json.dumps(asdict(card)))["alerts"] == ["one-class"]
    assert card.reasons == ("label 'a\\nb' on 20 of 20 items; the expected number of 'a\\nb' is 10",)
    crowd = make_crowd(200, 20, 3, bad="random", bad_share=0.3, random_state=0)
    for card in scored(crowd.annotations):
        assert set(card.alerts) <= set(ALERTS) and len(card.alerts) == len(card.reasons)
        assert all("\n" not in reason and "nan" not in reason and len(reason) < 250 for reason in card.reasons)


def test_inputs_of_wrong_shape_are_refused():
    """A posterior or matrices of other items, workers or classes; an exponent that is not positive."""
    votes = Annotations.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(AlignmentError, match=r"\(2, 2\) like the annotations. Got \(3, 2\)"):
        score_workers(votes, np.full((3, 2), 0.5))
    with pytest.raises(AlignmentError, match="Confusion matrices must have shape"):
        score_workers(votes, np.full((2, 2), 0.5), confusion=one_coin([0.8], 2))
    with pytest.raises(AlignmentError, match="each of the 2 workers"):
        score_workers(votes, np.full((2, 2), 0.5), collusion_group=np.zeros(3, bool))
    for value in (np.nan, -1.0):
        with pytest.raises(ParameterError, match="negative, infinite or NaN"):
            score_workers(votes, np.full((2, 2), value))
    with pytest.raises(ParameterError, match="tempering_exponent"):
        score_workers(votes, np.full((2, 2), 0.5), tempering_exponent=0)


@pytest.mark.parametrize("method", ["pooled-dawid-skene", "one-coin", "majority-vote"])
def test_a_fitted_aggregator_has_all_that_scorecards_need(method):
    """The same as its labels, posterior, confusion matrices, gold, exponent and colluding group one by one."""
    votes, _ = easy_crowd(3)
    model = registry.create(method).fit(votes, gold={votes.item_ids[0]: votes.classes[0]})
    settings = {
        name: getattr(model, f"{name}_")
        for name in ("confusion", "tempering_exponent", "collusion_group")
        if hasattr(model, f"{name}_")
    }
    expected = score_workers(votes, model.posterior_, gold=model._gold, **settings)
    cards = score_workers(model)
    for name in ("accuracy", "accuracy_low", "accuracy_high", "agreement", "bias", "alerts", "n_checked"):
        np.testing.assert_array_equal(getattr(cards, name), getattr(expected, name), err_msg=name)


def test_what_is_given_takes_the_place_of_what_the_model_has():
    votes, truth = easy_crowd(3)
    model = registry.create("one-coin").fit(votes)
    gold = dict(zip(votes.item_ids.tolist(), votes.classes[truth].tolist()))
    expected = score_workers(votes, model.posterior_, confusion=model.confusion_, gold=gold)
    np.testing.assert_array_equal(score_workers(model, gold=gold).accuracy, expected.accuracy)
    flat = np.full_like(model.posterior_, 1 / votes.n_classes)
    np.testing.assert_array_equal(score_workers(model, flat).accuracy, score_workers(votes, flat).accuracy)


def test_a_classifier_needs_its_labels():
    votes, truth = easy_crowd(3)
    model = TwoStage("majority-vote", LogisticRegression()).fit(np.eye(votes.n_classes)[truth], votes)
    with pytest.raises(AnnotationError, match=r"does not keep the labels .* `annotations=`"):
        score_workers(model)
    expected = score_workers(votes, model.posterior_)
    np.testing.assert_array_equal(score_workers(model, annotations=votes).accuracy, expected.accuracy)


def test_models_and_labels_that_are_not_complete():
    votes, _ = easy_crowd(3)
    with pytest.raises(ParameterError, match="need a `posterior=`"):
        score_workers(votes)
    with pytest.raises(NotFittedError):
        score_workers(registry.create("one-coin"))

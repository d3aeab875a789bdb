"""The default method: worker types, tempering, and crowds with little information."""

import time
import warnings

import numpy as np
import pytest

from manyhands import Annotations, MajorityVote, PooledDawidSkene
from manyhands.aggregation.pooled import turned_classes
from manyhands.exceptions import CrowdWarning
from manyhands.simulate import make_crowd


def fit(annotations, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return PooledDawidSkene(**parameters).fit(annotations)


def share_right(model, crowd):
    return float(np.mean(model.labels_ == crowd.truth))


def copied_crowd():
    """Labels of twelve workers, each of whom is copied by three others."""
    votes = make_crowd(300, 12, 3, labels_per_item=4, accuracy=0.7, random_state=5).annotations
    copies = [(votes.item, votes.worker + votes.n_workers * copy, votes.label) for copy in range(4)]
    return Annotations.from_triples(*(np.concatenate(column) for column in zip(*copies)))


@pytest.mark.parametrize("bad", ["constant", "inverted", "random"])
def test_bad_workers_do_less_harm_than_to_the_vote(bad):
    """With 30 % bad workers of any kind it is well above the vote."""
    crowd = make_crowd(400, 40, 4, labels_per_item=5, bad=bad, bad_share=0.3, random_state=11)
    assert share_right(fit(crowd.annotations), crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) + 0.04


def test_three_labels_per_worker_stay_close_to_the_vote():
    """Where little can be inferred about the workers, the result is close to the vote, and a note reports it."""
    crowd = make_crowd(500, 500, 2, labels_per_item=3, accuracy=0.75, spread=0.12, random_state=3)
    model = fit(crowd.annotations)
    assert "few_labels_per_worker" in model.notes_
    assert share_right(model, crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) - 0.03


def test_copied_labels_lower_the_exponent():
    """Every worker copied four times, and not merged: labels carry less information, and the exponent is lower."""
    assert fit(copied_crowd(), detect_collusion=False).tempering_exponent_ < 0.6
    independent = make_crowd(600, 20, 3, labels_per_item=5, accuracy=0.75, random_state=5)
    assert fit(independent.annotations).tempering_exponent_ >= 0.8


def test_the_exponent_changes_confidence_only():
    """The labels with and without calibration are the same."""
    votes = copied_crowd()
    settings = {"detect_collusion": False, "overrule": "always"}
    with_power, without = (fit(votes, **settings, calibrate=calibrate) for calibrate in (True, False))
    assert without.tempering_exponent_ == 1.0 and with_power.tempering_exponent_ < 1.0
    assert np.array_equal(with_power.labels_, without.labels_)
    assert with_power.posterior_.max(axis=1).mean() < without.posterior_.max(axis=1).mean()


def test_one_label_per_item_gives_no_certainty():
    """A lone label makes half of the posterior, the class frequencies the other half."""
    votes = Annotations.from_triples(range(40), [i % 7 for i in range(40)], ["x"] * 30 + ["y"] * 10)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = PooledDawidSkene().fit(votes)
    assert model.posterior_[0, 0] == pytest.approx(0.5 + 0.5 * model.class_prior_[0])
    assert np.array_equal(model.predict_proba(votes), model.posterior_)
    assert np.all(model.worker_accuracy_ == 0.7)


def test_gold_corrects_an_inverted_crowd():
    """Most workers invert the classes: without gold the majority is followed, with gold it is not."""
    crowd = make_crowd(300, 30, 2, labels_per_item=6, accuracy=0.9, bad="inverted", bad_share=0.7, random_state=2)
    gold = {int(item): int(crowd.truth[item]) for item in range(60)}
    assert share_right(fit(crowd.annotations), crowd) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        assert share_right(PooledDawidSkene().fit(crowd.annotations, gold), crowd) > 0.9


@pytest.mark.parametrize("n_classes", [2, 4])
def test_twenty_gold_items_correct_an_inverted_majority(n_classes):
    """60 % inverted workers: the vote is wrong, and twenty gold items are enough to correct it."""
    crowd = make_crowd(n_classes=n_classes, bad="inverted", bad_share=0.6, random_state=31)
    gold = {i: int(crowd.truth[i]) for i in range(20)}
    with pytest.warns(CrowdWarning, match="vote_contradicts_gold: The majority vote is wrong on"):
        model = PooledDawidSkene().fit(crowd.annotations, gold)
    assert share_right(model, crowd) > 0.85


def test_a_single_gold_item_changes_no_other_item():
    """One contradiction may be an error of the gold; the other items stay with their labels."""
    votes = Annotations.from_matrix([[0, 0, 0], *[[1, 1, 1], [0, 0, 0]] * 10])
    assert PooledDawidSkene().fit(votes, {0: 1}).labels_.tolist() == [1, *[1, 0] * 10]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_low_volume_workers_with_shared_answers_count_as_one(n_classes):
    """Workers of three labels with 45 % of all labels: found, collapsed, and named in the note."""
    crowd = make_crowd(n_classes=n_classes, bad="sybil", bad_share=0.45, random_state=12)
    model = fit(crowd.annotations)
    assert share_right(model, crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) - 0.01
    np.testing.assert_array_equal(model.collusion_group_, crowd.is_bad)
    assert (
        f"{crowd.is_bad.sum()} workers with at most 3 labels each, taken together, agree"
        in model.notes_["collusion_group"]
    )
    assert "in which these workers count as one" in model.notes_["few_labels_per_worker"]


@pytest.mark.parametrize("bad", ["copycat", "family"])
def test_good_workers_who_err_together_count_as_one(bad):
    """At 45 % the result is no worse than the vote by more than a point."""
    crowd = make_crowd(bad=bad, bad_share=0.45, random_state=11)
    model = fit(crowd.annotations)
    assert model.collusion_group_[crowd.is_bad].mean() > 0.8
    assert share_right(model, crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) - 0.01


def test_low_volume_workers_do_not_overrule_the_vote():
    """Three labels each, 30 % of the workers name one class: the fit would follow them, so the vote is kept."""
    crowd = make_crowd(400, 400, 2, labels_per_item=3, accuracy=0.75, bad="constant", bad_share=0.35, random_state=0)
    model, vote = fit(crowd.annotations), MajorityVote().fit(crowd.annotations)
    np.testing.assert_array_equal(model.labels_, vote.labels_)
    assert "the result is that vote" in model.notes_["fell_back_to_vote"]
    assert "differs from the majority vote on 0.0% of the items" in model.notes_["few_labels_per_worker"]
    np.testing.assert_array_equal(model.predict(crowd.annotations), model.labels_)


def test_low_volume_workers_may_name_an_overused_class_less():
    """With four classes the fit takes away from the class that spammers name, and is kept."""
    crowd = make_crowd(400, 400, 4, labels_per_item=3, accuracy=0.75, bad="constant", bad_share=0.3, random_state=0)
    model = fit(crowd.annotations)
    assert "fell_back_to_vote" not in model.notes_
    assert share_right(model, crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) + 0.03


@pytest.mark.parametrize(
    ("n_labels", "per_item", "n_classes", "seconds"),
    [(100_000, 5, 2, 5.0), (100_000, 100_000, 4, 5.0), (1000, 1000, 50, 2.0)],
)
def test_workers_with_one_label_each_are_fast(n_labels, per_item, n_classes, seconds):
    """A hundred thousand of them take about a second; the limits are far above that."""
    rng = np.random.default_rng(0)
    item = np.arange(n_labels) // per_item
    ids = {"item_ids": np.arange(item[-1] + 1), "worker_ids": np.arange(n_labels), "classes": np.arange(n_classes)}
    votes = Annotations(item, np.arange(n_labels), rng.integers(n_classes, size=n_labels), **ids)
    begin = time.process_time()
    fit(votes)
    assert time.process_time() - begin < seconds


def test_one_class_for_everything_converges():
    """A fixed point would converge slowly in the strength of a Beta; Newton's method does not."""
    votes = make_crowd(300, 30, random_state=0).annotations
    same = Annotations(
        votes.item, votes.worker, 0 * votes.label, item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=[0, 1]
    )
    model = fit(same)
    assert model.converged_ and model.n_iter_ < 30


def test_a_stronger_prior_favours_the_one_coin_type():
    """With a pseudo-count of a thousand crowds no worker has a full confusion matrix."""
    crowd = make_crowd(300, 15, 3, labels_per_item=5, kind="confusion", accuracy=0.7, random_state=4)
    assert fit(crowd.annotations, prior_strength=1000.0).worker_types_[:, 0].mean() > 0.9
    assert fit(crowd.annotations, prior_strength=0.0).worker_types_[:, 0].mean() < 0.5


def test_more_classes_than_full_matrices_allow():
    """Twelve classes: one-coin and spammer types only, and still the planted truth."""
    crowd = make_crowd(300, 20, 12, labels_per_item=5, accuracy=0.7, random_state=6)
    model = fit(crowd.annotations)
    assert model.types_ == ("one-coin", "spammer") and share_right(model, crowd) > 0.95


def test_colluders_count_as_one_and_are_named():
    """Shared answers are found, and do not outvote independent workers, in `predict` either."""
    crowd = make_crowd(400, 40, 2, labels_per_item=5, bad="colluding", bad_share=0.3, random_state=1)
    model = fit(crowd.annotations)
    assert np.array_equal(model.collusion_group_, crowd.is_bad) and "collusion_group" in model.notes_
    assert share_right(model, crowd) > share_right(fit(crowd.annotations, detect_collusion=False), crowd) + 0.1
    assert np.array_equal(model.predict_proba(crowd.annotations), model.posterior_)
    assert model.worker_accuracy_[crowd.is_bad].max() < model.worker_accuracy_[~crowd.is_bad].mean()


def test_a_turned_fit_is_turned_back():
    """With 45 % workers who exchange classes EM ends in the turned solution here; most labels agree with the other."""
    crowd = make_crowd(n_classes=4, bad="inverted", bad_share=0.45, random_state=258)
    model = fit(crowd.annotations)
    assert share_right(model, crowd) > 0.9 > 0.6 > share_right(MajorityVote().fit(crowd.annotations), crowd)
    assert "A few items whose class is known" in model.notes_["orientation"]


def test_classes_are_turned_only_for_many_labels():
    """The order in which most labels agree; none where the present one is as good, or gains little."""
    usual = np.full((3, 3), 10.0) + np.diag([60.0, 50.0, 40.0])
    order = turned_classes(np.stack([usual[[1, 2, 0]], 0 * usual]))
    assert np.array_equal(usual[[1, 2, 0]][order], usual)
    assert turned_classes(usual[None]) is None
    shared_confusion = np.array([[90.0, 0.0, 0.0], [0.0, 3.0, 4.0], [0.0, 4.0, 4.0]])  # two small classes mixed up
    assert turned_classes(shared_confusion[None]) is None


def test_gold_decides_the_orientation():
    """A majority that exchanges the classes is found from gold, and not turned back."""
    crowd = make_crowd(bad="inverted", bad_share=0.6, random_state=1)
    gold = dict(zip(crowd.annotations.item_ids[:30].tolist(), crowd.truth[:30].tolist()))
    with pytest.warns(CrowdWarning, match="vote_contradicts_gold"):
        model = PooledDawidSkene().fit(crowd.annotations, gold)
    assert share_right(model, crowd) > 0.9 and "orientation" not in model.notes_


def test_few_workers_who_exchange_classes_are_no_reason_for_a_note():
    crowd = make_crowd(bad="inverted", bad_share=0.2, random_state=1)
    assert "orientation" not in fit(crowd.annotations).notes_

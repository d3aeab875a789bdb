"""What is special about the default: types, power, and how it behaves where little can be known."""

import warnings

import numpy as np
import pytest

from manyhands import Annotations, MajorityVote, PooledDawidSkene
from manyhands.exceptions import CrowdWarning
from manyhands.simulate import make_crowd


def fit(annotations, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return PooledDawidSkene(**parameters).fit(annotations)


def share_right(model, crowd):
    return float(np.mean(model.labels_ == crowd.truth))


def copied_crowd():
    """Labels of twelve workers, each of whom has three copycats."""
    votes = make_crowd(300, 12, 3, labels_per_item=4, accuracy=0.7, random_state=5).annotations
    copies = [(votes.item, votes.worker + votes.n_workers * copy, votes.label) for copy in range(4)]
    return Annotations.from_triples(*(np.concatenate(column) for column in zip(*copies)))


@pytest.mark.parametrize("bad", ["constant", "inverted", "random"])
def test_bad_workers_do_less_harm_than_to_the_vote(bad):
    """With 30 % bad workers of any kind it is well above the vote."""
    crowd = make_crowd(400, 40, 4, labels_per_item=5, bad=bad, bad_share=0.3, random_state=11)
    assert share_right(fit(crowd.annotations), crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) + 0.04


def test_three_labels_per_worker_stay_close_to_the_vote_and_say_so():
    """Where nothing can be learnt of the workers, the answer is about the vote's."""
    crowd = make_crowd(500, 500, 2, labels_per_item=3, accuracy=0.75, spread=0.12, random_state=3)
    model = fit(crowd.annotations)
    assert "few_labels_per_worker" in model.notes_
    assert share_right(model, crowd) > share_right(MajorityVote().fit(crowd.annotations), crowd) - 0.03


def test_copied_labels_lower_the_power():
    """Every worker copied four times: labels say less than independent ones, and the confidence knows."""
    assert fit(copied_crowd()).power_ < 0.6
    independent = make_crowd(600, 20, 3, labels_per_item=5, accuracy=0.75, random_state=5)
    assert fit(independent.annotations).power_ >= 0.8


def test_power_changes_confidence_and_nothing_else():
    """The labels with and without calibration are the same."""
    with_power, without = fit(copied_crowd()), fit(copied_crowd(), calibrate=False)
    assert without.power_ == 1.0 and with_power.power_ < 1.0
    assert np.array_equal(with_power.labels_, without.labels_)
    assert with_power.posterior_.max(axis=1).mean() < without.posterior_.max(axis=1).mean()


def test_one_label_per_item_is_no_certainty():
    """A lone label makes half of the posterior, the class frequencies the other half."""
    votes = Annotations.from_triples(range(40), [i % 7 for i in range(40)], ["x"] * 30 + ["y"] * 10)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = PooledDawidSkene().fit(votes)
    assert model.posterior_[0, 0] == pytest.approx(0.5 + 0.5 * model.class_prior_[0])
    assert np.array_equal(model.predict_proba(votes), model.posterior_)
    assert np.all(model.worker_accuracy_ == 0.7)


def test_gold_turns_an_inverted_crowd():
    """Most workers say the opposite of the truth: without gold the majority is followed, with gold it is not."""
    crowd = make_crowd(300, 30, 2, labels_per_item=6, accuracy=0.9, bad="inverted", bad_share=0.7, random_state=2)
    gold = {int(item): int(crowd.truth[item]) for item in range(60)}
    assert share_right(fit(crowd.annotations), crowd) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        assert share_right(PooledDawidSkene().fit(crowd.annotations, gold), crowd) > 0.9


def test_more_pull_is_closer_to_accuracies_alone():
    """A pull of a thousand crowds leaves no worker a matrix of his own."""
    crowd = make_crowd(300, 15, 3, labels_per_item=5, kind="confusion", accuracy=0.7, random_state=4)
    assert fit(crowd.annotations, pull=1000.0).worker_types_[:, 0].mean() > 0.9
    assert fit(crowd.annotations, pull=0.0).worker_types_[:, 0].mean() < 0.5


def test_more_classes_than_full_matrices_allow():
    """Twelve classes: coin and habit only, and still the planted truth."""
    crowd = make_crowd(300, 20, 12, labels_per_item=5, accuracy=0.7, random_state=6)
    model = fit(crowd.annotations)
    assert model.types_ == ("coin", "habit") and share_right(model, crowd) > 0.95


def test_colluders_count_as_one_and_are_named():
    """A shared answer sheet is found, and does not outvote honest workers, in `predict` either."""
    crowd = make_crowd(400, 40, 2, labels_per_item=5, bad="colluding", bad_share=0.3, random_state=1)
    model = fit(crowd.annotations)
    assert np.array_equal(model.one_voice_, crowd.is_bad) and "one_voice" in model.notes_
    assert share_right(model, crowd) > share_right(fit(crowd.annotations, one_voice=False), crowd) + 0.1
    assert np.array_equal(model.predict_proba(crowd.annotations), model.posterior_)
    assert model.worker_accuracy_[crowd.is_bad].max() < model.worker_accuracy_[~crowd.is_bad].mean()

"""Copies count as one vote in the fit, in the cards of the workers, and on shards."""

import warnings

import numpy as np
import pytest

from manyhands import Annotations, OrdinalDawidSkene, PooledDawidSkene, VoteDifficultyEM
from manyhands.exceptions import CrowdWarning
from manyhands.scorecards import score_workers
from manyhands.sharded import fit as sharded_fit
from manyhands.sharded.labels import InMemoryShards
from manyhands.simulate import make_crowd

METHODS = [PooledDawidSkene, OrdinalDawidSkene, VoteDifficultyEM]


def fit(method, votes, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return method(**parameters).fit(votes)


def crowd_and_copies(seed=3, n_copies=2):
    """A crowd of eight, and the same with copies of the worker with the second most labels."""
    crowd = make_crowd(300, 8, 2, labels_per_item=5, accuracy=0.75, spread=0.08, random_state=seed)
    votes = crowd.annotations
    source = int(np.argsort(np.bincount(votes.worker))[-2])
    rows = np.flatnonzero(votes.worker == source)
    item, worker, label = votes.item, votes.worker, votes.label
    for c in range(n_copies):
        item, label = np.append(item, votes.item[rows]), np.append(label, votes.label[rows])
        worker = np.append(worker, np.full(len(rows), 8 + c))
    ids = {"item_ids": votes.item_ids, "worker_ids": [f"w{w}" for w in range(8 + n_copies)], "classes": votes.classes}
    return crowd, source, Annotations(item, worker, label, **ids)


@pytest.mark.parametrize("method", METHODS)
def test_labels_are_those_of_the_crowd_without_the_copies(method):
    """Exact copies: the same labels as without them, other labels with them, and a note with names and the number."""
    crowd, source, votes = crowd_and_copies()
    model, unmerged = fit(method, votes), fit(method, votes, detect_collusion=False)
    without = fit(method, crowd.annotations)
    assert np.array_equal(model.labels_, without.labels_)
    n_changed = int(np.count_nonzero(model.labels_ != unmerged.labels_))
    assert n_changed > 0 and np.mean(unmerged.labels_ == crowd.truth) < np.mean(without.labels_ == crowd.truth)
    note = model.notes_["copies"]
    assert note.startswith("3 workers give copied labels (") and f"changes {n_changed} label" in note
    assert all(f"w{w}" in note for w in (source, 8, 9))
    assert np.flatnonzero(model.copy_groups_ >= 0).tolist() == [source, 8, 9]
    assert "copies" not in unmerged.notes_ and "copies" not in without.notes_
    np.testing.assert_array_equal(without.copy_groups_, -1)
    np.testing.assert_array_equal(model.predict(votes), model.labels_)


def test_copies_have_the_estimates_of_their_source():
    _, source, votes = crowd_and_copies()
    confusion = fit(PooledDawidSkene, votes).confusion_
    np.testing.assert_array_equal(confusion[[8, 9]], confusion[[source, source]])


def test_a_copy_is_no_evidence_for_its_source():
    """The source's card is that of the crowd without copies, all three have the alert, and nobody else has."""
    crowd, source, votes = crowd_and_copies()
    cards = score_workers(fit(PooledDawidSkene, votes), verbose=0)
    alone = score_workers(fit(PooledDawidSkene, crowd.annotations), verbose=0)
    assert np.flatnonzero(cards.flagged("copying")).tolist() == [source, 8, 9]
    assert "count as one vote" in cards[8].reasons[-1] and cards.partners[8] == (source, 9)
    assert cards.accuracy[source] == pytest.approx(alone.accuracy[source], abs=0.02)
    right = np.mean(crowd.truth[votes.item] == votes.label, where=votes.worker == source)
    assert cards.accuracy_low[source] <= right <= cards.accuracy_high[source]


def test_labels_that_a_copy_has_alone_count():
    """The copy also labels items that the source did not: those labels are theirs, and stay."""
    _, source, votes = crowd_and_copies(n_copies=1)
    free = np.setdiff1d(np.arange(300), votes.item[votes.worker == source])[:30]
    votes = votes.keep((votes.worker != 8) | (votes.item % 4 != 0))
    more = votes.with_more(free, np.full(len(free), 8), np.zeros(len(free), int))
    model = fit(PooledDawidSkene, more)
    assert model.copy_groups_[8] == model.copy_groups_[source] >= 0
    assert model.confusion_[8, 1, 0] > model.confusion_[source, 1, 0] + 0.1  # class 0 for all of them


def test_on_shards_the_result_is_the_same():
    _, _, votes = crowd_and_copies()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        found = sharded_fit.fit(PooledDawidSkene(), InMemoryShards.from_annotations(votes, 4))
    model = fit(PooledDawidSkene, votes)
    np.testing.assert_array_equal(found.results["copy_groups_"], model.copy_groups_)
    np.testing.assert_allclose(found.results["confusion_"], model.confusion_, rtol=1e-6)
    assert "3 workers give copied labels" in found.notes["copies"]

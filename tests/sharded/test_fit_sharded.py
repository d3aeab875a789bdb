"""The outcome of a fit on shards: the table of workers, and the model for new labels."""

import warnings

import numpy as np
import pytest

import manyhands
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.scorecards import score_workers
from manyhands.scorecards.accuracy import accuracy_of_counts
from manyhands.sharded.fit import METHODS, fit
from manyhands.sharded.labels import InMemoryShards
from manyhands.simulate import make_crowd

CROWD = make_crowd(150, 15, n_classes=3, labels_per_item=4, bad="colluding", bad_share=0.3, random_state=2).annotations


def both(name, votes=CROWD):
    """The ordinary fit, the fit on shards, and the shards."""
    shards = InMemoryShards.from_annotations(votes, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return manyhands.registry.create(name).fit(votes), fit(manyhands.registry.create(name), shards), shards


def with_repeats():
    """Three workers who labelled twenty items twice."""
    rng = np.random.default_rng(0)
    triples = [(item, worker, rng.integers(2)) for item in range(60) for worker in [0, 1, 2] * (1 + (item < 20))]
    return Annotations.from_triples(*zip(*triples), duplicates="all")


@pytest.mark.parametrize("votes", [CROWD, with_repeats()], ids=["collusion", "repeats"])
@pytest.mark.parametrize("name", ["dawid-skene", "one-coin", "mace", "pooled-dawid-skene"])
def test_accuracies_are_those_of_the_scorecards(name, votes):
    """With one more pass over the labels: mean and interval, with a collapsed group and repeated labels too."""
    model, found, shards = both(name, votes)
    exponent = getattr(model, "tempering_exponent_", 1.0)
    group = getattr(model, "collusion_group_", None)
    cards = score_workers(
        votes, model.posterior_, confusion=model.confusion_, tempering_exponent=exponent, collusion_group=group
    )
    table = found.worker_table(shards)
    assert table["worker"].tolist() == votes.worker_ids.tolist()
    assert table["n_labels"].tolist() == cards.n_labels.tolist()
    for column in ("accuracy", "accuracy_low", "accuracy_high"):
        np.testing.assert_allclose(table[column], getattr(cards, column), atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_without_the_labels_accuracies_follow_from_the_counts(name):
    """All columns are there and in range; the interval contains the mean; the recall is that of the counts."""
    _, found, _ = both(name)
    table = found.worker_table()
    assert np.all((table["accuracy_low"] < table["accuracy"]) & (table["accuracy"] < table["accuracy_high"]))
    assert all(len(column) == CROWD.n_workers for column in table.values())
    assert ("recall_0" in table) == (found.counts is not None)
    if found.counts is not None:
        expected = np.diagonal(found.counts, axis1=1, axis2=2) / np.maximum(found.counts.sum(axis=2), 1e-9)
        recall = np.stack([table[f"recall_{k}"] for k in range(3)], axis=1)
        assert np.nanmax(np.abs(recall - expected)) < 0.5 and np.nanmean(np.abs(recall - expected)) < 0.1


def test_the_interval_of_counts_covers_what_was_planted():
    """Right and wrong labels of 3000 workers: intervals cover about 95%, and a worker without labels gets one too."""
    rng = np.random.default_rng(0)
    accuracy = rng.beta(8, 3, 3000)
    n_labels = rng.integers(5, 60, 3000)
    right = rng.binomial(n_labels, accuracy)
    found = accuracy_of_counts(np.append(right, 0.0), np.append(n_labels - right, 0.0))
    covered = np.mean((found.low[:-1] <= accuracy) & (accuracy <= found.high[:-1]))
    assert 0.93 < covered < 0.97
    assert found.low[-1] < 0.4 and found.high[-1] > 0.9


@pytest.mark.parametrize("name", METHODS)
def test_the_model_predicts_new_labels_as_the_ordinary_one(name, tmp_path):
    """With unseen workers and items without labels; after it was saved and loaded too."""
    model, found, _ = both(name)
    new = Annotations.from_triples(
        [1, 1, 2, 3, 3],
        [CROWD.worker_ids[0], "new", CROWD.worker_ids[1], "new", CROWD.worker_ids[2]],
        [0, 0, 1, 2, 1],
        item_ids=[1, 2, 3, 4],
    )
    made = found.model()
    np.testing.assert_allclose(made.predict_proba(new), model.predict_proba(new), atol=1e-8)
    assert made.predict(new).tolist() == model.predict(new).tolist()
    np.testing.assert_allclose(made.worker_accuracy_, model.worker_accuracy_, atol=1e-9)
    assert made.notes_ == model.notes_ and made.posterior_.shape == (0, 3)
    made.save(tmp_path / "model")
    loaded = manyhands.load_model(tmp_path / "model")
    assert loaded.predict_proba(new).tobytes() == made.predict_proba(new).tobytes()
    with pytest.raises(AnnotationError, match="fitted on labels in shards and does not hold them"):
        loaded.score(new)

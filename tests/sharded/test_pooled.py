"""Pooled Dawid-Skene on shards beside the ordinary one."""

import warnings

import numpy as np
import pytest

from manyhands import PooledDawidSkene
from manyhands.annotations import Annotations
from manyhands.em import kernels
from manyhands.exceptions import CrowdWarning
from manyhands.sharded import fit, labels
from manyhands.sharded.labels import InMemoryShards
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import easy_crowd, hard_crowd


def low_volume_crowd(share_of_errors=0.0, seed=0):
    """Three labels on each of 400 items, one or two of each of 600 workers; some items of class 1 are hard for all."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 400)
    item = np.repeat(np.arange(400), 3)
    worker = (item + np.tile([0, 200, 400], 400)) % 600
    hard = (truth == 1) & (rng.random(400) < share_of_errors)
    label = np.where(rng.random(1200) < np.where(hard[item], 0.45, 0.85), truth[item], 1 - truth[item])
    return Annotations.from_triples(item, worker, label)


def single_labels():
    """Forty items with one label each."""
    return Annotations.from_triples(range(40), [0, 1] * 20, [0, 1, 1, 0] * 10)


def with_unlabelled_items():
    """Five items, two of them without labels."""
    return Annotations.from_triples([0, 0, 1, 1, 2], [0, 1, 0, 1, 1], [0, 0, 1, 0, 1], item_ids=range(5))


CROWDS = {
    "easy": lambda: easy_crowd(3, n_items=150, seed=1)[0],
    "hard": lambda: hard_crowd(4),
    "colluding": lambda: make_crowd(bad="colluding", bad_share=0.3, random_state=0).annotations,
    "constant": lambda: make_crowd(200, 20, bad="constant", bad_share=0.3, random_state=0).annotations,
    "low volume": low_volume_crowd,
    "shared errors": lambda: low_volume_crowd(0.7),
    "no redundancy": single_labels,
    "one class": lambda: Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], ["a"] * 4),
    "unlabelled items": with_unlabelled_items,
}


def on_shards(votes, n_shards=None, **parameters):
    """The fit, and posterior, code, tied and withheld of each item in the order of the annotations."""
    shards = InMemoryShards.from_annotations(votes, n_shards)
    found = fit.fit(PooledDawidSkene(**parameters), shards)
    parts = list(shards.run(found.final_task, "items"))
    place = {item: row for row, item in enumerate(shards.item_ids.tolist())}
    order = [place[item] for item in votes.item_ids.tolist()]
    return found, *(np.concatenate(column)[order] for column in list(zip(*parts))[1:5])


def ordinary(votes, **parameters):
    """The ordinary fit, without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return PooledDawidSkene(**parameters).fit(votes)


@pytest.mark.parametrize("name", CROWDS)
def test_small_crowds_have_the_results_of_the_ordinary_fit(name):
    """Labels, withheld items, notes and groups are equal; posteriors agree within 1e-9."""
    votes = CROWDS[name]()
    model = ordinary(votes)
    for n_shards in (1, 8):
        found, posterior, code, tied, withheld = on_shards(votes, n_shards)
        np.testing.assert_allclose(posterior, model.posterior_, rtol=0, atol=1e-9)
        assert [None if c < 0 else votes.classes[c] for c in code] == model.labels_.tolist()
        assert (tied.tolist(), withheld.tolist()) == (model.tied_.tolist(), model.withheld_.tolist())
        assert found.notes == model.notes_
        assert found.results["collusion_group_"].tolist() == model.collusion_group_.tolist()
        assert found.results["tempering_exponent_"] == model.tempering_exponent_
        assert found.results["crowd_power_"] == pytest.approx(model.crowd_power_, abs=1e-9)
        np.testing.assert_allclose(found.confusion, model.confusion_, rtol=0, atol=1e-7)
        np.testing.assert_allclose(found.worker_accuracy, model.worker_accuracy_, rtol=0, atol=1e-9)
        assert (found.n_iter, found.converged) == (model.n_iter_, model.converged_)


def bits(votes, n_shards):
    """What a fit returns, to the last bit."""
    found, posterior, code, _, withheld = on_shards(votes, n_shards)
    return [array.tobytes() for array in (posterior, code, withheld, found.confusion)], found.worker_accuracy


@pytest.mark.parametrize("name", ["colluding", "low volume"])
@pytest.mark.slow
def test_bits_depend_on_the_labels_alone(monkeypatch, name):
    """Not on threads, the form of the pass, or how many labels of a shard are processed at once."""
    votes = CROWDS[name]()
    expected, accuracy = bits(votes, 8)
    for threads in ("1", "3"):
        monkeypatch.setenv("MANYHANDS_THREADS", threads)
        found, same = bits(votes, 8)
        assert found == expected and same.tobytes() == accuracy.tobytes()
    monkeypatch.setattr(kernels, "_fused", None)
    found, same = bits(votes, 8)
    assert found == expected and same.tobytes() == accuracy.tobytes()
    monkeypatch.setattr(labels, "_LABELS_AT_ONCE", 7)
    found, near = bits(votes, 8)
    assert found == expected
    np.testing.assert_allclose(near, accuracy, rtol=1e-12)


def test_items_on_which_the_model_may_not_overrule_the_vote_are_withheld():
    """As in the ordinary fit, with the rule that allows nothing but the plurality."""
    votes = make_crowd(200, 12, n_classes=3, labels_per_item=3, bad="random", bad_share=0.5, random_state=3).annotations
    model = ordinary(votes, overrule="never")
    _, posterior, _, _, withheld = on_shards(votes, 4, overrule="never")
    assert model.withheld_.sum() > 0
    assert withheld.tolist() == model.withheld_.tolist()
    np.testing.assert_allclose(posterior, model.posterior_, rtol=0, atol=1e-9)


def test_the_sample_is_the_first_items_of_every_shard(monkeypatch):
    """Beside a plain loop; an item with a large part of the sample is left out, and a small crowd is its own sample."""
    triples = [(item, worker, (item + worker) % 3) for item in range(120) for worker in range(3 + item % 4)]
    triples += [(7, worker, 1) for worker in range(20, 60)]  # 46 labels
    votes = Annotations.from_triples(*zip(*triples))
    shards = InMemoryShards.from_annotations(votes, 4)
    everything = fit.sample_items(shards)
    assert everything.is_everything and everything.annotations.n_annotations == votes.n_annotations
    monkeypatch.setattr(fit, "MAX_SAMPLE", 400)
    expected = []
    for number in range(4):
        packed, left = shards.shard(number).packed, 100
        for first, last in zip(packed.start, packed.start[1:]):
            if last - first > 10:
                continue
            left -= last - first
            if left < 0:
                break
            expected.append(packed.code[first:last].tolist())
    sample = fit.sample_items(shards)
    code = sample.annotations.worker * 3 + sample.annotations.label
    found = np.split(code, sample.annotations.start[1:-1])
    assert [part.tolist() for part in found] == expected and not sample.is_everything
    assert 300 < sample.annotations.n_annotations <= 400


@pytest.mark.slow
def test_a_crowd_beyond_the_sample_is_fitted_on_all_labels(monkeypatch):
    """The group is found in the sample and collapsed everywhere; the exponent is that of the sample."""
    crowd = make_crowd(1500, 40, labels_per_item=8, bad="colluding", bad_share=0.25, random_state=1)
    whole = on_shards(crowd.annotations, 8)
    monkeypatch.setattr(fit, "MAX_SAMPLE", 4000)
    found, posterior, code, _, _ = on_shards(crowd.annotations, 8)
    assert found.results["collusion_group_"].tolist() == crowd.is_bad.tolist()
    assert np.mean(code == whole[2]) > 0.99 and np.abs(posterior - whole[1]).mean() < 0.05
    np.testing.assert_allclose(found.confusion, whole[0].confusion, atol=1e-9)
    monkeypatch.setenv("MANYHANDS_THREADS", "1")
    assert on_shards(crowd.annotations, 8)[1].tobytes() == posterior.tobytes()


def test_functions_beside_classifiers_are_recognised_on_shards():
    """As in memory: a table of labels by class does not tell them from spammers, the sample of items does."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 800)
    rate = np.where(truth[:, None] == np.arange(10) % 2, 0.5, 0.12)
    rate[:, 6:] = 0.3
    label = np.where(
        np.arange(10) < 6, np.arange(10) % 2, np.where(rng.random((800, 10)) < 0.7, truth[:, None], 1 - truth[:, None])
    )
    found, *_ = on_shards(Annotations.from_matrix(np.where(rng.random((800, 10)) < rate, label, -1)))
    assert "one_class_workers" in found.notes


def test_a_crowd_of_labelling_functions_gets_the_vote_and_a_note():
    """The firing model needs the labels in memory."""
    rng = np.random.default_rng(0)
    truth, own = rng.integers(0, 3, 300), np.arange(12) % 3
    rate = np.where(truth[:, None] == own, rng.uniform(0.15, 0.5, 12), 0.03)
    rate[:, 0] = np.where(truth == 0, 0.75, 0.6)
    item, worker = np.nonzero(rng.random((300, 12)) < rate)
    votes = Annotations(item, worker, own[worker], item_ids=range(300), worker_ids=range(12), classes=range(3))
    found, posterior, code, *_ = on_shards(votes)
    assert "one_class_workers" in found.notes
    share = kernels.vote_share(votes)
    covered = votes.n_labels > 0
    assert np.all(share[np.arange(300), code][covered] >= share.max(axis=1)[covered] - 1e-9)
    assert posterior.shape == (300, 3)

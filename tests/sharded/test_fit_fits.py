"""Fits on shards beside the ordinary ones."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import manyhands
from manyhands.annotations import Annotations
from manyhands.em import kernels
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ParameterError
from manyhands.sharded.fit import METHODS, fit
from manyhands.sharded.labels import InMemoryShards
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import easy_crowd, hard_crowd
from small_code_folder import write_annotations

EM_METHODS = ["DawidSkene", "OneCoin", "MACE"]


def results_by_item(annotations, method, n_shards=None):
    """Posterior and label of every item in the order of the annotations, and the fit."""
    shards = InMemoryShards.from_annotations(annotations, n_shards)
    found = fit(method, shards)
    parts = list(shards.run(found.final_task, "items"))
    place = {item: row for row, item in enumerate(shards.item_ids.tolist())}
    order = [place[item] for item in annotations.item_ids.tolist()]
    posterior = np.concatenate([part.posterior for part in parts])[order]
    code = np.concatenate([part.code for part in parts])[order]
    tied = np.concatenate([part.tied for part in parts])[order]
    return found, posterior, code, tied


@pytest.mark.parametrize("n_shards", [None, 1, 8])
@pytest.mark.parametrize("name", ["MajorityVote", *EM_METHODS])
def test_results_are_those_of_the_ordinary_fit(name, n_shards):
    """Labels, ties and notes are equal; posteriors and worker statistics agree within 1e-9."""
    votes = easy_crowd(3, n_items=120, seed=2)[0]
    method = getattr(manyhands, name)()
    ordinary = getattr(manyhands, name)().fit(votes)
    found, posterior, code, tied = results_by_item(votes, method, n_shards)
    assert votes.classes[code].tolist() == ordinary.labels_.tolist()
    assert tied.tolist() == ordinary.tied_.tolist()
    np.testing.assert_allclose(posterior, ordinary.posterior_, atol=1e-9)
    np.testing.assert_allclose(found.worker_accuracy, ordinary.worker_accuracy_, atol=1e-9)
    assert (found.n_iter, found.converged, found.notes) == (ordinary.n_iter_, ordinary.converged_, ordinary.notes_)
    np.testing.assert_allclose(found.history, ordinary.history_, rtol=1e-10)
    if name in EM_METHODS:
        np.testing.assert_allclose(found.confusion, ordinary.confusion_, atol=1e-9)
        np.testing.assert_allclose(found.class_prior, ordinary.class_prior_, atol=1e-9)
        np.testing.assert_allclose(found.results["_log_confusion"], ordinary._log_confusion, atol=1e-7)


@pytest.mark.parametrize("name", EM_METHODS)
def test_a_crowd_without_redundancy_keeps_its_labels(name):
    """As in memory: one label per item, with the note that says so."""
    votes = Annotations.from_triples(range(30), [0, 1, 2] * 10, [0, 1, 1] * 10)
    method = getattr(manyhands, name)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        ordinary = method().fit(votes)
    found, posterior, code, _ = results_by_item(votes, method(), 4)
    assert votes.classes[code].tolist() == ordinary.labels_.tolist()
    np.testing.assert_allclose(posterior, ordinary.posterior_, atol=1e-12)
    assert found.notes == ordinary.notes_ and "no_redundancy" in found.notes
    np.testing.assert_allclose(found.worker_accuracy, ordinary.worker_accuracy_, atol=1e-12)


def test_items_with_one_label_or_none():
    """They get what the ordinary fit gives them, and do not count for the accuracy of workers."""
    votes = Annotations.from_triples(
        ["a", "a", "b", "b", "c", "c", "d"], list("uvuwvwu"), [0, 0, 1, 1, 0, 1, 1], item_ids=list("abcdef")
    )
    for method in (manyhands.DawidSkene, manyhands.MajorityVote, manyhands.MACE):
        ordinary = method().fit(votes)
        found, posterior, code, tied = results_by_item(votes, method(), 4)
        np.testing.assert_allclose(posterior, ordinary.posterior_, atol=1e-9)
        assert [None if c < 0 else votes.classes[c] for c in code] == ordinary.labels_.tolist()
        assert tied.tolist() == ordinary.tied_.tolist()
        np.testing.assert_allclose(found.worker_accuracy, ordinary.worker_accuracy_, atol=1e-9)
        assert found.n_checked.tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["MajorityVote", *EM_METHODS])
def test_bits_depend_on_the_labels_alone(monkeypatch, name):
    """Not on the order of rows, threads, or the form of the pass."""
    votes = hard_crowd(3)
    order = np.random.default_rng(0).permutation(votes.n_annotations)
    columns = votes.item_ids[votes.item], votes.worker_ids[votes.worker], votes.classes[votes.label]
    shuffled = Annotations.from_triples(*(column[order] for column in columns))
    method = getattr(manyhands, name)()

    def bits(crowd):
        found, posterior, code, _ = results_by_item(crowd, method, 8)
        place = np.argsort(crowd.item_ids)
        return posterior[place].tobytes(), code[place].tobytes(), found.worker_accuracy.tobytes(), found.history

    expected = bits(votes)
    for threads in ("1", "2"):
        monkeypatch.setenv("MANYHANDS_THREADS", threads)
        assert bits(shuffled) == expected
    monkeypatch.setattr(kernels, "_fused", None)
    assert bits(votes) == expected


def test_bad_requests_get_one_sentence():
    """Other methods, random starts, weights, no labels, too many shards, and confusion matrices beyond the memory."""
    votes = easy_crowd(3, n_items=20)[0]
    shards = InMemoryShards.from_annotations(votes)
    with pytest.raises(ParameterError, match=r"GLAD does not run on labels in shards; dawid-skene, mace, .* do"):
        fit(manyhands.GLAD(), shards)
    with pytest.raises(ParameterError, match="Random starts need all items in memory: use n_init=1"):
        fit(manyhands.DawidSkene(n_init=2), shards)
    with pytest.raises(ParameterError, match="smoothing"):
        fit(manyhands.DawidSkene(smoothing=-1), shards)
    with pytest.raises(ParameterError, match=r"power of two from 1 to 256\. Got 3"):
        InMemoryShards.from_annotations(votes, 3)
    weighted = Annotations.from_triples([0, 1], [0, 0], [0, 1], weights=[0.5, 1.0])
    with pytest.raises(AnnotationError, match="Labels with weights cannot be fitted in shards"):
        InMemoryShards.from_annotations(weighted)
    empty = InMemoryShards.from_annotations(votes.keep(np.zeros(votes.n_annotations, bool)))
    with pytest.raises(AnnotationError, match="no labels to fit"):
        fit(manyhands.DawidSkene(), empty)
    many = replace(shards, worker_ids=np.arange(10_000_000), classes=np.arange(200))
    with pytest.raises(LimitError, match=r"10000000 workers and 200 classes need about .* GB"):
        fit(manyhands.DawidSkene(), many)


def test_a_vote_of_very_many_workers_needs_no_count_tables(monkeypatch):
    """The same labels and worker statistics, without expected counts."""
    votes = easy_crowd(3, n_items=60, seed=4)[0]
    expected, posterior, code, _ = results_by_item(votes, manyhands.MajorityVote(), 4)
    monkeypatch.setattr(kernels, "_SMALL_TABLES", 0)
    votes_of_many = replace(
        InMemoryShards.from_annotations(votes, 4), worker_ids=np.arange(votes.n_annotations)
    )  # more numbers in the tables than labels
    found = fit(manyhands.MajorityVote(), votes_of_many)
    assert expected.counts is not None and found.counts is None and found.notes == expected.notes
    np.testing.assert_allclose(found.class_totals, expected.class_totals, atol=1e-9)
    np.testing.assert_allclose(found.worker_accuracy[: votes.n_workers], expected.worker_accuracy, atol=1e-9)
    parts = list(votes_of_many.run(found.final_task, "items"))
    assert sorted(np.concatenate([part.code for part in parts])) == sorted(code)
    assert np.concatenate([part.posterior for part in parts]).shape == posterior.shape


@pytest.mark.parametrize("name", METHODS)
def test_shards_on_disk_and_sent_tasks_give_the_same_bits(tmp_path, name):
    """In memory, read from a code folder, and with a final task that was pickled."""
    votes = make_crowd(120, 12, n_classes=3, bad="colluding", bad_share=0.3, random_state=0).annotations
    method = manyhands.registry.create(name)
    memory, folder = InMemoryShards.from_annotations(votes), write_annotations(tmp_path / "codes", votes)
    one, other = fit(method, memory), fit(method, folder)
    assert one.worker_accuracy.tobytes() == other.worker_accuracy.tobytes() and one.notes == other.notes
    sent = pickle.loads(pickle.dumps(other.final_task))
    for here, there in zip(memory.run(one.final_task, "items"), folder.run(sent, "items"), strict=True):
        assert here.posterior.tobytes() == there.posterior.tobytes()
        assert here.code.tobytes() == there.code.tobytes()
    tables = one.worker_table(memory), other.worker_table(folder)
    assert all(tables[0][column].tobytes() == tables[1][column].tobytes() for column in tables[0] if column != "worker")

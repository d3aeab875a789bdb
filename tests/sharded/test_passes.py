"""The tasks of EM on shards: beside a plain loop, beside the pass in memory, and the same bits whatever runs them."""

import pickle

import numpy as np
import pytest

from manyhands.annotations import Annotations
from manyhands.em import kernels
from manyhands.sharded.labels import InMemoryShards, item_hashes, run_in_order
from manyhands.sharded.passes import EMPass, ShardedSource, VotePass, em_pass, vote_pass
from manyhands.testing.crowds import easy_crowd

pytestmark = pytest.mark.fast


@pytest.fixture(params=["compiled", "plain"])
def either_path(request, monkeypatch):
    """Each of the two forms of the pass."""
    if request.param == "plain":
        monkeypatch.setattr(kernels, "_fused", None)
    elif kernels._fused is None:
        pytest.skip("there is no compiled pass here")


def parameters(votes, seed=0):
    """Some confusion matrices and class prior."""
    rng = np.random.default_rng(seed)
    k = votes.n_classes
    return np.log(rng.dirichlet(np.ones(k), (votes.n_workers, k))), np.log(rng.dirichlet(np.ones(k)))


def slow_pass(votes, log_confusion, log_prior):
    """Counts, totals and evidence by loops over triples."""
    counts, totals, evidence = np.zeros_like(log_confusion), np.zeros_like(log_prior), 0.0
    for item in range(votes.n_items):
        rows = np.flatnonzero(votes.item == item)
        if len(rows) == 0:
            continue
        score = log_prior.copy()
        for row in rows:
            score += log_confusion[votes.worker[row], :, votes.label[row]]
        p = np.exp(score - score.max())
        evidence += score.max() + np.log(p.sum())
        totals += p / p.sum()
        for row in rows:
            counts[votes.worker[row], :, votes.label[row]] += p / p.sum()
    return counts, totals, evidence


@pytest.mark.parametrize("n_shards", [1, 4, 256])
def test_a_pass_is_that_of_the_loop(either_path, n_shards):
    """Counts, totals and evidence, with more shards than items too."""
    votes = easy_crowd(3, n_items=60, seed=5)[0]
    shards = InMemoryShards.from_annotations(votes, n_shards)
    found = em_pass(shards, *parameters(votes))
    counts, totals, evidence = slow_pass(votes, *parameters(votes))
    np.testing.assert_allclose(found.counts, counts, atol=1e-10)
    np.testing.assert_allclose(found.totals, totals, atol=1e-10)
    assert found.evidence == pytest.approx(evidence, rel=1e-12)
    votes_of_memory = kernels.vote_pass(kernels.pack(votes))
    np.testing.assert_allclose(vote_pass(shards).counts, votes_of_memory.counts, atol=1e-10)
    np.testing.assert_allclose(vote_pass(shards).totals, votes_of_memory.totals, atol=1e-10)


def bits(shards, votes):
    """What a pass returns, to the last bit."""
    found = em_pass(shards, *parameters(votes))
    return found.counts.tobytes(), found.totals.tobytes(), found.evidence, vote_pass(shards).counts.tobytes()


def test_bits_depend_on_the_labels_alone(monkeypatch):
    """Not on the order of rows, the number of threads, or the form of the pass."""
    votes = easy_crowd(4, n_items=300, seed=1)[0]
    rng = np.random.default_rng(3)
    order = rng.permutation(votes.n_annotations)
    shuffled = Annotations.from_triples(
        votes.item_ids[votes.item][order], votes.worker_ids[votes.worker][order], votes.classes[votes.label][order]
    )
    expected = bits(InMemoryShards.from_annotations(votes, 8), votes)
    shards = InMemoryShards.from_annotations(shuffled, 8)
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("MANYHANDS_THREADS", threads)
        assert bits(shards, votes) == expected
    monkeypatch.setattr(kernels, "_fused", None)
    assert bits(shards, votes) == expected


def test_items_are_in_the_order_of_their_hash():
    """CRC-32 decides, and within equal values the text; a shard is a range of it."""
    ids = ["plumless", "x", "buckeroo"]  # the first and the last have the same CRC-32
    votes = Annotations.from_triples(ids, ["w"] * 3, [0, 1, 0])
    shards = InMemoryShards.from_annotations(votes, 4)
    hashes = item_hashes(ids)
    assert hashes[0] == hashes[2]
    expected = sorted(ids, key=lambda text: (item_hashes([text])[0], text))
    assert shards.item_ids.tolist() == expected
    in_shards = [[str(x) for x in shards.shard(number).item_ids()] for number in range(4)]
    assert in_shards == [[t for t in expected if item_hashes([t])[0] >> 30 == number] for number in range(4)]


def test_tasks_are_sent_without_their_spare_tables():
    """A pickled task computes the same and carries no memory of the sender."""
    votes = easy_crowd(3, n_items=40, seed=5)[0]
    log_confusion, log_prior = parameters(votes)
    task = EMPass(kernels.rows_of(log_confusion, 0), log_prior, None, [np.ones((3, 3))])
    sent = pickle.loads(pickle.dumps(task))
    assert sent.spare == [] and len(task.spare) == 1
    shard = InMemoryShards.from_annotations(votes).shard(0)
    task.spare.clear()
    assert sent(shard).counts.tobytes() == task(shard).counts.tobytes()
    assert pickle.loads(pickle.dumps(VotePass(None, [np.ones(2)]))).spare == []


def test_an_error_in_a_task_ends_the_run(monkeypatch):
    """It is raised, the other jobs are not started, and no thread stays."""
    monkeypatch.setenv("MANYHANDS_THREADS", "2")
    started = []

    def job(number):
        started.append(number)
        if number == 3:
            raise RuntimeError("broken shard")
        return number

    with pytest.raises(RuntimeError, match="broken shard"):
        list(run_in_order(job, 100, "test"))
    assert max(started) < 10


def test_results_come_in_order_and_few_are_waiting(monkeypatch):
    """However slow the caller is, at most one job more than there are threads has been started."""
    monkeypatch.setenv("MANYHANDS_THREADS", "3")
    started, seen = [], []
    for value in run_in_order(lambda number: started.append(number) or number, 40, "test"):
        seen.append(value)
        assert len(started) <= len(seen) + 4
    assert seen == list(range(40))


def test_items_with_one_label_are_counted():
    """The numbers of items with labels, and with two."""
    votes = Annotations.from_triples(
        ["a", "a", "b", "c"], ["u", "v", "u", "v"], [0, 1, 0, 0], item_ids=["a", "b", "c", "d"]
    )
    found = ShardedSource(InMemoryShards.from_annotations(votes, 4)).vote_partial()
    assert (found.n_labelled, found.n_compared) == (3, 1)

"""The compiled pass, the plain pass and the reference implementation agree."""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyhands import Annotations
from manyhands._core import elementary
from manyhands.em import kernels, plain_pass
from manyhands.em.kernels import Packed, em_pass, pack, vote_pass, vote_share, weighted_votes
from manyhands.em.priors import gold_offset
from manyhands.exceptions import LimitError
from reference.slow import slow_em_pass, slow_vote_pass, slow_vote_share
from strategies import annotations, probability_rows, seeds, triples_of

pytestmark = pytest.mark.fast

on_either_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
class_counts = st.sampled_from([*range(1, 13), 16, 17, 31, 34])
needs_compiled = pytest.mark.skipif(kernels._fused is None, reason="the compiled pass was not built")


@given(
    votes=class_counts.flatmap(lambda n: annotations(n_classes=n)),
    seed=seeds(),
    extra=st.sampled_from(["", "offset", "gold"]),
)
@on_either_path
def test_em_pass_equals_the_reference(either_path, votes, seed, extra):
    """Posterior, counts, totals and evidence, with and without an offset or gold, for every specialised K."""
    rng = np.random.default_rng(seed)
    log_confusion = np.log(probability_rows(rng, votes.n_workers, votes.n_classes, votes.n_classes))
    log_prior = np.log(probability_rows(rng, votes.n_classes))
    offset = _offset(extra, votes, rng)
    _assert_pass_equals_twin(votes, log_confusion, log_prior, offset)


@pytest.fixture
def instruction_sets():
    """The names of the compiled pass's instruction sets; the one in use is used again afterwards."""
    before = kernels._fused.instruction_set()
    yield kernels._fused.instruction_sets()
    kernels._fused.use(before)


@needs_compiled
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 24, 31, 50])
def test_instruction_sets_give_the_same_bits(instruction_sets, n_classes):
    """Every clone of the compiled pass: items without labels, an offset with gold, more than one block of items."""
    votes, log_confusion, log_prior = _many_items(n_items=150, n_workers=5, n_classes=n_classes, n_labels=400)
    rng = np.random.default_rng(n_classes)
    offsets = (None, rng.normal(size=(150, n_classes)), _offset("gold", votes, rng))
    found = []
    for name in instruction_sets:
        kernels._fused.use(name)
        results = [em_pass(pack(votes), log_confusion, log_prior, offset, want_posterior=True) for offset in offsets]
        found.append([[np.asarray(part).tobytes() for part in result] for result in results])
        _assert_pass_equals_twin(votes, log_confusion, log_prior, None)
    assert all(one == found[0] for one in found)
    assert instruction_sets[-1] == "default"


@needs_compiled
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 7, 8, 11, 17])
def test_the_plain_path_gives_the_same_bits(monkeypatch, n_classes):
    """EM and vote passes: several blocks, chunks and shards, items without labels, an offset with gold."""
    votes, log_confusion, log_prior = _many_items(n_items=300, n_workers=5, n_classes=n_classes, n_labels=800)
    monkeypatch.setattr(Packed, "shards", [(0, 170), (170, 170), (170, 300)])
    monkeypatch.setattr(plain_pass, "CHUNK", 64)
    offset = _offset("gold", votes, np.random.default_rng(0))

    def results():
        passes = [em_pass(pack(votes), log_confusion, log_prior, o, want_posterior=True) for o in (None, offset)]
        passes.append(vote_pass(pack(votes), want_posterior=True))
        bits = [np.ascontiguousarray(part).tobytes() for one in passes for part in one]
        return [*bits, vote_share(votes).tobytes()]

    compiled = results()
    for module in (elementary, kernels):
        monkeypatch.setattr(module, "_fused", None)
    assert results() == compiled


@needs_compiled
def test_an_unknown_instruction_set_is_refused(instruction_sets):
    """By the module, and by the environment variable, in a message that names those available."""
    with pytest.raises(ValueError, match="no instruction set sse9"):
        kernels._fused.use("sse9")
    environment = os.environ | {"MANYHANDS_SIMD": "sse9", "MANYHANDS_PLAIN": ""}
    command = [sys.executable, "-c", "import manyhands.em.kernels"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert f"MANYHANDS_SIMD is 'sse9', but this CPU and build have {', '.join(instruction_sets)}." in run.stderr
    environment["MANYHANDS_SIMD"] = "default"
    command[-1] += "; print(manyhands.em.kernels._fused.instruction_set())"
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert run.stdout == "default\n"


@given(votes=annotations(max_items=12, n_classes=3), seed=seeds(), n_shards=st.integers(2, 6))
@on_either_path
def test_shards_add_up(either_path, votes, seed, n_shards):
    """However the items are cut into shards, empty ones included, the sums are the same."""
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, votes.n_items + 1, n_shards - 1)).tolist()
    edges = [0, *cuts, votes.n_items]
    log_confusion = np.log(probability_rows(rng, votes.n_workers, 3, 3))
    log_prior = np.log(probability_rows(rng, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Packed, "shards", list(pairwise(edges)))
        _assert_pass_equals_twin(votes, log_confusion, log_prior, None)


@given(votes=class_counts.flatmap(lambda n: annotations(n_classes=n)))
@on_either_path
def test_votes_equal_the_reference(either_path, votes):
    """Vote shares, weighted votes, and the counts from which EM starts."""
    triples, n = triples_of(votes), (votes.n_items, votes.n_workers, votes.n_classes)
    share = slow_vote_share(triples, n[0], n[2])
    np.testing.assert_allclose(vote_share(votes), share, rtol=1e-14)
    weighted = weighted_votes(votes, np.full(votes.n_annotations, 2.0))
    np.testing.assert_allclose(weighted, np.array(share) * 2 * votes.n_labels[:, None], rtol=1e-14)
    counts, totals = slow_vote_pass(triples, *n)
    found = vote_pass(pack(votes))
    np.testing.assert_allclose(found.counts, counts, rtol=1e-13)
    np.testing.assert_allclose(found.totals, totals, rtol=1e-13)


def test_many_items_cross_blocks_and_chunks(either_path, monkeypatch):
    """Items beyond one block of the compiled pass, or one chunk of the plain one, count like the first."""
    monkeypatch.setattr(plain_pass, "CHUNK", 64)
    votes, log_confusion, log_prior = _many_items(n_items=333, n_workers=7, n_classes=3, n_labels=900)
    _assert_pass_equals_twin(votes, log_confusion, log_prior, None)
    counts, totals = slow_vote_pass(triples_of(votes), 333, 7, 3)
    found = vote_pass(pack(votes))
    np.testing.assert_allclose(found.counts, counts, rtol=1e-12)
    np.testing.assert_allclose(found.totals, totals, rtol=1e-12)


def test_a_large_job_has_shards_that_cover_it(either_path):
    """Large jobs are cut into a power of two of shards without gap or overlap, and give what one shard gives."""
    votes, log_confusion, log_prior = _many_items(n_items=40_000, n_workers=50, n_classes=3, n_labels=420_000)
    packed = pack(votes)
    assert len(packed.shards) == 4
    assert [first for first, _ in packed.shards][1:] == [last for _, last in packed.shards][:-1]
    assert (packed.shards[0][0], packed.shards[-1][1]) == (0, votes.n_items)
    many = em_pass(packed, log_confusion, log_prior, want_posterior=True)
    one_shard = Packed(packed.code, packed.label, packed.start, packed.n_workers, packed.n_classes)
    vars(one_shard)["shards"] = [(0, votes.n_items)]
    one = em_pass(one_shard, log_confusion, log_prior, want_posterior=True)
    np.testing.assert_array_equal(many.posterior, one.posterior)
    np.testing.assert_allclose(many.counts, one.counts, rtol=1e-12)
    np.testing.assert_allclose(many.totals, one.totals, rtol=1e-12)
    assert many.evidence == pytest.approx(one.evidence, rel=1e-13)


def test_passes_over_the_same_labels_do_not_see_each_other(either_path):
    """Count tables of shards are used again: a second pass starts from zero and leaves the first result alone."""
    votes, log_confusion, log_prior = _many_items(n_items=40_000, n_workers=50, n_classes=3, n_labels=420_000)
    packed = pack(votes)
    first = em_pass(packed, log_confusion, log_prior)
    counts = first.counts.copy()
    vote_pass(packed)
    again = em_pass(packed, log_confusion, log_prior)
    assert len(packed.shards) == 4 and len(packed.spare) == 1
    np.testing.assert_array_equal(first.counts, counts)
    np.testing.assert_array_equal(again.counts, counts)


def test_any_number_of_threads_gives_the_same_bits():
    """One, two or eight threads: shards depend on the data alone, and are summed in their order."""
    program = (
        "import hashlib, numpy as np; from manyhands import Annotations, DawidSkene; rng = np.random.default_rng(0);"
        "item, worker = rng.integers(0, 20000, 280000), rng.integers(0, 40, 280000);"
        "label = np.where(rng.random(280000) < .7, item % 3, rng.integers(0, 3, 280000));"
        "ids = dict(item_ids=np.arange(20000), worker_ids=np.arange(40), classes=np.arange(3));"
        "m = DawidSkene(max_iter=5, tol=0.0); import warnings; warnings.simplefilter('ignore');"
        "m.fit(Annotations(item, worker, label, **ids)); from manyhands.em.kernels import pack;"
        "assert len(pack(m._training).shards) > 1;"
        "print(hashlib.sha256(m.posterior_.tobytes() + m.confusion_.tobytes()).hexdigest(), m.history_)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"MANYHANDS_THREADS": str(threads)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in (1, 2, 8)
    }
    assert len(outputs) == 1


def test_extreme_log_tables_stay_finite(either_path):
    """A thousand labels on one item at -700 each: scores below the range of doubles do no harm."""
    n_labels = 1000
    votes = Annotations.from_triples(
        [0] * n_labels + [1], [*range(n_labels), 0], [0] * n_labels + [1], classes=[0, 1, 2]
    )
    log_confusion = np.full((n_labels, 3, 3), -700.0)
    log_confusion[:, 1, 0] = -699.999
    log_confusion[0, :, 1] = [0.0, -745.0, -1e6]
    found = em_pass(pack(votes), log_confusion, np.log([0.2, 0.3, 0.5]), want_posterior=True)
    assert np.isfinite(found.evidence) and np.isfinite(found.counts).all()
    odds = np.array([0.2, 0.3 * np.exp(1.0), 0.5])
    np.testing.assert_allclose(found.posterior[0], odds / odds.sum(), rtol=1e-8)
    np.testing.assert_allclose(found.posterior[1], [1.0, 0.0, 0.0], atol=1e-300)
    _assert_pass_equals_twin(votes, log_confusion, np.log([0.2, 0.3, 0.5]), None, rtol=1e-8)


def test_exponential_is_exact_over_its_whole_range(either_path):
    """Posterior odds from e^0 down to e^-745 are those of math.exp, to the last digits."""
    gaps = np.concatenate([np.linspace(0, 50, 2001), np.linspace(50, 745, 500)])
    votes = Annotations(
        np.arange(len(gaps)),
        np.zeros(len(gaps), int),
        np.zeros(len(gaps), int),
        item_ids=range(len(gaps)),
        worker_ids=[0],
        classes=[0, 1],
    )
    offset = np.stack([np.zeros(len(gaps)), -gaps], axis=1)
    found = em_pass(pack(votes), np.zeros((1, 2, 2)), np.zeros(2), offset, want_posterior=True)
    expected = np.exp(-gaps) / (1 + np.exp(-gaps))
    within = gaps <= 708
    np.testing.assert_allclose(found.posterior[within, 1], expected[within], rtol=5e-15)
    np.testing.assert_allclose(found.posterior[:, 1], expected, rtol=5e-15, atol=4e-308)


def test_gold_leaves_exactly_one_class(either_path):
    """With gold, the posterior is exactly 0 and 1, whatever the labels are."""
    votes = Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [-1, -1, -1]])
    log_confusion = np.log(np.broadcast_to([[0.99, 0.01], [0.01, 0.99]], (3, 2, 2)))
    offset = gold_offset(np.array([1, -1, 0], np.int32), 2)
    found = em_pass(pack(votes), log_confusion, np.log([0.5, 0.5]), offset, want_posterior=True)
    assert found.posterior[0].tolist() == [0.0, 1.0]
    assert found.posterior[2].tolist() == [1.0, 0.0]
    assert found.totals.sum() == pytest.approx(2)  # the item without labels adds nothing


def test_partial_sums_merge_in_any_order(either_path):
    """Counts of parts of the items add up to those of the whole: what Spark and data beyond memory rely on."""
    votes, log_confusion, log_prior = _many_items(n_items=60, n_workers=5, n_classes=4, n_labels=200)
    whole = em_pass(pack(votes), log_confusion, log_prior)
    parts = [
        em_pass(pack(votes[rows]), log_confusion, log_prior) for rows in (slice(40, 60), slice(0, 13), slice(13, 40))
    ]
    np.testing.assert_allclose(sum(p.counts for p in parts), whole.counts, rtol=1e-12)
    np.testing.assert_allclose(sum(p.totals for p in parts), whole.totals, rtol=1e-12)
    assert sum(p.evidence for p in parts) == pytest.approx(whole.evidence, rel=1e-12)


def test_too_many_cells_are_refused_before_any_memory_is_taken():
    """More than 2^31 (worker, label) rows do not fit the packed code: a LimitError that names other methods."""
    votes = Annotations([0], [0], [0], item_ids=[0], worker_ids=np.arange(70_000), classes=np.arange(40_000))
    with pytest.raises(LimitError, match="majority-vote"):
        pack(votes)


@pytest.mark.parametrize("asked, expected", [("3", 3), ("1", 1)])
def test_threads_can_be_bounded(monkeypatch, asked, expected):
    """MANYHANDS_THREADS is honoured."""
    monkeypatch.setenv("MANYHANDS_THREADS", asked)
    assert kernels.thread_count() == expected


@pytest.mark.parametrize("nonsense", ["", "0", "-2", "many"])
def test_a_nonsensical_number_of_threads_is_ignored(monkeypatch, nonsense):
    """Anything but a positive number means: all cores this process may use."""
    monkeypatch.setenv("MANYHANDS_THREADS", nonsense)
    assert kernels.thread_count() >= 1


def _assert_pass_equals_twin(votes, log_confusion, log_prior, offset, rtol=1e-11):
    found = em_pass(pack(votes), log_confusion, log_prior, offset, want_posterior=True)
    posterior, counts, totals, evidence = slow_em_pass(
        triples_of(votes), votes.n_items, log_confusion.tolist(), log_prior.tolist(), offset
    )
    np.testing.assert_allclose(found.posterior, posterior, rtol=rtol, atol=1e-300)
    np.testing.assert_allclose(found.counts, counts, rtol=rtol, atol=1e-300)
    np.testing.assert_allclose(found.totals, totals, rtol=rtol, atol=1e-300)
    assert found.evidence == pytest.approx(evidence, rel=1e-12, abs=1e-12)
    without = em_pass(pack(votes), log_confusion, log_prior, offset)
    assert without.posterior is None and without.evidence == found.evidence
    np.testing.assert_array_equal(without.counts, found.counts)


def _offset(extra, votes, rng):
    if extra == "offset":
        return rng.normal(0, 5, (votes.n_items, votes.n_classes))
    return (
        gold_offset(rng.integers(-1, votes.n_classes, votes.n_items).astype(np.int32), votes.n_classes)
        if extra
        else None
    )


def _many_items(n_items, n_workers, n_classes, n_labels):
    rng = np.random.default_rng(0)
    votes = Annotations(
        rng.integers(0, n_items, n_labels),
        rng.integers(0, n_workers, n_labels),
        rng.integers(0, n_classes, n_labels),
        item_ids=np.arange(n_items),
        worker_ids=np.arange(n_workers),
        classes=np.arange(n_classes),
    )
    log_confusion = np.log(probability_rows(rng, n_workers, n_classes, n_classes))
    return votes, log_confusion, np.log(probability_rows(rng, n_classes))

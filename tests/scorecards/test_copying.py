"""Colluding groups and copying pairs: planted ones are found, and no others."""

import time
import tracemalloc
import warnings
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import betainc

from manyhands import Annotations, MajorityVote, registry
from manyhands.em.collusion import CollusionGroups
from manyhands.exceptions import CrowdWarning
from manyhands.scorecards import copying as copying_module
from manyhands.scorecards import reasons as reasons_module
from manyhands.scorecards import score_workers
from manyhands.scorecards.copying import disagrees_with_group
from manyhands.scorecards.leave_one_out import LeaveOneOut
from manyhands.simulate import make_crowd
from small_scorecards import scored


def test_a_colluding_group_is_flagged_and_checked_by_outsiders():
    """Members are flagged with their partners; the group's labels do not raise the accuracy of its members."""
    crowd = make_crowd(n_classes=4, bad="colluding", bad_share=0.3, random_state=0)
    cards = scored(crowd.annotations)
    np.testing.assert_array_equal(cards.flagged("copying"), crowd.is_bad)
    first = int(crowd.is_bad.argmax())
    assert cards.partners[first] == tuple(w for w in np.flatnonzero(crowd.is_bad) if w != first)
    assert "colluding group with" in cards[first].reasons[-1] and "and 8 more" in cards[first].reasons[-1]
    assert cards.accuracy[crowd.is_bad].mean() == pytest.approx(0.25, abs=0.1)


def test_a_pair_that_shares_its_errors_is_flagged():
    """All workers label all items, and one repeats another; no other worker is flagged."""
    crowd = make_crowd(80, 10, 4, labels_per_item=10, accuracy=0.65, random_state=0).annotations
    matrix = crowd.label.reshape(80, 10).copy()
    assert not scored(Annotations.from_matrix(matrix)).flagged("copying").any()
    matrix[:, 7] = matrix[:, 2]
    cards = scored(Annotations.from_matrix(matrix))
    assert np.flatnonzero(cards.flagged("copying")).tolist() == [2, 7]
    assert cards.partners[2] == (7,) and "same label as 2 on 80 of 80 shared items" in cards[7].reasons[-1]


def test_pairs_of_labels_are_those_of_a_plain_loop():
    """No pair within one worker or one group, every other pair once."""
    rng = np.random.default_rng(0)
    for n_labels, share in ((0, 0.5), (1, 0.0), (60, 0.0), (60, 0.3), (60, 0.7), (60, 1.0)):
        item, worker, label = rng.integers(0, [[8], [7], [3]], (3, n_labels))
        ids = {"item_ids": range(9), "worker_ids": range(8), "classes": range(3)}
        votes, group = Annotations.from_triples(item, worker, label, **ids, duplicates="all"), rng.random(8) < share
        expected = [
            (a, b)
            for a, b in combinations(range(n_labels), 2)
            if votes.item[a] == votes.item[b] and votes.worker[a] != votes.worker[b]
            and not (group[votes.worker[a]] and group[votes.worker[b]])
        ]  # fmt: skip
        found = zip(*(positions.tolist() for positions in copying_module._label_pairs(votes, group)))
        assert sorted(found) == expected


def test_pairing_takes_time_proportional_to_the_pairs():
    """A worker with 40,000 labels on one item: pairs of the same worker are never formed."""
    item = np.append(np.arange(40_000) // 4, np.zeros(40_000, int))
    worker = np.append(np.arange(40_000) % 4, np.zeros(40_000, int))
    votes = Annotations.from_triples(item, worker, item % 2, duplicates="all")
    started = time.process_time()
    a, _ = copying_module._label_pairs(votes, np.zeros(4, bool))
    assert len(a) == 10_000 * 6 + 40_000 * 3 and time.process_time() - started < 1


def test_beyond_the_limit_every_label_has_equally_many_partners(monkeypatch):
    votes = Annotations.from_triples(np.zeros(900), np.arange(900) % 30, np.zeros(900), duplicates="all")
    monkeypatch.setattr(copying_module, "MAX_PAIRS", 5_000)
    a, b = copying_module._label_pairs(votes, np.zeros(30, bool))
    assert 5_000 <= len(a) < 5_900 and np.all(votes.worker[a] < votes.worker[b])
    assert np.all(np.bincount(a)[: 870 - 30] == 6)


def test_the_expected_agreement_takes_little_memory(monkeypatch):
    """Pairs times classes would be 64 MB, several times; the result does not depend on the chunk size."""
    rng = np.random.default_rng(0)
    votes = Annotations.from_matrix(rng.integers(0, 40, (1_000, 21)))
    truth, confusion = rng.dirichlet(np.ones(40), votes.n_annotations), rng.dirichlet(np.ones(40), (21, 40))
    ones = np.ones(votes.n_annotations)
    loo = LeaveOneOut(votes, truth, ones, 20 * ones, ones)
    a, b = (positions[:200_000] for positions in copying_module._label_pairs(votes, np.zeros(21, bool)))
    tracemalloc.start()
    found = copying_module._expected_agreement(loo, confusion, a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    monkeypatch.setattr(copying_module, "CHUNK", 40 * 777)
    np.testing.assert_array_equal(copying_module._expected_agreement(loo, confusion, a, b), found)
    p, q = a[5], b[5]
    ways = [truth[y] @ confusion[votes.worker[y], :, votes.label[x]] for x, y in ((p, q), (q, p))]
    same = 1 - (votes.label[p] == votes.label[q])
    assert found[5] == pytest.approx(max(*ways, (same + max(ways)) / 20, 0.01))


def test_a_large_group_is_reported_with_few_names():
    """The partners of each member are bounded, and do not contain the member."""
    members = np.ones(300, bool)
    votes = Annotations.from_matrix(np.zeros((1, 300), int))
    none = np.zeros(0)
    pairs = copying_module.CopyingPairs(none.astype(int), none.astype(int), none, none, none)
    flagged = [{} for _ in members]
    group = CollusionGroups(members, 0.9, 0.5, 9.0)
    partners = reasons_module._explain_copying(flagged, votes, members, [group], pairs)
    assert partners[1] == (0, *range(2, 21)) and partners[299] == tuple(range(20))
    assert "colluding group with 0, 2, 3 and 296 more: agreement 90% on shared items" in flagged[1]["copying"]


def test_of_many_pairs_the_most_significant_are_reported():
    n = np.arange(30, 60.0)
    votes = Annotations.from_matrix(np.zeros((1, 31), int))
    pairs = copying_module.CopyingPairs(np.zeros(30, int), np.arange(1, 31), n, n, np.full(30, 9.0))
    flagged = [{} for _ in range(31)]
    partners = reasons_module._explain_copying(flagged, votes, np.ones(31, bool), [], pairs)
    assert partners[0] == tuple(range(11, 31)) and partners[1] == (0,)
    assert flagged[0]["copying"].startswith("same label as 30 on 59 of 59 shared items; 9 are expected")


def test_repeats_are_no_evidence_of_copying():
    """Two workers who give the same label to one item twelve times share one item."""
    crowd = make_crowd(60, 12, 2, labels_per_item=5, accuracy=0.8, random_state=3).annotations
    item, again = np.zeros(12, int), np.zeros(12, int)
    repeated = crowd.with_more(item, again, again).with_more(item, again + 1, again)
    posterior = MajorityVote().fit(repeated).posterior_
    assert not score_workers(repeated, posterior).flagged("copying").any()


@pytest.mark.parametrize(
    ("n_items", "n_equal", "n_times", "expected", "is_flagged"),
    [
        (2000, 1500, 1, 0.7, False),  # more than luck explains, and still far from a copy
        (2000, 1900, 1, 0.7, True),
        (9, 9, 2, 0.5, False),  # 36 pairs of labels, but nine items
        (10, 10, 2, 0.5, True),
    ],
)
def test_thresholds_of_copying_pairs(monkeypatch, n_items, n_equal, n_times, expected, is_flagged):
    """Ten shared items, repeated labels counted once, and half of the possible excess over the expected agreement."""
    equal = np.arange(n_items) < n_equal
    item = np.repeat(np.arange(n_items), 2 * n_times)
    label = np.stack([np.zeros(n_items, int), np.where(equal, 0, 1)], axis=1).repeat(n_times, axis=1)
    worker = np.tile(np.repeat([0, 1], n_times), n_items)
    votes = Annotations.from_triples(item, worker, label.ravel(), classes=[0, 1], duplicates="all")
    monkeypatch.setattr(copying_module, "_expected_agreement", lambda *given: np.full(len(given[-1]), expected))
    found = copying_module.find_copying_pairs(SimpleNamespace(annotations=votes), None, np.zeros(2, bool))
    assert found.x.tolist() == [0] * is_flagged


def test_sybil_ids_are_flagged_and_honest_workers_are_not():
    """Three labels of one id are too few to test; all such ids are tested together, and each is flagged."""
    crowd = make_crowd(n_classes=4, bad="sybil", bad_share=0.45, random_state=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = registry.create("pooled-dawid-skene").fit(crowd.annotations)
    settings = {
        "confusion": model.confusion_,
        "tempering_exponent": model.tempering_exponent_,
        "collusion_group": model.collusion_group_,
    }
    cards = score_workers(crowd.annotations, model.posterior_, **settings)
    assert np.all(cards.flagged("copying") == crowd.is_bad)
    sentence = cards[int(crowd.is_bad.argmax())].reasons[0]
    assert sentence.startswith("one of the ids with at most 3 labels, tested together (") and "100%" in sentence


def test_a_good_worker_found_with_copies_is_cleared():
    """Ten copies of one list agree always; the eleventh member differs on every fifth item and is no copy."""
    rng = np.random.default_rng(0)
    answers = rng.integers(3, size=60)
    matrix = np.tile(answers[:, None], (1, 11))
    matrix[::5, 10] = (matrix[::5, 10] + 1) % 3
    others = rng.integers(3, size=(60, 4))
    votes = Annotations.from_matrix(np.hstack([matrix, others]))
    group = CollusionGroups(np.arange(15) < 11, 0.97, 0.4, 20.0)
    assert np.flatnonzero(disagrees_with_group(votes, group)).tolist() == [10]


def test_agreement_with_a_group_by_plain_loops():
    """Mean agreement with the other members over shared items, against that of the better half of the group."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=80)
    matrix = np.where(rng.random((80, 6)) < [0.97, 0.97, 0.97, 0.97, 0.9, 0.6], truth[:, None], 1 - truth[:, None])
    matrix[rng.random((80, 6)) < 0.3] = -1
    votes = Annotations.from_matrix(matrix)
    members = [w for w in range(6) if w != 0]
    equal, shared = {w: 0.0 for w in members}, {w: 0 for w in members}
    for row in matrix:
        inside = [w for w in members if row[w] >= 0]
        for w in inside:
            rest = [row[v] == row[w] for v in inside if v != w]
            if rest:
                equal[w] += sum(rest) / len(rest)
                shared[w] += 1
    rate = {w: equal[w] / shared[w] for w in members}
    better = [w for w in members if rate[w] >= np.median(list(rate.values()))]
    usual = min(sum(equal[w] for w in better) / sum(shared[w] for w in better), 0.99)
    expected = [w for w in members if betainc(shared[w] - equal[w], equal[w] + 1, 1 - usual) < 0.01]
    found = disagrees_with_group(votes, CollusionGroups(np.arange(6) > 0, 0.9, 0.5, 12.0))
    assert np.flatnonzero(found).tolist() == expected == [5]

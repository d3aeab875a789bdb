"""Colluding groups and copying pairs: planted ones are found, and no others."""

import warnings

import numpy as np
import pytest
from scipy.special import betainc

from manyhands import Annotations, MajorityVote, registry
from manyhands.em.collusion import CollusionGroups
from manyhands.em.copies import Copies, no_copies
from manyhands.exceptions import CrowdWarning
from manyhands.scorecards import cards as reasons_module
from manyhands.scorecards import score_workers
from manyhands.scorecards.alerts import disagrees_with_group
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


def test_a_large_group_is_reported_with_few_names():
    """The partners of each member are bounded, and do not contain the member."""
    members = np.ones(300, bool)
    votes = Annotations.from_matrix(np.zeros((1, 300), int))
    flagged = [{} for _ in members]
    group = CollusionGroups(members, 0.9, 0.5, 9.0)
    partners = reasons_module._explain_copying(flagged, votes, members, [group], no_copies(300))
    assert partners[1] == (0, *range(2, 21)) and partners[299] == tuple(range(20))
    assert "colluding group with 0, 2, 3 and 296 more: agreement 90% on shared items" in flagged[1]["copying"]


def test_of_many_pairs_the_most_significant_are_reported():
    n = np.arange(30, 60.0)
    votes = Annotations.from_matrix(np.zeros((1, 31), int))
    n, zeros = n.astype(int), np.zeros(31, int)
    pairs = Copies(zeros, zeros, zeros[1:], np.arange(1, 31), n, n, np.full(30, 9.0))
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

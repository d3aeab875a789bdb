"""The test of three agreements: independent of how good a group is, sensitive to copies."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.em.collusion import compare_agreements, find_colluding_groups
from manyhands.simulate import make_crowd

HALF = np.array([0.5, 0.5])


def pairs_with(inside, across, outside, n=1000):
    """Pairs of labels, one per item, that are equal in these shares."""
    equal = np.concatenate([np.arange(n) < share * n for share in (inside, across, outside)])
    return equal, np.repeat([2, 1, 0], n), np.arange(3 * n)


def test_experts_explain_their_agreement():
    """Accuracy .98 among .7: .96 inside, .692 across and .58 outside is what independence gives."""
    found = compare_agreements(*pairs_with(0.9608, 0.692, 0.58), HALF, HALF)
    assert found.agreement == pytest.approx(0.96, abs=0.002)
    assert found.expected == pytest.approx(0.96, abs=0.01)
    assert abs(found.z) < 1


@pytest.mark.parametrize("across", [0.5, 0.68])  # a sheet of guesses, and one as good as everybody
def test_copies_are_not_explained_by_how_good_they_are(across):
    found = compare_agreements(*pairs_with(1.0, across, 0.68), HALF, HALF)
    assert found.excess > 0.99 and found.z > 5
    assert found.expected == pytest.approx(0.5 + (across - 0.5) ** 2 / 0.18, abs=0.01)


def test_one_class_for_all_is_no_group():
    """Members who always name one class leave no room for excess agreement."""
    found = compare_agreements(*pairs_with(1.0, 0.5, 0.68), np.array([1.0, 0.0]), HALF)
    assert found.expected == pytest.approx(1.0)


def test_outsiders_who_do_not_agree_are_no_reference():
    assert compare_agreements(*pairs_with(1.0, 0.5, 0.45), HALF, HALF) is None
    equal, n_members, item = pairs_with(1.0, 0.5, 0.68)
    assert compare_agreements(equal[:1000], n_members[:1000], item[:1000], HALF, HALF) is None


@pytest.mark.parametrize("bad", ["copycat", "family"])
def test_good_workers_who_err_together_are_a_group(bad):
    """They are as good as the others, so only the three agreements reveal them."""
    crowd = make_crowd(n_classes=4, bad=bad, bad_share=0.4, random_state=11)
    members = find_colluding_groups(crowd.annotations).members
    assert members[crowd.is_bad].mean() > 0.8 and members[~crowd.is_bad].mean() < 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_low_volume_workers_with_shared_answers_are_found(n_classes):
    """Three labels each: no worker can be judged alone, all together can."""
    crowd = make_crowd(n_classes=n_classes, bad="sybil", bad_share=0.4, random_state=3)
    group = find_colluding_groups(crowd.annotations)
    assert group.max_labels == 3 and group.agreement == 1.0
    np.testing.assert_array_equal(group.members, crowd.is_bad)


def test_independent_low_volume_workers_are_no_group():
    """The labels of a third of the workers are split among ids of three labels each, without collusion."""
    votes = make_crowd(n_classes=2, random_state=4).annotations
    nth = np.concatenate([np.arange(n) for n in np.bincount(votes.worker)])
    rank = np.empty(votes.n_annotations, int)
    rank[votes.by_worker.order] = nth
    worker = np.where(votes.worker < 13, 1000 * (1 + votes.worker) + rank // 3, votes.worker)
    low_volume = Annotations.from_triples(votes.item, worker, votes.label)
    assert low_volume.n_workers > 200 and find_colluding_groups(low_volume) is None

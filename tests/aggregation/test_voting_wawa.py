"""Wawa against an example worked by hand."""

from contextlib import nullcontext

import numpy as np
import pytest

from manyhands import Annotations, MajorityVote, Wawa
from manyhands.exceptions import CrowdWarning

# worker    a  b  c
VOTES = [
    [0, 0, 1],  # majority 0
    [1, 1, 1],  # majority 1
    [0, 0, 1],  # majority 0
    [0, -1, 1],  # tied: each label agrees by one half
]


def test_skill_is_the_share_of_labels_that_agree_with_the_majority():
    """a: 1 1 1 1/2; b: 1 1 1; c: 0 1 0 1/2."""
    model = Wawa().fit(Annotations.from_matrix(VOTES))
    np.testing.assert_allclose(model.skill_, [3.5 / 4, 3 / 3, 1.5 / 4])


def test_posterior_is_the_share_of_skill_behind_each_class():
    """On the first item .875 + 1 stand against .375; the tie of the last item is broken by skill."""
    model = Wawa().fit(Annotations.from_matrix(VOTES))
    np.testing.assert_allclose(model.posterior_[0], np.array([1.875, 0.375]) / 2.25)
    np.testing.assert_allclose(model.posterior_[3], np.array([0.875, 0.375]) / 1.25)
    assert not model.tied_[3]


def test_gold_replaces_the_majority():
    """If the truth of item 0 is 1, c was right there and a and b were wrong."""
    model = Wawa().fit(Annotations.from_matrix(VOTES), gold={0: 1})
    np.testing.assert_allclose(model.skill_, [2.5 / 4, 2 / 3, 2.5 / 4])
    assert model.labels_[0] == 1


def test_tie_among_all_is_symmetric():
    """Two workers who contradict each other on every item have the same skill, whatever their order."""
    model = Wawa().fit(Annotations.from_matrix([[0, 1], [1, 0], [0, 1]]))
    np.testing.assert_allclose(model.skill_, 0.5)
    assert model.tied_.all()


def test_unseen_worker_has_the_mean_skill():
    """In prediction the weight of an unseen worker is the mean over the workers of `fit`."""
    model = Wawa().fit(Annotations.from_matrix(VOTES))
    new = Annotations.from_triples([9, 9], [0, "unseen"], [0, 1])
    unseen = model.skill_.mean()
    np.testing.assert_allclose(model.predict_proba(new)[0, 1], unseen / (unseen + 0.875))


def test_worker_who_never_agreed_still_decides_an_item_alone():
    """The only label of an item counts, even from a worker with skill 0."""
    model = Wawa().fit(Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 1]]))
    assert model.skill_[2] == 0
    assert model.predict(Annotations.from_triples(["new"], [2], [1])).tolist() == [1]


def test_a_good_minority_can_outvote_a_bad_majority():
    """Two perfect workers beat three random ones where the plain vote does not."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 300)
    votes = np.column_stack([truth, truth, *rng.integers(0, 4, (3, 300))])
    annotations = Annotations.from_matrix(votes)
    wawa, vote = (np.mean(model.fit_predict(annotations) == truth) for model in (Wawa(), MajorityVote()))
    assert wawa > vote and wawa > 0.99


@pytest.mark.parametrize("matrix", [[[0]], [[0, 0]], [[0], [1]], [[-1, 0, 1], [-1, -1, -1]]])
def test_tiny_crowds_give_finite_results(matrix):
    """One item, one worker, one class, a worker without labels, an item without labels."""
    annotations = Annotations.from_matrix(matrix, classes=[0] if matrix in ([[0]], [[0, 0]]) else [0, 1])
    limited = annotations.n_labels.max() < 2 or annotations.n_classes < 2
    with pytest.warns(CrowdWarning) if limited else nullcontext():
        model = Wawa().fit(annotations)
    assert np.isfinite(model.skill_).all() and np.isfinite(model.posterior_).all()

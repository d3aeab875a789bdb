"""Crowds: class shares, label noise of honest workers, each attack, and seeds."""

from __future__ import annotations

import random

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.simulate import ATTACKS, KINDS, label_items, make_crowd, make_truth, one_coin

MANY = {"n_items": 3000, "n_workers": 20, "labels_per_item": 10, "bad_share": 0.4, "random_state": 0}


def of_the_bad(crowd):
    """Item, worker, label and truth of the bad workers' annotations."""
    a = crowd.annotations
    theirs = crowd.is_bad[a.worker]
    return a.item[theirs], a.worker[theirs], a.label[theirs], crowd.truth[a.item[theirs]]


def test_shares_of_classes():
    """Classes have the given shares, which need not sum to one; a class of share 0 never occurs."""
    truth = make_truth(20_000, [10, 0, 1], random_state=0)
    assert np.abs(np.bincount(truth) / 20_000 - [10 / 11, 0, 1 / 11]).max() < 0.01
    assert np.abs(np.bincount(make_truth(20_000, 4, 0)) / 20_000 - 0.25).max() < 0.02
    assert truth.dtype == np.int32
    crowd = make_crowd(4000, class_shares=[0.9, 0.1], random_state=0)
    assert abs(crowd.truth.mean() - 0.1) < 0.03


@pytest.mark.parametrize("bad", ATTACKS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_observed_confusion_matrices_are_those_of_the_crowd(bad, n_classes):
    """The observed confusion matrices of honest and bad workers are those in the crowd."""
    crowd = make_crowd(**MANY, n_classes=n_classes, kind="confusion", accuracy=0.7, bad=bad)
    a = crowd.annotations
    group = np.where(crowd.is_bad, 1, 0)[a.worker]
    shown, stated, n = (
        np.zeros((2, n_classes, n_classes)),
        np.zeros((2, n_classes, n_classes)),
        np.zeros((2, n_classes, 1)),
    )
    np.add.at(shown, (group, crowd.truth[a.item], a.label), 1)
    np.add.at(stated, (group, crowd.truth[a.item]), crowd.confusion[a.worker, crowd.truth[a.item]])
    np.add.at(n, (group, crowd.truth[a.item]), 1)
    assert np.allclose(crowd.confusion.sum(-1), 1)
    # those who answer from one sheet, or share gold, vary by item and not by label: 3000 items, not 30,000 labels
    assert np.abs(shown / n - stated / n).max() < 0.06


@pytest.mark.parametrize("bad", ATTACKS)
def test_bad_share_and_accuracy_of_the_honest_workers(bad):
    """Eight of twenty are bad, and the honest labels are right as often as without them."""
    crowd = make_crowd(**MANY, bad=bad)
    a = crowd.annotations
    good = ~crowd.is_bad[a.worker]
    assert np.sum(~crowd.is_bad) == 12
    assert abs(np.mean(a.label[good] == crowd.truth[a.item[good]]) - 0.8) < 0.02
    assert a.n_labels.tolist() == [10] * 3000


def test_constant_workers_use_one_class():
    """All labels are the target, by default the most frequent class."""
    assert set(of_the_bad(make_crowd(**MANY, bad="constant", class_shares=[1, 3]))[2]) == {1}
    assert set(of_the_bad(make_crowd(**MANY, bad="constant", n_classes=3, target=2))[2]) == {2}


def test_inverted_workers_flip_two_classes_and_shift_more():
    """Their labels are the classes after the honest ones."""
    for n_classes in (2, 4):
        _, _, label, truth = of_the_bad(make_crowd(**MANY, bad="inverted", accuracy=1.0, n_classes=n_classes))
        assert np.array_equal(label, (truth + 1) % n_classes)


@pytest.mark.parametrize("bad", ["colluding", "sybil"])
def test_colluding_workers_share_random_labels(bad):
    """On each item all bad workers give the same label, and its accuracy is that of chance."""
    item, _, label, truth = of_the_bad(make_crowd(**MANY, bad=bad))
    sheet = np.full(3000, -1)
    sheet[item] = label
    assert np.array_equal(sheet[item], label)
    assert abs(np.mean(label == truth) - 0.5) < 0.05


def test_copycats_repeat_one_honest_worker():
    """On items of the first honest worker, every copycat gives the same label."""
    crowd = make_crowd(**MANY, bad="copycat")
    model = np.argmin(crowd.is_bad)
    a = crowd.annotations
    sheet = np.full(3000, -1)
    sheet[a.item[a.worker == model]] = a.label[a.worker == model]
    item, _, label, _ = of_the_bad(crowd)
    known = sheet[item] >= 0
    assert known.sum() > 3000
    assert np.array_equal(sheet[item[known]], label[known])


def test_sleepers_are_honest_and_then_random():
    """The first half of each worker's labels has the honest accuracy, the second that of chance."""
    _, worker, label, truth = of_the_bad(make_crowd(**MANY, bad="sleeper", accuracy=1.0))
    later = []
    for w in np.unique(worker):
        right = (label == truth)[worker == w]
        half = (len(right) + 1) // 2
        assert right[:half].all()
        later.extend(right[half:])
    assert abs(np.mean(later) - 0.5) < 0.03


def test_sybils_have_three_labels_each():
    """Bad identities have three labels, the last of an attacker perhaps fewer; honest workers keep theirs."""
    crowd = make_crowd(**MANY, bad="sybil")
    n_done = np.bincount(crowd.annotations.worker, minlength=crowd.annotations.n_workers)
    assert n_done[crowd.is_bad].max() == 3 and np.mean(n_done[crowd.is_bad] == 3) > 0.99
    assert n_done[~crowd.is_bad].min() > 1000
    assert len(crowd.confusion) == len(crowd.is_bad) == crowd.annotations.n_workers > 1000


def test_targeted_attack_mislabels_the_rarest_class_only():
    """Items of the rare class are always wrong; other labels are honest."""
    _, _, label, truth = of_the_bad(
        make_crowd(**MANY, bad="targeted", class_shares=[5, 4, 1], n_classes=3, accuracy=1.0)
    )
    assert set(label[truth == 2]) == {0}
    assert np.array_equal(label[truth != 2], truth[truth != 2])


def test_gold_only_workers_are_right_on_the_first_tenth():
    """Right on all of the first 300 items, by chance on the rest."""
    item, _, label, truth = of_the_bad(make_crowd(**MANY, bad="gold-only"))
    assert np.array_equal(label[item < 300], truth[item < 300])
    assert abs(np.mean((label == truth)[item >= 300]) - 0.5) < 0.03


def test_families_err_together():
    """Members are as accurate as honest workers, but agree far more often."""
    crowd = make_crowd(300, 20, labels_per_item=20, bad="family", bad_share=0.5, random_state=0)
    label = crowd.annotations.label.reshape(300, 20)
    together = [np.mean(x[:, [0]] == x[:, 1:]) for x in (label[:, crowd.is_bad], label[:, ~crowd.is_bad])]
    assert together[0] > 0.87 and together[1] < 0.75
    assert np.mean(label[:, ~crowd.is_bad][:, [0]] == label[:, crowd.is_bad]) < 0.75  # no honest worker leads them
    assert np.mean(label[:, crowd.is_bad] == crowd.truth[:, None]) > 0.7


def test_careless_workers_are_a_little_better_than_chance():
    """A quarter of the honest accuracy above chance is left."""
    _, _, label, truth = of_the_bad(make_crowd(**MANY, bad="careless", accuracy=0.9))
    assert abs(np.mean(label == truth) - (0.5 + 0.25 * 0.4)) < 0.03


@pytest.mark.parametrize("kind", ["glad", "difficulty"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_difficult_items_have_more_errors(kind, n_classes):
    """The more difficult half of the items has more errors, and there is no confusion matrix."""
    crowd = make_crowd(1000, 20, n_classes, 10, kind=kind, accuracy=0.9, random_state=0)
    a = crowd.annotations
    right = a.label == crowd.truth[a.item]
    hard = (crowd.difficulty > np.median(crowd.difficulty))[a.item]
    assert right[~hard].mean() > right[hard].mean() + 0.1
    assert crowd.confusion is None
    assert right[hard].mean() > 1 / n_classes


def test_glad_and_difficulty_have_the_given_accuracy():
    """GLAD near easiness 1, difficulty on the easiest items."""
    for kind, near in [("glad", lambda d: np.abs(np.log(d)) < 0.2), ("difficulty", lambda d: d < 0.1)]:
        crowd = make_crowd(5000, 20, 3, 10, kind=kind, accuracy=0.8, random_state=0)
        a = crowd.annotations
        where = near(crowd.difficulty)[a.item]
        assert abs(np.mean((a.label == crowd.truth[a.item])[where]) - 0.8) < 0.03


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", ATTACKS)
def test_one_seed_determines_the_crowd(kind, bad):
    """The same seed gives the same crowd, another seed another; no global generator is used."""
    np_state, py_state = str(np.random.get_state()), random.getstate()  # noqa: NPY002
    first, same, other = (
        make_crowd(60, 10, kind=kind, bad=bad, bad_share=0.3, activity="dirichlet", spread=0.1, random_state=seed)
        for seed in (5, 5, 6)
    )
    assert first.annotations == same.annotations and np.array_equal(first.truth, same.truth)
    assert np.array_equal(first.is_bad, same.is_bad)
    assert first.annotations != other.annotations
    assert np_state == str(np.random.get_state()) and py_state == random.getstate()  # noqa: NPY002


def test_a_generator_is_advanced():
    """A generator is used as it is, so that two crowds from one generator differ."""
    rng = np.random.default_rng(0)
    assert make_crowd(50, random_state=rng).annotations != make_crowd(50, random_state=rng).annotations


def test_no_worker_and_every_worker_bad():
    """Bad shares of 0 and of 1 are both allowed."""
    assert not make_crowd(50, bad="copycat", bad_share=0.0, random_state=0).is_bad.any()
    for bad in ATTACKS:
        assert make_crowd(50, 10, bad=bad, bad_share=1.0, random_state=0).is_bad.all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_items": 0},
        {"n_workers": 0},
        {"n_classes": 1},
        {"n_classes": 2.5},
        {"labels_per_item": 41},
        {"kind": "perfect"},
        {"bad": "angry", "bad_share": 0.1},
        {"bad_share": 1.1},
        {"target": 2, "bad_share": 0.1},
        {"activity": "weekly"},
        {"random_state": "seed"},
    ],
)
def test_impossible_crowds_are_refused(parameters):
    """One sentence names the parameter and what it may be."""
    with pytest.raises(ParameterError, match=f"`{next(iter(parameters))}` of .* must be .*Got"):
        make_crowd(**parameters)


def test_impossible_shares_and_truths_are_refused():
    """Shares that are no shares, shares of another number of classes, and truth outside the classes."""
    for shares in ([-1, 2], [0, 0], [[1, 2]], [np.nan, 1]):
        with pytest.raises(ParameterError, match="Class shares must be"):
            make_truth(10, shares)
    with pytest.raises(ParameterError, match="3 class shares for 2 classes"):
        make_crowd(10, class_shares=[1, 1, 1])
    for truth in ([0, 2], [-1], [], [[0]], [0.5]):
        with pytest.raises(ParameterError, match="`truth` must be"):
            label_items(truth, one_coin([0.8], 2))

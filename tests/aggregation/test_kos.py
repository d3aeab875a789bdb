"""KOS: inverted workers, the message rules in plain loops, and what it refuses."""

import numpy as np
import pytest

from manyhands import KOS, Annotations
from manyhands.aggregation.kos import _pass_messages
from manyhands.exceptions import AnnotationError, CrowdWarning


def crowd(seed=0, n_items=200, accuracies=(0.85, 0.85, 0.85, 0.85, 0.85, 0.15, 0.15, 0.5), share=1.0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_items)
    right = rng.random((n_items, len(accuracies))) < np.array(accuracies)
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    votes[rng.random(votes.shape) >= share] = -1
    return Annotations.from_matrix(votes), truth


def test_inverted_workers_count_for_the_other_class():
    """Their reliability is negative, a random worker's near 0, and their labels help."""
    annotations, truth = crowd()
    model = KOS().fit(annotations)
    assert (model.reliability_[:5] > 0.5).all() and (model.reliability_[5:7] < -0.5).all()
    assert abs(model.reliability_[7]) < 0.4
    assert np.mean(model.labels_ == truth) > 0.97


def test_one_round_is_that_of_the_plain_loops():
    """Messages from items leave out the worker they go to; reliabilities are their signed sum over root degree."""
    annotations, _ = crowd(1, n_items=12, share=0.6)
    edges = list(zip(annotations.item, annotations.worker, 2 * annotations.label - 1))
    expected = np.zeros(annotations.n_workers)
    for i, w, sign in edges:
        message = sum(s for j, v, s in edges if j == i and v != w)
        expected[w] += sign * message / np.sqrt(sum(v == w for _, v, _ in edges))
    reliability, n_iter, _ = _pass_messages(annotations, None, max_iter=1, tol=0.0)
    np.testing.assert_allclose(reliability, expected)
    assert n_iter == 1


def test_later_rounds_are_those_of_the_plain_loops():
    """Messages from workers leave out the item they go to."""
    annotations, _ = crowd(2, n_items=8, share=0.6)
    edges = list(zip(annotations.item.tolist(), annotations.worker.tolist(), (2 * annotations.label - 1).tolist()))
    root = {v: np.sqrt(sum(x == v for _, x, _ in edges)) for _, v, _ in edges}
    to_item = {(i, w): 1.0 for i, w, _ in edges}
    for _ in range(3):
        to_worker = {(i, w): sum(s * to_item[j, v] for j, v, s in edges if j == i and v != w) for i, w, _ in edges}
        total = np.zeros(annotations.n_workers)
        for i, w, s in edges:
            total[w] += s * to_worker[i, w] / root[w]
        to_item = {
            (i, w): sum(s * to_worker[j, v] / root[v] for j, v, s in edges if v == w and j != i) for i, w, _ in edges
        }
    reliability, _, _ = _pass_messages(annotations, None, max_iter=3, tol=0.0)
    np.testing.assert_allclose(reliability / np.linalg.norm(reliability), total / np.linalg.norm(total))


def test_workers_with_many_labels_do_not_dominate():
    """One random worker labels everything; ten good ones label a fifth each."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    votes = np.where(rng.random((400, 11)) < 0.9, truth[:, None], 1 - truth[:, None])
    votes[rng.random((400, 11)) > 0.3] = -1
    votes[:, 0] = rng.integers(0, 2, 400)
    labelled = (votes[:, 1:] >= 0).any(axis=1)
    model = KOS().fit(Annotations.from_matrix(votes))
    assert np.mean((model.labels_ == truth)[labelled]) > 0.9


def test_gold_decides_between_two_groups():
    """Two camps that always disagree: gold decides between them."""
    truth = np.arange(20) % 2
    votes = np.column_stack([truth, truth, 1 - truth, 1 - truth, 1 - truth])
    annotations = Annotations.from_matrix(votes)
    assert KOS().fit_predict(annotations).tolist() == (1 - truth).tolist()
    with pytest.warns(CrowdWarning, match="vote_contradicts_gold: The majority vote is wrong on 12 of 12 gold items"):
        model = KOS().fit(annotations, gold={i: truth[i] for i in range(12)})
    assert model.labels_.tolist() == truth.tolist()


def test_three_classes_are_refused():
    """The message names the number of classes and the methods to use instead."""
    with pytest.raises(AnnotationError, match="KOS is for two classes, but there are 3; use mace or dawid-skene"):
        KOS().fit(Annotations.from_matrix([[0, 1, 2]]))


def test_prediction_with_unseen_workers():
    """An unseen worker counts as the mean worker."""
    model = KOS().fit(crowd()[0])
    proba = model.predict_proba(Annotations.from_triples(["new", "new"], [0, "unseen"], [1, 0]))
    mean = model.reliability_.mean()
    assert proba[0, 1] == pytest.approx(model.reliability_[0] / (model.reliability_[0] + mean))


def test_lone_labels_stay_as_given():
    """Where no item has two labels, workers cannot be compared and every label stays."""
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = KOS().fit(Annotations.from_matrix([[0, -1, -1], [-1, 1, -1], [-1, -1, 0], [-1, -1, 0]]))
    assert model.labels_.tolist() == [0, 1, 0, 0]


def test_worker_without_shared_items_has_the_mean():
    """The last worker labels one item alone: their label stays, with the mean reliability as weight."""
    known = crowd()[0]
    items, workers, labels = known.item.tolist(), known.worker.tolist(), known.label.tolist()
    model = KOS().fit(Annotations.from_triples([*items, "alone"], [*workers, "loner"], [*labels, 0]))
    (loner,) = np.flatnonzero(model.worker_ids_ == "loner")
    (item,) = np.flatnonzero(model.item_ids_ == "alone")
    assert model.reliability_[loner] == pytest.approx(np.delete(model.reliability_, loner).mean())
    assert model.posterior_[item].tolist() == [1, 0]


def test_one_item_and_worker_and_item_without_labels():
    """Everything stays finite; the majority of a single item wins."""
    model = KOS().fit(Annotations.from_matrix([[0, 0, 1, -1], [-1, -1, -1, -1]]))
    assert model.labels_.tolist() == [0, None]
    assert np.isfinite(model.posterior_).all() and np.isfinite(model.reliability_).all()


def test_a_single_class():
    """With a single class every posterior is 1."""
    with pytest.warns(CrowdWarning, match="single_class"):
        model = KOS().fit(Annotations.from_matrix([[0, 0], [0, 0]]))
    assert (model.posterior_ == 1).all()


def test_messages_that_do_not_converge_are_reported():
    """Two workers who agree once and disagree once exchange the same messages for ever; `converged_` is False."""
    with pytest.warns(CrowdWarning, match="not_converged"):
        model = KOS().fit(Annotations.from_matrix([[0, 0], [0, 1]]))
    assert not model.converged_ and np.isfinite(model.posterior_).all()

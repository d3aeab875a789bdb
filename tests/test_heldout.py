"""Held-out log-likelihood and folds: how well a posterior predicts labels it has not seen."""

import math

import numpy as np
import pytest
from hypothesis import given

from manyhands import Annotations
from manyhands.heldout import (
    leave_one_out_log_likelihoods,
    mean_score,
    predictive_log_likelihood,
    split_labels,
    worker_confusions,
)
from manyhands.testing.crowds import easy_crowd
from reference.slow import slow_heldout_log_likelihood, slow_predictive_log_likelihood
from strategies import annotations, probability_rows, seeds, triples_of

pytestmark = pytest.mark.fast


def heldout_log_likelihood(training, posterior, heldout):
    """Mean held-out log-likelihood of labels, given the posterior of the training labels."""
    return mean_score(leave_one_out_log_likelihoods(training, posterior, heldout))


@given(annotations(n_classes=3), annotations(n_classes=3), seeds())
def test_score_is_that_of_the_reference(training, heldout, seed):
    """Known and new items, known and unseen workers, several held-out labels per item."""
    posterior = probability_rows(np.random.default_rng(seed), training.n_items, 3)
    worker = np.minimum(heldout.worker, training.n_workers)
    ids = {"item_ids": heldout.item_ids, "worker_ids": np.arange(training.n_workers + 1), "classes": training.classes}
    aligned = Annotations(heldout.item, worker, heldout.label, **ids)
    row = {item: i for i, item in enumerate(training.item_ids.tolist())}
    row_of = [row.get(item) for item in heldout.item_ids.tolist()]
    expected = slow_heldout_log_likelihood(
        triples_of(training), training.n_workers, posterior.tolist(), triples_of(aligned), row_of
    )
    assert heldout_log_likelihood(training, posterior, aligned) == pytest.approx(expected, rel=1e-10)


@given(annotations(n_classes=3), seeds())
def test_score_of_a_classifier_is_that_of_the_reference(heldout, seed):
    """p(k | x) of each item, and the confusion matrix of each label's worker."""
    rng = np.random.default_rng(seed)
    proba, shares = probability_rows(rng, heldout.n_items, 3), probability_rows(rng, 3)
    confusion = probability_rows(rng, heldout.n_workers, 3, 3)
    found = predictive_log_likelihood(proba, confusion, shares, heldout)
    tables = proba.tolist(), confusion.tolist(), shares.tolist()
    assert found == pytest.approx(slow_predictive_log_likelihood(*tables, triples_of(heldout)), rel=1e-10)


@given(annotations(n_classes=4), seeds())
def test_confusions_are_probabilities(votes, seed):
    """Rows sum to 1 for every worker; those of workers without labels and of the unseen one are the pooled ones."""
    posterior = probability_rows(np.random.default_rng(seed), votes.n_items, 4)
    confusion = worker_confusions(votes, posterior)
    assert confusion.shape == (votes.n_workers + 1, 4, 4)
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0, rtol=1e-12)
    unlabelled = np.flatnonzero(np.bincount(votes.worker, minlength=votes.n_workers) == 0)
    expected = np.broadcast_to(confusion[-1], (len(unlabelled), 4, 4))
    np.testing.assert_allclose(confusion[unlabelled], expected, rtol=1e-12)


def test_the_truth_scores_best():
    """The planted truth has a higher held-out log-likelihood than the truth of other items, and than chance."""
    votes, truth = easy_crowd(3, n_items=120)
    held_out = np.arange(votes.n_annotations) % 5 == 0
    training, rest = votes.keep(~held_out), votes.keep(held_out)
    right, wrong = np.eye(3)[truth], np.eye(3)[np.roll(truth, 1)]
    score = heldout_log_likelihood(training, right, rest)
    assert score > heldout_log_likelihood(training, wrong, rest)
    assert score > math.log(1 / 3)


def test_nothing_held_out_has_no_score():
    """The mean of nothing is not a number."""
    votes = Annotations.from_matrix([[0, 1]])
    assert math.isnan(heldout_log_likelihood(votes, np.array([[0.5, 0.5]]), votes.keep(np.zeros(2, bool))))


def test_folds_do_not_depend_on_names_or_order():
    """Renaming items, workers and classes moves no label to another fold; an item's labels are spread over folds."""
    rng = np.random.default_rng(0)
    item, label = np.repeat(np.arange(60), 4), rng.integers(0, 3, 240)
    worker = np.concatenate([rng.choice(9, 4, replace=False) for _ in range(60)])
    ids = {"item_ids": np.arange(60), "worker_ids": np.arange(9), "classes": np.arange(3)}
    votes = Annotations(item, worker, label, **ids)
    to_item, to_worker, to_class = rng.permutation(60), rng.permutation(9), rng.permutation(3)
    renamed = Annotations(to_item[votes.item], to_worker[votes.worker], to_class[votes.label], **ids)
    triples = zip(renamed.item.tolist(), renamed.worker.tolist(), renamed.label.tolist())
    fold = dict(zip(triples, split_labels(renamed, 4)))
    moved = zip(to_item[votes.item].tolist(), to_worker[votes.worker].tolist(), to_class[votes.label].tolist())
    ours = split_labels(votes, 4)
    assert [fold[key] for key in moved] == ours.tolist()
    assert all(len(set(ours[votes.start[i] : votes.start[i + 1]])) == 4 for i in range(60))

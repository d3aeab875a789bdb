"""Pairs of items and workers: which are drawn from a batch, and how many of each worker are chosen."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.item_worker_pairs import Pairs, choose_pairs, draw_pairs, log_sureness, one_of_each
from strategies import annotations, seeds


def drawn(votes, per_label, seed):
    (batch,) = AnnotationBatches(votes, 10_000, items=np.arange(votes.n_items))
    pairs, answered = draw_pairs(batch, votes.n_workers, per_label, np.random.default_rng(seed))
    found = list(zip(pairs.row.tolist(), pairs.worker.tolist()))
    return batch, pairs, found, answered


@given(annotations(n_classes=3), st.integers(1, 4), seeds())
def test_every_worker_meets_as_many_rows_as_he_has_labels_times_so_many_or_all(votes, per_label, seed):
    """No pair comes twice, and what has a label is marked."""
    _, pairs, found, answered = drawn(votes, per_label, seed)
    assert len(set(found)) == len(found)
    n_labels = Counter(votes.worker.tolist())
    assert Counter(pairs.worker.tolist()) == {
        worker: min(votes.n_items, (per_label + 1) * n) for worker, n in n_labels.items()
    }
    labelled = set(zip(votes.item.tolist(), votes.worker.tolist()))
    assert answered.tolist() == [pair in labelled for pair in found]
    for worker, n in n_labels.items():  # enough is left without a label to choose as many from
        left = sum(w == worker and not done for (_, w), done in zip(found, answered.tolist()))
        missing = votes.n_items - len({i for i, w in labelled if w == worker})
        assert left >= min(n, missing)


@given(annotations(n_classes=3), seeds())
def test_without_a_limit_every_worker_meets_every_row(votes, seed):
    _, _, found, _ = drawn(votes, None, seed)
    assert sorted(found) == [(i, w) for i in range(votes.n_items) for w in range(votes.n_workers)]


def test_other_seeds_draw_other_rows():
    worker = torch.zeros(3, dtype=torch.int64)

    batch = Batch(np.arange(50), torch.arange(3), worker, worker)
    first, other = (set(draw_pairs(batch, 1, 2, np.random.default_rng(s))[0].row.tolist()) for s in (0, 1))
    assert len(first) == len(other) == 9 and first != other


@given(annotations(n_classes=3), st.integers(0, 3), seeds())
def test_so_many_of_every_worker_are_chosen_and_none_of_weight_zero(votes, many, seed):
    _, pairs, found, answered = drawn(votes, 2, seed)
    log_weight = torch.zeros(len(found)).masked_fill(answered, -torch.inf)
    wanted = torch.full((votes.n_workers,), many)
    chosen = choose_pairs(pairs, log_weight, wanted).tolist()
    assert len(set(chosen)) == len(chosen)
    open_pairs = Counter(w for (_, w), done in zip(found, answered.tolist()) if not done)
    expected = {w: min(many, n) for w, n in open_pairs.items() if min(many, n)}
    assert Counter(found[place][1] for place in chosen) == expected
    assert not answered[chosen].any()


def test_pairs_are_chosen_in_proportion_to_their_weight():
    torch.manual_seed(0)
    pairs = Pairs(torch.arange(3), torch.zeros(3, dtype=torch.int64))
    log_weight = torch.tensor([1.0, 2.0, 5.0]).log()
    counts = Counter(int(choose_pairs(pairs, log_weight, torch.tensor([1]))) for _ in range(4000))
    assert [counts[k] / 4000 for k in range(3)] == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


def test_labels_are_drawn_by_their_probabilities():
    torch.manual_seed(0)
    labels = one_of_each(torch.tensor([0.2, 0.7, 0.1]).log().repeat(5000, 1))
    assert (torch.bincount(labels, minlength=3) / 5000).tolist() == pytest.approx([0.2, 0.7, 0.1], abs=0.03)


def test_the_surer_the_heavier_and_finite_when_quite_sure():
    log_p = torch.tensor([[0.5, 0.5], [0.9, 0.1], [1.0, 1e-30]]).log()
    weight = log_sureness(log_p).exp()
    assert weight[0] < weight[1] < weight[2] < torch.inf
    h = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert weight[1].item() == pytest.approx(1 / h, rel=1e-5)

"""Pairs of items and workers: which are sampled from a mini-batch, and how many of each worker are selected."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyhands.classifiers.crowding_game import Pairs, choose_pairs, draw_pairs, log_inverse_entropy, sample_labels
from manyhands.nn.batches import AnnotationBatches, Batch
from strategies import annotations, seeds


def drawn(votes, per_label, seed):
    (batch,) = AnnotationBatches(votes, 10_000, items=np.arange(votes.n_items))
    pairs, labelled = draw_pairs(batch, votes.n_workers, per_label, np.random.default_rng(seed))
    found = list(zip(pairs.row.tolist(), pairs.worker.tolist()))
    return batch, pairs, found, labelled


@given(annotations(n_classes=3), st.integers(1, 4), seeds())
def test_pairs_of_a_worker_are_a_multiple_of_the_labels_of_the_worker(votes, per_label, seed):
    """Or all rows, if there are fewer; no pair comes twice, and pairs with a label are marked."""
    _, pairs, found, labelled = drawn(votes, per_label, seed)
    assert len(set(found)) == len(found)
    n_labels = Counter(votes.worker.tolist())
    assert Counter(pairs.worker.tolist()) == {
        worker: min(votes.n_items, (per_label + 1) * n) for worker, n in n_labels.items()
    }
    observed = set(zip(votes.item.tolist(), votes.worker.tolist()))
    assert labelled.tolist() == [pair in observed for pair in found]
    for worker, n in n_labels.items():  # enough pairs without a label are left to select as many as there are labels
        left = sum(w == worker and not done for (_, w), done in zip(found, labelled.tolist()))
        missing = votes.n_items - len({i for i, w in observed if w == worker})
        assert left >= min(n, missing)


@given(annotations(n_classes=3), seeds())
def test_without_a_limit_every_worker_is_paired_with_every_row(votes, seed):
    _, _, found, _ = drawn(votes, None, seed)
    assert sorted(found) == [(i, w) for i in range(votes.n_items) for w in range(votes.n_workers)]


def test_different_seeds_draw_different_rows():
    worker = torch.zeros(3, dtype=torch.int64)

    batch = Batch(np.arange(50), torch.arange(3), worker, worker)
    first, other = (set(draw_pairs(batch, 1, 2, np.random.default_rng(s))[0].row.tolist()) for s in (0, 1))
    assert len(first) == len(other) == 9 and first != other


@given(annotations(n_classes=3), st.integers(0, 3), seeds())
def test_the_wanted_number_of_each_worker_is_selected_and_none_of_weight_zero(votes, n_wanted, seed):
    _, pairs, found, labelled = drawn(votes, 2, seed)
    log_weight = torch.zeros(len(found)).masked_fill(labelled, -torch.inf)
    wanted = torch.full((votes.n_workers,), n_wanted)
    chosen = choose_pairs(pairs, log_weight, wanted).tolist()
    assert len(set(chosen)) == len(chosen)
    open_pairs = Counter(w for (_, w), done in zip(found, labelled.tolist()) if not done)
    expected = {w: min(n_wanted, n) for w, n in open_pairs.items() if min(n_wanted, n)}
    assert Counter(found[place][1] for place in chosen) == expected
    assert not labelled[chosen].any()


def test_pairs_are_selected_in_proportion_to_their_weight():
    torch.manual_seed(0)
    pairs = Pairs(torch.arange(3), torch.zeros(3, dtype=torch.int64))
    log_weight = torch.tensor([1.0, 2.0, 5.0]).log()
    counts = Counter(int(choose_pairs(pairs, log_weight, torch.tensor([1]))) for _ in range(4000))
    assert [counts[k] / 4000 for k in range(3)] == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=0.03)


def test_labels_are_sampled_from_their_distribution():
    torch.manual_seed(0)
    labels = sample_labels(torch.tensor([0.2, 0.7, 0.1]).log().repeat(5000, 1))
    assert (torch.bincount(labels, minlength=3) / 5000).tolist() == pytest.approx([0.2, 0.7, 0.1], abs=0.03)


def test_the_weight_is_the_inverse_entropy_and_finite():
    log_p = torch.tensor([[0.5, 0.5], [0.9, 0.1], [1.0, 1e-30]]).log()
    weight = log_inverse_entropy(log_p).exp()
    assert weight[0] < weight[1] < weight[2] < torch.inf
    h = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))
    assert weight[1].item() == pytest.approx(1 / h, rel=1e-5)

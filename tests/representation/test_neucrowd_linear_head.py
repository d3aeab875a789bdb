"""Logistic regression on an embedding: against scikit-learn's, the choice of C, and the layer."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from manyhands.features import as_rows
from manyhands.linear import log_proba
from manyhands.representation.neucrowd import (
    GRIDS,
    EmbeddingClassifier,
    HeadInput,
    Split,
    choose_C,
    cross_validation_splits,
    regressions,
)
from strategies import probability_rows

CS = GRIDS["decades"]

pytestmark = pytest.mark.usefixtures("one_thread")


def cloud(n_classes, n_items=90, apart=1.0, seed=0):
    """An embedding far from 0 and of small spread, whose classes overlap, and these as rows of a unit matrix."""
    rng = np.random.default_rng(seed)
    code = np.arange(n_items) % n_classes
    centre = rng.normal(0, apart, (n_classes, 4))
    return 3 + 0.05 * (centre[code] + rng.normal(0, 1, (n_items, 4))), np.eye(n_classes)[code]


def scaled(embedding):
    """Brought to the middle, and to a variance of 1 of all columns together."""
    centred = embedding - embedding.mean(axis=0)
    return centred / np.sqrt((centred**2).sum(axis=1).mean())


def proba(embedding, weights):
    """Class probabilities of these rows by a regression."""
    return np.exp(log_proba(embedding, weights, weights.shape[1]))


def theirs(C, n_classes):
    """scikit-learn's of the same C; its binary form has one column for our two, whose penalty is half."""
    return LogisticRegression(C=2 * C if n_classes == 2 else C, tol=1e-9, max_iter=10_000)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_scikit_learns_on_the_scaled_embedding(n_classes):
    """For little and much C, wherever the embedding lies and however small it is."""
    embedding, target = cloud(n_classes)
    strengths = (0.01, 1.0, 100.0)
    for C, weights in zip(strengths, regressions(embedding, target, strengths), strict=True):
        model = theirs(C, n_classes).fit(scaled(embedding), target.argmax(axis=1))
        np.testing.assert_allclose(proba(embedding, weights), model.predict_proba(scaled(embedding)), atol=1e-4)


def test_soft_targets_are_rows_repeated_with_weights():
    """Each row once for every class, as heavy as the target says."""
    embedding, _ = cloud(3)
    target = probability_rows(np.random.default_rng(1), 90, 3)
    repeated, code = np.repeat(scaled(embedding), 3, axis=0), np.tile(np.arange(3), 90)
    model = theirs(0.5, 3).fit(repeated, code, sample_weight=target.ravel())
    found = proba(embedding, regressions(embedding, target, (0.5,))[0])
    np.testing.assert_allclose(found, model.predict_proba(scaled(embedding)), atol=1e-4)


def test_the_size_and_place_of_an_embedding_do_not_matter():
    """The same C gives the same probabilities after a shift and a stretch."""
    embedding, target = cloud(3)
    found = [proba(rows, regressions(rows, target, (0.3,))[0]) for rows in (embedding, 40 * embedding - 7)]
    np.testing.assert_allclose(*found, atol=1e-6)


@pytest.mark.parametrize("place", [0.0, 0.1, 5.001])
def test_a_constant_embedding_gives_the_class_shares(place):
    """Identical items, wherever they are; rounding errors are no variance."""
    embedding, target = np.full((10, 4), place), np.eye(2)[[0] * 7 + [1] * 3]
    for C in (CS[0], 1.0, CS[-1]):
        network = EmbeddingClassifier(HeadInput(nn.Identity(), 0), 4, 2)
        network.set_head(regressions(embedding, target, (C,))[0])
        found = network(torch.from_numpy(embedding).float()).softmax(1).detach().numpy()
        np.testing.assert_allclose(found, np.tile([0.7, 0.3], (10, 1)), atol=1e-3)


def test_a_class_without_targets_has_no_probability():
    """Exactly 0, also far from the training items; the others are as without it."""
    embedding, target = cloud(2)
    wider = np.zeros((90, 4))
    wider[:, [0, 2]] = target
    found = regressions(embedding, wider, CS)
    for plain, weights in zip(regressions(embedding, target, CS), found, strict=True):
        for rows in (embedding, 1000 * embedding - 2000):
            assert (proba(rows, weights)[:, [1, 3]] == 0).all()
        np.testing.assert_array_equal(weights[:, [0, 2]], plain)
        assert (weights[:-1, [1, 3]] == 0).all()


def test_a_single_class_is_certain():
    """There is nothing to learn, whatever C is."""
    embedding, _ = cloud(2, n_items=6)
    for weights in regressions(embedding, np.eye(3)[[1] * 6], CS):
        assert proba(embedding, weights).tolist() == [[0, 1, 0]] * 6


def test_a_path_of_strengths_is_each_of_them_alone():
    """The start of a regression does not matter; larger C gives larger weights and a better fit."""
    embedding, target = cloud(3, apart=0.7)
    path = regressions(embedding, target, CS)
    for C, weights in zip(CS, path, strict=True):
        alone = regressions(embedding, target, (C,))[0]
        np.testing.assert_allclose(proba(embedding, weights), proba(embedding, alone), atol=1e-4)
    assert (np.diff([np.square(weights[:-1]).sum() for weights in path]) > 0).all()
    assert (np.diff([(target * log_proba(embedding, weights, 3)).sum() for weights in path]) > 0).all()
    assert all(list(grid) == sorted(set(grid)) for grid in GRIDS.values())


def test_the_grid_of_the_paper_has_nine_decades():
    """From 1e-4 to 1e4; both ends can be chosen."""
    np.testing.assert_allclose(np.log10(CS), np.arange(-4, 5))


def test_noise_asks_for_a_small_C_and_separated_classes_for_a_large_one():
    """By held-out items: noise is regularised away."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, (100, 10)), np.eye(2)[rng.integers(0, 2, 100)]
    clear = cloud(2, apart=8.0)
    found = [choose_C(cross_validation_splits(*data, rng), data[1], CS).C for data in (noise, clear)]
    assert found[0] <= 0.1 and found[1] >= 10


def test_all_splits_count():
    """C maximises the sum of held-out log-likelihoods of soft targets over all of them."""
    rng = np.random.default_rng(2)
    splits, target = [], probability_rows(rng, 90, 3)
    for seed in range(3):
        embedding, _ = cloud(3, seed=seed, apart=0.5)
        train, test = np.split(rng.permutation(90), [60])
        splits.append(Split(embedding, train, test))
    target[:, :] = 0.7 * cloud(3)[1] + 0.3 * target
    total = []
    for c in range(len(CS)):
        total.append(0.0)
        for embedding, train, test in splits:
            weights = regressions(embedding[train], target[train], CS)[c]
            total[c] += (target[test] * log_proba(embedding[test], weights, 3)).sum()
    assert CS[int(np.argmax(total))] == choose_C(splits, target, CS).C
    one_by_one = {choose_C([split], target, CS).C for split in splits}
    assert len(one_by_one) > 1  # they do not agree, so that it matters that all count


def test_a_class_without_training_items_does_not_decide():
    """No C predicts it, and none is preferred for being less confident; nothing is infinite."""
    embedding, target = cloud(3, apart=2.0)
    wider = np.column_stack([target, np.zeros(90)])
    train = np.arange(45)
    usual = choose_C([Split(embedding, train, np.arange(45, 60))], wider, CS).C
    wider[60:] = [0, 0, 0, 1]
    assert choose_C([Split(embedding, train, np.arange(45, 90))], wider, CS).C == usual > CS[0]


@pytest.mark.parametrize("sizes", [(50, 50), (40, 7, 3), (5, 1), (11, 1, 1)])
def test_splits_hold_out_a_fifth_of_every_class(sizes):
    """Every item is held out once; the folds of a class differ by at most one item."""
    code = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    target = 0.6 * np.eye(len(sizes))[code] + 0.4 / len(sizes)
    embedding = np.random.default_rng(1).normal(0, 1, (len(code), 2))
    splits = cross_validation_splits(embedding, target, np.random.default_rng(2))
    assert len(splits) == 5 and all(split.embedding is embedding for split in splits)
    assert sorted(np.concatenate([split.test for split in splits]).tolist()) == list(range(len(code)))
    for split in splits:
        assert sorted([*split.train.tolist(), *split.test.tolist()]) == list(range(len(code)))
    for own in range(len(sizes)):
        counts = [(code[split.test] == own).sum() for split in splits]
        assert max(counts) - min(counts) <= 1


def test_folds_are_drawn_by_the_generator():
    """The same seed gives the same folds, another one others: items of a class are shuffled."""
    embedding, target = cloud(2, n_items=20)
    first, again, other = (
        [split.test.tolist() for split in cross_validation_splits(embedding, target, np.random.default_rng(seed))]
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_fewer_items_than_folds():
    """As many splits as items; of a single item none, and a C is chosen all the same."""
    rng = np.random.default_rng(0)
    for n_items, n_folds in ((3, 3), (2, 2), (1, 0)):
        embedding, target = cloud(2, n_items=n_items)
        splits = cross_validation_splits(embedding, target, rng)
        assert len(splits) == n_folds and all(len(split.test) == 1 for split in splits)
        assert choose_C(splits, target, CS).C in CS


def embedder():
    """From two features to four numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 4), nn.Tanh())


@pytest.mark.parametrize("n_features", [0, 2])
def test_the_layer_is_the_regression(n_features):
    """Of the embedding of a network, which stays as it is, alone or with the features beside it."""
    network = EmbeddingClassifier(HeadInput(embedder(), n_features), 4, 3)
    x = torch.tensor(np.random.default_rng(0).normal(0, 1, (30, 2)), dtype=torch.float32)
    before = embedder()(x).detach()
    inputs = network.inputs(x).detach()
    assert torch.equal(inputs, torch.hstack([before, x[:, :n_features]]))
    weights = regressions(inputs.double().numpy(), np.eye(3)[np.arange(30) % 3], (1.0,))[0]
    network.set_head(weights)
    assert torch.equal(network.inputs.embedder(x), before)
    found = network(x).softmax(1).detach().numpy()
    np.testing.assert_allclose(found, proba(inputs.numpy(), weights), atol=1e-5)


@pytest.mark.parametrize("size", [0.01, 1.0, 50.0])
def test_features_beside_an_embedding_vary_as_much_as_it_does(size):
    """However large they are; by the given items, of the last call."""
    X = size * np.random.default_rng(0).normal(0, 1, (30, 2))
    X[20:] *= 9
    rows, items = as_rows(X), np.arange(20)
    inputs = HeadInput(embedder(), 2)
    found = inputs.fit_ratio(rows, items)
    variance = found.var(axis=0)
    assert found.shape == (20, 6) and variance[:4].sum() == pytest.approx(variance[4:].sum(), rel=1e-4)
    with torch.no_grad():
        np.testing.assert_allclose(
            inputs(torch.tensor(X[:20], dtype=torch.float32)).numpy(), found, rtol=1e-4, atol=1e-6
        )
    others = inputs.fit_ratio(rows, np.arange(20, 30))
    assert others[:, :4].var(axis=0).sum() == pytest.approx(others[:, 4:].var(axis=0).sum(), rel=1e-4)
    with torch.no_grad():
        after = inputs(torch.tensor(X[20:], dtype=torch.float32)).numpy()
    np.testing.assert_allclose(after, others, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(inputs.fit_ratio(rows, items), found, rtol=1e-4, atol=1e-6)


def test_features_that_do_not_vary_are_left_as_they_are():
    """The ratio is then 1; and without features the embedding is the only input."""
    rows = as_rows(np.ones((5, 2)))
    for n_features in (0, 2):
        inputs = HeadInput(embedder(), n_features)
        assert inputs.fit_ratio(rows, np.arange(5)).shape == (5, 4 + n_features) and inputs.ratio.item() == 1

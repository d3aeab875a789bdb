"""Logistic regression behind an embedding: beside scikit-learn's, its C, and the layer that it becomes."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from manyhands.features import as_rows
from manyhands.linear.softmax_regression import log_proba
from manyhands.representation.neucrowd.linear_head import (
    CS,
    Classified,
    Seen,
    Split,
    choose_strength,
    folds,
    regressions,
)
from strategies import probability_rows

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
    """What a regression says of these rows."""
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
def test_an_embedding_in_one_place_says_how_frequent_classes_are(place):
    """Items that cannot be told apart, wherever they are; rounding is no spread."""
    embedding, target = np.full((10, 4), place), np.eye(2)[[0] * 7 + [1] * 3]
    for C in (CS[0], 1.0, CS[-1]):
        network = Classified(Seen(nn.Identity(), 0), 4, 2)
        network.classify_by(regressions(embedding, target, (C,))[0])
        found = network(torch.from_numpy(embedding).float()).softmax(1).detach().numpy()
        np.testing.assert_allclose(found, np.tile([0.7, 0.3], (10, 1)), atol=1e-3)


def test_a_class_never_met_has_no_probability():
    """Exactly 0, also far away from all that was seen; the others are as without it."""
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
    """Where the regression of one C begins does not show; the larger C is, the more it says and the better it fits."""
    embedding, target = cloud(3, apart=0.7)
    path = regressions(embedding, target, CS)
    for C, weights in zip(CS, path, strict=True):
        alone = regressions(embedding, target, (C,))[0]
        np.testing.assert_allclose(proba(embedding, weights), proba(embedding, alone), atol=1e-4)
    assert (np.diff([np.square(weights[:-1]).sum() for weights in path]) > 0).all()
    assert (np.diff([(target * log_proba(embedding, weights, 3)).sum() for weights in path]) > 0).all()
    assert list(CS) == sorted(set(CS))


def test_noise_asks_for_a_small_C_and_separated_classes_for_a_large_one():
    """By the items left out: what cannot be foretold is not to be learnt."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 1, (100, 10)), np.eye(2)[rng.integers(0, 2, 100)]
    clear = cloud(2, apart=8.0)
    found = [choose_strength(folds(*data, rng), data[1]) for data in (noise, clear)]
    assert found[0] == CS[0] and found[1] in CS[-3:]


def test_all_sights_are_asked():
    """The C is the one of the largest sum of log-likelihoods, of soft targets, over all of them."""
    rng = np.random.default_rng(2)
    sights, target = [], probability_rows(rng, 90, 3)
    for seed in range(3):
        embedding, _ = cloud(3, seed=seed, apart=0.5)
        taught, asked = np.split(rng.permutation(90), [60])
        sights.append(Split(embedding, taught, asked))
    target[:, :] = 0.7 * cloud(3)[1] + 0.3 * target
    total = []
    for c in range(len(CS)):
        total.append(0.0)
        for embedding, taught, asked in sights:
            weights = regressions(embedding[taught], target[taught], CS)[c]
            total[c] += (target[asked] * log_proba(embedding[asked], weights, 3)).sum()
    assert choose_strength(sights, target) == CS[int(np.argmax(total))]
    one_by_one = {choose_strength([sight], target) for sight in sights}
    assert len(one_by_one) > 1  # they do not agree, so that it matters that all are asked


def test_a_class_that_is_only_asked_for_does_not_decide():
    """No C foretells it, and none is preferred for being less sure; nothing is infinite."""
    embedding, target = cloud(3, apart=2.0)
    wider = np.column_stack([target, np.zeros(90)])
    taught = np.arange(45)
    usual = choose_strength([Split(embedding, taught, np.arange(45, 60))], wider)
    wider[60:] = [0, 0, 0, 1]
    assert choose_strength([Split(embedding, taught, np.arange(45, 90))], wider) == usual > CS[0]


@pytest.mark.parametrize("sizes", [(50, 50), (40, 7, 3), (5, 1), (11, 1, 1)])
def test_folds_leave_out_a_fifth_of_every_class(sizes):
    """Every item is asked for once and teaches otherwise; of a class, no fold has two more than another."""
    code = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    target = 0.6 * np.eye(len(sizes))[code] + 0.4 / len(sizes)
    embedding = np.random.default_rng(1).normal(0, 1, (len(code), 2))
    sights = folds(embedding, target, np.random.default_rng(2))
    assert len(sights) == 5 and all(sight.embedding is embedding for sight in sights)
    assert sorted(np.concatenate([sight.asked for sight in sights]).tolist()) == list(range(len(code)))
    for sight in sights:
        assert sorted([*sight.taught.tolist(), *sight.asked.tolist()]) == list(range(len(code)))
    for own in range(len(sizes)):
        asked = [(code[sight.asked] == own).sum() for sight in sights]
        assert max(asked) - min(asked) <= 1


def test_folds_are_drawn_by_the_generator():
    """The same seed gives the same folds, another one others: items of a class are shuffled."""
    embedding, target = cloud(2, n_items=20)
    first, again, other = (
        [sight.asked.tolist() for sight in folds(embedding, target, np.random.default_rng(seed))] for seed in (0, 0, 1)
    )
    assert first == again != other


def test_fewer_items_than_folds():
    """As many folds as there are items; of a single one nothing can be left out, and a C is chosen all the same."""
    rng = np.random.default_rng(0)
    for n_items, n_folds in ((3, 3), (2, 2), (1, 0)):
        embedding, target = cloud(2, n_items=n_items)
        sights = folds(embedding, target, rng)
        assert len(sights) == n_folds and all(len(sight.asked) == 1 for sight in sights)
        assert choose_strength(sights, target) in CS


def embedder():
    """From two features to four numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(2, 4), nn.Tanh())


@pytest.mark.parametrize("n_features", [0, 2])
def test_the_layer_says_what_the_regression_says(n_features):
    """Of the embedding of a network, which stays as it is, alone or with the features beside it."""
    network = Classified(Seen(embedder(), n_features), 4, 3)
    x = torch.tensor(np.random.default_rng(0).normal(0, 1, (30, 2)), dtype=torch.float32)
    before = embedder()(x).detach()
    seen = network.seen(x).detach()
    assert torch.equal(seen, torch.hstack([before, x[:, :n_features]]))
    weights = regressions(seen.double().numpy(), np.eye(3)[np.arange(30) % 3], (1.0,))[0]
    network.classify_by(weights)
    assert torch.equal(network.seen.embedder(x), before)
    found = network(x).softmax(1).detach().numpy()
    np.testing.assert_allclose(found, proba(seen.numpy(), weights), atol=1e-5)


@pytest.mark.parametrize("size", [0.01, 1.0, 50.0])
def test_features_beside_an_embedding_vary_as_much_as_it_does(size):
    """However large they are; by the items that are named, of which the last ones count."""
    X = size * np.random.default_rng(0).normal(0, 1, (30, 2))
    X[20:] *= 9
    rows, items = as_rows(X), np.arange(20)
    seen = Seen(embedder(), 2)
    found = seen.balance(rows, items)
    variance = found.var(axis=0)
    assert found.shape == (20, 6) and variance[:4].sum() == pytest.approx(variance[4:].sum(), rel=1e-4)
    with torch.no_grad():
        np.testing.assert_allclose(seen(torch.tensor(X[:20], dtype=torch.float32)).numpy(), found, rtol=1e-4, atol=1e-6)
    others = seen.balance(rows, np.arange(20, 30))
    assert others[:, :4].var(axis=0).sum() == pytest.approx(others[:, 4:].var(axis=0).sum(), rel=1e-4)
    with torch.no_grad():
        after = seen(torch.tensor(X[20:], dtype=torch.float32)).numpy()
    np.testing.assert_allclose(after, others, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(seen.balance(rows, items), found, rtol=1e-4, atol=1e-6)


def test_features_that_do_not_vary_are_left_as_they_are():
    """A ratio of nothing is none; and without features the embedding is all that is seen."""
    rows = as_rows(np.ones((5, 2)))
    for n_features in (0, 2):
        seen = Seen(embedder(), n_features)
        assert seen.balance(rows, np.arange(5)).shape == (5, 4 + n_features) and seen.ratio.item() == 1

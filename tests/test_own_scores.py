"""Scores by a method's own label likelihood: against plain loops, on crowds with difficulty, saved and compared."""

import json
import math

import numpy as np
import pytest

import manyhands as mh
from manyhands import registry
from manyhands.comparison import compare
from manyhands.em.ability import Abilities, label_given_truth, other_votes_easiness
from manyhands.exceptions import NotFittedError
from manyhands.heldout import align, label_log_likelihoods, leave_one_out_log_likelihoods
from manyhands.testing.crowds import feature_crowd, quietly, with_unlabelled

K = 3


def small_crowd():
    """Training and held-out part of a crowd; two held-out labels are by workers without training labels."""
    X, votes, _ = feature_crowd(K, n_items=60, accuracy=0.8)
    X = X + np.random.default_rng(3).normal(scale=2.0, size=X.shape)  # probabilities that are not near 0 and 1
    training, heldout = with_unlabelled(votes[:40]), votes[40:]
    no_label = training.worker_ids[-1]
    codes = [*heldout.worker, heldout.n_workers, heldout.n_workers + 1]
    return X, training, mh.Annotations(
        [*heldout.item, 0, 3], codes, [*heldout.label, 1, 2],
        item_ids=heldout.item_ids, worker_ids=[*heldout.worker_ids.tolist(), no_label, "never seen"],
        classes=heldout.classes,
    )  # fmt: skip


def fitted_and_heldout(method):
    X, training, heldout = small_crowd()
    return quietly(lambda: method.fit(np.vstack([X[:40], X[:1]]), training)), X[40:], heldout


def triples(model, heldout):
    """(item, worker or None, label) in the codes of the fit; None is a worker without training labels."""
    worker_of = {w: i for i, w in enumerate(model.worker_ids_.tolist())}
    label_of = {c: k for k, c in enumerate(model.classes_.tolist())}
    for i, w, k in zip(heldout.item, heldout.worker, heldout.label, strict=True):
        code = worker_of.get(heldout.worker_ids[w])
        unlabelled = code is None or code == len(worker_of) - 1  # the last worker has no labels
        yield int(i), None if unlabelled else code, label_of[heldout.classes[k]]


def slow_right(ability, d):
    return math.exp(ability * d) / (math.exp(ability * d) + K - 1)


def slow_easiness(q):
    return ((max(q) - 1 / K) / (1 - 1 / K)) ** 2 / 4


@pytest.mark.parametrize("method", [mh.DifficultyEM(max_iter=20, floor=0.2), mh.FixedDifficultyEM(max_iter=20)])
def test_difficulty_against_plain_loops(method):
    """p(k | x) smoothed, ability times easiness; unseen workers have the mean ability; the label itself is left out."""
    model, X, heldout = fitted_and_heldout(method)
    proba, labels = model.predict_proba(X).tolist(), list(triples(model, heldout))
    ability = model.ability_.tolist()
    mean = [np.mean([ability[w][c] for w in range(len(ability) - 1)]) for c in range(K)]
    expected = []
    for at, (i, w, label) in enumerate(labels):
        q = proba[i]
        if model.difficulty == "votes":
            others = [other for j, (item, _, other) in enumerate(labels) if item == i and j != at]
            more = model.vote_smoothing
            q = [(others.count(c) + more / K) / (len(others) + more) for c in range(K)]
            assert others  # the mean easiness is tested below
        d = model.floor_ / 4 + (1 - model.floor_) * slow_easiness(q)
        total = 0.0
        for c in range(K):
            right = slow_right((mean if w is None else ability[w])[c], d)
            truth = (proba[i][c] + 0.01 * model._shares[c]) / 1.01
            total += truth * (right if label == c else (1 - right) / (K - 1))
        expected.append(math.log(total))
    np.testing.assert_allclose(model.score_labels(X, heldout), expected, rtol=1e-9)
    assert model.score(X, heldout) == pytest.approx(np.mean(expected)) and model.score_kind == "own"


def test_difficulty_of_a_single_label_is_the_mean():
    """By votes, an item whose only label is scored has the mean easiness: its difficulty cannot come from the label."""
    model, X, heldout = fitted_and_heldout(mh.FixedDifficultyEM(max_iter=5))
    single = heldout.keep(heldout.start[:-1])
    ability = np.vstack([model.ability_, np.zeros(K)])
    d = np.full(single.n_annotations, 0.25 * (1 - model.difficulty_.mean()))
    aligned = align(single, model.worker_ids_, model.classes_, "x")
    log_label = label_given_truth(aligned, Abilities(ability, None), d)
    proba = (model.predict_proba(X) + 0.01 * model._shares) / 1.01
    expected = np.log((proba[aligned.item] * np.exp(log_label)).sum(axis=1))
    np.testing.assert_allclose(model.score_labels(X, single), expected, rtol=1e-9)
    assert np.isnan(other_votes_easiness(single, np.nan)).all()


def test_free_errors_are_those_of_the_confusion_matrices():
    """With errors="free" wrong labels follow the worker's confusion matrix, without its diagonal."""
    model, X, heldout = fitted_and_heldout(mh.DifficultyEM(max_iter=10, errors="free", difficulty="constant"))
    proba = (model.predict_proba(X) + 0.01 * model._shares) / 1.01
    for found, (i, w, label) in zip(model.score_labels(X, heldout), triples(model, heldout), strict=True):
        if w is None:
            continue
        total = 0.0
        for c in range(K):
            right = slow_right(model.ability_[w, c], 0.25)
            row = [model._confusions[w, c, other] if other != c else 0.0 for other in range(K)]
            total += proba[i, c] * (right if label == c else (1 - right) * row[label] / sum(row))
        assert found == pytest.approx(math.log(total), rel=1e-9)


@pytest.mark.parametrize("name", ["glad", "vote-difficulty-em"])
def test_aggregators_against_plain_loops(name):
    """The truth from posterior and other held-out labels; the difficulty from training labels, or others if new."""
    _, votes, _ = feature_crowd(K, n_items=60, accuracy=0.75)
    is_held = (np.arange(votes.n_annotations) % 3 == 0) | (votes.item >= 50)  # the last items are new
    training = votes.keep(~is_held)[:50]
    heldout = votes.keep(is_held)
    model = quietly(lambda: registry.create(name).fit(training))
    known = {item: i for i, item in enumerate(model.item_ids_.tolist())}
    labels = [(i, w, c) for i, w, c in zip(heldout.item, heldout.worker, heldout.label)]
    rows = [known.get(item) for item in heldout.item_ids.tolist()]
    prior = (model.posterior_.sum(axis=0) + 1) / (len(training) + K)

    def p_label(at, truth):
        i, w, label = labels[at]
        if name == "glad":
            ease = 1.0 if rows[i] is None else -math.log(model.difficulty_[rows[i]])
            right = 1 / (1 + math.exp(-model.ability_[w] * math.exp(ease)))
        else:
            others = [c for j, (item, _, c) in enumerate(labels) if item == i and j != at]
            d = slow_easiness([(others.count(c) + 1 / K) / (len(others) + 1) for c in range(K)])
            d = model.floor_ / 4 + (1 - model.floor_) * d if others else 0.25 * (1 - model.difficulty_.mean())
            d = d if rows[i] is None else 0.25 * (1 - model.difficulty_[rows[i]])
            right = slow_right(model.ability_[w, truth], d)
        return right if label == truth else (1 - right) / (K - 1)

    expected = []
    for at, (i, _, _) in enumerate(labels):
        current = prior if rows[i] is None else (model.posterior_[rows[i]] + 0.01 * prior) / 1.01
        for other, (item, _, _) in enumerate(labels):
            if item == i and other != at:
                current = [current[k] * p_label(other, k) for k in range(K)]
        current = [p / sum(current) for p in current]
        expected.append(math.log(sum(current[k] * p_label(at, k) for k in range(K))))
    np.testing.assert_allclose(model.score_labels(heldout), expected, rtol=1e-8)
    assert model.score_kind == "own"


def test_conal_against_plain_loops():
    """Omega by item and worker mixes common and own logits; workers without labels have the common recipe."""
    model, X, heldout = fitted_and_heldout(
        mh.classifiers.CoNAL(embedding=3, embedding_hidden=4, max_epochs=3, random_state=0)
    )
    layer, proba = model._noise_layer.double(), model.predict_proba(X)
    linear, last = (module for module in layer.items if hasattr(module, "weight"))
    aligned = align(heldout, model.worker_ids_, model.classes_, "x")
    common = label_log_likelihoods(proba, model._confusions, model._shares, aligned)
    expected = []
    for at, (i, w, label) in enumerate(triples(model, heldout)):
        if w is None:
            expected.append(common[at])
            continue
        vector = last(linear(linear.weight.new_tensor(X[i]))).tolist()
        worker = layer.workers[w].tolist()
        lengths = math.sqrt(sum(v * v for v in vector)), math.sqrt(sum(u * u for u in worker))
        cosine = sum(v * u for v, u in zip(vector, worker, strict=True)) / (lengths[0] * lengths[1])
        omega = 1 / (1 + math.exp(-cosine))
        own, logits = layer.own.weight.view(-1, K, K)[w].tolist(), []
        for c in range(K):
            by_common = sum(proba[i][k] * layer.common[k, c].item() for k in range(K))
            logits.append(omega * by_common + (1 - omega) * sum(proba[i][k] * own[k][c] for k in range(K)))
        expected.append(logits[label] - math.log(sum(map(math.exp, logits))))
    layer.float()
    np.testing.assert_allclose(model.score_labels(X, heldout), expected, rtol=1e-4)
    assert model.score_kind == "own"


def test_generator_of_crowding():
    """The mean over eight draws of the noise of p(label | x, worker, z); other workers have the common recipe."""
    import torch

    method = mh.CrowdInG(random_state=0, max_epochs=2, members=1).set_params(adversarial__epochs=0, generator__epochs=2)
    model, X, heldout = fitted_and_heldout(method)
    generator, rows = model.module_.generator, torch.from_numpy(X).float()
    drawn = torch.randn(8, K, generator=torch.Generator().manual_seed(0))
    aligned = align(heldout, model.worker_ids_, model.classes_, "x")
    common = label_log_likelihoods(model.predict_proba(X), model._confusions, model._shares, aligned)
    from manyhands.classifiers.crowding_game import Pairs

    for at, (i, w, label) in enumerate(triples(model, heldout)):
        expected = common[at]
        if w is not None:
            x, pair = rows[i : i + 1], Pairs(torch.tensor([0]), torch.tensor([w]))
            with torch.no_grad():
                each = [generator(generator.inputs(x), model.module_.proba(x), pair, n)[0, label].item() for n in drawn]
            expected = math.log(sum(map(math.exp, each)) / 8)
        assert model.score_labels(X, heldout)[at] == pytest.approx(expected, rel=1e-4)
    assert model.score_kind == "own"


def test_own_likelihood_is_higher_where_difficulty_matters():
    """On a simulated crowd with difficulty, each method scores higher by its own likelihood than by the recipe."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    p = 1 / (1 + np.exp(-3 * X[:, 0]))
    truth = (rng.random(1500) < p).astype(int)
    right = 1 / (1 + np.exp(-20 * (p - 0.5) ** 2))  # .5 near the boundary, .993 far from it
    item, worker = np.divmod(np.arange(1500 * 4), 4)
    worker = (worker + 4 * rng.integers(0, 5, 1500)[item]).astype(int)  # four of twenty workers label an item
    label = np.where(rng.random(len(item)) < right[item], truth[item], 1 - truth[item])
    votes = mh.Annotations(item, worker, label, item_ids=np.arange(1500), worker_ids=np.arange(20), classes=[0, 1])
    model = mh.DifficultyEM().fit(X[:1000], votes[:1000])
    aligned = align(votes[1000:], model.worker_ids_, model.classes_, "x")
    common = label_log_likelihoods(model.predict_proba(X[1000:]), model._confusions, model._shares, aligned).mean()
    assert model.score(X[1000:], votes[1000:]) > common + 0.01


def test_own_likelihood_of_glad_where_difficulty_matters():
    """Half of the items are easy, half are hard: their training labels tell which, and confusion matrices cannot."""
    rng = np.random.default_rng(0)
    truth, right = rng.integers(0, 2, 400), np.where(np.arange(400) % 2, 0.98, 0.65)
    item, worker = np.divmod(np.arange(400 * 20), 20)
    label = np.where(rng.random(len(item)) < right[item], truth[item], 1 - truth[item])
    votes = mh.Annotations(item, worker, label, item_ids=np.arange(400), worker_ids=np.arange(20), classes=[0, 1])
    held = rng.random(votes.n_annotations) < 0.2
    model = mh.GLAD().fit(votes.keep(~held))
    heldout = model._align(votes.keep(held))
    common = leave_one_out_log_likelihoods(model.annotations_, model.posterior_, heldout).mean()
    assert model.score(votes.keep(held)) > common + 0.01


def test_saved_noise_layers(tmp_path):
    """A loaded CoNAL scores as before; a folder without its layer, as older versions wrote, has the common recipe."""
    model, X, heldout = fitted_and_heldout(mh.classifiers.CoNAL(max_epochs=2, random_state=0))
    model.save(tmp_path / "model")
    again = mh.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.score_labels(X, heldout), model.score_labels(X, heldout))
    model._noise_layer = None
    model.save(tmp_path / "older")
    older = mh.load_model(tmp_path / "older")
    assert older.score_kind == "confusion matrices" and older.score(X, heldout) != again.score(X, heldout)
    assert json.loads((tmp_path / "older/model.json").read_text())["schema"] == 2


def test_other_methods_have_the_common_recipe():
    """Layers that depend on p(k | x) alone, and every method with confusion matrices."""
    for method in (mh.classifiers.CrowdLayer(max_epochs=2, random_state=0), mh.classifiers.Raykar(max_iter=5)):
        model, X, heldout = fitted_and_heldout(method)
        aligned = align(heldout, model.worker_ids_, model.classes_, "x")
        common = label_log_likelihoods(model.predict_proba(X), model._confusions, model._shares, aligned)
        np.testing.assert_array_equal(model.score_labels(X, heldout), common)
        assert model.score_kind == "confusion matrices"
    with pytest.raises(NotFittedError):
        mh.classifiers.CrowdLayer().score_kind  # noqa: B018


def test_compare_says_which_likelihood():
    """The kinds are in the comparison, its table and what is printed."""
    X, training, _ = small_crowd()
    found = quietly(lambda: compare(["raykar", "difficulty-em"], training[:40], X[:40], n_folds=2))
    assert found.kinds == ("confusion matrices", "own")
    assert {row["method"]: row["likelihood"] for row in found.table()}["difficulty-em"] == "own"
    assert [line.endswith("own likelihood") for line in repr(found).splitlines()[1:]].count(True) == 1
    assert quietly(lambda: compare(["glad", "one-coin"], training, n_folds=2)).kinds == ("own", "confusion matrices")

"""CrowdInG: who learns at which step and from what, its limit cases, and what its generator is good for."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, CrowdInG, CrowdLayer, MaxMIG, load_model
from manyhands.classifiers import crowding
from manyhands.classifiers.adversaries import Game
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.nn.backbones import Mean
from manyhands.nn.losses import entropy
from manyhands.nn.pairs import at
from manyhands.simulate import thin
from manyhands.testing.compare import quietly
from manyhands.testing.crowds import feature_crowd, with_silence
from manyhands.testing.learners import QUICK, blurred

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORK = QUICK | {"random_state": 0}
FEW = {"generator_epochs": 5, "discriminator_epochs": 2, "adversarial_epochs": 2, "members": 1}
FEW |= {"pretraining": "crowd-layer", "start": "identity"}


def quick(**changes):
    return CrowdInG(**(NETWORK | FEW | changes))


def sparse_crowd(n_classes=3, n_items=60, accuracy=0.8, noise=0.0):
    """Two labels on each item, most of them right; the more noise, the less features tell."""
    X, votes, truth = feature_crowd(n_classes, n_items=n_items, accuracy=accuracy)
    return blurred(X, noise), thin(votes, 0.6, random_state=0), truth


def game_of(monkeypatch, **changes):
    """The game as it stands before its first batch, and that batch."""
    kept = []

    def stop(self, game, bench):
        kept.append((game, next(iter(bench.batches(batch_size=self.adversarial_batch_size)))))
        return []

    monkeypatch.setattr(crowding.CrowdInG, "_play", stop)
    X, votes, _ = sparse_crowd(noise=3.0)
    quick(**({"generator_learning_rate": 0.01, "generator_epochs": 20} | changes)).fit(X, votes)
    torch.manual_seed(0)
    return kept[0]


def weights(*modules):
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after))


@pytest.mark.parametrize("pretraining, method", [("crowd-layer", CrowdLayer), ("max-mig", MaxMIG)])
def test_without_a_game_it_is_its_pretraining_to_the_last_bit(pretraining, method):
    X, votes, _ = sparse_crowd()
    ours = quick(pretraining=pretraining, adversarial_epochs=0).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), method(**NETWORK).fit(X, votes).predict_proba(X))


def test_an_instance_as_pretraining_keeps_what_is_its_own():
    X, votes, _ = sparse_crowd()
    ours = quick(pretraining=CrowdLayer(form="vw"), adversarial_epochs=0).fit(X, votes)
    theirs = CrowdLayer(form="vw", **NETWORK).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ParameterError, match="The pretraining of a CrowdInG has hidden="):
        quick(pretraining=CrowdLayer(hidden=(3,))).fit(X, votes)


def test_several_members_answer_with_their_mean():
    X, votes, _ = sparse_crowd()
    model = quick(members=2, adversarial_epochs=0).fit(X, votes)
    assert isinstance(model.module_.network, Mean)
    with torch.no_grad():
        each = [net(torch.from_numpy(X).float()).softmax(1).numpy() for net in model.module_.network.networks]
    assert not np.allclose(*each, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), atol=1e-6)


def test_each_step_moves_one_network_and_no_other(monkeypatch):
    game, batch = game_of(monkeypatch)
    networks = {"network": game.network, "generator": game.generator, "discriminator": game.discriminator}
    draw = game.draw(batch)
    look, inform = game.costs(draw)
    steps = {
        "discriminator": lambda: game.learn_to_tell(draw),
        "generator": lambda: game.learn_to_convince(draw, look + inform),
        "network": lambda: game.learn_to_classify(draw, look),
    }
    for name, step in steps.items():
        before = {n: weights(module) for n, module in networks.items()}
        step()
        moved = {n for n, module in networks.items() if not same(before[n], weights(module))}
        assert moved == {name}
    assert all(p.requires_grad for p in game.generator.parameters())


def test_in_one_step_generator_and_classifier_learn_together(monkeypatch):
    game, batch = game_of(monkeypatch, two_step=False)
    before = weights(game.network), weights(game.generator)
    found = game.play(batch)
    assert not same(before[0], weights(game.network)) and not same(before[1], weights(game.generator))
    assert "classifier" not in found


@pytest.mark.parametrize("kind, threshold", [("quantile", 0.3), ("nats", 0.3)])
def test_the_generator_learns_where_the_classifier_is_sure_and_the_classifier_elsewhere(monkeypatch, kind, threshold):
    game, batch = game_of(monkeypatch, threshold=threshold, threshold_is=kind)
    seen = {}
    monkeypatch.setattr(Game, "learn_to_convince", lambda self, draw, cost: seen.setdefault("sure", draw) and {})
    monkeypatch.setattr(Game, "learn_to_classify", lambda self, draw, cost: seen.setdefault("unsure", draw) and {})
    game.play(batch)
    h = {name: entropy(draw.log_z) for name, draw in seen.items()}
    assert len(h["sure"]) and len(h["unsure"]) and h["sure"].max() <= h["unsure"].min()
    assert len(h["sure"]) + len(h["unsure"]) == len(batch.item)
    if kind == "quantile":
        assert len(h["sure"]) == pytest.approx(threshold * len(batch.item), abs=1)
    else:
        assert h["sure"].max() <= threshold < h["unsure"].min()
    for draw in seen.values():  # pairs still are those of their rows
        again = game.generator(game.generator.context(draw.x), draw.log_z.exp(), draw.pairs, draw.noise)
        torch.testing.assert_close(at(again, draw.label), draw.log_p0)


def test_ratios_begin_at_one_and_stay_finite(monkeypatch):
    """Nothing but learning changes a probability: dropout is at rest, and noise is kept."""
    game, batch = game_of(monkeypatch, dropout=0.5, inner_steps=1)
    draw = game.draw(batch)
    look, inform = game.costs(draw)
    assert game.learn_to_convince(draw, look)["generator_ratio"].item() == pytest.approx(1.0, abs=1e-5)
    draw = game.draw(batch)
    assert game.learn_to_classify(draw, look)["classifier_ratio"].item() == pytest.approx(1.0, abs=1e-5)
    assert torch.isfinite(look).all() and torch.isfinite(inform).all() and (look >= 0).all() and (inform >= 0).all()


def test_generated_examples_are_as_many_as_authentic_ones_of_every_worker_and_never_labelled_pairs(monkeypatch):
    game, batch = game_of(monkeypatch)
    chosen = {}
    see = game.discriminator.logits

    def noted(seen, pairs):
        chosen["pairs"] = pairs
        return see(seen, pairs)

    game.discriminator.logits = noted
    draw = game.draw(batch)
    game.learn_to_tell(draw)
    n = len(draw.authentic_label)
    authentic, fake = chosen["pairs"].at(slice(0, n)), chosen["pairs"].at(slice(n, None))
    labelled = set(zip(authentic.row.tolist(), authentic.worker.tolist()))
    assert not labelled & set(zip(fake.row.tolist(), fake.worker.tolist()))
    counts = torch.bincount(authentic.worker, minlength=game.generator.n_workers)
    missing = len(batch.item) - counts
    assert torch.bincount(fake.worker, minlength=len(counts)).tolist() == torch.minimum(counts, missing).tolist()


def test_sure_labels_are_likelier_examples_unless_chosen_at_random(monkeypatch):
    for selection in ("entropy", "random"):
        game, batch = game_of(monkeypatch, selection=selection)
        draw = game.draw(batch)
        finite = draw.log_weight[torch.isfinite(draw.log_weight)]
        assert (finite.std() > 0.03) == (selection == "entropy")


def test_the_generator_foretells_labels_better_than_how_often_each_worker_gives_them():
    X, votes, _ = sparse_crowd(n_items=200)
    model = quick(generator_epochs=40, generator_learning_rate=0.01, adversarial_epochs=0, validation=0.2)
    model.fit(X, votes)
    found = max(epoch["heldout"] for epoch in model.history_ if "generator_start" in epoch)
    counts = np.zeros((votes.n_workers, votes.n_classes)) + 1
    np.add.at(counts, (votes.worker, votes.label), 1)
    share = counts / counts.sum(axis=1, keepdims=True)
    by_habit = np.mean(np.log(share[votes.worker, votes.label]))  # with these very labels counted in
    assert found > by_habit + 0.1


def test_a_discriminator_tells_labels_that_nobody_would_give(monkeypatch):
    game, batch = game_of(monkeypatch, generator_epochs=0)
    told = [game.learn_to_tell(game.draw(batch)) for _ in range(40)]
    assert told[-1]["discriminator"] < told[0]["discriminator"]
    assert told[-1]["seen_as_authentic"] > 0.6 and told[-1]["seen_as_generated"] > 0.6
    assert told[-1]["information"] > told[0]["information"]


def test_what_looks_authentic_becomes_more_probable(monkeypatch):
    """Labels that cost less than the mean gain in the generator's steps, and in the classifier's."""
    game, batch = game_of(monkeypatch, max_epochs=2)
    for learn in (game.learn_to_convince, game.learn_to_classify):
        draw = game.draw(batch)
        cost = (draw.label == 0).float()
        learn(draw, cost)
        with torch.no_grad():
            log_z = game.log_z(draw.x, None)
            log_p = game.generator(game.generator.context(draw.x), log_z.exp(), draw.pairs, draw.noise)
        gain = at(log_p, draw.label) - draw.log_p0
        assert gain[cost == 0].mean() > 0 > gain[cost == 1].mean()


def test_the_history_tells_of_every_stage():
    X, votes, _ = sparse_crowd()
    history = quick(validation=0.2, information=0.3).fit(X, votes).history_
    stages = [set(epoch) for epoch in history]
    game = {"discriminator", "seen_as_authentic", "seen_as_generated", "information", "generator", "generator_ratio"}
    assert game | {"classifier", "classifier_ratio", "heldout"} == stages[-1]
    assert sum("generator_start" in s for s in stages) == 5 and sum("discriminator_start" in s for s in stages) == 2
    assert all(np.isfinite(figure) for epoch in history for figure in epoch.values())


def test_a_game_that_makes_it_worse_ends_where_it_began():
    """The state before the first epoch is a candidate of the stop rule."""
    X, votes, _ = sparse_crowd(n_items=100, noise=3.0)
    start = quick(validation=0.2, adversarial_epochs=0).fit(X, votes)
    ruined = {"classifier_learning_rate": 0.3, "inner_steps": 10, "threshold": 0.0, "patience": 1}
    model = quick(validation=0.2, adversarial_epochs=3, **ruined).fit(X, votes)
    np.testing.assert_array_equal(model.predict_proba(X), start.predict_proba(X))
    to_the_end = quick(adversarial_epochs=3, **(ruined | {"patience": None})).fit(X, votes)
    assert not np.allclose(to_the_end.predict_proba(X), start.predict_proba(X), atol=0.05)


@pytest.mark.parametrize("part", ["sees_items", "sees_workers"])
def test_what_the_generator_does_not_see_does_not_show(part):
    X, votes, _ = sparse_crowd()
    model = quick(**{part: False}).fit(X, votes)
    first, second = (model.explain_worker(w, X) for w in votes.worker_ids[:2].tolist())
    if part == "sees_items":
        assert np.ptp(first, axis=0).max() < 1e-6 and not np.allclose(first, second, atol=1e-4)
    else:
        np.testing.assert_allclose(first, second, atol=1e-7)
        assert np.ptp(first, axis=0).max() > 1e-4


def test_worker_features_are_read_and_checked():
    X, votes, _ = sparse_crowd()
    known = np.repeat([[0.0], [1.0]], [1, votes.n_workers - 1], axis=0)
    model = quick().fit(X, votes, worker_features=known)
    alike = [model.explain_worker(w, X) for w in votes.worker_ids.tolist()]
    np.testing.assert_allclose(alike[1], alike[2], atol=1e-7)
    assert not np.allclose(alike[0], alike[1], atol=1e-4)
    wider = with_silence(votes)[: votes.n_items]  # of whom nothing is heard, what is known of him still tells
    silent = np.flatnonzero(np.bincount(wider.worker, minlength=wider.n_workers) == 0)[0]
    described = np.zeros((wider.n_workers, 1))
    described[[*wider.worker_ids].index(votes.worker_ids[1]) :] = 1.0
    told = quick().fit(X, wider, worker_features=described)
    like = next(w for w in range(wider.n_workers) if w != silent and described[w] == described[silent])
    answers = [told.explain_worker(wider.worker_ids[w], X) for w in (silent, like)]
    np.testing.assert_allclose(*answers, atol=1e-7)
    with pytest.raises(AlignmentError, match=f"each of the {votes.n_workers} workers"):
        quick().fit(X, votes, worker_features=known[1:])
    with pytest.raises(AlignmentError, match="NaN or infinity in row 1"):
        quick().fit(X, votes, worker_features=np.where(known == 1, np.nan, known))
    with pytest.raises(AlignmentError, match="must be numbers"):
        quick().fit(X, votes, worker_features=[["a"]] * votes.n_workers)


def test_augmenting_keeps_every_label_and_adds_as_many_for_every_worker():
    X, votes, _ = sparse_crowd()
    model = quick().fit(X, votes)
    more = model.augment(X, votes, random_state=0)
    old = set(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    new = set(zip(more.item.tolist(), more.worker.tolist(), more.label.tolist()))
    assert old < new
    added = np.bincount([w for _, w, _ in new - old], minlength=votes.n_workers)
    n_labels = np.bincount(votes.worker, minlength=votes.n_workers)
    assert added.tolist() == np.minimum(n_labels, votes.n_items - n_labels).tolist()
    pairs = [(i, w) for i, w, _ in new]
    assert len(set(pairs)) == len(pairs)
    np.testing.assert_array_equal(more.item_ids, votes.item_ids)
    assert more == model.augment(X, votes, random_state=0) != model.augment(X, votes, random_state=1)


def test_augmenting_without_a_limit_fills_every_pair():
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick().fit(X, votes)
    full = model.augment(X, votes, per_label=None, likeliest=True)
    assert full.n_annotations == 30 * len(np.unique(votes.worker))
    again = CrowdLayer(**NETWORK).fit(X, full)  # any other method can learn from it
    assert np.mean(again.predict(X) == model.predict(X)) > 0.6


def test_likeliest_labels_are_those_that_most_draws_give():
    X, votes, _ = sparse_crowd(n_items=20)
    model = quick(generator_epochs=60, generator_learning_rate=0.01).fit(X, votes)
    sure = model.augment(X, votes, per_label=None, likeliest=True)
    draws = [model.augment(X, votes, per_label=None, random_state=s).label for s in range(40)]
    share = np.mean([draw == sure.label for draw in draws], axis=0)
    assert share.mean() > 0.6


def test_explaining_a_worker_gives_confusions_by_item():
    X, votes, _ = sparse_crowd(accuracy=0.9)
    model = quick(generator_epochs=60, generator_learning_rate=0.01).fit(X, votes)
    told = model.explain_worker(votes.worker_ids[0], X[:7])
    assert told.shape == (7, 3, 3)
    np.testing.assert_allclose(told.sum(axis=2), 1.0, atol=1e-9)
    believed = model.predict_proba(X[:7]).argmax(axis=1)
    assert told[np.arange(7), believed, believed].mean() > 0.5
    assert np.ptp(told, axis=0).max() > 1e-3
    with pytest.raises(AnnotationError, match="There is no worker 'nobody'"):
        model.explain_worker("nobody", X)


def test_least_sure_are_unanswered_pairs_with_the_highest_entropy():
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick().fit(X, votes)
    every = model.least_sure(X, votes, n=10_000)
    n_heard = len(np.unique(votes.worker))
    assert len(every) == 30 * n_heard - votes.n_annotations
    labelled = {(votes.item_ids[i], votes.worker_ids[w]) for i, w in zip(votes.item, votes.worker)}
    assert not labelled & {(found.item, found.worker) for found in every}
    entropies = [found.entropy for found in every]
    assert entropies == sorted(entropies, reverse=True) and entropies[-1] >= 0 and entropies[0] <= np.log(3) + 1e-6
    assert model.least_sure(X, votes, n=3) == every[:3]
    with pytest.raises(ParameterError, match="'n' of least_sure"):
        model.least_sure(X, votes, n=0)


def test_labels_of_strangers_are_refused():
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick().fit(X, votes)
    stranger = Annotations.from_triples(range(30), ["new"] * 30, votes.classes[np.zeros(30, int)].tolist())
    with pytest.raises(AnnotationError, match="workers whom this CrowdInG has not seen"):
        model.augment(X, stranger)
    with pytest.raises(AlignmentError, match="X has 29 rows"):
        model.augment(X[:29], votes)


def test_a_saved_model_still_generates(tmp_path):
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick(members=2).fit(X, votes, worker_features=np.eye(votes.n_workers))
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    worker = votes.worker_ids[0]
    np.testing.assert_allclose(again.explain_worker(worker, X), model.explain_worker(worker, X), atol=1e-12)
    assert again.augment(X, votes, random_state=0) == model.augment(X, votes, random_state=0)


@pytest.mark.parametrize("pairs_per_label", [1, None])
def test_thin_and_full_crowds_are_played_through(pairs_per_label):
    """Everybody answered everything, one worker, one label each, gold: nothing to generate is no failure."""
    X, votes, truth = feature_crowd(3, n_items=20, accuracy=0.8)
    crowds = [votes, thin(votes, 0.2, random_state=0), with_silence(votes)[:20], votes.keep(votes.worker == 0)]
    for crowd in crowds:
        gold = {votes.item_ids[0]: votes.classes[truth[0]]}
        model = quietly(lambda crowd=crowd, gold=gold: quick(pairs_per_label=pairs_per_label).fit(X, crowd, gold))
        assert np.isfinite(model.predict_proba(X)).all()
        quietly(lambda crowd=crowd, model=model: model.augment(X, crowd, per_label=2))

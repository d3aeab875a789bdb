"""The game of CrowdInG: who learns at which step, from what, and what each of them descends."""

import numpy as np
import pytest
import torch

from manyhands.classifiers.crowding import crowding
from manyhands.classifiers.crowding import game as adversaries
from manyhands.classifiers.crowding.game import Game
from manyhands.nn.item_worker_pairs import select
from manyhands.nn.losses import entropy
from small_crowding import game_of, quick, sparse_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def weights(*modules):
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after))


def test_each_step_moves_one_network_and_no_other(monkeypatch):
    game, batch = game_of(monkeypatch)
    networks = {"network": game.network, "generator": game.generator, "discriminator": game.discriminator}
    draw = game.draw(batch)
    look, inform = game.costs(draw)
    steps = {
        "discriminator": lambda: game.train_discriminator(draw),
        "generator": lambda: game.train_generator(draw, look + inform),
        "network": lambda: game.train_classifier(draw, look),
    }
    for name, step in steps.items():
        before = {n: weights(module) for n, module in networks.items()}
        step()
        moved = {n for n, module in networks.items() if not same(before[n], weights(module))}
        assert moved == {name}
    assert all(p.requires_grad for p in game.generator.parameters())


def test_gold_is_learnt_in_the_game_and_believed(monkeypatch):
    """Items of known class are sure ones: the classifier learns them beside those of which it is not."""
    for two_step in (True, False):
        kept = []
        monkeypatch.setattr(crowding.CrowdInG, "_play", lambda self, game, context, kept=kept: kept.append(game) or [])
        X, votes, truth = sparse_crowd(noise=3.0)
        gold = {votes.item_ids[i]: votes.classes[(truth[i] + 1) % 3] for i in range(20)}  # the features say otherwise
        quick(two_step=two_step, classifier_learning_rate=0.01, inner_steps=20).fit(X, votes, gold)
        (game,) = kept
        batch = next(iter(game.crowd.context.batches(batch_size=1000)))
        draw = game.draw(batch)
        known = draw.gold >= 0
        assert known.sum() == 20 and game.is_confident(draw)[known].all()
        told = draw.log_z[known].gather(1, draw.gold[known].unsqueeze(1))
        torch.testing.assert_close(told, torch.zeros(20, 1))
        before = game.network.eval()(draw.x[known]).log_softmax(1).gather(1, draw.gold[known].unsqueeze(1)).mean()
        game.step(batch)
        after = game.network.eval()(draw.x[known]).log_softmax(1).gather(1, draw.gold[known].unsqueeze(1)).mean()
        assert after > before + 0.2


def test_the_discriminator_descends_what_is_written(monkeypatch):
    """Authentic against generated at nine tenths, squared answers at a hundredth, and the informer by its weight."""
    game, batch = game_of(monkeypatch, information=0.3, inner_steps=1, discriminator_decay=0.2)
    game.discriminator.dropout.p = 0.0
    draw, seen = game.draw(batch), {}
    monkeypatch.setattr(adversaries, "descend", lambda adam, loss: seen.update(adam=adam, loss=loss.detach()))
    choose = adversaries.choose_pairs

    def chosen(*arguments):
        seen["chosen"] = choose(*arguments)
        return seen["chosen"]

    monkeypatch.setattr(adversaries, "choose_pairs", chosen)
    game.train_discriminator(draw)
    assert seen["adam"] is game.discriminator_adam and seen["adam"].param_groups[0]["weight_decay"] == 0.2
    look = game.discriminator.inputs(draw.x)
    fake, fake_label = draw.pairs.select(seen["chosen"]), draw.label[seen["chosen"]]
    answers = game.discriminator.logits(look, draw.authentic).sigmoid()
    real = answers.gather(1, draw.authentic_label.unsqueeze(1))
    drawn = game.discriminator.logit(look, fake, fake_label).sigmoid()
    both = [(draw.authentic, draw.authentic_label), (fake, fake_label)]
    told = [draw.log_z.exp()[p.row] * game.discriminator.log_truth(look, p, y) for p, y in both]
    inform = -torch.cat(told).sum(1).mean()
    expected = (-real.log().mean() - 0.9 * (1 - drawn).log().mean()) / 2 + 0.01 * (answers**2).mean() + 0.3 * inform
    torch.testing.assert_close(seen["loss"], expected.detach())


def test_the_discriminator_is_given_what_the_settings_say(monkeypatch):
    """How labels meet, of those alone that are learnt from; and what is known of the workers with a label."""
    made = {}
    real = crowding.Discriminator

    def noted(*sizes, spread):
        made["known"], made["spread"] = sizes[3], spread
        return real(*sizes, spread=spread)

    monkeypatch.setattr(crowding, "Discriminator", noted)
    learnt = {}
    monkeypatch.setattr(crowding, "label_adjacency", lambda votes: learnt.setdefault("votes", votes) and np.eye(3))
    X, votes, _ = sparse_crowd()
    quick(validation=0.2).fit(X, votes, worker_features=np.arange(votes.n_workers)[:, None] * 1e5)
    torch.testing.assert_close(made["spread"], torch.eye(3))
    assert learnt["votes"].n_annotations == round(0.8 * votes.n_annotations)
    assert made["known"].mean().abs() < 1e-6 and made["known"].std() == pytest.approx(1, abs=0.2)
    quick(label_correlation=False).fit(X, votes)
    assert made["spread"] is None and made["known"] is None


def test_multiplier_and_clip_are_those_given(monkeypatch):
    seen = []
    monkeypatch.setattr(
        adversaries, "bandit_loss", lambda cost, ratio, mu, most: seen.append((mu, most)) or ratio.sum()
    )
    for given in ({"multiplier": 0.7, "clip": 3.0}, {"multiplier": None, "clip": 5.0}):
        game, batch = game_of(monkeypatch, inner_steps=1, **given)
        draw = game.draw(batch)
        look, _ = game.costs(draw)
        torch.testing.assert_close(look, game.costs(draw)[0])  # nothing is dropped out where costs are found
        game.train_generator(draw, look)
        assert seen[-1][1] == given["clip"]
        assert float(seen[-1][0]) == pytest.approx(0.7 if given["multiplier"] else look.mean().item())


def test_in_one_step_generator_and_classifier_learn_together(monkeypatch):
    game, batch = game_of(monkeypatch, two_step=False)
    before = weights(game.network), weights(game.generator)
    found = game.step(batch)
    assert not same(before[0], weights(game.network)) and not same(before[1], weights(game.generator))
    assert "classifier" not in found


@pytest.mark.parametrize("kind, threshold", [("quantile", 0.3), ("nats", 0.3)])
def test_the_generator_learns_where_the_classifier_is_sure_and_the_classifier_elsewhere(monkeypatch, kind, threshold):
    game, batch = game_of(monkeypatch, threshold=threshold, threshold_is=kind)
    seen = {}
    monkeypatch.setattr(Game, "train_generator", lambda self, draw, cost: seen.setdefault("sure", draw) and {})
    monkeypatch.setattr(
        Game, "train_classifier", lambda self, draw, cost, known: seen.setdefault("unsure", draw) and {}
    )
    game.step(batch)
    h = {name: entropy(draw.log_z) for name, draw in seen.items()}
    assert len(h["sure"]) and len(h["unsure"]) and h["sure"].max() <= h["unsure"].min()
    assert len(h["sure"]) + len(h["unsure"]) == len(batch.item)
    if kind == "quantile":
        assert len(h["sure"]) == pytest.approx(threshold * len(batch.item), abs=1)
    else:
        assert h["sure"].max() <= threshold < h["unsure"].min()
    for draw in seen.values():  # pairs still are those of their rows
        again = game.generator(game.generator.inputs(draw.x), draw.log_z.exp(), draw.pairs, draw.noise)
        torch.testing.assert_close(select(again, draw.label), draw.log_p0)


def test_ratios_begin_at_one_and_stay_finite(monkeypatch):
    """Nothing but learning changes a probability: dropout is at rest, and noise is kept."""
    game, batch = game_of(monkeypatch, dropout=0.5, inner_steps=1)
    draw = game.draw(batch)
    look, inform = game.costs(draw)
    assert game.train_generator(draw, look)["generator_ratio"].item() == pytest.approx(1.0, abs=1e-5)
    draw = game.draw(batch)
    assert game.train_classifier(draw, look)["classifier_ratio"].item() == pytest.approx(1.0, abs=1e-5)
    assert torch.isfinite(look).all() and torch.isfinite(inform).all() and (look >= 0).all() and (inform >= 0).all()


def test_generated_examples_are_as_many_as_authentic_ones_of_every_worker_and_never_labelled_pairs(monkeypatch):
    game, batch = game_of(monkeypatch)
    chosen = {}
    inputs = game.discriminator.logits

    def noted(seen, pairs):
        chosen["pairs"] = pairs
        return inputs(seen, pairs)

    game.discriminator.logits = noted
    draw = game.draw(batch)
    game.train_discriminator(draw)
    n = len(draw.authentic_label)
    authentic, fake = chosen["pairs"].select(slice(0, n)), chosen["pairs"].select(slice(n, None))
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


def test_a_discriminator_tells_labels_that_nobody_would_give(monkeypatch):
    game, batch = game_of(monkeypatch, generator_epochs=0)
    told = [game.train_discriminator(game.draw(batch)) for _ in range(40)]
    assert told[-1]["discriminator"] < told[0]["discriminator"]
    assert told[-1]["seen_as_authentic"] > 0.6 and told[-1]["seen_as_generated"] > 0.6
    assert told[-1]["information"] > told[0]["information"]


def test_what_looks_authentic_becomes_more_probable(monkeypatch):
    """Labels that cost less than the mean gain in the generator's steps, and in the classifier's."""
    game, batch = game_of(monkeypatch, max_epochs=2)
    for learn in (game.train_generator, game.train_classifier):
        draw = game.draw(batch)
        cost = (draw.label == 0).float()
        learn(draw, cost)
        with torch.no_grad():
            log_z = game.log_z(draw.x, None)
            log_p = game.generator(game.generator.inputs(draw.x), log_z.exp(), draw.pairs, draw.noise)
        gain = select(log_p, draw.label) - draw.log_p0
        assert gain[cost == 0].mean() > 0 > gain[cost == 1].mean()

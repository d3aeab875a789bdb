"""The adversarial training of CrowdInG: which network each step trains, on what, and its loss."""

import math

import numpy as np
import pytest
import torch

from manyhands.classifiers import crowding_game as game_module
from manyhands.classifiers.crowding_game import Game, select
from manyhands.exceptions import LimitError
from manyhands.nn.losses import entropy
from small_crowding import game_of, games_of, published, quick, sparse_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


def weights(*modules):
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after))


def test_each_step_trains_one_network_only(monkeypatch):
    game, batch = game_of(monkeypatch)
    networks = {"network": game.network, "generator": game.generator, "discriminator": game.discriminator}
    draw = game.draw(batch)
    authenticity, inform = game.costs(draw)
    steps = {
        "discriminator": lambda: game.train_discriminator(draw),
        "generator": lambda: game.train_generator(draw, authenticity + inform),
        "network": lambda: game.train_classifier(draw, authenticity),
    }
    for name, step in steps.items():
        before = {n: weights(module) for n, module in networks.items()}
        step()
        moved = {n for n, module in networks.items() if not same(before[n], weights(module))}
        assert moved == {name}
    assert all(p.requires_grad for p in game.generator.parameters())


def test_gold_is_used_in_adversarial_training(monkeypatch):
    """Gold items count as confident; the classifier is trained on them together with the uncertain items."""
    for two_step in (True, False):
        games = games_of(monkeypatch)
        X, votes, truth = sparse_crowd(noise=3.0)
        gold = {votes.item_ids[i]: votes.classes[(truth[i] + 1) % 3] for i in range(20)}  # against the features
        quick(adversarial__two_step=two_step, adversarial__learning_rate=0.01, adversarial__inner_steps=20).fit(
            X, votes, gold
        )
        (game,) = games
        batch = next(iter(game.crowd.context.batches(batch_size=1000)))
        draw = game.draw(batch)
        known = draw.gold >= 0
        assert known.sum() == 20 and game.is_confident(draw)[known].all()
        log_known = draw.log_z[known].gather(1, draw.gold[known].unsqueeze(1))
        torch.testing.assert_close(log_known, torch.zeros(20, 1))
        before = game.network.eval()(draw.x[known]).log_softmax(1).gather(1, draw.gold[known].unsqueeze(1)).mean()
        game.step(batch)
        after = game.network.eval()(draw.x[known]).log_softmax(1).gather(1, draw.gold[known].unsqueeze(1)).mean()
        assert after > before + 0.2


PLUS = {"generated_weight": 0.9, "sparsity_on": "authentic"}  # of `plus`: the authors' weight, and our sparsity


@pytest.mark.parametrize("how", [{}, {"sparsity": 0.5}, {"generated_weight": 0.3}, PLUS])
def test_the_loss_of_the_discriminator(monkeypatch, how):
    """By loops over labels: authentic against generated ones, squared outputs, and the information term."""
    options = {f"discriminator__{name}": value for name, value in how.items()}
    game, batch = game_of(
        monkeypatch,
        published,
        adversarial__information=0.3,
        adversarial__inner_steps=1,
        discriminator__weight_decay=0.2,
        **options,
    )
    game.discriminator.dropout.p = 0.0
    draw, seen = game.draw(batch), {}
    monkeypatch.setattr(game_module, "descend", lambda adam, loss: seen.update(adam=adam, loss=loss.item()))
    choose = game_module.choose_pairs

    def chosen(*arguments):
        seen["chosen"] = choose(*arguments)
        return seen["chosen"]

    monkeypatch.setattr(game_module, "choose_pairs", chosen)
    game.train_discriminator(draw)
    assert seen["adam"] is game.discriminator_adam and seen["adam"].param_groups[0]["weight_decay"] == 0.2
    with torch.no_grad():
        inputs = game.discriminator.inputs(draw.x)
    real, information, squares = [], [], []
    fake, fake_label = draw.pairs.select(seen["chosen"]), draw.label[seen["chosen"]]
    losses = {"real": real, "fake": []}
    for name, pairs, labels in (("real", draw.authentic, draw.authentic_label), ("fake", fake, fake_label)):
        outputs = game.discriminator.logits(inputs, pairs).sigmoid().tolist()
        log_truth = game.discriminator.log_truth(inputs, pairs, labels).tolist()
        for n, label in enumerate(labels.tolist()):
            d = outputs[n][label]
            losses[name].append(-math.log(d if name == "real" else 1 - d))
            z = draw.log_z[pairs.row[n]].exp().tolist()
            information.append(-sum(p * log_q for p, log_q in zip(z, log_truth[n])))
            if name == "real" or how.get("sparsity_on") != "authentic":
                squares += [output**2 for output in outputs[n]]
    adversarial = (np.mean(real) + how.get("generated_weight", 1.0) * np.mean(losses["fake"])) / 2
    expected = adversarial + how.get("sparsity", 0.01) * np.mean(squares) + 0.3 * np.mean(information)
    assert seen["loss"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("loss", ["saturating", "non-saturating"])
def test_the_cost_of_a_generated_label(monkeypatch, loss):
    """log(1 - D) as printed, or the form of the authors' code, and -sum_k z_k log q(k | x, w, y); label by label."""
    game, batch = game_of(monkeypatch, published, adversarial__generator_loss=loss)
    draw = game.draw(batch)
    authenticity, inform = game.costs(draw)
    inputs = game.discriminator.inputs(draw.x)
    outputs = game.discriminator.logits(inputs, draw.pairs).sigmoid().tolist()
    log_truth = game.discriminator.log_truth(inputs, draw.pairs, draw.label).tolist()
    for n in range(0, len(draw.label), 7):
        d = outputs[n][draw.label[n]]
        expected = math.log(1 - d) if loss == "saturating" else -math.log((d + 0.001) / 1.001)
        assert authenticity[n].item() == pytest.approx(expected, abs=1e-4)
        z = draw.log_z[draw.pairs.row[n]].exp().tolist()
        assert inform[n].item() == pytest.approx(-sum(p * q for p, q in zip(z, log_truth[n])), abs=1e-4)
    assert (authenticity.max() <= 0) == (loss == "saturating")


def test_all_pairs_of_items_and_workers_are_drawn_by_default(monkeypatch):
    game, batch = game_of(monkeypatch, published)
    pairs = game.draw(batch).pairs
    assert len(pairs.row) == len(batch.item) * game.generator.n_workers
    assert len(set(zip(pairs.row.tolist(), pairs.worker.tolist()))) == len(pairs.row)


def test_all_pairs_are_refused_where_they_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(game_module, "_BYTES", 1e15)
    X, votes, _ = sparse_crowd()
    with pytest.raises(LimitError, match=r"All pairs of the items .* Give a number for adversarial__pairs_per_label"):
        published().fit(X, votes)
    for few in ({"adversarial__pairs_per_label": 2}, {"adversarial__epochs": 0}):
        published(**few).fit(X, votes)


def test_weight_decay_reaches_every_optimizer(monkeypatch):
    game, _ = game_of(monkeypatch, published, weight_decay=0.03, discriminator__weight_decay=0.2)
    optimizers = game.network_adam, game.generator_adam, game.discriminator_adam
    assert [adam.param_groups[0]["weight_decay"] for adam in optimizers] == [0.03, 0.03, 0.2]


def test_with_the_mean_cost_as_baseline_a_common_factor_of_the_ratios_has_no_gradient(monkeypatch):
    """The self-normaliser, the mean ratio, therefore stays at 1 to first order, though all printed costs are <= 0."""
    game, batch = game_of(monkeypatch, published)
    cost = game.costs(game.draw(batch))[0]
    factor = torch.zeros((), requires_grad=True)
    game._bandit(cost, factor.expand(len(cost))).backward()
    assert factor.grad.item() == pytest.approx(0, abs=1e-6) and cost.mean() < -0.1


def test_the_discriminator_has_label_adjacency_and_worker_features(monkeypatch):
    """The co-occurrence of training labels, and standardised features of the active workers."""
    made = {}
    real = game_module.Discriminator

    def recorded(*sizes, **how):
        made.update(how, known=sizes[3])
        return real(*sizes, **how)

    monkeypatch.setattr(game_module, "Discriminator", recorded)
    learnt = {}

    def adjacency(votes, symmetric):
        learnt.update(votes=votes, symmetric=symmetric)
        return np.eye(3)

    monkeypatch.setattr(game_module, "label_adjacency", adjacency)
    X, votes, _ = sparse_crowd()
    published(validation=0.2).fit(X, votes, worker_features=np.arange(votes.n_workers)[:, None] * 1e5)
    torch.testing.assert_close(made["spread"], torch.eye(3))
    assert learnt["votes"].n_annotations == round(0.8 * votes.n_annotations)
    assert made["known"].mean().abs() < 1e-6 and made["known"].std() == pytest.approx(1, abs=0.2)
    assert learnt["symmetric"] and not made["residual"] and not made["perceptron"]
    published(discriminator__correlation="residual", discriminator__item_embedding="perceptron").fit(X, votes)
    assert not learnt["symmetric"] and made["residual"] and made["perceptron"]
    published(discriminator__label_correlation=False).fit(X, votes)
    assert made["spread"] is None and made["known"] is None


def test_multiplier_and_clip_are_passed_on(monkeypatch):
    seen = []
    monkeypatch.setattr(
        game_module, "bandit_loss", lambda cost, ratio, mu, clip: seen.append((mu, clip)) or ratio.sum()
    )
    for given in ({"multiplier": 0.7, "clip": 3.0}, {"multiplier": None, "clip": 5.0}):
        options = {f"adversarial__{name}": value for name, value in given.items()}
        game, batch = game_of(monkeypatch, adversarial__inner_steps=1, **options)
        draw = game.draw(batch)
        authenticity, _ = game.costs(draw)
        torch.testing.assert_close(authenticity, game.costs(draw)[0])  # dropout is off where costs are computed
        game.train_generator(draw, authenticity)
        assert seen[-1][1] == given["clip"]
        assert float(seen[-1][0]) == pytest.approx(0.7 if given["multiplier"] else authenticity.mean().item())


def test_in_one_step_generator_and_classifier_are_trained_jointly(monkeypatch):
    game, batch = game_of(monkeypatch, adversarial__two_step=False)
    before = weights(game.network), weights(game.generator)
    found = game.step(batch)
    assert not same(before[0], weights(game.network)) and not same(before[1], weights(game.generator))
    assert "classifier" not in found


@pytest.mark.parametrize("kind, threshold", [("quantile", 0.3), ("nats", 0.3)])
def test_the_generator_is_trained_on_confident_items_and_the_classifier_on_the_others(monkeypatch, kind, threshold):
    game, batch = game_of(monkeypatch, adversarial__threshold=threshold, adversarial__threshold_is=kind)
    seen = {}
    monkeypatch.setattr(Game, "train_generator", lambda self, draw, cost: seen.setdefault("confident", draw) and {})
    monkeypatch.setattr(
        Game, "train_classifier", lambda self, draw, cost, known: seen.setdefault("uncertain", draw) and {}
    )
    game.step(batch)
    h = {name: entropy(draw.log_z) for name, draw in seen.items()}
    assert len(h["confident"]) and len(h["uncertain"]) and h["confident"].max() <= h["uncertain"].min()
    assert len(h["confident"]) + len(h["uncertain"]) == len(batch.item)
    if kind == "quantile":
        assert len(h["confident"]) == pytest.approx(threshold * len(batch.item), abs=1)
    else:
        assert h["confident"].max() <= threshold < h["uncertain"].min()
    for draw in seen.values():  # pairs refer to the rows of each part
        again = game.generator(game.generator.inputs(draw.x), draw.log_z.exp(), draw.pairs, draw.noise)
        torch.testing.assert_close(select(again, draw.label), draw.log_p0)


def test_importance_ratios_are_one_before_the_first_step(monkeypatch):
    """Only training changes a probability: dropout is off, and the noise is that of the draw."""
    game, batch = game_of(monkeypatch, dropout=0.5, adversarial__inner_steps=1)
    draw = game.draw(batch)
    authenticity, inform = game.costs(draw)
    assert game.train_generator(draw, authenticity)["generator_ratio"].item() == pytest.approx(1.0, abs=1e-5)
    draw = game.draw(batch)
    assert game.train_classifier(draw, authenticity)["classifier_ratio"].item() == pytest.approx(1.0, abs=1e-5)
    assert (
        torch.isfinite(authenticity).all()
        and torch.isfinite(inform).all()
        and (authenticity >= 0).all()
        and (inform >= 0).all()
    )


def test_generated_examples_are_as_many_as_authentic_ones_of_every_worker_and_on_pairs_without_a_label(monkeypatch):
    game, batch = game_of(monkeypatch)
    chosen = {}
    logits = game.discriminator.logits

    def recorded(inputs, pairs):
        chosen["pairs"] = pairs
        return logits(inputs, pairs)

    game.discriminator.logits = recorded
    draw = game.draw(batch)
    game.train_discriminator(draw)
    n = len(draw.authentic_label)
    authentic, fake = chosen["pairs"].select(slice(0, n)), chosen["pairs"].select(slice(n, None))
    labelled = set(zip(authentic.row.tolist(), authentic.worker.tolist()))
    assert not labelled & set(zip(fake.row.tolist(), fake.worker.tolist()))
    counts = torch.bincount(authentic.worker, minlength=game.generator.n_workers)
    missing = len(batch.item) - counts
    assert torch.bincount(fake.worker, minlength=len(counts)).tolist() == torch.minimum(counts, missing).tolist()


def test_confident_labels_are_more_probable_examples_unless_chosen_at_random(monkeypatch):
    for selection in ("entropy", "random"):
        game, batch = game_of(monkeypatch, discriminator__selection=selection)
        draw = game.draw(batch)
        finite = draw.log_weight[torch.isfinite(draw.log_weight)]
        assert (finite.std() > 0.03) == (selection == "entropy")


def test_the_discriminator_recognises_labels_of_an_untrained_generator(monkeypatch):
    game, batch = game_of(monkeypatch, generator__epochs=0)
    history = [game.train_discriminator(game.draw(batch)) for _ in range(40)]
    assert history[-1]["discriminator"] < history[0]["discriminator"]
    assert history[-1]["seen_as_authentic"] > 0.6 and history[-1]["seen_as_generated"] > 0.6
    assert history[-1]["information"] > history[0]["information"]


def test_labels_of_low_cost_become_more_probable(monkeypatch):
    """Labels of a cost below the mean gain probability in the steps of the generator and of the classifier."""
    game, batch = game_of(monkeypatch, max_epochs=2)
    for train in (game.train_generator, game.train_classifier):
        draw = game.draw(batch)
        cost = (draw.label == 0).float()
        train(draw, cost)
        with torch.no_grad():
            log_z = game.log_z(draw.x, None)
            log_p = game.generator(game.generator.inputs(draw.x), log_z.exp(), draw.pairs, draw.noise)
        gain = select(log_p, draw.label) - draw.log_p0
        assert gain[cost == 0].mean() > 0 > gain[cost == 1].mean()

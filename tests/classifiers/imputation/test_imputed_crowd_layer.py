"""A crowd layer on completed labels: what is filled in and what is not, who learns at which step, limit cases."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from manyhands import CrowdInG, ImputedCrowdLayer, SelfCrowd, load_model, registry
from manyhands.classifiers.crowd_layer import CrowdLayer
from manyhands.classifiers.imputation import imputed_crowd_layer as filled_in
from manyhands.classifiers.imputation import imputers as fillers
from manyhands.classifiers.imputation.imputers import (
    ActiveWorkers,
    AdversarialImputer,
    GraphImputer,
    LayerImputer,
    log_truth,
)
from manyhands.exceptions import LimitError, ParameterError
from manyhands.nn.item_worker_pairs import Pairs
from manyhands.nn.label_graph import LabelGraph
from manyhands.simulate import thin
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORK = QUICK | {"random_state": 0, "max_epochs": 6}
FEW = {"generator_epochs": 2, "discriminator_epochs": 1, "adversarial_epochs": 1}
FILLERS = ("self", "graph", "gan", "generator")


def quick(imputer="self", **changes):
    return ImputedCrowdLayer(**(NETWORK | FEW | {"imputer": imputer, "per_label": None} | changes))


def sparse_crowd():
    """Two labels on each item, most of them right; worker 3 is silent."""
    X, votes, _ = feature_crowd(3, n_items=60, accuracy=0.8)
    votes = thin(votes, 0.6, random_state=0)
    return X, votes.keep(votes.worker != 3)


def pairs_of(votes):
    return set(zip(votes.item.tolist(), votes.worker.tolist()))


def triples_of(votes):
    return set(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))


@pytest.fixture
def benches(monkeypatch):
    """Every bench on which a crowd layer trains."""
    seen, learn = [], CrowdLayer._learn_layers

    def noted(self, context, *others, **more):
        seen.append(context)
        return learn(self, context, *others, **more)

    monkeypatch.setattr(CrowdLayer, "_learn_layers", noted)
    return seen


def kept_from(monkeypatch, owner, name, result):
    """What this method of a filler was called on and with, instead of what it does."""
    calls = []
    monkeypatch.setattr(owner, name, lambda self, batch: calls.append((self, batch)) or result)
    return calls


@pytest.mark.parametrize("imputer", FILLERS)
def test_all_missing_pairs_are_filled_in_and_nothing_else(imputer, benches):
    """Labels stay as they are; held-out pairs and those of a silent worker are not missing."""
    X, votes = sparse_crowd()
    model = quick(imputer, validation=0.2).fit(X, votes)
    last = benches[-1]
    assert triples_of(last.annotations) | triples_of(last.heldout) >= triples_of(votes)
    assert pairs_of(last.heldout) and not pairs_of(last.annotations) & pairs_of(last.heldout)
    filled, every = model.imputed_annotations_, {(i, w) for i in range(60) for w in range(10) if w != 3}
    assert pairs_of(filled) == every - pairs_of(votes)
    assert filled.n_annotations == len(pairs_of(filled))
    assert triples_of(last.annotations) == triples_of(filled) | (triples_of(votes) - triples_of(last.heldout))
    assert last.weight is None and last.stage == "filled-"


@pytest.mark.parametrize("imputer", FILLERS)
@pytest.mark.parametrize("per_label", [1, 3])
def test_so_many_for_every_label_of_a_worker(imputer, per_label):
    X, votes = sparse_crowd()
    filled = quick(imputer, per_label=per_label, validation=0).fit(X, votes).imputed_annotations_
    given = np.bincount(votes.worker, minlength=10)
    np.testing.assert_array_equal(
        np.bincount(filled.worker, minlength=10), np.minimum(per_label * given, (60 - given) * (given > 0))
    )
    assert len(pairs_of(filled)) == filled.n_annotations and not pairs_of(filled) & pairs_of(votes)


def test_held_out_labels_do_not_count_for_per_label(benches):
    X, votes = sparse_crowd()
    filled = quick(per_label=2, validation=0.3).fit(X, votes).imputed_annotations_
    seen = triples_of(votes) - triples_of(benches[-1].heldout)
    given = np.bincount([w for _, w, _ in seen], minlength=10)
    np.testing.assert_array_equal(np.bincount(filled.worker, minlength=10), 2 * given)


def test_by_itself_it_is_self_crowd_with_one_round_over_all_pairs():
    X, votes = sparse_crowd()
    ours = quick().fit(X, votes)
    once = {"rounds": 1, "per_round": 10**6, "round_patience": None, "pseudo_weight": 1, "start": "identity"}
    theirs = SelfCrowd(evidence="features", selection="confidence", **once, **NETWORK).fit(X, votes)
    assert ours.imputed_annotations_ == theirs.pseudo_annotations_
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_labels_are_the_likeliest_or_drawn_and_stretches_do_not_show(monkeypatch):
    X, votes = sparse_crowd()
    most_likely = quick().fit(X, votes).imputed_annotations_
    drawn = quick(most_likely=False).fit(X, votes).imputed_annotations_
    assert pairs_of(drawn) == pairs_of(most_likely) and 0.05 < np.mean(drawn.label != most_likely.label) < 0.6
    monkeypatch.setattr(filled_in, "_NUMBERS", 200)
    assert quick().fit(X, votes).imputed_annotations_ == most_likely


def test_gold_is_known_where_answers_are_foretold():
    network, x = torch.nn.Linear(2, 3), torch.tensor([[1.0, 2.0], [0.5, 0.0]])
    found = log_truth(network, x, torch.tensor([-1, 2])).exp()
    torch.testing.assert_close(found[0], network(x).softmax(1)[0])
    assert found[1].argmax() == 2 and found[1, 2] > 0.999


@pytest.fixture
def rivals(monkeypatch):
    """Layer and discriminator before their game, a batch, and the real game."""
    step = AdversarialImputer.step
    calls = kept_from(monkeypatch, AdversarialImputer, "play", {"reward": 0.0})
    quick("gan").fit(*sparse_crowd())
    monkeypatch.setattr(AdversarialImputer, "play", step)
    torch.manual_seed(0)
    return calls[0]


def weights(*modules):
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after))


def test_each_rival_leaves_the_other_alone(rivals):
    game, batch = rivals
    layer, judge = (game.layer.network, game.layer.noise), game.discriminator
    draw = game.draw(batch)
    before = weights(*layer), weights(judge)
    game.train_discriminator(draw)
    assert same(before[0], weights(*layer)) and not same(before[1], weights(judge))
    before = weights(layer[0]), weights(layer[1]), weights(judge)
    game.train_layer(draw)
    assert not same(before[0], weights(layer[0])) and not same(before[1], weights(layer[1]))
    assert same(before[2], weights(judge))


def test_drawn_labels_stand_against_as_many_authentic_ones(rivals):
    """Of every worker, on pairs without a label."""
    game, batch = rivals
    draw = game.draw(batch)
    asked = game.crowd.numbered(batch)
    assert draw.authentic.worker.tolist() == asked.worker.tolist() and draw.authentic_label is batch.label
    chosen = draw.pairs.select(draw.chosen)
    np.testing.assert_array_equal(torch.bincount(chosen.worker), torch.bincount(asked.worker))
    given = set(zip(asked.row.tolist(), asked.worker.tolist()))
    assert not given & set(zip(chosen.row.tolist(), chosen.worker.tolist()))


def test_the_discriminator_learns_to_tell(rivals):
    """Authentic labels look authentic, and drawn ones do not."""
    game, batch = rivals
    draw, judge = game.draw(batch), game.discriminator
    losses = [float(game.train_discriminator(draw)) for _ in range(30)]
    assert losses[-1] < 0.9 * losses[0] and abs(losses[0] - np.log(2)) < 0.1
    seen = judge.eval().inputs(draw.x)
    real = judge.logit(seen, draw.authentic, draw.authentic_label)
    drawn = judge.logit(seen, draw.pairs.select(draw.chosen), draw.label[draw.chosen])
    assert real.mean() > 0 > drawn.mean()


def test_what_looks_authentic_becomes_more_probable(rivals, monkeypatch):
    """A judge who finds label 1 authentic teaches the layer to give it; the slope is that of the plain loop."""
    game, batch = rivals
    monkeypatch.setattr(game.discriminator, "logit", lambda seen, pairs, label: 4.0 * (label == 1) - 2)
    draw = game.draw(batch)
    weight = game.layer.noise.weight
    log_p = game.layer.log_label(draw.x, None, draw.pairs)
    reward = np.log1p(np.exp(np.where(draw.label.numpy() == 1, 2.0, -2.0)))
    parts = [(float(r) - reward.mean()) * row[k] for r, row, k in zip(reward, log_p, draw.label)]
    (expected,) = torch.autograd.grad(-sum(parts) / len(parts), weight)
    before = log_p[:, 1].exp().mean().item()
    game.train_layer(draw)
    torch.testing.assert_close(weight.grad, expected, rtol=1e-3, atol=1e-6)
    for _ in range(100):
        game.train_layer(game.draw(batch))
    assert game.layer.log_label(draw.x, None, draw.pairs)[:, 1].exp().mean().item() > before


@pytest.fixture
def graph(monkeypatch):
    """The graph before it learns, and its only batch."""
    learn = GraphImputer.learn
    calls = kept_from(monkeypatch, GraphImputer, "learn", 0.0)
    quick("graph").fit(*sparse_crowd())
    monkeypatch.setattr(GraphImputer, "learn", learn)
    return calls[0]


def test_the_graph_does_not_show_what_is_to_be_foretold(graph, monkeypatch):
    net, batch = graph
    shown, forward = [], LabelGraph.forward

    def noted(self, x, edges, pairs):
        shown.append((edges, pairs))
        return forward(self, x, edges, pairs)

    monkeypatch.setattr(LabelGraph, "forward", noted)
    before = weights(net.network)
    net.learn(batch)
    assert not same(before, weights(net.network)) and len(shown) == 4
    asked = net.crowd.numbered(batch)
    every = sorted(zip(asked.row.tolist(), asked.worker.tolist()))
    for edges, pairs in shown:
        seen, hidden = ([*zip(part.row.tolist(), part.worker.tolist())] for part in (edges, pairs))
        assert sorted(seen + hidden) == every and not set(seen) & set(hidden)
        assert 0.3 < len(hidden) / len(every) < 0.7


@torch.no_grad()
def test_what_the_graph_foretells_rests_on_all_labels_whatever_the_stretches(graph, monkeypatch):
    net, _ = graph
    context, asked = net.crowd.context, Pairs(torch.tensor([0, 5, 59]), torch.tensor([2, 0, 8]))
    (whole,) = net.crowd.batches(context.annotations, 60)
    expected = net.network.eval()(context.x(whole), fillers.edges_of(whole), asked)
    monkeypatch.setattr(fillers, "_STRETCH", 7)
    torch.testing.assert_close(net.rested()(whole, asked), expected)


@torch.no_grad()
def test_the_graph_is_stopped_by_held_out_labels(graph):
    """Given all others; those of somebody without others are left out."""
    net, _ = graph
    context = net.crowd.context
    (whole,) = net.crowd.batches(context.annotations, 60)
    held = context.heldout
    pairs = Pairs(torch.from_numpy(held.item.astype(int)), net.crowd.place[torch.from_numpy(held.worker.astype(int))])
    log_p = net.rested()(whole, pairs).numpy()[np.arange(held.n_annotations), held.label]
    assert net.score() == pytest.approx(log_p.mean(), rel=1e-5)
    alone = context.annotations.keep(context.annotations.worker != held.worker[0])
    crowd = ActiveWorkers.of(replace(context, annotations=alone))
    assert set(held.worker) - set(crowd.heldout.worker) == {held.worker[0]}
    assert np.isfinite(GraphImputer(crowd).score())


def test_a_crowding_of_ones_own_fills_in():
    start = {"pretraining": "crowd-layer", "members": 1}
    X, votes = sparse_crowd()
    named, given, other = (
        quick(imputer, most_likely=False).fit(X, votes).predict_proba(X)
        for imputer in ("generator", CrowdInG(**start), CrowdInG(**start, sees_items=False))
    )
    np.testing.assert_array_equal(named, given)
    assert not np.array_equal(named, other)
    with pytest.raises(ParameterError, match="The filler of a ImputedCrowdLayer has hidden="):
        quick(CrowdInG(hidden=(3,))).fit(X, votes)


@pytest.mark.parametrize("imputer", ["graph", CrowdInG(clip=2.0)])
def test_saved_it_keeps_who_filled_in(imputer, tmp_path):
    X, votes = sparse_crowd()
    model = quick(imputer, per_label=1).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert repr(again) == repr(model) and not hasattr(again, "imputed_annotations_")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_four_names_differ_in_who_fills_in_and_how():
    made = [registry.create(f"crowd-layer-{imputer}") for imputer in FILLERS]
    assert [model.imputer for model in made] == [*FILLERS]
    assert [model.most_likely for model in made] == [True, True, False, False]


def test_bad_input_is_refused(monkeypatch):
    X, votes = sparse_crowd()
    for bad in ("crowding", CrowdLayer(), None):
        with pytest.raises(ParameterError, match="The parameter 'filler' of ImputedCrowdLayer"):
            quick(bad).fit(X, votes)
    with pytest.raises(ParameterError, match="'per_label'"):
        quick(per_label=0).fit(X, votes)
    monkeypatch.setattr(filled_in, "_BYTES", 1e15)
    with pytest.raises(LimitError, match=r"All pairs of items and workers need .* Give a number for per_label"):
        quick().fit(X, votes)
    quick(per_label=1).fit(X, votes)


def test_a_layer_foretells_with_everybodys_own_weights():
    """Workers are numbered among those with a label; the silent one in the midst has a layer too."""
    X, votes = sparse_crowd()
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ImputedCrowdLayer, "_fill_in", lambda self, crowd, answers: calls.append(answers) or np.zeros((0, 3), int)
        )
        quick().fit(X, votes)
    layer = calls[0].__self__
    assert isinstance(layer, LayerImputer) and 3 not in layer.crowd.active
    (whole,) = layer.crowd.batches(votes, 60)
    log_p = layer.answers(whole, Pairs(torch.tensor([7]), torch.tensor([4]))).detach()[0]
    truth = layer.network(torch.from_numpy(X[7:8]).float()).softmax(1)
    torch.testing.assert_close(log_p, (truth @ layer.noise.weight[5].view(3, 3)).log_softmax(1)[0].detach())

"""A crowd layer on completed annotations: what is imputed, which network each step trains, limit cases."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from manyhands import CrowdInG, SelfCrowd, load_model, registry
from manyhands.classifiers import ImputedCrowdLayer, imputation
from manyhands.classifiers.crowd_layer import CrowdLayer, CrowdLayerNoise
from manyhands.classifiers.crowding_game import ActiveWorkers, Adversarial, Pairs, log_truth
from manyhands.classifiers.imputation import AdversarialImputer, GraphImputer, LabelGraph, LayerImputer
from manyhands.exceptions import LimitError, ParameterError
from manyhands.simulate import thin
from manyhands.testing.crowds import QUICK, feature_crowd

pytestmark = pytest.mark.usefixtures("one_thread")

NETWORK = QUICK | {"random_state": 0, "max_epochs": 6}
FEW = {"generator_epochs": 2, "discriminator_epochs": 1, "adversarial_epochs": 1}
IMPUTERS = ("self", "graph", "gan", "generator")


def quick(imputer="self", **changes):
    return ImputedCrowdLayer(**(NETWORK | FEW | {"imputer": imputer, "most_likely": True} | changes))


def sparse_crowd():
    """Two labels on each item, most of them correct; worker 3 has none."""
    X, votes, _ = feature_crowd(3, n_items=60, accuracy=0.8)
    votes = thin(votes, 0.6, random_state=0)
    return X, votes.keep(votes.worker != 3)


def pairs_of(votes):
    return set(zip(votes.item.tolist(), votes.worker.tolist()))


def triples_of(votes):
    return set(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))


@pytest.fixture
def contexts(monkeypatch):
    """The contexts in which crowd layers are trained, in order."""
    seen, train = [], CrowdLayerNoise.train

    def recorded(self, context, *others, **more):
        seen.append(context)
        return train(self, context, *others, **more)

    monkeypatch.setattr(CrowdLayerNoise, "train", recorded)
    return seen


def calls_of(monkeypatch, owner, name, result):
    """The instances and mini-batches with which a method is called; it returns `result` instead."""
    calls = []
    monkeypatch.setattr(owner, name, lambda self, batch: calls.append((self, batch)) or result)
    return calls


@pytest.mark.parametrize("imputer", IMPUTERS)
def test_all_pairs_without_a_label_are_imputed_and_no_others(imputer, contexts):
    """Labels do not change; held-out pairs and those of a worker without labels are not imputed."""
    X, votes = sparse_crowd()
    model = quick(imputer, validation=0.2).fit(X, votes)
    last = contexts[-1]
    assert triples_of(last.annotations) | triples_of(last.heldout) >= triples_of(votes)
    assert pairs_of(last.heldout) and not pairs_of(last.annotations) & pairs_of(last.heldout)
    imputed, every = model.imputed_annotations_, {(i, w) for i in range(60) for w in range(10) if w != 3}
    assert pairs_of(imputed) == every - pairs_of(votes)
    assert imputed.n_annotations == len(pairs_of(imputed))
    assert triples_of(last.annotations) == triples_of(imputed) | (triples_of(votes) - triples_of(last.heldout))
    assert last.weight is None and last.stage == "imputed-"


@pytest.mark.parametrize("imputer", IMPUTERS)
@pytest.mark.parametrize("per_label", [1, 3])
def test_per_label_is_the_number_of_imputed_annotations_for_each_label(imputer, per_label):
    X, votes = sparse_crowd()
    imputed = quick(imputer, per_label=per_label, validation=0).fit(X, votes).imputed_annotations_
    n_labels = np.bincount(votes.worker, minlength=10)
    np.testing.assert_array_equal(
        np.bincount(imputed.worker, minlength=10), np.minimum(per_label * n_labels, (60 - n_labels) * (n_labels > 0))
    )
    assert len(pairs_of(imputed)) == imputed.n_annotations and not pairs_of(imputed) & pairs_of(votes)


def test_held_out_labels_do_not_count_for_per_label(contexts):
    X, votes = sparse_crowd()
    imputed = quick(per_label=2, validation=0.3).fit(X, votes).imputed_annotations_
    seen = triples_of(votes) - triples_of(contexts[-1].heldout)
    n_labels = np.bincount([w for _, w, _ in seen], minlength=10)
    np.testing.assert_array_equal(np.bincount(imputed.worker, minlength=10), 2 * n_labels)


def test_imputation_by_itself_is_self_crowd_with_one_round_over_all_pairs():
    X, votes = sparse_crowd()
    ours = quick().fit(X, votes)
    once = {"rounds": 1, "per_round": 10**6, "round_patience": None, "pseudo_weight": 1, "init": "identity"}
    theirs = SelfCrowd.plus(evidence="features", selection="confidence", **once, **NETWORK).fit(X, votes)
    assert ours.imputed_annotations_ == theirs.pseudo_annotations_
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))


def test_imputed_labels_are_the_most_probable_or_drawn_and_do_not_depend_on_chunks(monkeypatch):
    X, votes = sparse_crowd()
    most_likely = quick().fit(X, votes).imputed_annotations_
    drawn = quick(most_likely=False).fit(X, votes).imputed_annotations_
    assert pairs_of(drawn) == pairs_of(most_likely) and 0.05 < np.mean(drawn.label != most_likely.label) < 0.6
    monkeypatch.setattr(imputation, "_NUMBERS", 200)
    assert quick().fit(X, votes).imputed_annotations_ == most_likely


def test_log_truth_has_the_known_class_of_gold_items():
    network, x = torch.nn.Linear(2, 3), torch.tensor([[1.0, 2.0], [0.5, 0.0]])
    found = log_truth(network, x, torch.tensor([-1, 2])).exp()
    torch.testing.assert_close(found[0], network(x).softmax(1)[0])
    assert found[1].argmax() == 2 and found[1, 2] > 0.999


@pytest.fixture
def adversaries(monkeypatch):
    """Crowd layer and discriminator before their adversarial training, and its first mini-batch."""
    step = AdversarialImputer.step
    calls = calls_of(monkeypatch, AdversarialImputer, "step", {"reward": 0.0})
    quick("gan").fit(*sparse_crowd())
    monkeypatch.setattr(AdversarialImputer, "step", step)
    torch.manual_seed(0)
    return calls[0]


def weights(*modules):
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after))


def test_each_step_trains_one_network_only(adversaries):
    game, batch = adversaries
    layer, discriminator = (game.layer.network, game.layer.noise), game.discriminator
    draw = game.draw(batch)
    before = weights(*layer), weights(discriminator)
    game.train_discriminator(draw)
    assert same(before[0], weights(*layer)) and not same(before[1], weights(discriminator))
    before = weights(layer[0]), weights(layer[1]), weights(discriminator)
    game.train_layer(draw)
    assert not same(before[0], weights(layer[0])) and not same(before[1], weights(layer[1]))
    assert same(before[2], weights(discriminator))


def test_drawn_examples_are_as_many_as_authentic_ones(adversaries):
    """Of every worker, on pairs without a label."""
    game, batch = adversaries
    draw = game.draw(batch)
    numbered = game.crowd.numbered(batch)
    assert draw.authentic.worker.tolist() == numbered.worker.tolist() and draw.authentic_label is batch.label
    examples = draw.pairs.select(draw.example)
    np.testing.assert_array_equal(torch.bincount(examples.worker), torch.bincount(numbered.worker))
    labelled = set(zip(numbered.row.tolist(), numbered.worker.tolist()))
    assert not labelled & set(zip(examples.row.tolist(), examples.worker.tolist()))


def test_the_discriminator_learns_to_separate_authentic_from_drawn_labels(adversaries):
    game, batch = adversaries
    draw, discriminator = game.draw(batch), game.discriminator
    losses = [float(game.train_discriminator(draw)) for _ in range(30)]
    assert losses[-1] < 0.9 * losses[0] and abs(losses[0] - np.log(2)) < 0.1
    seen = discriminator.eval().inputs(draw.x)
    real = discriminator.logit(seen, draw.authentic, draw.authentic_label)
    drawn = discriminator.logit(seen, draw.pairs.select(draw.example), draw.label[draw.example])
    assert real.mean() > 0 > drawn.mean()


def test_labels_of_high_reward_become_more_probable(adversaries, monkeypatch):
    """Where the discriminator accepts label 1 only, its probability rises; the gradient is that of plain loops."""
    game, batch = adversaries
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
    """The graph network before training, and its only mini-batch."""
    learn = GraphImputer.learn
    calls = calls_of(monkeypatch, GraphImputer, "learn", 0.0)
    quick("graph").fit(*sparse_crowd())
    monkeypatch.setattr(GraphImputer, "learn", learn)
    return calls[0]


def test_labels_to_be_predicted_are_hidden_from_the_graph(graph, monkeypatch):
    net, batch = graph
    shown, forward = [], LabelGraph.forward

    def recorded(self, x, edges, pairs):
        shown.append((edges, pairs))
        return forward(self, x, edges, pairs)

    monkeypatch.setattr(LabelGraph, "forward", recorded)
    before = weights(net.network)
    net.learn(batch)
    assert not same(before, weights(net.network)) and len(shown) == 4
    numbered = net.crowd.numbered(batch)
    every = sorted(zip(numbered.row.tolist(), numbered.worker.tolist()))
    for edges, pairs in shown:
        seen, hidden = ([*zip(part.row.tolist(), part.worker.tolist())] for part in (edges, pairs))
        assert sorted(seen + hidden) == every and not set(seen) & set(hidden)
        assert 0.3 < len(hidden) / len(every) < 0.7


@torch.no_grad()
def test_graph_imputation_uses_all_labels_and_does_not_depend_on_chunks(graph, monkeypatch):
    net, _ = graph
    context, pairs = net.crowd.context, Pairs(torch.tensor([0, 5, 59]), torch.tensor([2, 0, 8]))
    (whole,) = net.crowd.batches(context.annotations, 60)
    expected = net.network.eval()(context.x(whole), imputation.edges_of(whole), pairs)
    monkeypatch.setattr(imputation, "_CHUNK", 7)
    torch.testing.assert_close(net.imputer()(whole, pairs), expected)


@torch.no_grad()
def test_the_graph_is_stopped_by_the_held_out_log_likelihood(graph):
    """Given all training labels; held-out labels of workers without training labels are left out."""
    net, _ = graph
    context = net.crowd.context
    (whole,) = net.crowd.batches(context.annotations, 60)
    held = context.heldout
    pairs = Pairs(torch.from_numpy(held.item.astype(int)), net.crowd.place[torch.from_numpy(held.worker.astype(int))])
    log_p = net.imputer()(whole, pairs).numpy()[np.arange(held.n_annotations), held.label]
    assert net.score() == pytest.approx(log_p.mean(), rel=1e-5)
    alone = context.annotations.keep(context.annotations.worker != held.worker[0])
    crowd = ActiveWorkers.of(replace(context, annotations=alone))
    assert set(held.worker) - set(crowd.heldout.worker) == {held.worker[0]}
    assert np.isfinite(GraphImputer(crowd).score())


def test_a_crowding_instance_can_impute():
    few = {f"{name.removesuffix('_epochs')}__epochs": epochs for name, epochs in FEW.items()}
    printed = CrowdInG().set_params(**few)
    X, votes = sparse_crowd()
    named, given, other = (
        quick(imputer, most_likely=False).fit(X, votes).predict_proba(X)
        for imputer in ("generator", printed, clone(printed).set_params(generator__sees_items=False))
    )
    np.testing.assert_array_equal(named, given)
    assert not np.array_equal(named, other)
    with pytest.raises(ParameterError, match="The imputer of a ImputedCrowdLayer has hidden="):
        quick(CrowdInG(hidden=(3,))).fit(X, votes)


def test_weight_decay_reaches_the_optimizers_of_the_imputers(adversaries, graph):
    """Of the crowd layer against its discriminator, and of the graph."""
    crowd = graph[0].crowd
    decayed = replace(crowd, context=crowd.context.with_options(weight_decay=0.03))
    game = AdversarialImputer(replace(adversaries[0].layer, crowd=decayed))
    for adam in (game.layer_adam, game.discriminator_adam, GraphImputer(decayed).adam):
        assert adam.param_groups[0]["weight_decay"] == 0.03


@pytest.mark.parametrize("imputer", ["graph", CrowdInG(adversarial=Adversarial(clip=2.0))])
def test_a_saved_model_keeps_its_imputer(imputer, tmp_path):
    X, votes = sparse_crowd()
    model = quick(imputer, per_label=1).fit(X, votes)
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert repr(again) == repr(model) and not hasattr(again, "imputed_annotations_")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_four_names_of_the_registry_have_different_imputers():
    made = [registry.create(f"crowd-layer-{imputer}") for imputer in IMPUTERS]
    assert [model.imputer for model in made] == [*IMPUTERS]
    assert [model.most_likely for model in made] == [True, True, False, False]
    assert not ImputedCrowdLayer("generator").most_likely and {model.per_label for model in made} == {None}


def test_invalid_parameters_are_refused(monkeypatch):
    X, votes = sparse_crowd()
    for bad in ("crowding", CrowdLayer(), None):
        with pytest.raises(ParameterError, match="The parameter `imputer` of ImputedCrowdLayer"):
            quick(bad).fit(X, votes)
    with pytest.raises(ParameterError, match="`per_label`"):
        quick(per_label=0).fit(X, votes)
    monkeypatch.setattr(imputation, "_BYTES", 1e15)
    with pytest.raises(LimitError, match=r"All pairs of items and workers need .* Give a number for per_label"):
        quick().fit(X, votes)
    quick(per_label=1).fit(X, votes)


def test_a_layer_imputes_with_the_weights_of_each_worker():
    """Workers are numbered among the active ones; the inactive worker 3 has a layer too."""
    X, votes = sparse_crowd()
    calls = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ImputedCrowdLayer,
            "_impute",
            lambda self, crowd, log_labels: calls.append(log_labels) or np.zeros((0, 3), int),
        )
        quick().fit(X, votes)
    layer = calls[0].__self__
    assert isinstance(layer, LayerImputer) and 3 not in layer.crowd.active
    (whole,) = layer.crowd.batches(votes, 60)
    log_p = layer.log_labels(whole, Pairs(torch.tensor([7]), torch.tensor([4]))).detach()[0]
    truth = layer.network(torch.from_numpy(X[7:8]).float()).softmax(1)
    torch.testing.assert_close(log_p, (truth @ layer.noise.weight[5].view(3, 3)).log_softmax(1)[0].detach())

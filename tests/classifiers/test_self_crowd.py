"""Self-Crowd: selection against plain loops, limit cases, and the record of its rounds."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, SelfCrowd
from manyhands.classifiers import CrowdLayer, self_crowd
from manyhands.classifiers.self_crowd import LabelPool
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.simulate import make_self_crowd
from manyhands.testing.crowds import feature_crowd, features_of
from reference.slow_selection import slow_choice, slow_pseudo_annotations, slow_quotas
from small_self_crowd import BASES, NETWORK, pairs_of, quick, sparse_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("selection", ["balanced", "confidence", "random"])
def test_the_selection_equals_plain_loops(monkeypatch, base, selection):
    """Among all pairs without a label, those of lowest entropy within the quota of their class."""
    calls = []
    predict = self_crowd.predict_pseudo_annotations

    def recorded(log_labels, workers, n_classes, taken):
        with torch.no_grad():
            calls.append((log_labels(np.arange(60)).double().tolist(), workers.tolist(), taken))
        return predict(log_labels, workers, n_classes, taken)

    monkeypatch.setattr(self_crowd, "predict_pseudo_annotations", recorded)
    X, votes, _ = sparse_crowd()
    model = quick(base=base, selection=selection, rounds=1, per_round=40).fit(X, votes)
    log_labels, workers, taken = calls[0]
    candidates = slow_pseudo_annotations(log_labels, 60, workers, set.union(*map(pairs_of, taken)))
    chosen = model.pseudo_annotations_
    found = [*zip(chosen.item.tolist(), chosen.worker.tolist(), chosen.label.tolist())]
    assert len(found) == 40
    if selection == "random":
        assert set(found) <= {g[:3] for g in candidates}
        entropy = {g[:3]: g[3] for g in candidates}
        middle = np.median([g[3] for g in candidates])
        assert 8 <= sum(entropy[pair] > middle for pair in found) <= 32  # confidence does not matter
        return
    available = np.bincount([g[2] for g in candidates], minlength=3).tolist()
    quotas = model.selected_counts_[1].tolist()
    assert selection == "confidence" or np.abs(np.subtract(quotas, slow_quotas(available, 40))).max() <= 1
    n_per_round = quotas if selection == "balanced" else [40]
    expected = slow_choice(candidates, [0] * len(candidates), n_per_round, by_class=selection == "balanced")
    assert found == [g[:3] for g in expected]


@pytest.mark.parametrize("selection", ["balanced", "confidence", "random"])
def test_pseudo_annotations_are_on_distinct_pairs_without_a_label(selection):
    """Never on a held-out pair, nor by a worker without labels."""
    X, votes, _ = sparse_crowd()
    some = votes.keep(votes.worker != 3)
    model = quick(selection=selection, rounds=4, per_round=50, validation=0.2).fit(X, some)
    chosen = model.pseudo_annotations_
    assert chosen.n_annotations == 200 == len(pairs_of(chosen))
    assert not pairs_of(chosen) & pairs_of(some)  # of which a fifth was held out
    assert 3 not in chosen.worker
    np.testing.assert_array_equal(model.selected_counts_.sum(axis=0), np.bincount(chosen.label, minlength=3))


def test_the_defaults_are_the_settings_of_the_paper():
    """Those that the paper states; `plus` has other ones."""
    stated = {"base": "crowd-layer", "evidence": "features", "selection": "balanced", "quota": "pool", "rounds": 14}
    stated |= {"per_round": 0.018, "pseudo_weight": 1.0, "warm_start": False, "init": "identity", "hidden": (128,)}
    stated |= {"dropout": 0.5, "learning_rate": 1e-3, "weight_decay": 5e-4, "batch_size": 512, "max_epochs": 25}
    stated |= {"round_patience": None, "patience": None, "validation": 0.0}  # all labels, all rounds, all epochs
    defaults, ours = SelfCrowd().get_params(), SelfCrowd.plus().get_params()
    assert {name: defaults[name] for name in stated} == stated
    changed = {"evidence": "labels", "rounds": 4, "round_patience": 2, "pseudo_weight": 0.3, "init": "dawid-skene"}
    changed |= {"weight_decay": 0.0, "batch_size": 64, "max_epochs": 50, "patience": 10, "validation": 0.1}
    assert ours == defaults | changed
    assert SelfCrowd.plus(rounds=1, validation=0.3).get_params() == ours | {"rounds": 1, "validation": 0.3}


def test_weight_decay_acts_on_the_crowd_layer_too():
    """With a large decay the matrices of all workers go to 0, from which labels are uniform."""
    X, votes, _ = sparse_crowd()
    settings = {"rounds": 1, "max_epochs": 200, "learning_rate": 0.03, "random_state": 0}
    decayed = SelfCrowd(weight_decay=10.0, **settings).fit(X, votes)
    np.testing.assert_allclose(decayed.confusion_, 1 / 3, atol=0.02)
    assert np.abs(SelfCrowd(**settings).fit(X, votes).confusion_ - 1 / 3).max() > 0.2


def test_a_class_that_is_never_predicted_gets_no_quota():
    """Of three classes only two have labels."""
    X, votes, _ = sparse_crowd(2)
    wider = Annotations(
        votes.item, votes.worker, votes.label,
        item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=["a", "b", "c"],
    )  # fmt: skip
    model = quick(rounds=2, per_round=30).fit(X, wider)
    assert model.selected_counts_[1:, :2].all() and not model.selected_counts_[:, 2].any()


def test_complete_labels_leave_nothing_to_impute():
    """Then it is its base method."""
    dense = Annotations.from_matrix(np.tile((np.arange(60) % 2)[:, None], (1, 4)))
    model = quick(rounds=3).fit(features_of(np.arange(60) % 2, seed=1), dense)
    assert len(model.rounds_) == 1 and model.pseudo_annotations_.n_annotations == 0  # not on held-out pairs


def test_a_worker_with_complete_labels_gets_no_pseudo_annotations():
    X, votes, truth = sparse_crowd()
    votes = votes.keep(votes.worker != 0).with_more(np.arange(60), np.zeros(60, int), truth)
    model = quick(rounds=2, per_round=50, validation=0.0).fit(X, votes)
    assert 0 not in model.pseudo_annotations_.worker and model.pseudo_annotations_.n_annotations == 100


def test_one_worker():
    """Pseudo-annotations are on the items that they did not label; both classes are learned."""
    truth = np.arange(60) % 2
    X = features_of(truth, seed=1)
    label = np.where(np.arange(60) % 3 == 0, -1, truth)
    model = quick(rounds=2, per_round=5, validation=0.0)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model.fit(X, Annotations.from_matrix(label[:, None]))
    assert pairs_of(model.pseudo_annotations_) <= {(i, 0) for i in range(0, 60, 3)}
    assert np.mean(model.predict(X) == truth) > 0.9


def test_few_labels_give_finite_results_and_all_classes():
    """With a tenth of the labels, so that many items have none."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.8)
    few = votes.keep(np.random.default_rng(1).random(votes.n_annotations) < 0.1)
    model = quick(rounds=2, per_round=0.05).fit(X, few)
    assert np.isfinite(model.predict_proba(X)).all() and np.isfinite(model.posterior_).all()
    assert np.all(model.selected_counts_[1:] > 0)  # each of the three classes is selected in every round
    assert set(np.flatnonzero(few.n_labels == 0)) & set(model.pseudo_annotations_.item.tolist())


def test_weights_of_labels_and_pseudo_annotations():
    """1 for a label, `pseudo_weight` otherwise, in the order of the sorted triples."""
    votes = Annotations.from_matrix([[0, -1, 1], [-1, 1, -1]])
    labels = LabelPool(votes, None).with_pseudo(np.array([[0, 1, 1], [1, 0, 0]]))
    assert labels.all.n_annotations == 5
    np.testing.assert_array_equal(labels.weight(0.25), [1, 0.25, 1, 0.25, 1])


@pytest.mark.parametrize("base", BASES)
def test_pseudo_annotations_of_weight_zero_have_no_effect(base):
    """With a weight of almost 0 a round trains on the labels alone; a weight of 1 gives another network."""
    X, votes, _ = sparse_crowd()
    settings = {"base": base, "rounds": 1, "per_round": 100, "validation": 0.0, "max_epochs": 3}
    light, lighter, full = (
        quick(pseudo_weight=weight, **settings).fit(X, votes).predict_proba(X) for weight in (1e-7, 1e-9, 1.0)
    )
    np.testing.assert_allclose(light, lighter, atol=1e-4)
    assert np.abs(light - full).max() > 1e-3


def test_a_base_keeps_its_own_parameters_but_not_network_options():
    """`form` is the base's parameter; `hidden` belongs to Self-Crowd, which builds the networks."""
    X, votes, _ = sparse_crowd()
    ours = quick(base=CrowdLayer(form="vw"), rounds=0).fit(X, votes)
    theirs = CrowdLayer(form="vw", **NETWORK).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ParameterError, match=r"The base of a SelfCrowd has hidden=\(3,\); give hidden to SelfCrowd"):
        quick(base=CrowdLayer(hidden=(3,))).fit(X, votes)
    with pytest.raises(ParameterError, match="`base` of SelfCrowd must be one of 'crowd-layer'"):
        quick(base="raykar").fit(X, votes)


@pytest.mark.slow
def test_the_order_of_imbalance_ratios_is_that_of_the_paper():
    """Balanced below random below confidence in every round, for labels and pseudo-annotations together.

    On a simulated crowd that is ours.
    """
    data = make_self_crowd(random_state=0)
    settings = {"rounds": 5, "per_round": 800, "hidden": (64,), "learning_rate": 1e-2, "batch_size": 64}
    records = {
        selection: SelfCrowd(selection=selection, random_state=0, **settings)
        .fit(data.X, data.crowd.annotations)
        .rounds_
        for selection in ("balanced", "random", "confidence")
    }
    r = {name: [one["combined_imbalance"] for one in rounds[1:]] for name, rounds in records.items()}
    assert np.all(np.less(r["balanced"], r["random"])) and np.all(np.less(r["random"], r["confidence"]))
    assert records["balanced"][1]["selected_imbalance"] < records["confidence"][1]["selected_imbalance"]


@pytest.mark.parametrize("evidence", ["features", "labels"])
def test_pseudo_annotations_are_computed_from_the_evidence(monkeypatch, evidence):
    """The network's p(k | x), or the posterior given labels and gold, times each worker's confusion matrix."""
    calls = []
    predict = self_crowd.predict_pseudo_annotations

    def recorded(log_labels, workers, n_classes, taken):
        with torch.no_grad():
            calls.append((log_labels(np.arange(60)).double().exp().numpy(), workers))
        return predict(log_labels, workers, n_classes, taken)

    monkeypatch.setattr(self_crowd, "predict_pseudo_annotations", recorded)
    X, votes, truth = sparse_crowd()
    gold = {votes.item_ids[0]: votes.classes[truth[0]], votes.item_ids[1]: votes.classes[(truth[1] + 1) % 3]}
    settings = {"base": "spee-lfc", "evidence": evidence, "validation": 0.0, "max_epochs": 5}
    first = quick(rounds=0, **settings).fit(X, votes, gold)
    quick(rounds=1, **settings).fit(X, votes, gold)
    posterior = first.predict_proba(X) if evidence == "features" else first.posterior_
    found, workers = calls[0]
    expected = np.einsum("ik,wkl->ilw", posterior, first.confusion_[workers])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert evidence == "features" or posterior[1, (truth[1] + 1) % 3] == 1


def test_bases_with_a_seed_or_equal_parameters_are_accepted():
    """`compare` and searches seed nested methods; values are equal whatever their type."""
    X, votes, _ = sparse_crowd()
    model = quick(base=CrowdLayer(form="vw", random_state=5, hidden=[8], learning_rate=np.float64(1e-3)), rounds=0)
    theirs = CrowdLayer(form="vw", **NETWORK).fit(X, votes)
    np.testing.assert_array_equal(model.fit(X, votes).predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ParameterError, match="`base` of SelfCrowd must be one of 'crowd-layer'"):
        quick(base=SelfCrowd()).fit(X, votes)

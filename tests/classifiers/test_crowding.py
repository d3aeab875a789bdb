"""CrowdInG: limit cases, its history, and imputation with its generator."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, CrowdInG, SelfCrowd, load_model
from manyhands.classifiers import CrowdLayer, MaxMIG, crowding
from manyhands.classifiers.network import nested_method
from manyhands.classifiers.self_crowd import HeldoutMetric
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.nn.backbones import Ensemble
from manyhands.simulate import thin
from manyhands.testing.crowds import feature_crowd, global_states, quietly, with_unlabelled
from small_crowding import NETWORK, quick, sparse_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("pretraining, method", [("crowd-layer", CrowdLayer), ("max-mig", MaxMIG)])
def test_without_adversarial_training_it_equals_its_pretraining(pretraining, method):
    X, votes, _ = sparse_crowd()
    ours = quick(pretraining=pretraining, adversarial__epochs=0).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), method(**NETWORK).fit(X, votes).predict_proba(X))


def test_an_instance_as_pretraining_keeps_its_own_parameters():
    X, votes, _ = sparse_crowd()
    ours = quick(pretraining=CrowdLayer(form="vw"), adversarial__epochs=0).fit(X, votes)
    theirs = CrowdLayer(form="vw", **NETWORK).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ParameterError, match="The pretraining of a CrowdInG has hidden="):
        quick(pretraining=CrowdLayer(hidden=(3,))).fit(X, votes)


def test_pretraining_shares_network_options_and_is_validated(tmp_path):
    """Other parameters of the same name are its own; checkpoints of members do not collide."""
    X, votes, _ = sparse_crowd(n_items=40)
    inner = nested_method(CrowdInG(pretraining=SelfCrowd(), max_epochs=7), "pretraining")
    assert (inner.base, inner.selection, inner.max_epochs) == ("crowd-layer", "balanced", 7)
    with pytest.raises(ParameterError, match="`form` of CrowdLayer"):
        quick(pretraining=CrowdLayer(form="zzz")).fit(X, votes)
    with pytest.raises(ParameterError, match="`adversarial__threshold` of CrowdInG is a share"):
        quick(adversarial__threshold=1.5).fit(X, votes)
    settings = {"pretraining": SelfCrowd(rounds=1, round_patience=None), "members": 2, "adversarial__epochs": 1}
    plain = quick(**settings).fit(X, votes)
    kept = quick(**settings, checkpoint=tmp_path).fit(X, votes)
    np.testing.assert_array_equal(plain.predict_proba(X), kept.predict_proba(X))


def test_several_members_predict_their_mean():
    X, votes, _ = sparse_crowd()
    model = quick(members=2, adversarial__epochs=0).fit(X, votes)
    assert isinstance(model.module_.network, Ensemble)
    with torch.no_grad():
        each = [net(torch.from_numpy(X).float()).softmax(1).numpy() for net in model.module_.network.networks]
    assert not np.allclose(*each, atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), np.mean(each, axis=0), atol=1e-6)


def test_the_generator_predicts_held_out_labels_better_than_label_frequencies():
    X, votes, _ = sparse_crowd(n_items=200)
    model = quick(generator__epochs=40, generator__learning_rate=0.01, adversarial__epochs=0, validation=0.2)
    model.fit(X, votes)
    found = max(epoch["heldout"] for epoch in model.history_ if "generator_start" in epoch)
    counts = np.zeros((votes.n_workers, votes.n_classes)) + 1
    np.add.at(counts, (votes.worker, votes.label), 1)
    share = counts / counts.sum(axis=1, keepdims=True)
    by_frequency = np.mean(np.log(share[votes.worker, votes.label]))  # computed from the same labels
    assert found > by_frequency + 0.1


def test_the_history_has_all_trainings():
    X, votes, _ = sparse_crowd()
    history = quick(validation=0.2, adversarial__information=0.3).fit(X, votes).history_
    stages = [set(epoch) for epoch in history]
    game = {"discriminator", "seen_as_authentic", "seen_as_generated", "information", "generator", "generator_ratio"}
    assert game | {"classifier", "classifier_ratio", "heldout"} == stages[-1]
    assert sum("generator_start" in s for s in stages) == 5 and sum("discriminator_start" in s for s in stages) == 2
    assert all(np.isfinite(figure) for epoch in history for figure in epoch.values())


def test_adversarial_training_that_lowers_the_score_is_undone(monkeypatch):
    """The state before the first epoch is a candidate of early stopping."""
    X, votes, _ = sparse_crowd(n_items=100, noise=3.0)
    start = quick(validation=0.2, adversarial__epochs=0).fit(X, votes).predict_proba(X)
    fast = {
        "adversarial__learning_rate": 0.1,
        "adversarial__threshold": 0.0,
        "validation": 0.2,
        "adversarial__epochs": 3,
    }
    scores = iter([-1.0, -2.0, -3.0, -4.0, -1.0, -0.5, -3.0, -4.0])
    monkeypatch.setattr(HeldoutMetric, "measure", lambda self, network, rows: np.array([next(scores)]))
    np.testing.assert_array_equal(quick(**fast).fit(X, votes).predict_proba(X), start)
    assert not np.allclose(quick(**fast).fit(X, votes).predict_proba(X), start, atol=1e-3)  # its first epoch is best


def test_without_early_stopping_the_last_epoch_of_adversarial_training_is_kept(monkeypatch):
    """Pre-trainings still stop early, so that the start is the same with and without it."""
    X, votes, _ = sparse_crowd(n_items=100, noise=3.0)
    monkeypatch.setattr(HeldoutMetric, "measure", lambda self, network, rows: 1 / 0)
    model = quick(validation=0.2, adversarial__epochs=4, adversarial__early_stopping=False, patience=1).fit(X, votes)
    assert sum("classifier" in epoch for epoch in model.history_) == 4
    assert "heldout" not in model.history_[-1] and "heldout" in model.history_[0]


def test_the_defaults_are_the_print_and_plus_has_forms_of_the_code_and_sparsity_on_authentic_labels():
    printed, plus = CrowdInG(), CrowdInG.plus()
    forms = [
        (m.discriminator.item_embedding, m.discriminator.correlation, m.discriminator.generated_weight,
         m.discriminator.sparsity_on, m.adversarial.generator_loss, m.adversarial.pairs_per_label)
        for m in (printed, plus)
    ]  # fmt: skip
    assert forms[0] == ("linear", "symmetric", 1.0, "all", "saturating", None)
    assert forms[1] == ("perceptron", "residual", 0.9, "authentic", "non-saturating", 4)
    assert printed.adversarial.epochs == 40 and printed.adversarial.threshold_is == "nats"


@pytest.mark.parametrize("part", ["sees_items", "sees_workers"])
def test_the_generator_can_ignore_items_or_workers(part):
    X, votes, _ = sparse_crowd()
    model = quick(**{f"generator__{part}": False}).fit(X, votes)
    first, second = (model.explain_worker(w, X) for w in votes.worker_ids[:2].tolist())
    if part == "sees_items":
        assert np.ptp(first, axis=0).max() < 1e-6 and not np.allclose(first, second, atol=1e-4)
    else:
        np.testing.assert_allclose(first, second, atol=1e-7)
        assert np.ptp(first, axis=0).max() > 1e-4


def test_worker_features_are_used_and_validated():
    X, votes, _ = sparse_crowd()
    known = np.repeat([[0.0], [1.0]], [1, votes.n_workers - 1], axis=0)
    model = quick().fit(X, votes, worker_features=known)
    alike = [model.explain_worker(w, X) for w in votes.worker_ids.tolist()]
    np.testing.assert_allclose(alike[1], alike[2], atol=1e-7)
    assert not np.allclose(alike[0], alike[1], atol=1e-4)
    wider = with_unlabelled(votes)[: votes.n_items]  # a worker without labels is described by features alone
    inactive = np.flatnonzero(np.bincount(wider.worker, minlength=wider.n_workers) == 0)[0]
    described = np.zeros((wider.n_workers, 1))
    described[[*wider.worker_ids].index(votes.worker_ids[1]) :] = 1.0
    model = quick().fit(X, wider, worker_features=described)
    like = next(w for w in range(wider.n_workers) if w != inactive and described[w] == described[inactive])
    found = [model.explain_worker(wider.worker_ids[w], X) for w in (inactive, like)]
    np.testing.assert_allclose(*found, atol=1e-7)
    with pytest.raises(AlignmentError, match=f"each of the {votes.n_workers} workers"):
        quick().fit(X, votes, worker_features=known[1:])
    with pytest.raises(AlignmentError, match="NaN or infinity in row 1"):
        quick().fit(X, votes, worker_features=np.where(known == 1, np.nan, known))
    with pytest.raises(AlignmentError, match="must be numbers"):
        quick().fit(X, votes, worker_features=[["a"]] * votes.n_workers)


def test_augment_keeps_all_labels_and_adds_as_many_for_every_worker():
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


def test_augment_without_a_limit_imputes_every_pair():
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick().fit(X, votes)
    full = model.augment(X, votes, per_label=None, most_likely=True)
    assert full.n_annotations == 30 * len(np.unique(votes.worker))
    again = CrowdLayer(**NETWORK).fit(X, full)  # any other method can learn from it
    assert np.mean(again.predict(X) == model.predict(X)) > 0.6


def test_workers_with_adjacent_items_are_augmented_too(monkeypatch):
    """Chunks of items are shuffled, so that each has items that a worker did not label."""
    monkeypatch.setattr(crowding, "_CHUNK", 20)
    X, _, truth = feature_crowd(3, n_items=40)
    worker = np.repeat(["a", "b"], 20)
    votes = Annotations.from_triples(range(40), worker.tolist(), truth.tolist())
    model = quietly(lambda: quick().fit(X, votes))
    assert model.augment(X, votes, random_state=0).n_annotations > 60
    for wrong in (0, 1.5):
        with pytest.raises(ParameterError, match="`per_label` of augment must be"):
            model.augment(X, votes, per_label=wrong)


def test_generating_does_not_use_global_random_generators():
    X, votes, _ = sparse_crowd(n_items=20)
    model = quick().fit(X, votes)
    before = global_states()
    model.explain_worker(votes.worker_ids[0], X)
    model.least_sure(X, votes, n=2)
    model.augment(X, votes)
    assert global_states() == before


def test_most_likely_labels_are_the_most_frequent_draws():
    X, votes, _ = sparse_crowd(n_items=20)
    model = quick(generator__epochs=60, generator__learning_rate=0.01).fit(X, votes)
    most_likely = model.augment(X, votes, per_label=None, most_likely=True)
    draws = [model.augment(X, votes, per_label=None, random_state=s).label for s in range(40)]
    share = np.mean([draw == most_likely.label for draw in draws], axis=0)
    assert share.mean() > 0.6


def test_explain_worker_gives_confusion_matrices_by_item():
    X, votes, _ = sparse_crowd(accuracy=0.9)
    model = quick(generator__epochs=60, generator__learning_rate=0.01).fit(X, votes)
    confusion = model.explain_worker(votes.worker_ids[0], X[:7])
    assert confusion.shape == (7, 3, 3)
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0, atol=1e-9)
    predicted = model.predict_proba(X[:7]).argmax(axis=1)
    assert confusion[np.arange(7), predicted, predicted].mean() > 0.5
    assert np.ptp(confusion, axis=0).max() > 1e-3
    for unknown in ("nobody", ["a list"]):
        with pytest.raises(AnnotationError, match="There is no worker"):
            model.explain_worker(unknown, X)


def test_least_sure_are_pairs_without_a_label_and_the_highest_entropy():
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick().fit(X, votes)
    every = model.least_sure(X, votes, n=10_000)
    n_active = len(np.unique(votes.worker))
    assert len(every) == 30 * n_active - votes.n_annotations
    labelled = {(votes.item_ids[i], votes.worker_ids[w]) for i, w in zip(votes.item, votes.worker)}
    assert not labelled & {(found.item, found.worker) for found in every}
    entropies = [found.entropy for found in every]
    assert entropies == sorted(entropies, reverse=True) and entropies[-1] >= 0 and entropies[0] <= np.log(3) + 1e-6
    assert model.least_sure(X, votes, n=3) == every[:3]
    for n in (0, 2.5):
        with pytest.raises(ParameterError, match="`n` of least_sure"):
            model.least_sure(X, votes, n=n)


def test_labels_of_unknown_workers_are_refused():
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick().fit(X, votes)
    stranger = Annotations.from_triples(range(30), ["new"] * 30, votes.classes[np.zeros(30, int)].tolist())
    with pytest.raises(AnnotationError, match="workers that this CrowdInG was not fitted with"):
        model.augment(X, stranger)
    with pytest.raises(AlignmentError, match="X has 29 rows"):
        model.augment(X[:29], votes)


def test_a_saved_model_generates_the_same(tmp_path):
    X, votes, _ = sparse_crowd(n_items=30)
    model = quick(members=2).fit(X, votes, worker_features=np.eye(votes.n_workers))
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    worker = votes.worker_ids[0]
    np.testing.assert_allclose(again.explain_worker(worker, X), model.explain_worker(worker, X), atol=1e-12)
    assert again.augment(X, votes, random_state=0) == model.augment(X, votes, random_state=0)


@pytest.mark.parametrize("pairs_per_label", [1, None])
def test_sparse_and_complete_crowds_give_finite_results(pairs_per_label):
    """Complete labels, few labels, workers without labels, a single worker; with gold."""
    X, votes, truth = feature_crowd(3, n_items=20, accuracy=0.8)
    crowds = [votes, thin(votes, 0.2, random_state=0), with_unlabelled(votes)[:20], votes.keep(votes.worker == 0)]
    for crowd in crowds:
        gold = {votes.item_ids[0]: votes.classes[truth[0]]}
        model = quietly(
            lambda crowd=crowd, gold=gold: quick(adversarial__pairs_per_label=pairs_per_label).fit(X, crowd, gold)
        )
        assert np.isfinite(model.predict_proba(X)).all()
        quietly(lambda crowd=crowd, model=model: model.augment(X, crowd, per_label=2))

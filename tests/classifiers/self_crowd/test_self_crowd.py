"""Self-Crowd: its choice beside a plain loop, its limit cases, and what it tells of its rounds."""

import numpy as np
import pytest
import torch

from manyhands import Annotations, CoNAL, CrowdLayer, SelfCrowd, SpeeLFC, TraceReg, load_model
from manyhands.class_balance import imbalance
from manyhands.classifiers.base import combine
from manyhands.classifiers.self_crowd import self_crowd
from manyhands.classifiers.self_training import HeldoutMetric, LabelPool
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.heldout import class_shares, worker_confusions
from manyhands.nn.inference import probabilities
from manyhands.simulate import make_self_crowd, thin
from manyhands.testing.learners import QUICK
from manyhands.testing.small_crowds import feature_crowd, features_of
from manyhands.testing.training_invariances import check_a_killed_fit_goes_on_with_the_same_result
from reference.slow_selection import slow_choice, slow_pseudo_annotations, slow_quotas

pytestmark = pytest.mark.usefixtures("one_thread")

BASES = {"crowd-layer": CrowdLayer, "conal": CoNAL, "spee-lfc": SpeeLFC, "trace-reg": TraceReg}
NETWORK = QUICK | {"random_state": 0}


def quick(**changes):
    """A small network with a seed, and as many rounds as are asked for."""
    return SelfCrowd(**(NETWORK | {"rounds": 2, "round_patience": None, "start": "identity"} | changes))


def sparse_crowd(n_classes=3, n_items=60):
    """Two labels on each item, most of them right."""
    X, votes, truth = feature_crowd(n_classes, n_items=n_items, accuracy=0.8)
    return X, thin(votes, 0.6, random_state=0), truth


def pairs_of(votes):
    return set(zip(votes.item.tolist(), votes.worker.tolist()))


@pytest.mark.parametrize("base", BASES)
def test_without_rounds_it_is_its_base_to_the_last_bit(base):
    X, votes, _ = sparse_crowd()
    ours = quick(base=base, rounds=0).fit(X, votes)
    theirs = BASES[base](**NETWORK).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    np.testing.assert_array_equal(ours.confusion_, theirs.confusion_)
    assert ours.best_round_ == 0 and ours.pseudo_annotations_.n_annotations == 0


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("selection", ["balanced", "confidence", "random"])
def test_the_choice_is_its_slow_twin(monkeypatch, base, selection):
    """Of every pair without a label, the surest within the quota of its class; a loop over pairs finds the same."""
    asked = []
    guess = self_crowd.predict_pseudo_annotations

    def noted(log_answers, workers, n_classes, answered):
        with torch.no_grad():
            asked.append((log_answers(np.arange(60)).double().tolist(), workers.tolist(), answered))
        return guess(log_answers, workers, n_classes, answered)

    monkeypatch.setattr(self_crowd, "predict_pseudo_annotations", noted)
    X, votes, _ = sparse_crowd()
    model = quick(base=base, selection=selection, rounds=1, per_round=40).fit(X, votes)
    log_answers, workers, answered = asked[0]
    guesses = slow_pseudo_annotations(log_answers, 60, workers, set.union(*map(pairs_of, answered)))
    chosen = model.pseudo_annotations_
    found = [*zip(chosen.item.tolist(), chosen.worker.tolist(), chosen.label.tolist())]
    assert len(found) == 40
    if selection == "random":
        assert set(found) <= {g[:3] for g in guesses}
        entropy = {g[:3]: g[3] for g in guesses}
        middle = np.median([g[3] for g in guesses])
        assert 8 <= sum(entropy[pair] > middle for pair in found) <= 32  # no eye for the sure ones
        return
    available = np.bincount([g[2] for g in guesses], minlength=3).tolist()
    quotas = model.selected_counts_[1].tolist()
    assert selection == "confidence" or np.abs(np.subtract(quotas, slow_quotas(available, 40))).max() <= 1
    n_per_round = quotas if selection == "balanced" else [40]
    expected = slow_choice(guesses, [0] * len(guesses), n_per_round, by_class=selection == "balanced")
    assert found == [g[:3] for g in expected]


@pytest.mark.parametrize("selection", ["balanced", "confidence", "random"])
def test_no_pair_is_guessed_twice_and_no_label_overwritten(selection):
    """Nor is a pair guessed that is held out, or that belongs to somebody of whom nothing is known."""
    X, votes, _ = sparse_crowd()
    silent = votes.keep(votes.worker != 3)
    model = quick(selection=selection, rounds=4, per_round=50, validation=0.2).fit(X, silent)
    chosen = model.pseudo_annotations_
    assert chosen.n_annotations == 200 == len(pairs_of(chosen))
    assert not pairs_of(chosen) & pairs_of(silent)  # of which a fifth was held out
    assert 3 not in chosen.worker
    np.testing.assert_array_equal(model.selected_counts_.sum(axis=0), np.bincount(chosen.label, minlength=3))


def test_what_is_told_of_each_round():
    """Counts, both R, the likelihood of held-out labels; the first round is that of the base."""
    X, votes, _ = sparse_crowd()
    model = quick(rounds=3, per_round=0.1, validation=0.2).fit(X, votes)
    assert [told["round"] for told in model.rounds_] == [0, 1, 2, 3]
    n_open = 60 * votes.n_workers - votes.n_annotations
    assert [told["n_selected"] for told in model.rounds_] == [0, *[round(0.1 * n_open)] * 3]
    for told, selected, combined in zip(model.rounds_, model.selected_counts_, model.combined_counts_):
        assert told["combined_imbalance"] == imbalance(combined)
        assert told["round"] == 0 or told["selected_imbalance"] == imbalance(selected)
        assert np.isfinite(told["heldout"])
    n_learnt = votes.n_annotations - round(0.2 * votes.n_annotations)
    assert model.combined_counts_[0].sum() == n_learnt
    np.testing.assert_array_equal(np.diff(model.combined_counts_, axis=0), model.selected_counts_[1:])
    assert sorted({epoch["round"] for epoch in model.history_}) == [0, 1, 2, 3]


def test_rounds_end_when_held_out_labels_are_foretold_worse(monkeypatch):
    """Kept is the last round within a standard error of the best, and `round_patience` more are tried."""
    spread = np.array([0.5, -0.5] * 8)  # a standard error of 0.13 between two rounds
    scores = iter([np.full(16, -3.0), spread - 2.0, -2.1 - 0.5 * spread, np.full(16, -2.5), np.full(16, -2.4)])
    networks = []
    monkeypatch.setattr(HeldoutMetric, "measure", lambda self, network, rows: networks.append(network) or next(scores))
    X, votes, _ = sparse_crowd()
    model = quick(rounds=9, per_round=20, round_patience=2).fit(X, votes)
    assert [told["heldout"] for told in model.rounds_] == pytest.approx([-3, -2, -2.1, -2.5, -2.4])
    assert model.best_round_ == 2 and model.pseudo_annotations_.n_annotations == 40
    for name, tensor in networks[2].state_dict().items():
        assert torch.equal(tensor, model.module_.state_dict()[name])


def test_without_held_out_labels_all_rounds_are_gone_through():
    X, votes, _ = sparse_crowd()
    model = quick(rounds=3, per_round=20, round_patience=1, validation=0.0).fit(X, votes)
    assert model.best_round_ == 3 and "heldout" not in model.rounds_[0]


def test_a_round_is_measured_by_held_out_labels_of_all_classes_alike():
    """As `score` has it, but that a label counts by how rare its item's class is; the measure is that of round 0."""
    X, votes, truth = sparse_crowd()
    known = {votes.item_ids[i]: votes.classes[(truth[i] + 1) % 3] for i in range(20)}  # gold against the labels
    settings = {"validation": 0.2, "max_epochs": 3, "per_round": 40}
    first, second = (quick(rounds=rounds, **settings).fit(X, votes, known) for rounds in (0, 1))
    order, n_out = np.random.default_rng(0).permutation(votes.n_annotations), round(0.2 * votes.n_annotations)
    learnt, out = votes.keep(np.sort(order[n_out:])), votes.keep(np.sort(order[:n_out]))
    gold = np.where(np.arange(60) < 20, (truth + 1) % 3, -1).astype(np.int32)
    believed = combine(first.predict_proba(X), learnt, gold)
    confusion, shares = worker_confusions(learnt, believed), class_shares(learnt, believed)
    for model, number in ((first, 0), (second, 1)):
        proba, total, weights = (model.predict_proba(X) + 0.01 * shares) / 1.01, 0.0, 0.0
        for i, w, label in zip(out.item, out.worker, out.label):
            weight = sum(believed[i, k] / shares[k] for k in range(3))
            total += weight * np.log(sum(proba[i, k] * confusion[w, k, label] for k in range(3)))
            weights += weight
        assert second.rounds_[number]["heldout"] == pytest.approx(total / weights, rel=1e-9)


def test_a_class_that_nobody_guesses_gets_no_quota():
    """Two classes are named, one of three is nobody's guess: the fit goes on without it."""
    X, votes, _ = sparse_crowd(2)
    wider = Annotations(
        votes.item, votes.worker, votes.label,
        item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=["a", "b", "c"],
    )  # fmt: skip
    model = quick(rounds=2, per_round=30).fit(X, wider)
    assert model.selected_counts_[1:, :2].all() and not model.selected_counts_[:, 2].any()


def test_a_pool_that_is_used_up_ends_the_rounds():
    """More is asked for than there is: everything is taken once, and then nothing is left to train on again."""
    X, votes, _ = sparse_crowd()
    model = quick(rounds=9, per_round=400, validation=0.0).fit(X, votes)
    assert [told["n_selected"] for told in model.rounds_] == [0, 400, 60 * votes.n_workers - votes.n_annotations - 400]


def test_everybody_answered_everything():
    """Nothing is open: it is its base."""
    dense = Annotations.from_matrix(np.tile((np.arange(60) % 2)[:, None], (1, 4)))
    model = quick(rounds=3).fit(features_of(np.arange(60) % 2, seed=1), dense)
    assert len(model.rounds_) == 1 and model.pseudo_annotations_.n_annotations == 0  # held-out pairs are not open


def test_a_worker_who_answered_everything_is_not_asked_again():
    X, votes, truth = sparse_crowd()
    votes = votes.keep(votes.worker != 0).with_more(np.arange(60), np.zeros(60, int), truth)
    model = quick(rounds=2, per_round=50, validation=0.0).fit(X, votes)
    assert 0 not in model.pseudo_annotations_.worker and model.pseudo_annotations_.n_annotations == 100


def test_one_worker():
    """He is asked what he left out, and one is enough to learn two classes."""
    truth = np.arange(60) % 2
    X = features_of(truth, seed=1)
    said = np.where(np.arange(60) % 3 == 0, -1, truth)
    model = quick(rounds=2, per_round=5, validation=0.0)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model.fit(X, Annotations.from_matrix(said[:, None]))
    assert pairs_of(model.pseudo_annotations_) <= {(i, 0) for i in range(0, 60, 3)}
    assert np.mean(model.predict(X) == truth) > 0.9


def test_few_labels_give_no_nan_and_every_guessed_class_a_place():
    """Nine of ten labels are gone, and many items have none."""
    X, votes, _ = feature_crowd(3, n_items=120, accuracy=0.8)
    few = votes.keep(np.random.default_rng(1).random(votes.n_annotations) < 0.1)
    model = quick(rounds=2, per_round=0.05).fit(X, few)
    assert np.isfinite(model.predict_proba(X)).all() and np.isfinite(model.posterior_).all()
    guessed = model.selected_counts_[1:]
    assert np.all(guessed > 0)  # all three classes are guessed, and each has a place in every round
    assert set(np.flatnonzero(few.n_labels == 0)) & set(model.pseudo_annotations_.item.tolist())


def test_quota_combined_levels_labels_and_guesses():
    """Classes that are small among the labels are lifted to the level of the largest."""
    truth = np.repeat([0, 0, 0, 0, 1, 2], 20)
    X, said = features_of(truth, seed=3), np.tile(truth[:, None], (1, 6))
    said[np.random.default_rng(0).random(said.shape) < 0.7] = -1
    votes = Annotations.from_matrix(said)
    model = quick(quota="combined", rounds=1, per_round=60, validation=0.0).fit(X, votes)
    before, after = model.combined_counts_
    assert imbalance(after) < imbalance(before) and model.selected_counts_[1, 0] == 0


def test_weights_are_those_of_guesses():
    """A label counts 1, a guess as told, wherever it stands among the sorted triples; so says the loss."""
    votes = Annotations.from_matrix([[0, -1, 1], [-1, 1, -1]])
    labels = LabelPool(votes, None).with_pseudo(np.array([[0, 1, 1], [1, 0, 0]]))
    assert labels.all.n_annotations == 5
    np.testing.assert_array_equal(labels.weight(0.25), [1, 0.25, 1, 0.25, 1])


@pytest.mark.parametrize("base", BASES)
def test_guesses_without_weight_teach_nothing(base):
    """With next to no weight a round learns the labels alone; a whole weight learns something else."""
    X, votes, _ = sparse_crowd()
    settings = {"base": base, "rounds": 1, "per_round": 100, "validation": 0.0, "max_epochs": 3}
    light, lighter, full = (
        quick(pseudo_weight=weight, **settings).fit(X, votes).predict_proba(X) for weight in (1e-7, 1e-9, 1.0)
    )
    np.testing.assert_allclose(light, lighter, atol=1e-4)
    assert np.abs(light - full).max() > 1e-3


def test_warm_starts_go_on_for_a_few_epochs():
    """From the weights of the round before, without the warm-up of trace regularisation; a fresh start has it."""
    X, votes, _ = sparse_crowd()
    base = TraceReg(warm_up=20)
    warm = quick(base=base, rounds=2, per_round=20, warm_start=True, warm_epochs=3, validation=0.0).fit(X, votes)
    fresh = quick(base=base, rounds=2, per_round=20, validation=0.0).fit(X, votes)
    assert [epoch["round"] for epoch in warm.history_] == [0] * 25 + [1] * 3 + [2] * 3
    assert [epoch["round"] for epoch in fresh.history_] == [0] * 25 + [1] * 25 + [2] * 25
    assert warm.history_[25]["loss"] < fresh.history_[25]["loss"]


def test_a_base_brings_its_own_parameters_and_no_network():
    """A vector per worker is what the base says; the sizes of networks are not its to say."""
    X, votes, _ = sparse_crowd()
    ours = quick(base=CrowdLayer(form="vw"), rounds=0).fit(X, votes)
    theirs = CrowdLayer(form="vw", **NETWORK).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ParameterError, match=r"The base of a SelfCrowd has hidden=\(3,\); give hidden to SelfCrowd"):
        quick(base=CrowdLayer(hidden=(3,))).fit(X, votes)
    with pytest.raises(ParameterError, match="'base' of SelfCrowd must be one of 'crowd-layer'"):
        quick(base="raykar").fit(X, votes)


@pytest.mark.parametrize("amount", [0, 1.5, -1, "some", True])
def test_what_is_no_amount_is_refused(amount):
    X, votes, _ = sparse_crowd()
    with pytest.raises(ParameterError, match="must be a share above 0 and below 1, or a whole number at least 1"):
        quick(per_round=amount).fit(X, votes)


def test_a_saved_model_keeps_its_rounds(tmp_path):
    X, votes, _ = sparse_crowd()
    model = quick(base=CrowdLayer(form="vw-b"), rounds=2, per_round=20).fit(X, votes)
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.rounds_ == model.rounds_ and loaded.best_round_ == model.best_round_ == 2
    assert loaded.base.form == "vw-b"
    np.testing.assert_array_equal(loaded.combined_counts_, model.combined_counts_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_the_sheets_order_of_imbalance():
    """R of labels with guesses: balanced below random below confidence in every round; so is R of the first guesses."""
    data = make_self_crowd(random_state=0)
    settings = {"hidden": (64,), "learning_rate": 1e-2, "max_epochs": 25, "batch_size": 64, "validation": 0.0}
    told = {
        selection: SelfCrowd(
            base="crowd-layer", selection=selection, rounds=5, per_round=800, start="identity", pseudo_weight=1.0,
            evidence="features", round_patience=None, random_state=0, **settings,
        ).fit(data.X, data.crowd.annotations).rounds_
        for selection in ("balanced", "random", "confidence")
    }  # fmt: skip
    r = {name: [one["combined_imbalance"] for one in rounds[1:]] for name, rounds in told.items()}
    assert np.all(np.less(r["balanced"], r["random"])) and np.all(np.less(r["random"], r["confidence"]))
    assert told["balanced"][1]["selected_imbalance"] < told["confidence"][1]["selected_imbalance"]


@pytest.mark.parametrize("evidence", ["features", "labels"])
def test_guesses_rest_on_the_evidence(monkeypatch, evidence):
    """What the network says of x, or that times what labels and gold say, mixes the rows of each worker's matrix."""
    asked = []
    guess = self_crowd.predict_pseudo_annotations

    def noted(log_answers, workers, n_classes, answered):
        with torch.no_grad():
            asked.append((log_answers(np.arange(60)).double().exp().numpy(), workers))
        return guess(log_answers, workers, n_classes, answered)

    monkeypatch.setattr(self_crowd, "predict_pseudo_annotations", noted)
    X, votes, truth = sparse_crowd()
    gold = {votes.item_ids[0]: votes.classes[truth[0]], votes.item_ids[1]: votes.classes[(truth[1] + 1) % 3]}
    settings = {"base": "spee-lfc", "evidence": evidence, "validation": 0.0, "max_epochs": 5}
    first = quick(rounds=0, **settings).fit(X, votes, gold)
    quick(rounds=1, **settings).fit(X, votes, gold)
    believed = first.predict_proba(X) if evidence == "features" else first.posterior_
    answers, workers = asked[0]
    expected = np.einsum("ik,wkl->ilw", believed, first.confusion_[workers])
    np.testing.assert_allclose(answers, expected, atol=1e-5)
    assert evidence == "features" or believed[1, (truth[1] + 1) % 3] == 1


def test_the_best_of_warm_rounds_is_given_back(monkeypatch):
    """Though later rounds go on training the same network."""
    scores = iter([np.full(9, -3.0), np.full(9, -1.0), np.full(9, -2.0)])
    answers = []
    X, votes, _ = sparse_crowd()

    def measured(self, network, rows):
        answers.append(probabilities(network, rows))
        return next(scores)

    monkeypatch.setattr(HeldoutMetric, "measure", measured)
    model = quick(rounds=2, per_round=20, round_patience=3, warm_start=True, max_epochs=3).fit(X, votes)
    assert model.best_round_ == 1 and np.abs(answers[1] - answers[2]).max() > 1e-4
    np.testing.assert_array_equal(model.predict_proba(X), answers[1])


def test_guesses_are_no_evidence_and_counts_are_those_of_all(monkeypatch):
    """In a second round, what is believed of an item rests on labels alone, and levels on labels with guesses."""
    seen, levelled = [], []
    monkeypatch.setattr(
        self_crowd, "combine", lambda proba, votes, gold: seen.append(votes) or combine(proba, votes, gold)
    )
    quotas = self_crowd.levelling_quotas
    monkeypatch.setattr(
        self_crowd, "levelling_quotas", lambda counts, *more: levelled.append(counts) or quotas(counts, *more)
    )
    X, votes, _ = sparse_crowd()
    model = quick(quota="combined", rounds=2, per_round=30, validation=0.0).fit(X, votes)
    assert [found == votes for found in seen] == [True, True]
    assert {tuple(counts) for counts in levelled} >= {
        tuple(model.combined_counts_[0]),
        tuple(model.combined_counts_[1]),
    }


def test_a_share_is_one_of_the_pairs_without_a_label():
    """A label given twice is one pair, and whoever has held-out labels alone has no pairs."""
    votes = Annotations.from_matrix([[0, 1, -1], [1, 0, -1]]).with_more([0], [0], [1])
    heldout = Annotations.from_matrix([[-1, -1, 0], [-1, -1, 1]], classes=[0, 1])
    more = Annotations(*np.zeros((3, 0), int), item_ids=range(8), worker_ids=range(3), classes=[0, 1])
    wide = more.with_more(votes.item, votes.worker, votes.label)
    out = more.with_more(heldout.item, heldout.worker, heldout.label)
    assert LabelPool(wide, out).n_per_round(0.5) == 6  # half of 2 x 8 - 4
    assert LabelPool(wide, None).n_per_round(7) == 7


def test_rounds_are_judged_where_epochs_are_not():
    """Trainings go to their end, and held-out labels compare the rounds."""
    X, votes, _ = sparse_crowd()
    model = quick(patience=None, round_patience=5, rounds=2, per_round=20, validation=0.3, max_epochs=4).fit(X, votes)
    assert len(model.history_) == 12 and all("heldout" in told for told in model.rounds_)
    assert all("heldout" not in epoch for epoch in model.history_)


def test_too_few_labels_to_judge_rounds_are_noted():
    X, votes, _ = sparse_crowd()
    few = votes.keep(np.arange(votes.n_annotations) < 60)
    model = quick(rounds=1, per_round=10, round_patience=1)
    with pytest.warns(CrowdWarning, match="rounds_unjudged: There are too few labels to hold any out"):
        model.fit(X, few)
    assert model.best_round_ == 1


def test_bases_that_others_seeded_or_that_say_the_same_are_taken():
    """`compare` and searches give wrapped methods a seed; equal values are equal, however they are written."""
    X, votes, _ = sparse_crowd()
    model = quick(base=CrowdLayer(form="vw", random_state=5, hidden=[8], learning_rate=np.float64(1e-3)), rounds=0)
    theirs = CrowdLayer(form="vw", **NETWORK).fit(X, votes)
    np.testing.assert_array_equal(model.fit(X, votes).predict_proba(X), theirs.predict_proba(X))
    with pytest.raises(ParameterError, match="'base' of SelfCrowd must be one of 'crowd-layer'"):
        quick(base=SelfCrowd()).fit(X, votes)


def test_a_killed_fit_of_warm_rounds_goes_on():
    """The network that goes on from round to round is found again in the state in which each round left it."""
    check_a_killed_fit_goes_on_with_the_same_result(SelfCrowd(warm_start=True, warm_epochs=4, round_patience=None))

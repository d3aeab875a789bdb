"""Rounds of Self-Crowd: quotas, scores, stopping, warm starts and resuming."""

import math

import numpy as np
import pytest
import torch

from manyhands import Annotations, SelfCrowd, load_model
from manyhands.classes import imbalance
from manyhands.classifiers import CrowdLayer, TraceReg, self_crowd
from manyhands.classifiers.network import combine
from manyhands.classifiers.self_crowd import HeldoutMetric, LabelPool
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.heldout import class_shares, worker_confusions
from manyhands.nn.backbones import probabilities
from manyhands.testing.learners import check_resumed_fit_equals_uninterrupted_fit
from reference.slow_selection import slow_pseudo_annotations
from small_self_crowd import BASES, NETWORK, pairs_of, quick, sparse_crowd, uneven_crowd

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("base", BASES)
def test_without_rounds_it_equals_its_base_method(base):
    X, votes, _ = sparse_crowd()
    ours = quick(base=base, rounds=0).fit(X, votes)
    theirs = BASES[base](**NETWORK).fit(X, votes)
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    np.testing.assert_array_equal(ours.confusion_, theirs.confusion_)
    assert ours.best_round_ == 0 and ours.pseudo_annotations_.n_annotations == 0


def test_the_defaults_run_all_rounds_on_all_labels():
    """14 rounds of 25 epochs; nothing is held out, and no round ends early."""
    X, votes, _ = sparse_crowd()
    model = SelfCrowd(random_state=0).fit(X, votes)
    assert [epoch["round"] for epoch in model.history_] == [number for number in range(15) for _ in range(25)]
    assert model.best_round_ == 14 and not any("heldout" in record for record in model.rounds_ + model.history_)
    assert model.combined_counts_[0].sum() == votes.n_annotations
    share = round(0.018 * (60 * votes.n_workers - votes.n_annotations))
    assert model.pseudo_annotations_.n_annotations == 14 * share


def test_quotas_are_inverse_to_the_pool(monkeypatch):
    """Eq. 4 and 5 in every round: M_c = M (1 / N'_c) / sum_c' (1 / N'_c'), with N'_c counted one by one."""
    pools = []
    predict = self_crowd.predict_pseudo_annotations

    def recorded(log_labels, workers, n_classes, taken):
        with torch.no_grad():
            logs = log_labels(np.arange(120)).double().tolist()
        found = slow_pseudo_annotations(logs, 120, workers.tolist(), set.union(*map(pairs_of, taken)))
        pools.append([sum(one[2] == k for one in found) for k in range(n_classes)])
        return predict(log_labels, workers, n_classes, taken)

    monkeypatch.setattr(self_crowd, "predict_pseudo_annotations", recorded)
    X, votes = uneven_crowd()
    model = quick(rounds=2, per_round=40, validation=0.0, evidence="features").fit(X, votes)
    pools = [pools[0], pools[-1]]  # the stream is read more than once in a round
    for pool, selected in zip(pools, model.selected_counts_[1:].tolist()):
        assert max(pool) > 2 * min(pool)  # so that equal quotas would differ
        expected = [40 / n / sum(1 / other for other in pool) for n in pool]
        assert np.abs(np.subtract(selected, expected)).max() < 1 and sum(selected) == 40


def test_each_round_is_recorded():
    """Counts, both imbalance ratios, the held-out log-likelihood; round 0 is the base method."""
    X, votes, _ = sparse_crowd()
    model = quick(rounds=3, per_round=0.1, validation=0.2).fit(X, votes)
    assert [record["round"] for record in model.rounds_] == [0, 1, 2, 3]
    n_open = 60 * votes.n_workers - votes.n_annotations
    assert [record["n_selected"] for record in model.rounds_] == [0, *[round(0.1 * n_open)] * 3]
    for record, selected, combined in zip(model.rounds_, model.selected_counts_, model.combined_counts_):
        assert record["combined_imbalance"] == imbalance(combined)
        assert record["round"] == 0 or record["selected_imbalance"] == imbalance(selected)
        shares = [count / sum(combined.tolist()) for count in combined.tolist()]
        middle = sum(shares) / len(shares)
        spread = math.sqrt(sum((share - middle) ** 2 for share in shares) / len(shares))
        assert record["combined_shares"] == pytest.approx(shares) and record["combined_spread"] == pytest.approx(spread)
        assert record["round"] == 0 or record["selected_shares"] == pytest.approx(selected / selected.sum())
        assert np.isfinite(record["heldout"])
    assert not [name for name in model.rounds_[0] if name.startswith("selected")]  # nothing was selected
    n_learnt = votes.n_annotations - round(0.2 * votes.n_annotations)
    assert model.combined_counts_[0].sum() == n_learnt
    np.testing.assert_array_equal(np.diff(model.combined_counts_, axis=0), model.selected_counts_[1:])
    assert sorted({epoch["round"] for epoch in model.history_}) == [0, 1, 2, 3]


def test_rounds_stop_when_the_held_out_log_likelihood_falls(monkeypatch):
    """The last round within a standard error of the best is kept; `round_patience` more rounds are run."""
    spread = np.array([0.5, -0.5] * 8)  # a standard error of 0.13 between two rounds
    scores = iter([np.full(16, -3.0), spread - 2.0, -2.1 - 0.5 * spread, np.full(16, -2.5), np.full(16, -2.4)])
    networks = []
    monkeypatch.setattr(HeldoutMetric, "measure", lambda self, network, rows: networks.append(network) or next(scores))
    X, votes, _ = sparse_crowd()
    model = quick(rounds=9, per_round=20, round_patience=2).fit(X, votes)
    assert [record["heldout"] for record in model.rounds_] == pytest.approx([-3, -2, -2.1, -2.5, -2.4])
    assert model.best_round_ == 2 and model.pseudo_annotations_.n_annotations == 40
    for name, tensor in networks[2].state_dict().items():
        assert torch.equal(tensor, model.module_.state_dict()[name])


def test_without_held_out_labels_all_rounds_are_run():
    X, votes, _ = sparse_crowd()
    model = quick(rounds=3, per_round=20, round_patience=1, validation=0.0).fit(X, votes)
    assert model.best_round_ == 3 and "heldout" not in model.rounds_[0]


def test_the_score_of_a_round_is_the_class_balanced_held_out_log_likelihood():
    """As in `score`, with labels weighted by the inverse frequency of the class; the metric is that of round 0."""
    X, votes, truth = sparse_crowd()
    known = {votes.item_ids[i]: votes.classes[(truth[i] + 1) % 3] for i in range(20)}  # gold against the labels
    settings = {"validation": 0.2, "max_epochs": 3, "per_round": 40}
    first, second = (quick(rounds=rounds, **settings).fit(X, votes, known) for rounds in (0, 1))
    order, n_out = np.random.default_rng(0).permutation(votes.n_annotations), round(0.2 * votes.n_annotations)
    learnt, out = votes.keep(np.sort(order[n_out:])), votes.keep(np.sort(order[:n_out]))
    gold = np.where(np.arange(60) < 20, (truth + 1) % 3, -1).astype(np.int32)
    posterior = combine(first.predict_proba(X), learnt, gold)
    confusion, shares = worker_confusions(learnt, posterior), class_shares(learnt, posterior)
    for model, number in ((first, 0), (second, 1)):
        proba, total, weights = (model.predict_proba(X) + 0.01 * shares) / 1.01, 0.0, 0.0
        for i, w, label in zip(out.item, out.worker, out.label):
            weight = sum(posterior[i, k] / shares[k] for k in range(3))
            total += weight * np.log(sum(proba[i, k] * confusion[w, k, label] for k in range(3)))
            weights += weight
        assert second.rounds_[number]["heldout"] == pytest.approx(total / weights, rel=1e-9)


def test_rounds_stop_where_no_pair_is_left():
    """With more per round than there are pairs, each is selected once."""
    X, votes, _ = sparse_crowd()
    model = quick(rounds=9, per_round=400, validation=0.0).fit(X, votes)
    assert [record["n_selected"] for record in model.rounds_] == [
        0,
        400,
        60 * votes.n_workers - votes.n_annotations - 400,
    ]


def test_combined_quotas_balance_labels_and_pseudo_annotations():
    """Pseudo-annotations are of the classes that are small among the labels."""
    X, votes = uneven_crowd()
    model = quick(quota="combined", rounds=1, per_round=60, validation=0.0).fit(X, votes)
    before, after = model.combined_counts_
    assert imbalance(after) < imbalance(before) and model.selected_counts_[1, 0] == 0


def test_warm_starts_train_for_warm_epochs():
    """From the weights of the round before, without the warm-up of trace regularisation; new weights have it."""
    X, votes, _ = sparse_crowd()
    base = TraceReg(warm_up=20)
    warm = quick(base=base, rounds=2, per_round=20, warm_start=True, warm_epochs=3, validation=0.0).fit(X, votes)
    fresh = quick(base=base, rounds=2, per_round=20, validation=0.0).fit(X, votes)
    assert [epoch["round"] for epoch in warm.history_] == [0] * 25 + [1] * 3 + [2] * 3
    assert [epoch["round"] for epoch in fresh.history_] == [0] * 25 + [1] * 25 + [2] * 25
    assert warm.history_[25]["loss"] < fresh.history_[25]["loss"]


@pytest.mark.parametrize("amount", [0, 1.5, -1, "some", True])
def test_invalid_per_round_is_refused(amount):
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


def test_the_best_of_warm_rounds_is_returned(monkeypatch):
    """Although later rounds train the same network further."""
    scores = iter([np.full(9, -3.0), np.full(9, -1.0), np.full(9, -2.0)])
    outputs = []
    X, votes, _ = sparse_crowd()

    def measured(self, network, rows):
        outputs.append(probabilities(network, rows))
        return next(scores)

    monkeypatch.setattr(HeldoutMetric, "measure", measured)
    model = quick(rounds=2, per_round=20, round_patience=3, warm_start=True, max_epochs=3).fit(X, votes)
    assert model.best_round_ == 1 and np.abs(outputs[1] - outputs[2]).max() > 1e-4
    np.testing.assert_array_equal(model.predict_proba(X), outputs[1])


def test_pseudo_annotations_enter_quotas_but_not_the_posterior(monkeypatch):
    """In a second round the posterior uses labels alone, and quotas use labels and pseudo-annotations."""
    seen, counted = [], []
    monkeypatch.setattr(
        self_crowd, "combine", lambda proba, votes, gold: seen.append(votes) or combine(proba, votes, gold)
    )
    quotas = self_crowd.levelling_quotas
    monkeypatch.setattr(
        self_crowd, "levelling_quotas", lambda counts, *more: counted.append(counts) or quotas(counts, *more)
    )
    X, votes, _ = sparse_crowd()
    model = quick(quota="combined", rounds=2, per_round=30, validation=0.0).fit(X, votes)
    assert [found == votes for found in seen] == [True, True]
    assert {tuple(counts) for counts in counted} >= {
        tuple(model.combined_counts_[0]),
        tuple(model.combined_counts_[1]),
    }


def test_a_share_per_round_is_of_the_pairs_without_a_label():
    """A repeated label is one pair; workers who have held-out labels alone are left out."""
    votes = Annotations.from_matrix([[0, 1, -1], [1, 0, -1]]).with_more([0], [0], [1])
    heldout = Annotations.from_matrix([[-1, -1, 0], [-1, -1, 1]], classes=[0, 1])
    more = Annotations(*np.zeros((3, 0), int), item_ids=range(8), worker_ids=range(3), classes=[0, 1])
    wide = more.with_more(votes.item, votes.worker, votes.label)
    out = more.with_more(heldout.item, heldout.worker, heldout.label)
    assert LabelPool(wide, out).n_per_round(0.5) == 6  # half of 2 x 8 - 4
    assert LabelPool(wide, None).n_per_round(7) == 7


def test_rounds_are_compared_without_early_stopping_of_epochs():
    """Each training runs for all epochs, and held-out labels compare the rounds."""
    X, votes, _ = sparse_crowd()
    model = quick(patience=None, round_patience=5, rounds=2, per_round=20, validation=0.3, max_epochs=4).fit(X, votes)
    assert len(model.history_) == 12 and all("heldout" in record for record in model.rounds_)
    assert all("heldout" not in epoch for epoch in model.history_)


def test_too_few_labels_to_compare_rounds_give_a_warning():
    X, votes, _ = sparse_crowd()
    few = votes.keep(np.arange(votes.n_annotations) < 60)
    model = quick(rounds=1, per_round=10, round_patience=1)
    with pytest.warns(CrowdWarning, match="rounds_not_compared: There are too few labels to hold any out"):
        model.fit(X, few)
    assert model.best_round_ == 1


def test_an_interrupted_fit_with_warm_starts_resumes():
    """The network that is trained from round to round is restored as each round left it."""
    check_resumed_fit_equals_uninterrupted_fit(SelfCrowd.plus(warm_start=True, warm_epochs=4, round_patience=None))

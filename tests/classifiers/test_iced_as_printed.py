"""``ICED()`` is the paper, line by line: each test shows a default, and the switch that differs from it."""

import numpy as np
import pytest
import torch

from manyhands import ICED
from manyhands.classifiers import iced
from manyhands.classifiers.iced import (
    Certainty,
    Synthesis,
    TruthInference,
    WarmUp,
    WarmUpTraining,
    interpolation_weights,
    one_hot,
)
from manyhands.exceptions import ParameterError
from manyhands.testing.learners import assert_same_fit
from reference.slow_synthesis import slow_hard_em
from small_iced import imbalanced, loops_of, published

pytestmark = pytest.mark.usefixtures("one_thread")


def matrix_of(votes):
    """Labels of a full crowd, items x workers, as nested lists."""
    return votes.label.reshape(votes.n_items, votes.n_workers).tolist()


def test_the_name_of_the_paper_gives_the_paper():
    """All options at once; nothing of `ICED.plus()` is among them."""
    model = ICED()
    synthesis = Synthesis(
        delta="intent", size="repeat", candidates="all", first_labels="inferred", labels="mode", decoder="frozen"
    )
    assert model.synthesis == synthesis and model.certainty == Certainty(epsilon=1e-6, smoothing=0.0)
    assert model.warm_up == WarmUp(kind="grouped", batch_size=None, stratified=False)
    assert model.inference == TruthInference("estimated", "hard", shrinkage=0.0, use_features=False)
    assert (model.soft_targets, model.balanced_loss, model.weight_decay) == (False, False, 0.0)
    assert (model.stable_rounds, model.label_tolerance, model.max_epochs, model.patience) == (10, 0.01, 50, None)


# Section 2.3: worker matrices by hard counts, and the class prior


@pytest.mark.parametrize("settings", [{}, {"inference__prior": "uniform"}, {"inference__prior": "uniform-start"}])
def test_labels_and_confusions_are_of_a_slow_hard_em(settings):
    """D&S-orig of ``ICED()`` counts the current labels, and estimates the class prior in every M step."""
    X, votes, _ = imbalanced((60, 8), n_workers=5, error=0.35, seed=4)
    model = published(synthesis=None, max_epochs=0, **settings).fit(X, votes)
    prior = settings.get("inference__prior", "estimated")
    answer, confusion = slow_hard_em(matrix_of(votes), 2, 0.01, prior)
    assert model.posterior_original_.argmax(axis=1).tolist() == answer
    np.testing.assert_allclose(model.confusion_, confusion)
    if not settings:
        share = (np.bincount(answer) + 0.01) / (len(answer) + 0.02)
        row = matrix_of(votes)[0]
        proba = [share[k] * np.prod([confusion[w][k][v] for w, v in enumerate(row)]) for k in range(2)]
        np.testing.assert_allclose(model.posterior_original_[0], np.array(proba) / sum(proba))


def test_soft_counts_are_a_switch():
    """They give other matrices than hard counts."""
    X, votes, _ = imbalanced((60, 8), n_workers=5, error=0.35, seed=4)
    hard, soft = (published(inference__em=em, max_epochs=0).fit(X, votes).confusion_ for em in ("hard", "soft"))
    assert np.abs(hard - soft).max() > 0.01


# Section 2.4: Eq. 2.4 without pseudo-votes


def test_certainty_is_the_inverse_variance_of_the_labels():
    """1 / (p (1 - p) + 1e-6); pseudo-votes are a switch."""
    X, votes, _ = imbalanced(error=0.3)
    p = np.array(matrix_of(votes)).mean(axis=1)
    np.testing.assert_allclose(published().fit(X, votes).certainty_, 1 / (p * (1 - p) + 1e-6))
    share = (5 * p + 0.5) / 6
    smoothed = published(certainty=Certainty(epsilon=0.01, smoothing=0.5)).fit(X, votes).certainty_
    np.testing.assert_allclose(smoothed, 1 / (share * (1 - share) + 0.01))


# Section 2.4: candidates, R x m items, Eq. 2.5, decoder


def synthesis_of_first_round(monkeypatch, **settings):
    """Candidates and numbers of the first synthesis, the labels inferred before it and the network's classes."""
    X, votes, _ = imbalanced((80, 12), n_workers=5, error=0.35, seed=4)
    seen, plans, make = loops_of(monkeypatch), [], iced.synthesise

    def noted(options, annotations, points, certainty, candidates, n_wanted, rng):
        predicted = seen[-1].network.embed_and_classify(seen[-1].context.data.rows)[1].argmax(1).numpy()
        plans.append((candidates, n_wanted, predicted))
        return make(options, annotations, points, certainty, candidates, n_wanted, rng)

    monkeypatch.setattr(iced, "synthesise", noted)
    published(max_epochs=1, warm_up=WarmUp("all", epochs=8), **settings).fit(X, votes)
    return votes, *plans[0]


@pytest.mark.parametrize("settings", [{}, {"synthesis__candidates": "agree"}])
def test_all_items_inferred_to_be_of_the_minority_are_candidates(settings, monkeypatch):
    """Or only those that the network assigns to it too; the labels are those of an inference before any synthesis."""
    votes, candidates, _, predicted = synthesis_of_first_round(monkeypatch, **settings)
    inferred = np.array(slow_hard_em(matrix_of(votes), 2, 0.01, "estimated")[0])
    expected = inferred == 1
    if settings:
        expected &= predicted == 1
    assert candidates[1].tolist() == np.flatnonzero(expected).tolist() and expected.sum() > 2


@pytest.mark.parametrize("settings", [{}, {"synthesis__first_labels": "vote"}])
def test_the_first_synthesis_uses_inferred_labels_or_the_vote(settings, monkeypatch):
    """R x m items of them: R + 1 is the ratio of the classes by the same labels."""
    votes, candidates, n_wanted, _ = synthesis_of_first_round(monkeypatch, **settings)
    vote = (np.array(matrix_of(votes)).mean(axis=1) > 0.5).astype(int)
    inferred = np.array(slow_hard_em(matrix_of(votes), 2, 0.01, "estimated")[0])
    assert (vote != inferred).sum() > 2
    first = vote if settings else inferred
    assert candidates[1].tolist() == np.flatnonzero(first).tolist()
    n_large, n_small = np.bincount(first)
    assert n_wanted.tolist() == [0, (round(n_large / n_small) - 1) * n_small]


def test_r_stays_and_the_number_of_candidates_changes(monkeypatch):
    """With "repeat" every round has R items of each candidate of that round; with "fixed" always as many items."""
    X, votes, _ = imbalanced((60, 12), n_workers=5, error=0.3, seed=1)
    for size in ("repeat", "fixed"):
        seen = loops_of(monkeypatch)
        published(synthesis__size=size, max_epochs=0).fit(X, votes)
        loop, n_small = seen[-1], int(seen[-1].n_at_first[1])
        ratio = round(loop.n_at_first[0] / n_small) - 1
        embedding, log_proba = loop.network.embed_and_classify(loop.context.data.rows)
        for n in (4, 20):
            loop.state.update(posterior=np.eye(2)[np.repeat([0, 1], [72 - n, n])])
            made = loop.synthesise(votes, embedding, log_proba)
            assert made.n_of_class[1] == (ratio * n if size == "repeat" else loop.n_at_first[0] - n_small)


def test_the_text_of_equation_2_5_and_its_print():
    """S_i = 9, S_r = 1: near the item i by the text, near r as printed; ``ICED()`` follows the text."""
    rng, item, other = np.random.default_rng(0), np.array([9.0]), np.array([1.0])
    assert interpolation_weights(ICED().synthesis.delta, item, other, 0.0, rng).tolist() == [0.1]
    assert interpolation_weights("paper", item, other, 0.0, rng).tolist() == [0.9]


@pytest.mark.parametrize("kind", ["frozen", "refit"])
def test_the_decoder_stays_as_it_was_pretrained(kind, monkeypatch):
    """By default; "refit" updates it in every round."""
    X, votes, _ = imbalanced()
    seen = loops_of(monkeypatch)
    settings = {"synthesis__decoder": kind} if kind != "frozen" else {}
    weights = [published(max_epochs=n, **settings).fit(X, votes) and seen[-1].decoder.state_dict() for n in (0, 3)]
    same = [bool(torch.equal(before, after)) for before, after in zip(*(w.values() for w in weights))]
    assert all(same) if kind == "frozen" else not any(same)


# Section 2.5: warm-up


def test_the_warm_up_has_a_batch_size_of_its_own(monkeypatch):
    """That of the method by default; the rounds keep the method's."""
    X, votes, _ = imbalanced()
    used, train = {}, iced.TrainingContext.train

    def noted(self, step, *arguments, batches=None, name="training", **others):
        used[name.rstrip("-0123456789")] = getattr(batches, "batch_size", None)
        return train(self, step, *arguments, batches=batches, name=name, **others)

    monkeypatch.setattr(iced.TrainingContext, "train", noted)
    published(batch_size=16).fit(X, votes)
    assert used["warm-up"] == used["autoencoder"] == 16
    published(batch_size=16, warm_up__batch_size=4).fit(X, votes)
    assert used["warm-up"] == 4 and used["autoencoder"] == 16


@pytest.mark.parametrize("stratified", [False, True])
def test_groups_can_be_stratified_by_voted_class(stratified, monkeypatch):
    """Every stage then has items of both classes in the ratio of the vote; by default certainty alone decides."""
    X, votes, _ = imbalanced((80, 16), n_workers=5, error=0.25, seed=2)
    found, stages = [], WarmUpTraining.stages
    monkeypatch.setattr(WarmUpTraining, "stages", lambda self: found.extend(stages(self)) or [])
    published(warm_up__stratified=stratified, max_epochs=0).fit(X, votes)
    p = np.array(matrix_of(votes)).mean(axis=1)
    n_small = [int((p[stage] > 0.5).sum()) for stage in found]
    share = [n / len(stage) for n, stage in zip(n_small, found)]
    if stratified:
        assert max(n_small) - min(n_small) <= 1 and max(map(len, found)) - min(map(len, found)) <= 2
    else:
        levels = [sorted(set(np.round(np.abs(p[stage] - 0.5), 6))) for stage in found]
        assert [len(level) for level in levels] == [1, 1, 1] and levels == sorted(levels)
        assert max(share) - min(share) > 0.05


# Section 2.6: until convergence


def rounds_of(model):
    """The rounds in the history of a fit."""
    return [epoch for epoch in model.history_ if "agreement" in epoch]


def test_training_stops_when_labels_no_longer_change():
    """After the first run of unchanged rounds; None, or early stopping on held-out labels, instead."""
    X, votes, _ = imbalanced(error=0.05)
    model = published(max_epochs=20, stable_rounds=3).fit(X, votes)
    agreement = [epoch["agreement"] for epoch in rounds_of(model)]
    assert 3 <= len(agreement) < 20 and min(agreement[-3:]) >= 0.99 and min([*agreement[-4:-3], 0]) < 0.99
    assert len(rounds_of(published(max_epochs=20, stable_rounds=None).fit(X, votes))) == 20
    by_heldout = published(max_epochs=20, stable_rounds=None, patience=2, validation=0.2).fit(X, votes)
    assert all("heldout" in epoch for epoch in rounds_of(by_heldout))


@pytest.mark.parametrize(
    ("agreement", "tolerance", "stops"),
    [
        ([1.0, 1.0], 0.0, False),  # too few rounds
        ([0.5, 1.0, 1.0, 1.0], 0.0, True),
        ([1.0, 1.0, 0.999, 1.0], 0.0, False),
        ([0.5, 0.99, 0.995, 0.991], 0.01, True),
        ([1.0, 0.98, 1.0, 1.0], 0.01, False),
    ],
)
def test_convergence_by_hand(agreement, tolerance, stops):
    """Three rounds in a row, each with at most this share of changed labels."""
    model = ICED(stable_rounds=3, label_tolerance=tolerance)
    assert model._has_converged([{"agreement": share} for share in agreement]) is stops
    assert ICED(stable_rounds=None)._has_converged([{"agreement": 1.0}] * 9) is False


def test_a_converged_fit_resumes_as_it_ended(tmp_path):
    """The checkpoint knows that it has ended before `max_epochs`."""
    X, votes, _ = imbalanced(error=0.05)
    settings = {"max_epochs": 20, "stable_rounds": 3, "checkpoint": tmp_path}
    first = published(**settings).fit(X, votes)
    assert len(rounds_of(first)) < 20
    assert_same_fit(published(**settings).fit(X, votes), first, X, "fitted again")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stable_rounds": 0}, "`stable_rounds` of ICED must be None or a whole number at least 1"),
        ({"label_tolerance": 2}, "`label_tolerance` of ICED must be a number at least 0 and at most 1"),
        ({"synthesis__first_labels": "truth"}, "`synthesis__first_labels` of ICED must be one of 'inferred', 'vote'"),
        ({"inference__prior": "half"}, "`inference__prior` of ICED must be one of 'estimated', 'uniform', 'uniform-s"),
        ({"warm_up__batch_size": 0}, "`warm_up__batch_size` of ICED must be None or a whole number at least 1"),
        ({"warm_up__stratified": "yes"}, "`warm_up__stratified` of ICED must be True or False"),
    ],
)
def test_values_that_are_none_are_refused(change, message):
    """One sentence each, before any training."""
    X, votes, _ = imbalanced()
    with pytest.raises(ParameterError, match=message):
        published(**change).fit(X, votes)


def test_targets_are_hard_labels(monkeypatch):
    """The network learns the most probable class of each real item."""
    X, votes, _ = imbalanced(error=0.3)
    seen = loops_of(monkeypatch)
    published(max_epochs=1).fit(X, votes)
    target = seen[0].target[: len(X)].numpy()
    np.testing.assert_array_equal(target, one_hot(seen[0].state.posterior.numpy()))

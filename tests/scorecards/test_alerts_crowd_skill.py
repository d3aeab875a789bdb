"""Workers compared with their crowd: the numbers by plain loops, and simulated crowds with planted workers."""

import itertools
import math

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.scorecards import ACCUSATIONS, ALERTS, score_workers
from manyhands.scorecards import alerts as module
from manyhands.scorecards.accuracy import LeaveOneOut
from manyhands.scorecards.alerts import score_columns, sum_scores
from manyhands.simulate import make_crowd
from small_scorecards import on_gold, scored


def small_loo(n_classes=3, seed=0):
    """Three workers on four items each, with a leave-one-out posterior drawn at random."""
    rng = np.random.default_rng(seed)
    item, worker = np.divmod(np.arange(12), 3)
    votes = Annotations(
        item, worker, rng.integers(n_classes, size=12),
        item_ids=range(4), worker_ids=range(3), classes=range(n_classes),
    )  # fmt: skip
    truth = rng.dirichlet(np.ones(n_classes), 12)
    return LeaveOneOut(votes, truth, np.ones(12), np.full(12, 2.0), np.zeros(12))


def bias_of(loo):
    """Class shares of each worker's labels, with half a pseudo-count."""
    counts = loo.used + 0.5 / loo.annotations.n_classes
    return counts / counts.sum(axis=1, keepdims=True)


def test_mean_and_variance_of_the_score_by_enumeration():
    """All label sequences of a worker of skill .3, with their probabilities."""
    loo = small_loo()
    votes, bias, t = loo.annotations, bias_of(small_loo()), 0.3
    scores = sum_scores(loo, score_columns(loo, bias), loo.weight)
    for w in range(3):
        rows = np.flatnonzero(votes.worker == w)
        values = [[math.log(1 + 0.5 * (loo.truth[r, k] / bias[w, k] - 1)) for k in range(3)] for r in rows]
        chance = [[t * loo.truth[r, k] + (1 - t) * bias[w, k] for k in range(3)] for r in rows]
        mean = second = 0.0
        for labels in itertools.product(range(3), repeat=len(rows)):
            p = math.prod(chance[i][k] for i, k in enumerate(labels))
            total = sum(values[i][k] for i, k in enumerate(labels))
            mean, second = mean + p * total, second + p * total**2
        assert scores.mean(np.array([t]))[w, 0] == pytest.approx(mean)
        assert scores.variance(np.array([t]))[w, 0] == pytest.approx(second - mean**2 + 1e-3)
        observed = sum(values[i][votes.label[r]] for i, r in enumerate(rows))
        assert scores.observed[w] == pytest.approx(observed)


def test_distribution_of_skill_by_plain_loops(monkeypatch):
    """The same weights, one combination of mean, spread, share and second group at a time."""
    monkeypatch.setattr(module, "_MEANS", np.array([0.4, 0.7]))
    monkeypatch.setattr(module, "_SPREADS", np.array([0.11, 0.22]))
    monkeypatch.setattr(module, "_SECOND_SHARES", np.array([0.1, 0.3]))
    rng = np.random.default_rng(1)
    likelihood = rng.random((5, 34)) + 0.01
    grid = np.linspace(0, 0.99, 34)

    def normal(mean, spread):
        edges = [-math.inf, *((grid[1:] + grid[:-1]) / 2), math.inf]
        below = [0.5 * math.erfc(-(edge - mean) / spread / math.sqrt(2)) for edge in edges]
        return [b - a for a, b in itertools.pairwise(below)]

    total = np.zeros(34)
    for mean, spread in itertools.product([0.4, 0.7], [0.11, 0.22]):
        prior = mean**2.4 * (1 - mean) ** 1.6 * math.exp(-0.5 * (math.log(spread / 0.2) / 0.2) ** 2)
        first = normal(mean, spread)
        weight = 0.15 * math.prod(float(np.dot(row, first)) for row in likelihood)
        for share, j in itertools.product([0.1, 0.3], range(6)):
            second_mean = [0.0, 0.1, 0.2, 0.3, 0.4, 0.95][j]
            second = normal(second_mean, 0.08) if j else [1.0] + [0.0] * 33
            second = [0.8 * value + 0.2 / 34 for value in second]
            if abs(second_mean - mean) >= 2.5 * spread:
                mixed = [(1 - share) * a + share * b for a, b in zip(first, second)]
                evidence = math.prod(float(np.dot(row, mixed)) for row in likelihood)
                weight += 0.85 * [0.35, 0.15, 0.15, 0.15, 0.15, 0.05][j] / 2 * evidence
        typical = np.array([p if t >= mean - 2 * spread - 1e-9 else 0.0 for t, p in zip(grid, first)])
        total += prior * weight * typical / typical.sum()
    np.testing.assert_allclose(module.crowd_density(likelihood, 0.2), total / total.sum(), rtol=1e-9)


def accused(cards):
    """Workers with an alert that says that something is wrong."""
    return np.array([bool(set(alerts) & set(ACCUSATIONS)) for alerts in cards.alerts])


def simulated(n_classes, n_labels, bad, seeds, mean=0.8):
    """Counts of accused bad, all bad, accused honest and all honest workers of several crowds of 40 workers."""
    counts = np.zeros(4, int)
    for seed in seeds:
        rng = np.random.default_rng([seed, n_classes, n_labels])
        accuracy = np.clip(rng.normal(mean, 0.1, 40), mean - 0.2, 0.98)
        is_bad = np.arange(40) < 8
        if bad == "careless":
            accuracy[is_bad] = 0.4
            crowd = make_crowd(8 * n_labels, 40, n_classes, 5, accuracy=accuracy, random_state=seed)
        else:
            crowd = make_crowd(
                8 * n_labels, 40, n_classes, 5,
                accuracy=accuracy, bad=bad, bad_share=0.2 if bad else 0.0, random_state=seed,
            )  # fmt: skip
            is_bad = crowd.is_bad
        found = accused(scored(crowd.annotations))
        counts += [found[is_bad].sum(), is_bad.sum(), found[~is_bad].sum(), (~is_bad).sum()]
    return counts


@pytest.mark.parametrize(
    ("n_classes", "n_labels", "bad", "at_least"),
    [
        (4, 80, "random", 0.85), (2, 80, "random", 0.3), (2, 200, "random", 0.7), (4, 200, "careless", 0.9),
        (2, 80, "constant", 1.0), (4, 80, "inverted", 1.0),
    ],
)  # fmt: skip
def test_bad_workers_are_called_and_honest_ones_are_not(n_classes, n_labels, bad, at_least):
    """Two crowds with 16 bad workers; the bounds leave room for chance (docs/scorecards.md has the measured shares)."""
    called, n_bad, wrong, n_honest = simulated(n_classes, n_labels, bad, seeds=(1, 2))
    assert called >= at_least * n_bad
    assert wrong <= 0.05 * n_honest


def test_honest_workers_of_a_weaker_crowd_are_not_accused():
    """Accuracy .65 +- .1 with two classes: some workers are hardly better than chance, as this crowd is."""
    _, _, wrong, n_honest = simulated(2, 100, "random", seeds=(3,), mean=0.65)
    assert wrong <= 0.04 * n_honest


def test_a_careless_worker_is_weak_and_a_random_one_random():
    """Four classes, 200 labels: .4 right depends on the truth, .25 does not; the sentence names this crowd."""
    accuracy = np.full(30, 0.85)
    accuracy[0], accuracy[1] = 0.4, 0.25
    cards = scored(make_crowd(1200, 30, 4, 5, accuracy=accuracy, random_state=0).annotations)
    assert (cards[0].alerts, cards[1].alerts) == (("weak",), ("random",))
    assert "a typical worker of this crowd is right on" in cards[0].reasons[0]
    assert all(alerts == () for alerts in cards.alerts[2:])


def test_few_labels_and_undecided():
    """Nineteen labels are few; twenty that fit random labelling as well as honest work are undecided."""
    labels, truth = ["cat", "cat", "dog", "dog"] * 5, ["cat", "dog"] * 10
    assert on_gold(labels[:19], truth[:19]).alerts == ("too-few-labels",)
    assert on_gold(labels, truth).alerts == ("undecided",)
    assert set(ALERTS) - set(ACCUSATIONS) == {"fast", "undecided", "too-few-labels"}


def test_a_judge_in_both_orders_is_undecided_by_items():
    """A judge who names the place is right once on each of 30 pairs: 15 of 30 items, not of their 60 verdicts."""
    items, labels = np.repeat(np.arange(30), 2), np.tile([0, 1], 30)
    votes = Annotations.from_triples(items, ["judge"] * 60, labels, duplicates="all")
    card = score_workers(votes, np.full((30, 2), 0.5), gold=dict(zip(range(30), [0, 1] * 15)))[0]
    assert card.alerts == ("undecided",) and card.n_labels == 60
    assert card.reasons[0].startswith("right on about 15 of 30 items") and "chance agreement is 15" in card.reasons[0]


def test_half_of_a_crowd_is_never_below_it():
    """Where seven workers in ten agree poorly with a few copies of one worker, the many are the crowd, not the few."""
    rng = np.random.default_rng(0)
    likelihood = np.array(
        [np.exp(-0.5 * ((np.linspace(0, 0.99, 34) - t) / 0.1) ** 2) for t in [0.97] * 12 + [0.2] * 28]
    )
    density = module.crowd_density(likelihood * rng.uniform(1, 2, (40, 1)), 0.2)
    assert density[:10].sum() > 0.3  # a skill of .2 and less belongs to the crowd


def test_the_comparison_needs_eight_workers():
    """Seven workers with many labels: the fixed limit of skill .2 is used, and no sentence speaks of a crowd."""
    crowd = make_crowd(150, 7, 4, 7, accuracy=[0.25] + [0.9] * 6, random_state=0)
    card = scored(crowd.annotations)[0]
    assert card.alerts == ("random",) and "crowd" not in card.reasons[0]


def test_the_second_half_of_the_labels():
    """Of four labels the last two, of three the last one; of a single label none."""
    loo = small_loo()
    assert module.is_late(loo).tolist() == [False] * 6 + [True] * 6
    votes = Annotations.from_triples([0, 1, 2, 2], ["a", "a", "a", "b"], [0, 1, 0, 1])
    one = LeaveOneOut(votes, np.full((4, 2), 0.5), np.ones(4), np.ones(4), np.zeros(4))
    assert module.is_late(one).tolist() == [False, False, True, False]


def test_a_worker_who_stops_working_is_weak():
    """Right on 90 % of their first hundred items, random on the others: the sentence names both halves."""
    crowd = make_crowd(1200, 30, 4, 5, accuracy=0.85, bad="sleeper", bad_share=0.1, random_state=0)
    cards = scored(crowd.annotations)
    assert all("weak" in alerts for alerts, is_bad in zip(cards.alerts, crowd.is_bad) if is_bad)
    assert all(alerts == () for alerts, is_bad in zip(cards.alerts, crowd.is_bad) if not is_bad)
    assert any("of the last" in reason for reasons in cards.reasons for reason in reasons)

"""Ability and difficulty: against plain loops, in the limits, and Newton's method on difficult problems."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.em.ability import (
    EASIEST,
    Abilities,
    AbilityModel,
    easiness,
    log_votes,
    p_right,
    posterior_from_joint,
    share_with_pseudo_votes,
    vote_easiness,
    with_floor,
)
from manyhands.em.noise import pseudo_count_matrix
from reference import slow_difficulty as slow

pytestmark = pytest.mark.fast


def small(n_classes, seed=0, n_items=14, n_workers=4):
    """Labels with gaps, abilities, error distributions, an easiness and a posterior; all random."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, n_classes, (n_items, n_workers))
    label[rng.random(label.shape) < 0.3] = -1
    votes = Annotations.from_matrix(label, classes=range(n_classes))
    wrong = rng.random((n_workers, n_classes, n_classes)) + 0.1
    wrong[:, np.arange(n_classes), np.arange(n_classes)] = 0
    wrong /= wrong.sum(axis=2, keepdims=True)
    ability, d = rng.gamma(1, 6, (n_workers, n_classes)), rng.random(n_items) / 4
    return votes, ability, wrong, d, rng.dirichlet(np.ones(n_classes), n_items)


def triples(votes):
    return list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))


def model_of(votes, update="mle", errors="uniform", right=1.0, wrong=0.5, precision=1.0, most=100.0):
    return AbilityModel(votes, update, errors, most, precision, pseudo_count_matrix(votes.n_classes, right, wrong))


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("free", [True, False])
def test_e_step_is_that_of_the_plain_loops(n_classes, free):
    """Posterior and marginal likelihood, in log space and a class at a time."""
    votes, ability, wrong, d, prior = small(n_classes)
    if not free:
        wrong = np.full_like(wrong, 1 / (n_classes - 1))
    with np.errstate(divide="ignore"):
        workers = Abilities(ability, np.log(wrong) if free else None)
    posterior, evidence = posterior_from_joint(np.log(prior) + log_votes(votes, workers, d), None)
    expected, total = slow.posterior_from_joint(np.log(prior), triples(votes), ability, wrong, d)
    np.testing.assert_allclose(posterior, expected, rtol=1e-10)
    assert evidence == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_of_every_confusion_sum_to_one(n_classes):
    """Over the labels that a worker might give, whatever the item."""
    _, ability, wrong, d, _ = small(n_classes, n_items=5)
    one_each = Annotations.from_triples(
        np.repeat(range(5), n_classes), [0] * (5 * n_classes), [*range(n_classes)] * 5, duplicates="all"
    )
    with np.errstate(divide="ignore"):
        workers = Abilities(ability[:1], np.log(wrong[:1]))
    total = np.zeros((5, n_classes))
    for given in range(n_classes):
        total += np.exp(log_votes(one_each.keep(one_each.label == given), workers, d))
    np.testing.assert_allclose(total, 1, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_abilities_are_those_that_a_fine_grid_finds(n_classes):
    """Newton's optimum of every worker and class is the best of the plain loops' expected log-likelihood."""
    votes, ability, _, d, posterior = small(n_classes, seed=1)
    model = model_of(votes)
    first = Abilities(ability, None)
    found = model.solve(posterior, d, first, first).ability
    grid = np.linspace(0, 100, 2001)
    for w in range(4):
        for c in range(n_classes):
            value = [slow.expected(posterior, triples(votes), a, w, c, d, 1.0, 0.5) for a in grid]
            at = slow.expected(posterior, triples(votes), found[w, c], w, c, d, 1.0, 0.5)
            assert at >= max(value) - 1e-10
            assert abs(found[w, c] - grid[int(np.argmax(value))]) <= 0.05


@pytest.mark.parametrize("start", [0.0, 3.0, 100.0])
def test_newton_arrives_from_anywhere(start):
    """Where the function is flat a full step would oscillate; all starts end at the same point."""
    votes, _, _, d, posterior = small(3, seed=2)
    model = model_of(votes, right=1e-6, wrong=1e-6)
    from_here, from_middle = (Abilities(np.full((4, 3), value), None) for value in (start, 10.0))
    found, expected = (model.solve(posterior, d, one, one).ability for one in (from_here, from_middle))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_newton_does_not_oscillate():
    """Thirteen classes, half of the labels right: from 0 the longest step ends as far beyond the optimum."""
    votes, first = Annotations.from_matrix((np.arange(400) % 2)[:, None], classes=range(13)), np.zeros((1, 13))
    model, begin = model_of(votes, right=1e-6, wrong=1e-6), Abilities(first, None)
    found = model.solve(np.eye(13)[[0] * 400], np.full(400, EASIEST), begin, begin)
    assert p_right(found.ability[:, 0], EASIEST, 13) == pytest.approx(0.5, abs=1e-6)


def test_the_gaussian_prior_shrinks_abilities_to_their_start():
    """At the optimum the slope of the expected log-likelihood equals that of the Gaussian prior."""
    votes, ability, _, d, posterior = small(2, seed=1)
    first = Abilities(np.minimum(ability, 5.0) + 1, None)
    found = model_of(votes, "map", precision=0.3).solve(posterior, d, first, first).ability
    for w in range(4):
        up, down = (slow.expected(posterior, triples(votes), found[w, 1] + e, w, 1, d, 1.0, 0.5) for e in (1e-5, -1e-5))
        assert (up - down) / 2e-5 == pytest.approx(0.3 * (found[w, 1] - first.ability[w, 1]), abs=1e-6)


def test_who_is_always_right_reaches_the_bound_and_who_is_always_wrong_zero():
    """With negligible pseudo-counts nothing else limits the abilities."""
    truth = np.arange(20) % 2
    votes = Annotations.from_matrix(np.column_stack([truth, 1 - truth]))
    model = model_of(votes, right=1e-12, wrong=1e-12)
    first = Abilities(np.full((2, 2), 5.0), None)
    found = model.solve(np.eye(2)[truth], np.full(20, EASIEST), first, first).ability
    assert (found[0] > 99).all() and (found[1] == 0).all()


def test_equal_easiness_is_counting():
    """With d = 1/4 everywhere the start is the optimum: the share of right labels, pseudo-counts included."""
    votes, *_ = small(3, seed=3, n_items=60)
    label = np.zeros(votes.n_items, int)
    label[votes.item] = votes.label
    posterior = 0.7 * np.eye(3)[label] + 0.1  # so that nobody is worse than a guess
    model = model_of(votes, errors="free")
    first = model.start(posterior)
    moved = model.solve(posterior, np.full(60, EASIEST), Abilities(np.full((4, 3), 7.0), first.log_wrong), first)
    better = first.ability > 0
    np.testing.assert_allclose(moved.ability[better], first.ability[better], atol=1e-6)
    assert better.mean() > 0.8
    counts = np.zeros((4, 3, 3))
    for i, w, given in triples(votes):
        counts[w, :, given] += posterior[i]
    counts += pseudo_count_matrix(3, 1.0, 0.5)
    share = np.einsum("wcc->wc", counts) / counts.sum(axis=2)
    np.testing.assert_allclose(p_right(first.ability, EASIEST, 3)[better], share[better], rtol=1e-9)


def test_few_labels_are_shrunk_to_the_prior():
    """Without labels an ability is at right / (right + wrong); one label changes it a little; the prior holds it."""
    votes = Annotations.from_matrix([[1, -1]], classes=[0, 1])
    posterior, d = np.array([[0.0, 1.0]]), np.array([EASIEST])
    model = model_of(votes, right=2.0, wrong=1.0)
    first = Abilities(np.full((2, 2), 4 * np.log(2)), None)
    found = p_right(model.solve(posterior, d, first, first).ability, EASIEST, 2)
    np.testing.assert_allclose(found, [[2 / 3, 3 / 4], [2 / 3, 2 / 3]], atol=1e-9)
    held = model_of(votes, "map", right=2.0, wrong=1.0, precision=1e6).solve(posterior, d, first, first)
    np.testing.assert_allclose(held.ability, first.ability, atol=1e-5)
    assert model_of(votes, "frozen").solve(posterior, d, first, first) is first


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_floor_is_the_best_there_is(n_classes):
    """The objective is concave: no other lower bound explains the labels better, and it is close to the planted one."""
    rng = np.random.default_rng(4)
    truth, d, ability = rng.integers(0, n_classes, 200), rng.random(200) / 4, np.full((8, n_classes), 9.0)
    right = rng.random((200, 8)) < p_right(np.full((200, 8), 9.0), with_floor(d, 0.4)[:, None], n_classes)
    votes = Annotations.from_matrix(np.where(right, truth[:, None], (truth[:, None] + 1) % n_classes))
    posterior = np.eye(n_classes)[truth]

    def value(floor):
        return float((posterior * log_votes(votes, Abilities(ability, None), with_floor(d, floor))).sum())

    for start in (0.0, 0.5, 1.0):
        found = model_of(votes).solve_floor(posterior, d, ability, start)
        assert value(found) >= max(value(floor) for floor in np.linspace(0, 1, 101)) - 1e-9
        assert found == pytest.approx(0.4, abs=0.15)
    assert np.array_equal(with_floor(d, 0.0), d) and np.allclose(with_floor(d, 1.0), EASIEST)


def test_intervals_hold_the_planted_expertise():
    """About 95 of a hundred, where the truth is known; uncertainty of the truth makes them longer."""
    rng = np.random.default_rng(0)
    truth, d = rng.integers(0, 2, 300), rng.random(300) / 4
    ability = rng.uniform(2, 10, (50, 2))
    right = rng.random((300, 50)) < p_right(ability.T[truth], d[:, None], 2)
    votes = Annotations.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))
    model = model_of(votes, right=0.01, wrong=0.01)
    posterior = np.eye(2)[truth]
    found = model.solve(posterior, d, model.start(posterior), model.start(posterior))
    low, high = model.intervals(found, posterior, d)
    inside = np.mean((low <= ability) & (ability <= high))
    assert 0.88 <= inside <= 1.0
    doubtful = 0.9 * posterior + 0.05
    other = model.solve(doubtful, d, found, found)
    wider = np.subtract(*model.intervals(other, doubtful, d)[::-1])
    assert np.median(wider) > np.median(high - low)


def test_the_gaussian_makes_intervals_shorter():
    """The precision of the prior adds to the information; where it is large no uncertainty is left."""
    votes, ability, _, d, posterior = small(2, seed=1)
    workers = Abilities(np.full_like(ability, 5.0), None)
    wide, firm, firmest = (
        np.subtract(*model_of(votes, update, precision=precision).intervals(workers, posterior, d)[::-1])
        for update, precision in (("mle", 4.0), ("map", 4.0), ("map", 1e6))
    )
    assert (firm < wide).all() and (firmest < 0.005).all()
    given = 2 * 1.959964 / np.sqrt(4.0)
    assert (firm < 1.05 * given).all()  # labels on hard items tell little beside it


def test_easiness_is_that_of_the_paper_with_two_classes():
    """(p - 1/2)^2; with more classes as in the plain loops; 1/4 for a single class."""
    q = np.random.default_rng(0).dirichlet(np.ones(2), 10)
    np.testing.assert_allclose(easiness(q), (q[:, 1] - 0.5) ** 2)
    q = np.random.default_rng(0).dirichlet(np.ones(5), 10)
    np.testing.assert_allclose(easiness(q), [slow.easiness(row) for row in q])
    assert easiness(np.ones((3, 1))).tolist() == [EASIEST] * 3


def test_a_single_vote_proves_little():
    """One pseudo-label is spread over the classes; an item without labels has uniform shares."""
    votes = Annotations.from_matrix([[1, -1, -1], [1, 1, 1], [-1, -1, -1]], classes=[0, 1])
    np.testing.assert_allclose(share_with_pseudo_votes(votes)[:, 1], [0.75, 0.875, 0.5])


def test_an_item_without_votes_is_as_hard_as_the_others():
    """The mean easiness of the others; 0 where no item has labels."""
    votes = Annotations.from_matrix([[1, -1, -1], [1, 1, 1], [-1, -1, -1]], classes=[0, 1])
    np.testing.assert_allclose(vote_easiness(votes), [0.0625, 0.140625, 0.1015625])
    assert vote_easiness(votes[np.array([2])]).tolist() == [0.0]

"""Percent agreement, Fleiss' kappa and agreement per item: textbook values, slow twins, undefined cases."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from manyhands import Annotations
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.metrics import class_agreement, fleiss_kappa, item_agreement, krippendorff_alpha, percent_agreement
from manyhands.metrics.vote_patterns import find_patterns, gather_votes
from strategies import annotations, triples_of

FIGURES = [percent_agreement, fleiss_kappa, krippendorff_alpha]
PSYCHIATRISTS = [  # ten items, fourteen workers, five classes: how many named each
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def votes_by_item(votes):
    """For each item the workers' votes: a list of {label: share}, by plain loops."""
    labels_of = {}
    for item, worker, label in triples_of(votes):
        labels_of.setdefault(item, {}).setdefault(worker, []).append(label)
    return {
        item: [{k: labels.count(k) / len(labels) for k in labels} for labels in workers.values()]
        for item, workers in labels_of.items()
        if len(workers) > 1
    }


def slow_item_agreement(item_votes):
    """Share of ordered pairs of different workers with equal labels."""
    pairs = list(permutations(item_votes, 2))
    return sum(share * other.get(k, 0) for one, other in pairs for k, share in one.items()) / len(pairs)


def slow_fleiss_kappa(votes):
    """Mean agreement of items against mean class shares of items; None where only one class occurs."""
    items = votes_by_item(votes).values()
    frequency = np.zeros(votes.n_classes)
    for item_votes in items:
        for vote in item_votes:
            for k, share in vote.items():
                frequency[k] += share / len(item_votes) / len(items)
    if np.sum(frequency > 0) < 2:
        return None
    chance = np.sum(frequency**2)
    return (np.mean([slow_item_agreement(item_votes) for item_votes in items]) - chance) / (1 - chance)


def from_counts(counts):
    """Labels with the given numbers per item and class; workers are numbered within the item."""
    triples = [(i, k) for i, row in enumerate(counts) for k, n in enumerate(row) for _ in range(n)]
    items, labels = zip(*triples)
    workers = [n for row in counts for n in range(sum(row))]
    return Annotations.from_triples(items, workers, labels, duplicates="all")


def test_fleiss_textbook():
    """The textbook example with fourteen workers."""
    found = fleiss_kappa(from_counts(PSYCHIATRISTS))
    assert found.value == pytest.approx(0.210, abs=5e-4)
    assert (found.n_items, found.n_labels, found.reason) == (10, 140, None)
    assert found.low < found.value < found.high


@given(annotations())
def test_kappa_is_that_of_plain_loops(votes):
    """With varying numbers of labels, items and workers without labels, repeated pairs and unused classes."""
    found, expected = fleiss_kappa(votes, n_bootstrap=0).value, slow_fleiss_kappa(votes)
    assert np.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-12)


@given(annotations())
def test_item_and_percent_agreement_are_those_of_plain_loops(votes):
    """Each item by its pairs; the three means weigh items by 1, by workers and by pairs."""
    items = votes_by_item(votes)
    expected = np.full(votes.n_items, np.nan)
    for item, item_votes in items.items():
        expected[item] = slow_item_agreement(item_votes)
    np.testing.assert_allclose(item_agreement(votes), expected, atol=1e-12)
    if items:
        m = np.array([len(items[i]) for i in sorted(items)])
        shares = expected[sorted(items)]
        for per, weight in {"item": m * 0 + 1, "label": m, "pair": m * (m - 1)}.items():
            found = percent_agreement(votes, per=per, n_bootstrap=0).value
            assert found == pytest.approx(np.average(shares, weights=weight), abs=1e-12)


@given(annotations(max_items=12, max_workers=3, n_classes=2))
def test_patterns_stand_for_all_items(votes):
    """As many rows as items, each with the same votes; no two patterns without split votes are equal."""
    rows, _ = gather_votes(votes)
    patterns, count = find_patterns(rows)

    def contents(votes, row):
        cells = np.flatnonzero(votes.row == row)
        is_split = row in votes.split_row.tolist()
        return is_split, tuple(zip(votes.label[cells].tolist(), votes.weight[cells].tolist()))

    wanted = sorted(contents(rows, row) for row in range(rows.n_rows))
    shown = [contents(patterns, row) for row in range(patterns.n_rows)]
    assert sorted(c for c, n in zip(shown, count) for _ in range(n)) == wanted
    whole = [cells for is_split, cells in shown if not is_split]
    assert len(set(whole)) == len(whole)


@pytest.mark.parametrize("figure", FIGURES)
def test_perfect_agreement_is_one(figure):
    """Exactly, with missing cells and two or more classes."""
    found = figure(Annotations.from_matrix([[0, 0, 0], [1, -1, 1], [2, 2, -1], [0, 0, -1]]))
    assert (found.value, found.low, found.high, found.reason) == (1, 1, 1, None)


@pytest.mark.parametrize("figure", [fleiss_kappa, krippendorff_alpha])
def test_chance_is_about_zero(figure):
    """Labels drawn at random, classes of unequal size."""
    labels = np.random.default_rng(0).choice(3, (2000, 4), p=[0.6, 0.3, 0.1])
    found = figure(Annotations.from_matrix(labels))
    assert abs(found.value) < 0.02 and found.low < 0 < found.high


@pytest.mark.parametrize("figure", [fleiss_kappa, krippendorff_alpha])
def test_one_class_is_undefined(figure):
    """Neither 1 nor 0, because chance agreement is 1."""
    found = figure(Annotations.from_matrix([[0, 0], [0, 0], [1, -1]]))
    assert np.isnan([found.value, found.low, found.high]).all()
    assert "one class" in found.reason and (found.n_items, found.n_labels) == (2, 4)


def test_one_class_is_perfect_agreement_as_a_share():
    """Percent agreement is not corrected for chance."""
    assert percent_agreement(Annotations.from_matrix([[0, 0], [0, 0]])).value == 1


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize(
    "votes",
    [
        Annotations.from_matrix([[0, -1], [-1, 1]]),
        Annotations.from_triples(["a", "a"], ["ann", "ann"], [0, 1], duplicates="all"),  # one worker, twice
        Annotations.from_triples([], [], []),
    ],
    ids=["single", "same worker", "empty"],
)
def test_nothing_to_compare_is_undefined(figure, votes):
    """No item has labels of two workers."""
    found = figure(votes)
    assert np.isnan([found.value, found.low, found.high]).all()
    assert "two workers" in found.reason and found.n_items == 0
    assert np.isnan(item_agreement(votes)).all()
    assert np.isnan(class_agreement(votes).value).all() and "two workers" in class_agreement(votes).reason


@pytest.mark.parametrize("figure", FIGURES)
def test_repeated_labels_of_a_worker_are_no_agreement(figure):
    """Repeating a label twenty times changes nothing; two different labels split the vote in halves."""
    once = Annotations.from_triples([0, 0, 1, 1, 2, 2], list("abacbc"), [0, 1, 1, 1, 0, 0])
    often = once.with_more([0] * 19, [0] * 19, [0] * 19)
    assert figure(often, n_bootstrap=0).value == figure(once, n_bootstrap=0).value
    torn = Annotations.from_triples(["i"] * 3, ["ann", "ann", "bob"], ["cat", "dog", "cat"], duplicates="all")
    assert item_agreement(torn).tolist() == [0.5]


def test_split_votes_are_another_pattern():
    """Ann for a and Bob for b never agree; both for both agree in half of all pairs, with the same votes."""
    votes = Annotations.from_triples([0, 0, 1, 1, 1, 1], list("xyxxyy"), list("ababab"), duplicates="all")
    assert item_agreement(votes).tolist() == [0, 0.5]
    assert percent_agreement(votes, n_bootstrap=0).value == 0.25


@pytest.mark.parametrize("figure", FIGURES)
def test_names_and_order_do_not_matter(figure):
    """Rows, workers and items in another order: the same figure and the same interval, to the last bit."""
    rng = np.random.default_rng(1)
    matrix = rng.integers(-1, 3, (60, 5))
    expected = figure(Annotations.from_matrix(matrix), n_bootstrap=50)
    item, worker = np.nonzero(matrix >= 0)
    order = rng.permutation(len(item))
    shuffled = Annotations.from_triples(item[order], worker[order], matrix[item, worker][order], classes=range(3))
    assert figure(shuffled, n_bootstrap=50) == expected
    renamed = matrix[rng.permutation(60)][:, rng.permutation(5)]
    assert figure(Annotations.from_matrix(renamed), n_bootstrap=50) == expected


@pytest.mark.parametrize("figure", [*FIGURES, class_agreement])
@pytest.mark.parametrize(
    "bad", [{"n_bootstrap": -1}, {"n_bootstrap": 1.5}, {"confidence": 0}, {"confidence": 2}, {"random_state": "x"}]
)
def test_settings_of_the_interval_are_checked(figure, bad):
    """One sentence that names the parameter and the function."""
    with pytest.raises(ParameterError, match=f"{next(iter(bad))}.*{figure.__name__}"):
        figure(Annotations.from_matrix([[0, 1], [1, 1]]), **bad)


@pytest.mark.parametrize("figure", [*FIGURES, class_agreement, item_agreement])
def test_a_matrix_is_refused(figure):
    """With the way to build annotations."""
    with pytest.raises(AnnotationError, match=r"Annotations\.from_matrix"):
        figure(np.zeros((3, 2), int))


def test_the_mean_is_one_of_three():
    """Any other word is refused."""
    with pytest.raises(ParameterError, match=r"`per`.*one of 'label', 'item', 'pair'"):
        percent_agreement(Annotations.from_matrix([[0, 1]]), per="worker")

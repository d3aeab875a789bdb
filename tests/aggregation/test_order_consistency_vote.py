"""The order-consistency vote: examples by hand, limit cases, and a slow twin."""

from itertools import combinations

import numpy as np
import pytest

from manyhands import Annotations, MajorityVote, OrderConsistencyVote
from manyhands.aggregation.order_consistency_vote import has_repeated_answers
from manyhands.exceptions import CrowdWarning


def both_orders(verdicts):
    """Annotations of {judge: [(verdict in one order, verdict in the other) of each item]}; "" is no verdict."""
    rows = [
        (item, judge, label)
        for judge, pairs in verdicts.items()
        for item, pair in enumerate(pairs)
        for label in pair
        if label
    ]
    return Annotations.from_triples(*zip(*rows), duplicates="all")


def slow_weights(annotations, exponent=2.0):
    """Flip rate, consistency and weight of each worker, by loops over pairs of labels."""
    given = {}
    for i, w, k in zip(annotations.item.tolist(), annotations.worker.tolist(), annotations.label.tolist()):
        given.setdefault((w, i), []).append(k)
    per_worker = []
    for w in range(annotations.n_workers):
        items = [labels for (worker, _), labels in given.items() if worker == w]
        own = [k for labels in items for k in labels]
        equal = []
        for labels in items:
            pairs = list(combinations(labels, 2))
            if pairs:
                equal.append(sum(a == b for a, b in pairs) / len(pairs))
        chance = sum((own.count(k) / max(len(own), 1)) ** 2 for k in range(annotations.n_classes))
        per_worker.append((len(equal), sum(equal), chance))
    n = sum(one[0] for one in per_worker)
    crowd = 0.0
    if n:
        mean_chance = sum(one[0] * one[2] for one in per_worker) / n
        crowd = (sum(one[1] for one in per_worker) / n - mean_chance) / (1 - mean_chance) if mean_chance < 1 else 0.0
    found = []
    for pairs, equal, chance in per_worker:
        beyond = (equal / pairs - chance) / (1 - chance) if pairs and chance < 1 - 1e-9 else 0.0
        consistency = (pairs * beyond + 4 * crowd) / (pairs + 4)
        found.append((1 - equal / pairs if pairs else np.nan, consistency, 0.03 + max(consistency, 0) ** exponent))
    return np.array(found).T


def test_a_consistent_judge_outvotes_judges_who_follow_the_position():
    """Two thirds of a panel that answer by position cancel out; the one random judge counts little."""
    content = [("A", "A"), ("B", "B"), ("A", "A"), ("B", "B")]
    place = [("A", "B")] * 4
    chance = [("B", "B"), ("A", "B"), ("B", "A"), ("A", "A")]
    model = OrderConsistencyVote().fit(both_orders({"content": content, "place": place, "chance": chance}))
    assert model.labels_.tolist() == ["A", "B", "A", "B"]
    np.testing.assert_allclose(model.flip_rate_, [0.5, 0.0, 1.0])  # chance, content, place
    # Chance is 1/2 for all; 1 - flip rate beyond chance: 0, 1, -1; the crowd's is 0, and counts as 4 pairs of 8.
    np.testing.assert_allclose(model.consistency_, [0, 0.5, -0.5])
    np.testing.assert_allclose(model.weight_, [0.03, 0.28, 0.03])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_those_of_the_slow_twin(n_classes):
    """Unequal numbers of answers: one order only, both, and three runs; ties are a third class."""
    rng = np.random.default_rng(n_classes)
    item, worker = (rng.integers(n, size=600) for n in (40, 9))
    sorted_skill = np.linspace(0, 1, 9)
    label = np.where(rng.random(600) < sorted_skill[worker], item % n_classes, rng.integers(n_classes, size=600))
    votes = Annotations.from_triples(item, worker, label, duplicates="all")
    model = OrderConsistencyVote().fit(votes)
    np.testing.assert_allclose([model.flip_rate_, model.consistency_, model.weight_], slow_weights(votes), atol=1e-12)
    assert np.corrcoef(model.consistency_, sorted_skill)[0, 1] > 0.7


def test_a_judge_who_always_says_the_same_has_no_consistency_beyond_chance():
    """Always "tie" is no evidence of following the content; a judge with few pairs is close to the crowd."""
    content = [("A", "A"), ("B", "B")] * 20
    model = OrderConsistencyVote().fit(
        both_orders({"constant": [("tie", "tie")] * 40, "few": [("B", "B")], "good": content, "well": content})
    )
    constant, few, good, _ = model.weight_
    assert constant < 0.1 < few < good and model.flip_rate_[0] == 0
    assert model.labels_[:4].tolist() == ["A", "B", "A", "B"]


def test_without_repeated_answers_it_is_the_vote_with_a_note():
    """Nothing is known of anybody's consistency."""
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 0], [1, 0, 0]])
    assert not has_repeated_answers(votes)
    with pytest.warns(CrowdWarning, match="no_repeated_answers"):
        model = OrderConsistencyVote().fit(votes)
    np.testing.assert_allclose(model.posterior_, MajorityVote().fit(votes).posterior_)
    assert "both orders" in model.notes_["no_repeated_answers"] and np.isnan(model.flip_rate_).all()


def test_a_worker_with_one_order_only_counts_like_the_average():
    """Their weight is that of an unseen worker."""
    content, place = [("A", "A"), ("B", "B")] * 10, [("A", "B")] * 20
    model = OrderConsistencyVote().fit(
        both_orders({"one order": [("A", ""), ("B", "")] * 10, "content": content, "more": content, "place": place})
    )
    content_weight, _, once, place_weight = model.weight_
    assert place_weight < once < content_weight
    new = Annotations.from_triples([0], ["never seen"], ["B"], classes=["A", "B"])
    assert model.predict(new).tolist() == ["B"]


def test_ties_between_consistent_verdicts_stay_ties():
    """Two judges of equal weight who differ: the item is tied."""
    one, other = [("A", "A"), ("B", "B"), ("A", "A")], [("A", "A"), ("B", "B"), ("B", "B")]
    model = OrderConsistencyVote().fit(both_orders({"one": one, "other": other}))
    assert model.tied_.tolist() == [False, False, True]

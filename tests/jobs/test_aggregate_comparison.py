"""All aggregators on the same annotations: the tables behind `manyhands aggregate --compare`."""

import numpy as np
import pytest

from manyhands import Annotations, MajorityVote, compare, registry, simulate
from manyhands.classes import order_annotations
from manyhands.jobs.aggregate import compare_aggregators

CROWD = simulate.make_crowd(60, 8, 3, labels_per_item=3, accuracy=0.6, random_state=0)
# Three classes without an order, and no repeated answers.
OTHERS = ("kos", registry.DEFAULT_ORDINAL, registry.DEFAULT_VERDICTS)
NAMES = [name for name in registry.names("aggregator") if name not in OTHERS]


@pytest.fixture(scope="module")
def compared():
    model = MajorityVote().fit(CROWD.annotations)
    return model, *compare_aggregators(model, "majority-vote")


def test_every_method_has_a_row(compared):
    """The highest likelihood first; the chosen method agrees with itself."""
    model, methods, _ = compared
    assert sorted(methods["method"]) == NAMES
    assert (
        methods["heldout_log_likelihood"].is_sorted(descending=True) and (methods["heldout_log_likelihood"] < 0).all()
    )
    chosen = methods.filter(methods["method"] == "majority-vote")
    assert chosen["agreement_with_chosen"][0] == 1.0
    assert chosen["mean_confidence"][0] == pytest.approx(model.posterior_.max(axis=1).mean())


@pytest.mark.parametrize("gold", [None, dict.fromkeys(CROWD.annotations.item_ids[:20].tolist(), 1)], ids=["", "gold"])
@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
@pytest.mark.slow
def test_the_ranking_is_that_of_compare(gold):
    """The same scores and ranks as in Python, with and without gold."""
    model = MajorityVote().fit(CROWD.annotations, gold)
    methods, _ = compare_aggregators(model, "majority-vote", gold=gold, random_state=3)
    found = compare(NAMES, CROWD.annotations, gold=gold, random_state=3)
    rows = methods.select("method", "rank", "heldout_log_likelihood", "standard_error").rows()
    expected = [tuple(row[name] for name in methods.columns[:4]) for row in found.table()]
    assert rows == expected and found.scores.shape[1] == 5


def test_ordered_classes_have_one_more_method():
    """It is given the order of the classes, also of words."""
    words = np.array(["good", "bad", "ok"])[CROWD.annotations.label]
    votes = Annotations.from_triples(CROWD.annotations.item, CROWD.annotations.worker, words)
    model = MajorityVote().fit(order_annotations(votes, ["bad", "ok", "good"]))
    methods, _ = compare_aggregators(model, "majority-vote")
    assert sorted(methods["method"]) == sorted([*NAMES, "ordinal-dawid-skene"])
    assert methods["heldout_log_likelihood"].null_count() == 0


def test_items_with_different_labels_are_listed(compared):
    """Exactly those on which two methods differ, with the votes."""
    _, methods, differences = compared
    names = methods["method"].to_list()
    assert 0 < len(differences) < 60
    for row in differences.iter_rows(named=True):
        assert len({row[name] for name in names}) > 1
        assert sum(int(vote.split()[-1]) for vote in row["votes"].split("; ")) == 3


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_accuracy_on_gold_is_of_a_fit_without_gold():
    """Gold that contradicts all votes cannot be predicted by a fit without it."""
    item = CROWD.annotations.item_ids[0]
    wrong = (int(CROWD.annotations.label[0]) + 1) % 3
    unanimous = CROWD.annotations.keep(CROWD.annotations.item != 0).with_more([0, 0], [0, 1], [int(wrong + 1) % 3] * 2)
    gold = {item: wrong}
    model = MajorityVote().fit(unanimous, gold=gold)
    assert model.labels_[0] == wrong
    methods, _ = compare_aggregators(model, "majority-vote", gold=gold)
    assert methods.filter(methods["method"] == "majority-vote")["gold_accuracy"][0] == 0.0


def test_too_few_labels_for_folds_leave_the_scores_empty():
    """The other columns are there all the same."""
    few = CROWD.annotations.keep(CROWD.annotations.item == 0).keep([0])
    with pytest.warns():
        methods, differences = compare_aggregators(MajorityVote().fit(few), "majority-vote")
    assert methods["heldout_log_likelihood"].null_count() == len(methods) == len(NAMES)
    assert methods["mean_confidence"].null_count() == 0 and len(differences) == 0

"""All methods on the same labels."""

import pytest

from manyhands import MajorityVote, registry, simulate
from manyhands.io.comparison import compare_methods

CROWD = simulate.make_crowd(60, 8, 3, labels_per_item=3, accuracy=0.6, random_state=0)


@pytest.fixture(scope="module")
def compared():
    model = MajorityVote().fit(CROWD.annotations)
    return model, *compare_methods(model, "majority-vote")


def test_every_method_has_a_row(compared):
    """The best foreteller first; the chosen method agrees with itself."""
    model, methods, _ = compared
    assert sorted(methods["method"]) == [name for name in registry.names("aggregator") if name != "kos"]
    assert methods["foretells"].is_sorted(descending=True) and (methods["foretells"] < 0).all()
    chosen = methods.filter(methods["method"] == "majority-vote")
    assert chosen["same"][0] == 1.0
    assert chosen["confidence"][0] == pytest.approx(model.posterior_.max(axis=1).mean())


def test_the_items_in_dispute_are_listed(compared):
    """Exactly those on which two methods differ, with what was voted."""
    _, methods, differences = compared
    names = methods["method"].to_list()
    assert 0 < len(differences) < 60
    for row in differences.iter_rows(named=True):
        assert len({row[name] for name in names}) > 1
        assert sum(int(vote.split()[-1]) for vote in row["votes"].split("; ")) == 3


def test_gold_is_hidden_from_the_fit_that_it_judges():
    """Gold that contradicts everybody cannot be got right by a fit that was not told."""
    item = CROWD.annotations.item_ids[0]
    wrong = (int(CROWD.annotations.label[0]) + 1) % 3
    unanimous = CROWD.annotations.keep(CROWD.annotations.item != 0).with_more([0, 0], [0, 1], [int(wrong + 1) % 3] * 2)
    gold = {item: wrong}
    model = MajorityVote().fit(unanimous, gold=gold)
    assert model.labels_[0] == wrong
    methods, _ = compare_methods(model, "majority-vote", gold=gold)
    assert methods.filter(methods["method"] == "majority-vote")["right_on_gold"][0] == 0.0

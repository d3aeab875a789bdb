"""Drawing questions: contested and random items, strata, weights."""

import numpy as np
import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.simulate import make_crowd
from manyhands.trust.sampling import _allocate
from manyhands.trust.selection import candidate_names, fit_candidates, not_failed


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_items=300, n_workers=15, n_classes=3, bad="inverted", bad_share=0.3, random_state=1)


@pytest.fixture(scope="module")
def questions(crowd):
    return mh.contested(crowd.annotations, n=20, random_state=3)


def plain_strata(annotations):
    """The strata by plain loops over items, votes and methods."""
    fitted = fit_candidates(annotations)
    near = {}
    for name, model in fitted.items():
        apart = [sum(model.labels_ != fitted[anchor].labels_) for anchor in ("pooled-dawid-skene", "majority-vote")]
        if min(apart) <= annotations.n_items / 3:
            near[name] = model
    strata = {}
    for row, item in enumerate(annotations.item_ids.tolist()):
        votes = [annotations.classes[k] for k in annotations.label[annotations.item == row]]
        labels = [model.labels_[row] for model in near.values()]
        most = max(votes.count(label) for label in set(votes))
        if votes.count(labels[0]) < most:
            strata[item] = "overruled"
        else:
            strata[item] = "agreed" if len(set(labels)) == 1 else "disputed"
    return strata


@pytest.mark.slow
def test_strata_are_what_they_are_called(crowd, questions):
    plain = plain_strata(crowd.annotations)
    assert questions.sizes == {name: list(plain.values()).count(name) for name in ("overruled", "disputed", "agreed")}
    assert all(plain[item] == name for item, name in questions.stratum.items())
    assert "agreed" not in questions.stratum.values()
    drawn = mh.trust.random_items(crowd.annotations, n=60)
    assert all(plain[item] == name for item, name in drawn.stratum.items())


def test_questions_show_votes_and_methods_and_repeat_nothing(crowd, questions):
    assert len(questions) == len(set(questions)) == 20
    item = questions.items[0]
    votes = crowd.annotations
    row = votes.item_ids.tolist().index(item)
    given = votes.classes[votes.label[votes.item == row]].tolist()
    assert questions.votes[item] == {label: given.count(label) for label in questions.votes[item]}
    assert sum(questions.votes[item].values()) == len(given)
    assert set(questions.labels) == set(candidate_names(votes))
    assert all(len({said[item] for said in questions.labels.values()}) > 1 for item in questions)


@pytest.mark.slow
def test_a_draw_follows_the_seed_and_not_the_order_of_rows(crowd, questions):
    again = mh.contested(crowd.annotations, n=20, random_state=3)
    assert again.items == questions.items
    assert mh.contested(crowd.annotations, n=20, random_state=4).items != questions.items
    order = np.random.default_rng(0).permutation(crowd.annotations.n_items)
    assert mh.contested(crowd.annotations[order], n=20, random_state=3).items == questions.items


@pytest.mark.slow
def test_a_shorter_random_draw_is_the_beginning_of_a_longer_one(crowd):
    long = mh.trust.random_items(crowd.annotations, n=50, random_state=2)
    assert mh.trust.random_items(crowd.annotations, n=10, random_state=2).items == long.items[:10]
    assert len(mh.trust.random_items(crowd.annotations, n=10_000)) == 300


def test_weights_add_up_to_the_stratum(questions):
    for name in ("overruled", "disputed"):
        total = sum(weight for item, weight in questions.weight.items() if questions.stratum[item] == name)
        assert total == pytest.approx(questions.sizes[name])


def test_a_method_that_failed_makes_no_item_contested():
    """It differs from default and vote on more than a third of the items."""
    said = {"pooled-dawid-skene": np.zeros(9, int), "majority-vote": np.zeros(9, int)}
    said |= {"near": np.r_[np.ones(3, int), np.zeros(6, int)], "failed": np.r_[np.ones(4, int), np.zeros(5, int)]}
    assert len(not_failed(said)) == 3


@pytest.mark.parametrize("sizes", [(0, 9), (9, 0), (1, 50), (50, 1), (30, 70), (3, 3)])
@pytest.mark.parametrize("n", [1, 2, 5, 20, 200])
def test_allocation_never_exceeds_a_stratum(sizes, n):
    found = _allocate(sizes, n)
    assert sum(found) == min(n, sum(sizes))
    assert all(0 <= number <= size for number, size in zip(found, sizes))
    if n >= 4:
        assert all(number >= min(2, size) for number, size in zip(found, sizes) if n < sum(sizes))


def test_answers_carry_how_they_were_drawn(questions):
    item = questions.items[0]
    answers = questions.answer({item: questions.classes[0]})
    assert answers.kinds == {"contested": 1} and answers.n_items == 300
    assert answers.stratum == {item: questions.stratum[item]} and answers.sizes == questions.sizes
    with pytest.raises(AnnotationError, match="not among the questions"):
        questions.answer({"nobody": questions.classes[0]})
    with pytest.raises(AnnotationError, match="no class"):
        questions.answer({item: "nothing"})


def test_nothing_is_contested_where_all_agree():
    votes = mh.Annotations.from_triples(list("aabb"), list("xyxy"), ["u", "u", "v", "v"])
    with pytest.raises(AnnotationError, match="agree on every item"):
        mh.contested(votes)
    assert set(mh.trust.random_items(votes, n=5)) == {"a", "b"}


def test_parameters_are_checked(crowd):
    with pytest.raises(ParameterError):
        mh.contested(crowd.annotations, n=0)
    with pytest.raises(ParameterError, match="is no aggregator"):
        mh.contested(crowd.annotations, methods=["two-stage"])

"""Down-weighting of families of judges: copies count once, correlated judges share weights."""

import numpy as np
import pytest

import manyhands as mh
from manyhands import registry
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.validation import TAKE_WEIGHTS

PEOPLE = [f"person{k}" for k in range(4)]


def labels(n_items=60, seed=0, n_judges=3, shared=0.6):
    """Triples of four people and of judges whose errors are partly shared."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n_items)
    rows = []
    for i in range(n_items):
        common = rng.random() < 0.3
        for who in PEOPLE:
            rows.append((i, who, int(truth[i]) if rng.random() < 0.75 else int(rng.integers(0, 3))))
        for j in range(n_judges):
            errs = common if rng.random() < shared else rng.random() < 0.3
            rows.append((i, f"judge{j}", int((truth[i] + 1) % 3) if errs else int(truth[i])))
    return rows


def crowd(rows):
    return mh.Annotations.from_triples(*(list(column) for column in zip(*rows, strict=True)))


def copied(rows, judge, times):
    return rows + [(i, f"{judge} copy {k}", label) for k in range(times) for i, who, label in rows if who == judge]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", TAKE_WEIGHTS)
@pytest.mark.parametrize("times", [1, 5])
def test_copies_of_a_judge_change_no_posterior(method, times):
    rows = labels()
    judges = ["judge0", "judge1", "judge2"]
    copies = [f"judge0 copy {k}" for k in range(times)]
    before = mh.trust.down_weight_families(crowd(rows), {"humans": PEOPLE, "machines": judges})
    after = mh.trust.down_weight_families(
        crowd(copied(rows, "judge0", times)), {"humans": PEOPLE, "machines": judges + copies}
    )
    one, other = (registry.create(method).fit(votes).posterior_ for votes in (before, after))
    assert np.allclose(one, other, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_copies_of_a_single_judge_count_as_that_judge():
    rows = labels(n_judges=1)
    alone = mh.PooledDawidSkene().fit(crowd(rows))
    votes = mh.trust.down_weight_families(
        crowd(copied(rows, "judge0", 9)),
        {"humans": PEOPLE, "machines": ["judge0", *(f"judge0 copy {k}" for k in range(9))]},
    )
    assert votes.weight is None  # one judge is left, with full votes
    assert np.allclose(mh.PooledDawidSkene().fit(votes).posterior_, alone.posterior_, atol=1e-9)


def test_weights_are_those_of_kish():
    rows = [row for row in labels() if not (row[0] < 10 and row[1] == "judge2")]  # ten items with two judges
    votes = crowd(rows)
    families = {"humans": PEOPLE, "machines": ["judge0", "judge1", "judge2"]}
    made = mh.trust.down_weight_families(votes, families)
    r = next(
        one for one in mh.trust.effective_votes(votes, families, n_bootstrap=0) if one.group == "machines"
    ).correlation
    assert 0.1 < r < 1
    for item, worker, weight in zip(made.item, made.worker, made.weight, strict=True):
        k = 2 if made.item_ids[item] < 10 else 3
        is_judge = made.worker_ids[worker].startswith("judge")
        assert np.isclose(weight, 1 / (1 + (k - 1) * r) if is_judge else 1.0)


def test_weights_multiply_those_that_labels_have():
    votes = crowd(labels())
    half = mh.Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=votes.item_ids,
        worker_ids=votes.worker_ids,
        classes=votes.classes,
        weight=np.full(votes.n_annotations, 0.5),
    )
    families = {"humans": PEOPLE, "machines": ["judge0", "judge1", "judge2"]}
    assert np.allclose(
        mh.trust.down_weight_families(half, families).weight,
        0.5 * mh.trust.down_weight_families(votes, families).weight,
    )


def test_people_with_equal_labels_are_no_copies():
    rows = [(i, who, i % 2) for i in range(5) for who in PEOPLE] + [(i, "judge", i % 2) for i in range(5)]
    made = mh.trust.down_weight_families(crowd(rows), {"humans": PEOPLE, "machines": ["judge"]})
    assert made.n_annotations == len(rows)


def test_bad_input_is_answered():
    votes = crowd(labels())
    with pytest.raises(ParameterError, match="nobody"):
        mh.trust.down_weight_families(votes, {"machines": ["nobody"]})
    with pytest.raises(ParameterError, match="two groups"):
        mh.trust.down_weight_families(votes, {"a": ["judge0"], "b": ["judge0"]})
    rows = [(0, "judge0", 0), (1, "judge1", 0), (2, "person0", 1)]
    with pytest.warns(CrowdWarning, match="unknown_correlation"):
        made = mh.trust.down_weight_families(crowd(rows), {"machines": ["judge0", "judge1"]})
    assert made.weight is None

"""Selection of annotations, and their use as `y` in scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from strategies import annotations, triples_of

# Choosing -----------------------------------------------------------------------------------------------------------


@given(annotations(), st.data())
def test_rows_are_lined_up_with_features(votes, data):
    """`annotations[rows]` has, in row r, the labels of item rows[r]: lists, masks, slices, repeats, Ellipsis."""
    n = votes.n_items
    index = st.integers(-n, n - 1)
    rows = data.draw(
        st.one_of(
            st.lists(index, max_size=10),
            st.lists(index, min_size=1, max_size=10).map(np.array),
            st.lists(st.booleans(), min_size=n, max_size=n).map(np.array),
            st.slices(n),
            index,
        )
    )
    X = np.arange(n)
    chosen = np.atleast_1d(X[rows]).tolist()
    labels_of = {i: [(w, k) for item, w, k in triples_of(votes) if item == i] for i in range(n)}
    for part in (votes[rows], votes[rows, ...]):
        assert part.item_ids.tolist() == votes.item_ids[chosen].tolist()
        assert triples_of(part) == [(r, w, k) for r, i in enumerate(chosen) for w, k in labels_of[i]]
        assert part.worker_ids is votes.worker_ids and part.classes is votes.classes


def test_rows_out_of_range_are_index_errors(votes):
    """As with any array, and so are keys that no array takes; so a loop over items ends."""
    for key in ([3], -4, "a", 0.5, [True], np.ones((3, 3), bool)):
        with pytest.raises(IndexError):
            votes[key]
    assert [len(one) for one in votes] == [1, 1, 1]


@pytest.mark.parametrize("key", [None, True, False, np.True_, [[0, 1]], np.zeros((3, 1), int), ([0], None)])
def test_keys_that_are_no_rows_are_refused(votes, key):
    """Rows are one-dimensional: neither None, nor one truth value, nor a table of rows."""
    with pytest.raises(AnnotationError, match="Rows must be one-dimensional"):
        votes[key]


@given(annotations())
def test_groups_are_those_of_plain_loops(votes):
    """Each group lists the positions of its annotations, in order, and every position is in one group."""
    for groups, codes, size in (
        (votes.by_item, votes.item, votes.n_items),
        (votes.by_worker, votes.worker, votes.n_workers),
    ):
        assert len(groups.start) == size + 1
        for g in range(size):
            expected = [position for position, code in enumerate(codes.tolist()) if code == g]
            assert groups.order[groups.start[g] : groups.start[g + 1]].tolist() == expected
    assert votes.n_labels.tolist() == [votes.item.tolist().count(i) for i in range(votes.n_items)]
    assert votes.start.tolist() == votes.by_item.start.tolist()


@given(annotations(), st.data())
def test_keep_takes_annotations_and_leaves_names(votes, data):
    """A mask or positions of annotations; items, workers and classes stay."""
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=votes.n_annotations, max_size=votes.n_annotations)))
    kept = votes.keep(mask)
    assert triples_of(kept) == [t for t, yes in zip(triples_of(votes), mask) if yes]
    assert kept == votes.keep(np.flatnonzero(mask))
    assert (kept.n_items, kept.n_workers, kept.n_classes) == (votes.n_items, votes.n_workers, votes.n_classes)


@pytest.mark.parametrize("which", [0, None, [[0, 1]]])
def test_keep_takes_a_list_of_annotations(votes, which):
    """Not one position, and no table of them."""
    with pytest.raises(AnnotationError, match="must be one-dimensional"):
        votes.keep(which)


@given(annotations(), annotations())
def test_with_more_adds_and_changes_nothing_else(votes, other):
    """The new object has both; the old one is as it was; no labels at all may be added too."""
    before = triples_of(votes)
    fits = [
        (i, w, k) for i, w, k in triples_of(other) if i < votes.n_items and w < votes.n_workers and k < votes.n_classes
    ]
    more = votes.with_more(*(list(c) for c in zip(*fits)) if fits else ([], [], []))
    assert triples_of(more) == sorted(before + fits)
    assert triples_of(votes) == before


def test_with_more_takes_one_label_and_refuses_unknown_codes(votes):
    """Single codes do; codes beyond the ids, and columns of different lengths, do not."""
    assert votes.with_more(1, 2, 2).n_labels.tolist() == [1, 1, 3]
    with pytest.raises(AnnotationError, match="worker codes"):
        votes.with_more(0, 3, 0)
    with pytest.raises(AlignmentError):
        votes.with_more([0, 0], [0], [0, 0])


@given(annotations(), st.integers(1, 4))
def test_unanswered_pairs_are_all_others(votes, block_size):
    """The stream of open pairs and the answered ones make up all pairs, each once, in order."""
    answered = set(zip(votes.item.tolist(), votes.worker.tolist()))
    blocks = list(votes.unanswered(block_size))
    found = [pair for item, worker in blocks for pair in zip(item.tolist(), worker.tolist())]
    assert found == [(i, w) for i in range(votes.n_items) for w in range(votes.n_workers) if (i, w) not in answered]
    assert all(item.dtype == worker.dtype == np.int32 for item, worker in blocks)


# Where y stands -----------------------------------------------------------------------------------------------------


def _features_and_votes(n_items=30):
    """Row i of X is the number i, and so is the id of item i."""
    label = np.arange(n_items) % 2
    return np.arange(n_items)[:, None], Annotations.from_matrix(np.stack([label, label, 1 - label], axis=1))


def _learner():
    """A classifier that takes Annotations for y and remembers which items it saw."""
    from sklearn.base import BaseEstimator, ClassifierMixin

    class VoteLearner(ClassifierMixin, BaseEstimator):
        def __init__(self, shift=0):
            self.shift = shift

        def fit(self, X, y):
            assert X[:, 0].tolist() == y.item_ids.tolist(), "X and the annotations are not lined up"
            self.classes_ = y.classes
            return self

        def predict(self, X):
            return (X[:, 0] + self.shift) % 2

        def score(self, X, y):
            assert X[:, 0].tolist() == y.item_ids.tolist(), "X and the annotations are not lined up"
            first = y.keep(y.worker == 0)
            return float(np.mean(self.predict(X) == first.label))

    return VoteLearner


def test_train_test_split_lines_up():
    """scikit-learn's splitting takes Annotations as y."""
    from sklearn.model_selection import train_test_split

    X, votes = _features_and_votes()
    X_train, X_test, train, test = train_test_split(X, votes, test_size=0.3, random_state=0)
    assert isinstance(train, Annotations) and isinstance(test, Annotations)
    assert X_train[:, 0].tolist() == train.item_ids.tolist()
    assert X_test[:, 0].tolist() == test.item_ids.tolist()
    assert len(train) + len(test) == len(votes)


def test_cross_validation_lines_up():
    """`cross_val_predict` and `cross_val_score` with KFold take Annotations as y."""
    from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

    X, votes = _features_and_votes()
    folds = KFold(5, shuffle=True, random_state=0)
    assert cross_val_predict(_learner()(), X, votes, cv=folds).tolist() == (X[:, 0] % 2).tolist()
    assert cross_val_score(_learner()(), X, votes, cv=folds).tolist() == [1.0] * 5


def test_grid_search_lines_up():
    """`GridSearchCV` with KFold takes Annotations as y, and finds the better parameter by held-out annotations."""
    from sklearn.model_selection import GridSearchCV, KFold

    X, votes = _features_and_votes()
    search = GridSearchCV(_learner()(), {"shift": [1, 0]}, cv=KFold(3)).fit(X, votes)
    assert search.best_params_ == {"shift": 0}


@pytest.mark.parametrize("cast", [np.asarray, lambda votes: np.array(votes, float), lambda votes: np.array([votes])])
def test_annotations_are_no_array(votes, cast):
    """NumPy gets an error message instead of a nested sequence, and so does scikit-learn where it needs classes."""
    with pytest.raises(AnnotationError, match="not an array"):
        cast(votes)


def test_folds_by_class_are_refused_with_a_remedy():
    """`cv=3` would have scikit-learn stratify by classes that are not known yet."""
    from sklearn.model_selection import cross_val_score

    X, votes = _features_and_votes()
    with pytest.raises(AnnotationError, match=r"cv=KFold"):
        cross_val_score(_learner()(), X, votes, cv=3)


# Leaving out workers and items ---------------------------------------------------------------------------------------


@given(annotations(), st.data())
def test_without_workers_is_the_rest_of_the_triples(votes, data):
    """All items and classes stay; what is left out and what alone stays are each other's rest."""
    some = data.draw(st.lists(st.sampled_from(votes.worker_ids.tolist()), unique=True)) if votes.n_workers else []
    rest, only = votes.without_workers(some), votes.only_workers(some)

    def named(part):
        return [(item, part.worker_ids[w], label) for item, w, label in triples_of(part)]

    assert named(rest) == [triple for triple in named(votes) if triple[1] not in some]
    assert named(only) == [triple for triple in named(votes) if triple[1] in some]
    assert set(rest.worker_ids.tolist()) == set(votes.worker_ids.tolist()) - set(some)
    for part in (rest, only):
        assert np.array_equal(part.item_ids, votes.item_ids) and np.array_equal(part.classes, votes.classes)


def test_patterns_numbers_and_weights():
    """A pattern names all ids that match, a number the text that reads the same; weights stay with their labels."""
    votes = Annotations.from_triples(
        [1, 1, 2, 2], ["gpt-4", "ann", "gpt-5", "[ann]"], "xyxy", weights=[0.5, 1, 0.25, 2]
    )
    assert votes.without_workers("gpt-*").weight.tolist() == [1, 2]
    assert votes.only_workers(["gpt-[45]", "[ann]"]).worker_ids.tolist() == ["[ann]", "gpt-4", "gpt-5"]
    assert votes.without_items("1").item_ids.tolist() == [2] and votes.only_items([1]).n_annotations == 2
    assert votes.without_items(2).worker_ids.tolist() == votes.worker_ids.tolist()


def test_an_unknown_name_is_refused_with_the_nearest():
    votes = Annotations.from_triples("aa", ["alice", "gpt-4"], "xy")
    with pytest.raises(ParameterError, match=r"No worker is called 'alise'\. Did you mean 'alice'\?"):
        votes.without_workers(["gpt-4", "alise"])
    with pytest.raises(ParameterError, match=r"No item matches 'z\*'"):
        votes.only_items("z*")

"""Rows of X and items: matched by ids, by the index or an id column of a frame, and by place."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from manyhands import Annotations, compare, read_annotations
from manyhands.classifiers import Raykar, TwoStage
from manyhands.exceptions import AlignmentError
from manyhands.features import match_rows
from manyhands.representation import RLL
from manyhands.testing.crowds import RowGetter

N = 120
NAMES = ["a", "b", "c"]


def model():
    return TwoStage(aggregator="majority-vote", classifier="logistic-regression")


@pytest.fixture(scope="module")
def crowd():
    """Features in the order of ids 0, 1, ..., truth, and a table of labels of shuffled items."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, N)
    X = 2.0 * np.eye(3)[truth] + rng.normal(0, 0.4, (N, 3))
    rows = [
        (int(i), f"w{w}", int(truth[i]) if rng.random() < 0.9 else int(rng.integers(3)))
        for i in rng.permutation(N)
        for w in rng.choice(6, 3, replace=False)
    ]
    return X, truth, pd.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.fixture(scope="module")
def votes(crowd):
    """The labels with text ids, as a file gives them."""
    return read_annotations(crowd[2].astype(str))


def accuracy(fitted, X, truth):
    return np.mean(fitted.predict(X).astype(int) == truth)


def test_rows_in_the_order_of_the_file_are_right(crowd, tmp_path):
    """Ids 0 to n as text, and X in the order in which the file has them; X in another order is known to be wrong."""
    X, truth, table = crowd
    table.to_csv(tmp_path / "labels.csv", index=False)
    votes = read_annotations(tmp_path / "labels.csv")
    assert votes.item_ids.tolist() == list(dict.fromkeys(table["task"].astype(str)))
    in_file = votes.item_ids.astype(int)
    assert accuracy(model().fit(X[in_file], votes), X, truth) > 0.95
    assert accuracy(model().fit(X, votes), X, truth) < 0.8  # rows of a bare array cannot be matched
    assert accuracy(model().fit(X, votes, ids=range(N)), X, truth) > 0.95


FORMS = {
    "ids": lambda X: (X, [str(i) for i in range(N)]),
    "numbers for text": lambda X: (X, np.arange(N)),
    "a polars column": lambda X: (X, pl.Series([str(i) for i in range(N)])),
    "sparse": lambda X: (csr_array(X), range(N)),
    "a row getter": lambda X: (RowGetter(X), range(N)),
    "nested lists": lambda X: (X.tolist(), range(N)),
    "text index": lambda X: (pd.DataFrame(X, columns=NAMES, index=[str(i) for i in range(N)]), None),
    "named index": lambda X: (pd.DataFrame(X, columns=NAMES, index=pd.RangeIndex(N, name="photo")), None),
    "shuffled index": lambda X: (pd.DataFrame(X, index=[str(i) for i in range(N)]).iloc[::-1], None),
    "id column": lambda X: (pd.DataFrame(X, columns=NAMES).assign(Item_ID=range(N)), None),
    "text id column": lambda X: (pl.DataFrame(X, schema=NAMES).with_columns(task=pl.arange(N).cast(str)), None),
    "a column by name": lambda X: (pl.DataFrame(X, schema=NAMES).with_columns(photo=pl.arange(N)), "photo"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_ids_gives_the_same_fit(crowd, votes, form):
    """The posterior of each id is that of X in the order of the annotations, to the last bit; score and predict too."""
    X, truth, _ = crowd
    given, ids = FORMS[form](X)
    expected, found = model().fit(X[votes.item_ids.astype(int)], votes), model().fit(given, votes, ids=ids)
    assert np.array_equal(found.posterior_, expected.posterior_)
    assert found.n_features_in_ == 3
    if form != "shuffled index":
        assert accuracy(found, given, truth) > 0.95
    score = expected.score(X[votes.item_ids.astype(int)], votes)
    assert found.score(given, votes, ids=ids) == pytest.approx(score, abs=1e-6)  # a row getter has 32 bits


def test_integer_items_and_an_index_without_a_name(crowd):
    """A default index is ids where all items are integers in it; text items, or integers beyond it, go by place."""
    X, truth, table = crowd
    columns = table["task"], table["worker"], table["label"]
    frame = pd.DataFrame(X, columns=NAMES)
    votes = Annotations.from_triples(*columns)
    assert accuracy(model().fit(frame, votes), frame, truth) > 0.95
    for items in (columns[0].astype(str), columns[0] + 1):
        other = Annotations.from_triples(items, *columns[1:])
        assert match_rows(frame, other).order is None
        assert match_rows(frame.sample(frac=1, random_state=0), votes).order is not None
    half = frame.iloc[:60]
    with pytest.raises(AlignmentError, match=r"60 of 120 items have no row in X by its index"):
        model().fit(half.rename(index=lambda i: i), votes)
    assert match_rows(frame.iloc[60:], votes[votes.item_ids >= 60]).annotations.n_items == 60


def test_rows_without_labels_are_items_without_labels(crowd, votes):
    """They follow the others, whose results are those of annotations that have them."""
    X, _, _ = crowd
    more = np.vstack([X, X[:5] + 0.1])
    ids = [*(str(i) for i in range(N)), *(f"new {i}" for i in range(5))]
    found = Raykar(random_state=0).fit(more, votes, ids=ids)
    assert found.posterior_.shape == (N + 5, 3)
    matched = match_rows(more, votes, ids)
    assert matched.annotations.item_ids.tolist() == [*votes.item_ids.tolist(), *ids[N:]]
    expected = Raykar(random_state=0).fit(matched.rows().whole(), matched.annotations)
    assert np.array_equal(found.posterior_, expected.posterior_)


@pytest.mark.parametrize(
    "ids, sentence",
    [
        (range(5), r"There are 5 ids, but X has 120 rows"),
        ([*range(N - 1), 0], r"ids of X name '0' twice"),
        ([f"photo {i}" for i in range(N)], r"120 of 120 items have no row in X by its ids, such as .*'photo 0'"),
        ([*range(N - 1), 999], r"1 of 120 items have no row in X by its ids, such as '119'; .*annotations.for_rows"),
        ("photo", r"ids names the column 'photo', which X does not have"),
        ([f"0{i}" for i in range(N)], r"120 of 120 items have no row"),
    ],
)
def test_ids_that_do_not_match_are_refused(crowd, votes, ids, sentence):
    """In one sentence that names examples and what to do."""
    for call in (model().fit, model().fit(crowd[0], votes, ids=range(N)).score):
        with pytest.raises(AlignmentError, match=sentence):
            call(crowd[0], votes, ids=ids)
    with pytest.raises(AlignmentError, match="120 of 120 items have no row in X by its index"):
        model().fit(pd.DataFrame(crowd[0], index=[f"x{i}" for i in range(N)]), votes)


def test_a_column_called_item_that_is_no_id_stays_a_feature(crowd, votes):
    """Where its values repeat, or none is an item."""
    frame = pd.DataFrame(crowd[0], columns=["item", "b", "c"])
    assert model().fit(frame, votes).n_features_in_ == 3
    assert model().fit(frame.assign(item=[i % 7 for i in range(N)]), votes).n_features_in_ == 3


def test_scikit_learn_splits_what_is_in_one_order(crowd, votes):
    """Searches and pipelines after `for_rows`; a frame in another order is refused by a search, not misread."""
    X, truth, _ = crowd
    frame = pd.DataFrame(X, columns=NAMES, index=[str(i) for i in range(N)]).sample(frac=1, random_state=1)
    truth = truth[frame.index.astype(int)]
    aligned = votes.for_rows(frame.index)
    assert aligned.item_ids.tolist() == frame.index.tolist()
    search = GridSearchCV(model(), {"soft": [False, True]}, cv=KFold(3), error_score="raise")
    assert accuracy(search.fit(frame, aligned), frame, truth) > 0.95
    by_place = GridSearchCV(model(), {"soft": [False, True]}, cv=KFold(3)).fit(frame.to_numpy(), aligned)
    assert np.array_equal(search.cv_results_["mean_test_score"], by_place.cv_results_["mean_test_score"])
    with pytest.raises(AlignmentError, match="for_rows"):
        search.fit(frame, votes)
    pipeline = make_pipeline(StandardScaler(), model())
    assert accuracy(pipeline.fit(frame, aligned), frame, truth) > 0.95
    assert accuracy(pipeline.fit(frame, votes, twostage__ids=frame.index), frame, truth) > 0.95
    assert accuracy(pipeline.set_output(transform="pandas").fit(frame, votes), frame, truth) > 0.95


@pytest.mark.slow
def test_a_comparison_has_the_same_bits_for_every_order(crowd, votes):
    """By ids, by index, and by place."""
    X, _, _ = crowd
    by_place = X[votes.item_ids.astype(int)]
    frame = pd.DataFrame(X, columns=NAMES, index=[str(i) for i in range(N)])
    methods = ["raykar", ("two-stage", {"classifier": "logistic-regression"})]
    expected = compare(methods, votes, by_place, n_folds=3).scores
    in_order = np.argsort(votes.item_ids.tolist())
    for X_, votes_, ids in ((X, votes, range(N)), (frame, votes, None), (by_place[in_order], votes[in_order], None)):
        assert np.array_equal(compare(methods, votes_, X_, n_folds=3, ids=ids).scores, expected)


def test_embeddings_have_the_order_of_x(crowd, votes):
    """`fit_transform` returns a row for each row of X, whatever the order of the items."""
    X, _, _ = crowd
    learner = RLL(labels="majority-vote", embedding_size=2, max_epochs=1, random_state=0)
    found = learner.fit_transform(X, votes, ids=range(N))
    assert np.array_equal(found, learner.transform(X)) and found.shape == (N, 2)


def test_rows_of_a_table_as_annotations(votes):
    """`for_rows` refuses items without rows and repeated items; rows without labels are items without labels."""
    wider = votes.for_rows([*range(N), 500])
    assert wider.item_ids.tolist() == [*(str(i) for i in range(N)), "500"] and wider.n_labels[-1] == 0
    assert sorted(zip(wider.item_ids[wider.item], wider.worker, wider.label)) == sorted(
        zip(votes.item_ids[votes.item], votes.worker, votes.label)
    )
    with pytest.raises(AlignmentError, match="1 of 120 items"):
        votes.for_rows(range(N - 1))

"""Data frames in the place of annotations: every public function takes them, and results come back in their library."""

import ast
import subprocess
import sys
import warnings
from pathlib import Path

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import manyhands as mh
from manyhands import metrics
from manyhands.exceptions import AnnotationError, CrowdWarning, MissingExtraError, ParameterError
from manyhands.frames import is_frame, library_of, make_frame
from manyhands.scorecards import score_workers

COLUMNS = {
    "task": [f"t{i}" for i in range(8) for _ in range(3)],
    "annotator": ["ann", "bob", "cy"] * 8,
    "answer": ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "dog", "cat", "dog", "dog", "cat"] * 2,
}


class ArrowOnly:
    """A frame of a library that this package does not know, which exports itself as an Arrow table."""

    def __init__(self, columns):
        self.table = pl.DataFrame(columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": ArrowOnly,
    "narwhals": lambda columns: nw.from_native(pd.DataFrame(columns)),
    "narwhals, lazy": lambda columns: nw.from_native(pl.LazyFrame(columns)),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param](COLUMNS)


@pytest.fixture(scope="module")
def votes():
    return mh.read_annotations(pl.DataFrame(COLUMNS))


def agreed(found, expected):
    """Whether two results are equal to the bit, NaN included."""
    assert type(found) is type(expected)
    found, expected = (vars(r).values() if hasattr(r, "__dict__") else [r] for r in (found, expected))
    return all(np.array_equal(a, b) or (a != a and b != b) for a, b in zip(found, expected, strict=True))


def test_aggregators_take_frames(frame, votes):
    """`fit`, prediction and score of a frame are those of the annotations that it is read as."""
    model, expected = mh.DawidSkene().fit(frame), mh.DawidSkene().fit(votes)
    assert np.array_equal(model.posterior_, expected.posterior_)
    assert model.item_ids_.tolist() == expected.item_ids_.tolist()
    assert model.annotations_ == votes
    assert model.predict(frame).tolist() == expected.predict(votes).tolist()
    assert np.array_equal(model.predict_proba(frame), expected.predict_proba(votes))
    assert model.score(frame) == expected.score(votes)
    assert mh.MajorityVote().fit_predict(frame).tolist() == mh.MajorityVote().fit_predict(votes).tolist()


def test_classifiers_take_frames(frame, votes):
    X = np.random.default_rng(0).normal(size=(8, 2))
    model, expected = mh.classifiers.Raykar().fit(X, frame), mh.classifiers.Raykar().fit(X, votes)
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.score(X, frame) == expected.score(X, votes)


def test_representation_learners_take_frames(votes):
    pytest.importorskip("torch")
    X = np.random.default_rng(0).normal(size=(8, 2))
    made = [
        mh.representation.Center(max_epochs=1, random_state=0).fit_transform(X, y)
        for y in (pl.DataFrame(COLUMNS), votes)
    ]
    assert np.array_equal(*made)


METRICS = [
    metrics.percent_agreement,
    metrics.fleiss_kappa,
    metrics.item_agreement,
    metrics.krippendorff_alpha,
    metrics.class_agreement,
    metrics.pair_agreement,
    lambda labels: score_workers(labels, np.full((8, 2), 0.5)).accuracy,
    lambda labels: mh.compare(["majority-vote", "wawa"], labels, n_folds=2).scores,
    lambda labels: mh.simulate.thin(labels, 0.5, random_state=0).label,
    lambda labels: mh.trust.random_items(labels, 3).items,
    lambda labels: mh.contested(labels, 3).items,
    lambda labels: mh.trust.select_by_answers(labels, {"t0": "cat", "t1": "dog"}).posterior_,
]


@pytest.mark.parametrize("metric", METRICS)
def test_functions_take_frames(metric, frame, votes):
    assert agreed(metric(frame), metric(votes))


def test_no_function_forgets_the_frame_that_it_checked():
    """`check_annotations` returns the labels of a frame; a call whose result is dropped would refuse frames later."""
    source = Path(mh.__file__).parent
    dropped = [
        f"{path.relative_to(source)}:{node.lineno}"
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "id", "") in ("check_annotations", "as_annotations")
    ]
    assert not dropped


def test_columns_that_are_not_recognised_are_one_sentence():
    """The message names `mh.read_annotations` and the options for the missing columns, and no command-line option."""
    unknown = pd.DataFrame({"a": ["x"], "b": ["y"]})
    for use in (
        mh.DawidSkene().fit,
        metrics.fleiss_kappa,
        lambda df: mh.classifiers.Raykar().fit(np.zeros((1, 2)), df),
    ):
        with pytest.raises(AnnotationError, match=r"mh\.read_annotations\(df, item=\.\.\., worker=\.\.\., label=") as e:
            use(unknown)
        assert "--" not in str(e.value)
    near = pd.DataFrame({"task": ["x"], "my worker name": ["y"], "label": [1]})
    with pytest.raises(AnnotationError, match=r"mh\.read_annotations\(df, worker='my worker name'\)"):
        mh.DawidSkene().fit(near)


def test_other_problems_of_a_frame_name_the_reader_too():
    several = pd.DataFrame({"task": ["x"], "worker": ["y"], "worker_id": ["z"], "label": ["l"], "label ": ["l"]})
    with pytest.raises(AnnotationError, match=r"mh\.read_annotations\(df"):
        mh.DawidSkene().fit(several)


def test_a_frame_with_a_column_per_worker_is_never_taken_in_silence():
    wide = pd.DataFrame({"task": ["a", "b"], "ann": ["x", "y"], "bob": ["x", "y"]})
    with pytest.warns(CrowdWarning, match=r"one column per worker \(ann, bob\)"):
        mh.MajorityVote().fit(wide)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mh.MajorityVote().fit(mh.read_annotations(wide))


def test_a_frame_without_rows():
    with pytest.raises(AnnotationError, match="not a single label"):
        mh.MajorityVote().fit(pd.DataFrame(COLUMNS).head(0))


def test_what_is_no_frame_is_refused():
    for value in (np.zeros((2, 2)), [[0, 1]], pd.Series([1]), pl.Series([1]), None, {"task": [1]}):
        assert not is_frame(value)
        with pytest.raises(AnnotationError, match="Labels must come as Annotations or as a data frame"):
            mh.MajorityVote().fit(value)


def test_the_library_of_a_frame():
    assert library_of(pd.DataFrame()) == "pandas"
    assert library_of(pl.DataFrame()) == library_of(pl.LazyFrame()) == library_of(ArrowOnly({})) == "polars"

    class Table:
        column_names = ()

    Table.__module__ = "pyarrow.lib"
    assert library_of(Table()) == "pyarrow" and is_frame(Table())
    assert library_of(type("Mine", (pd.DataFrame,), {})()) == "pandas"


TABLES = [mh.label_frame, mh.worker_frame, mh.training_frame]


@pytest.mark.parametrize("table", TABLES)
def test_results_come_back_in_the_library_of_the_caller(table):
    """Whether the frame was passed to `fit` or read first, and whichever items were selected then."""
    pandas, polars = pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS)
    assert isinstance(table(mh.MajorityVote().fit(pandas)), pd.DataFrame)
    assert isinstance(table(mh.MajorityVote().fit(mh.read_annotations(pandas)[:5])), pd.DataFrame)
    assert isinstance(table(mh.MajorityVote().fit(mh.read_annotations([pandas, pandas]))), pd.DataFrame)
    assert isinstance(table(mh.MajorityVote().fit(polars)), pl.DataFrame)
    assert isinstance(table(mh.MajorityVote().fit(pandas), library="polars"), pl.DataFrame)
    assert isinstance(table(mh.MajorityVote().fit(mh.Annotations.from_matrix([[0, 1]]))), pl.DataFrame)


def test_the_library_is_kept_by_selections_and_changes_no_comparison(votes):
    labels = mh.read_annotations(pd.DataFrame(COLUMNS))
    assert labels == votes and labels.frame_library == "pandas"
    assert labels[:3].frame_library == labels.keep(np.arange(2)).frame_library == "pandas"
    assert mh.Annotations.from_matrix([[0]]).frame_library is None


def test_frames_of_every_library(monkeypatch):
    columns = {"name": ["a", "b"], "n": [1, 2]}
    assert make_frame(columns).rows() == [("a", 1), ("b", 2)]
    assert make_frame(columns, "pandas", "name").loc["b", "n"] == 2
    assert list(make_frame(columns, "pandas").columns) == ["name", "n"]
    with pytest.raises(ParameterError, match="There are: pandas, polars, pyarrow"):
        make_frame(columns, "excel")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(pl.DataFrame, "to_arrow", lambda table: __import__("pyarrow"))
    with pytest.raises(MissingExtraError, match="pip install pyarrow"):
        make_frame(columns, "pyarrow")


def test_a_fit_of_annotations_loads_no_data_frames():
    """The functions of `io` are reached by name, and only where a frame was given."""
    program = (
        "import sys, manyhands as mh; mh.DawidSkene().fit(mh.Annotations.from_matrix([[0, 1], [1, 1]]));"
        "print('polars' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"

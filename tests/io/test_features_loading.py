"""Features from every kind of file, matched by id; what cannot be used is refused in one sentence."""

import zipfile

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array, save_npz

from manyhands.exceptions import AlignmentError, AnnotationError, CrowdWarning, LimitError, ParameterError
from manyhands.io.feature_pipeline import FeaturePipeline
from manyhands.io.features import match, read_features

X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
IDS = ["b", "a", "10"]


def matrix_of(path, items=("10", "a", "b"), **options):
    """The features of these items, in their order."""
    features = read_features(path, **options)
    kept, rows = match(features, list(items))
    assert kept.tolist() == list(range(len(items)))
    part = features.take(rows)
    found = FeaturePipeline.learn(part, standardise=False).apply(part)
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


@pytest.mark.parametrize("form", ["npz", "csv", "parquet", "lists", "sparse", "npy"])
def test_every_form_gives_the_same_rows(form, tmp_path):
    """Rows find their items by id, whatever the order and the form of the file."""
    options = {}
    if form == "npz":
        np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    elif form == "csv":
        (tmp_path / "x.csv").write_text("f,task_id,g\n1,b,2\n3,a,4\n5,10,6\n")
    elif form == "parquet":
        pl.DataFrame({"item": IDS, "f": X[:, 0], "g": X[:, 1].astype(int)}).write_parquet(tmp_path / "x.parquet")
    elif form == "lists":
        pl.DataFrame({"item": IDS, "embedding": X.tolist()}).write_parquet(tmp_path / "x.parquet")
    else:
        (tmp_path / "ids.txt").write_text("b\na\n10\n")
        options = {"feature_ids": tmp_path / "ids.txt"}
        if form == "sparse":
            save_npz(tmp_path / "x.npz", csr_array(X))
        else:
            np.save(tmp_path / "x.npy", X)
    path = next(path for path in tmp_path.iterdir() if path.stem == "x")
    np.testing.assert_array_equal(matrix_of(path, **options), X[[2, 1, 0]])


@pytest.mark.parametrize("ids", [np.array([2, 1, 0]), np.array([2.0, 1.0, 0.0]), np.array([b"2", b"1", b"0"])])
def test_ids_of_any_kind_are_the_texts_that_readers_have(ids, tmp_path):
    """Whole numbers have no point."""
    np.savez(tmp_path / "x.npz", X=X, ids=ids)
    np.testing.assert_array_equal(matrix_of(tmp_path / "x.npz", "012"), X[::-1])


HEADERS = [
    "[" * 300,
    "(" * 5000,
    "{'descr': '''",
    "{'descr': '<f8', 'fortran_order': False, 'shape': " + "-" * 9000 + "1}",
]


@pytest.mark.parametrize("header", HEADERS)
def test_headers_that_are_none(tmp_path, header):
    """Nested without end, or text that does not end: Python's own parser of the header fails in several ways."""
    content = header.encode() + b"\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(content).to_bytes(2, "little") + content)
    with pytest.raises((AnnotationError, LimitError), match=r"x\.npy"):
        read_features(tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["ids.npy", "ids.csv", "ids.txt"])
def test_ids_may_have_a_file_of_their_own(name, tmp_path):
    """As an array, as a column, or one a line; as many as there are rows."""
    np.save(tmp_path / "x.npy", X)
    path = tmp_path / name
    if name == "ids.npy":
        np.save(path, np.array(IDS))
    else:
        path.write_text("item,x\nb,1\na,2\n10,3\n" if name == "ids.csv" else "b\na\n10\n")
    assert read_features(tmp_path / "x.npy", feature_ids=path).ids == IDS
    np.save(tmp_path / "x.npy", X[:2])
    with pytest.raises(AlignmentError, match="3 ids for the 2 rows"):
        read_features(tmp_path / "x.npy", feature_ids=path)


def test_position_counts_only_if_told(tmp_path):
    """Rows then are in the order of the items, one for each; refused where that is not the order of the ids."""
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(AnnotationError, match="has no item ids"):
        read_features(tmp_path / "x.npy")
    features = read_features(tmp_path / "x.npy", rows_in_order=True)
    assert match(features, ["8", "9", "10"])[0].tolist() == [0, 1, 2]
    assert match(features, ["a9b", "a10", "b"])[0].tolist() == [0, 1, 2]
    for items, pair in ((["8", "10", "9"], "'9' after '10'"), (["x9", "x10", "a"], "'a' after 'x10'")):
        with pytest.raises(AlignmentError, match=f"no ids, and the labels have item {pair}: .*`feature_ids=`"):
            match(features, items)
    with pytest.raises(AlignmentError, match="3 rows for 2 items"):
        match(features, ["1", "2"])


def test_items_and_rows_need_not_all_match(tmp_path):
    """Those that do are given back; that none does is an error that shows both kinds of ids."""
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    features = read_features(tmp_path / "x.npz")
    kept, rows = match(features, ["a", "nobody", "10"])
    assert kept.tolist() == [0, 2] and rows.tolist() == [1, 2]
    with pytest.raises(AlignmentError, match=r"ids are like 'b', 'a', '10', those of the items like 'p', 'q'"):
        match(features, ["p", "q"])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("item,f\na,1\nb,\n", "column 'f' has nothing where a finite number should be .row 2."),
        ("item,f\na,1\nb,red\n", "column 'f' has 'red' where"),
        ("item,f\na,1\nb,inf\n", "column 'f' has 'inf' where"),
        ("item,f\na,1\na,2\n", "more than one row for 'a'"),
        ("item,f\na,1\n,2\n", "row 2 has no id in column 'item'"),
        ("name,f\na,1\n", "no column that looks like ids"),
        ("item\na\n", "no column beside the ids"),
        ("item,f\n", "has no rows, so there are no features in it"),
        ("item,f\na,1\na,1\n,2\n", "row 3 has no id in column 'item'"),
        ("item,f\na,1\na,1\nb,x\n", "has 'x' where a finite number should be .row 3."),
    ],
)
def test_tables_that_cannot_be_used(content, sentence, tmp_path):
    """The column, the row and the way out."""
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises((AnnotationError, AlignmentError), match=sentence):
        read_features(tmp_path / "x.csv")


def test_rows_that_say_the_same_twice_are_one(tmp_path):
    """So the export itself, with a row for every judgement, can give the text of its items."""
    (tmp_path / "x.csv").write_text("item,worker,label,body\na,p,1,red cat\na,q,2,red cat\nb,p,1,red dog\n")
    features = read_features(tmp_path / "x.csv", text=["body"])
    assert features.ids == ["a", "b"] and features.texts == ["red cat", "red dog"]


def bad_arrays(path, which):
    arrays = {
        "nan": {"X": [[1.0], [np.nan]], "ids": ["a", "b"]},
        "infinite": {"X": [[1.0], [np.inf]], "ids": ["a", "b"]},
        "flat": {"X": [1.0, 2.0], "ids": ["a", "b"]},
        "text": {"X": [["1"], ["2"]], "ids": ["a", "b"]},
        "objects": {"X": np.array([[1], [None]], object), "ids": ["a", "b"]},
        "odd_ids": {"X": [[1.0], [2.0]], "ids": [[1], [2]]},
        "nan_ids": {"X": [[1.0], [2.0]], "ids": [1.0, np.nan]},
        "infinite_ids": {"X": [[1.0], [2.0]], "ids": [np.inf, 2.0]},
        "no_rows": {"X": np.ones((0, 2)), "ids": np.array([], "U1")},
        "twice": {"X": [[1.0], [2.0]], "ids": ["a", "a"]},
        "unnamed": {"p": [[1.0]], "q": [[1.0]]},
    }[which]
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})


@pytest.mark.parametrize(
    ("which", "sentence"),
    [
        ("nan", "NaN, infinity or a number beyond"),
        ("infinite", "in row 1"),
        ("flat", "a row for each item; its shape is .2,."),
        ("text", "X must hold numbers"),
        ("objects", "holds Python objects .a pickle., which are not read"),
        ("odd_ids", "^The ids in .* must be a list of texts or whole numbers"),
        ("nan_ids", "^The ids in .* have nan in row 1; give every row an id"),
        ("infinite_ids", "^The ids in .* have inf in row 0; give every row an id"),
        ("no_rows", "has no rows, so there are no features in it"),
        ("twice", "more than one row for 'a'"),
        ("unnamed", "no array called X. It has: p, q"),
    ],
)
def test_arrays_that_cannot_be_used(which, sentence, tmp_path):
    """One sentence each, with the file in it."""
    bad_arrays(tmp_path / "x.npz", which)
    with pytest.raises((AnnotationError, AlignmentError), match=sentence) as error:
        matrix_of(tmp_path / "x.npz", "ab")
    assert "x.npz" in str(error.value)


def test_broken_and_hostile_files(tmp_path):
    """A pickle under our name, a file cut off, an index that points beyond the matrix: nothing is run or read."""
    (tmp_path / "x.npy").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(AnnotationError, match=r"x.npy holds Python objects"):
        read_features(tmp_path / "x.npy", rows_in_order=True)
    np.save(tmp_path / "o.npy", np.array([[1], [None]], object))
    with pytest.raises(AnnotationError, match=r"o.npy holds Python objects .a pickle., which are not read"):
        read_features(tmp_path / "o.npy", rows_in_order=True)
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:200])
    with pytest.raises(AnnotationError, match=r"cut.npz cannot be read as a NumPy file"):
        read_features(tmp_path / "cut.npz")
    parts = {"format": b"csr", "shape": [2, 2], "data": [1.0], "indices": [10**6], "indptr": [0, 1, 1]}
    np.savez(tmp_path / "sparse.npz", **{name: np.asarray(part) for name, part in parts.items()})
    with pytest.raises(AnnotationError, match=r"sparse.npz cannot be read"):
        read_features(tmp_path / "sparse.npz", rows_in_order=True)
    with zipfile.ZipFile(tmp_path / "empty.npz", "w"):
        pass
    with pytest.raises(AnnotationError, match="It has: nothing"):
        read_features(tmp_path / "empty.npz")


def test_arrays_have_no_columns(tmp_path):
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(IDS))
    with pytest.raises(ParameterError, match="has no columns with names"):
        read_features(tmp_path / "x.npz", text=["body"])


def test_lists_name_the_row_that_they_stand_in(tmp_path):
    """Not the place of the number among all numbers."""
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, float("nan")]]
    pl.DataFrame({"item": IDS, "embedding": rows}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(AnnotationError, match=r"has nan where a finite number should be .row 3."):
        read_features(tmp_path / "x.parquet")


def test_ids_in_two_places_and_none(tmp_path):
    """Those of a file of their own count, which is told; with rows in order they contradict."""
    np.savez(tmp_path / "x.npz", X=X, ids=np.array(["p", "q", "r"]))
    (tmp_path / "ids.txt").write_text("b\na\n10\n")
    with pytest.warns(CrowdWarning, match=r"ids_replaced: The ids in .*x.npz are not used; those of .*ids.txt"):
        assert read_features(tmp_path / "x.npz", feature_ids=tmp_path / "ids.txt").ids == IDS
    with pytest.raises(ParameterError, match="`rows_in_order` matches rows by position, `feature_ids` by id"):
        read_features(tmp_path / "x.npz", feature_ids=tmp_path / "ids.txt", rows_in_order=True)
    with pytest.raises(AnnotationError, match=r"no.txt does not exist. Give the file of ids"):
        read_features(tmp_path / "x.npz", feature_ids=tmp_path / "no.txt")

r"""Half a surrogate pair, such as "\ud800" in JSON, is no text: wherever it comes from, one sentence says where."""

import numpy as np
import pandas as pd
import pytest

from manyhands import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, ManyhandsError, ParameterError
from manyhands.io.features import read_features
from manyhands.io.reading import read_export

HALF = "a\ud800"
ROWS = {"item": ["1", "2"], "worker": ["u", "v"], "label": ["x", "y"]}


def ask(call, *values, **named):
    with pytest.raises(ManyhandsError, match=r"unpaired surrogate|not UTF-8") as found:
        call(*values, **named)
    assert str(found.value).isprintable()
    return found


@pytest.mark.parametrize("role", ROWS)
def test_in_columns(role):
    """Two halves are not taken for one, and none is kept until a file cannot be written."""
    columns = ROWS | {role: ["a", HALF]}
    said = ask(Annotations.from_triples, *columns.values())
    assert isinstance(said.value, AnnotationError) and "in row 1 is 'a\\ud800'" in str(said.value)
    assert repr(role) in str(ask(read_export, pd.DataFrame(columns)).value)
    given = {"label": "classes"}.get(role, f"{role}_ids")
    ask(Annotations.from_triples, *ROWS.values(), **{given: [*ROWS[role], HALF]})
    ask(Annotations.from_triples, *ROWS.values(), **{given: np.array([*ROWS[role], HALF])})
    ask(read_export, pd.DataFrame(ROWS), **{given: [*ROWS[role], HALF]})
    ask(read_export, pd.DataFrame(ROWS), types={role: lambda value: value + HALF})


def test_a_whole_pair_is_text():
    found = Annotations.from_triples(["\U0001f600", "2"], ["u", "v"], ["x", "\ud7ff\ue000"])
    assert found.item_ids.tolist() == ["\U0001f600", "2"]


def test_in_the_names_of_columns():
    ask(read_export, pd.DataFrame({"item": ["1"], "u": ["x"], HALF: ["y"]}), worker=f"u,{HALF}")
    ask(read_export, pd.DataFrame({"item": ["1", "2"], "u": ["x", "y"], HALF: ["x", "y"]}))


@pytest.mark.parametrize("option", ["item", "worker", "label", "question", "missing"])
def test_in_options(option):
    """What a terminal with another encoding makes of a byte."""
    assert isinstance(ask(read_export, pd.DataFrame(ROWS), **{option: "a\udcff"}).value, ParameterError)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.json", '[{"item": "1", "worker": "u", "label": "a\\ud800"}]'),
        ("x.jsonl", '\n{"item": "\\udc00\\ud800", "worker": "u", "label": "a"}'),
        ("x.json", '{"1": {"\\ud800": "x"}}'),
        ("x.csv", "item,worker,label\n1,u,a\ud800\n"),
        ("x.txt", "1 u a\ud800\n"),
    ],
)
def test_in_files(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert f"{name}, line " in str(ask(read_export, path).value)


def test_in_ids_of_features(tmp_path):
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)), ids=np.array(["1", HALF]))
    assert isinstance(ask(read_features, tmp_path / "x.npz").value, AlignmentError)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ids_of_features_that_floats_do_not_tell_apart(tmp_path, dtype):
    exact = 2 ** (24 if dtype is np.float32 else 53)
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)), ids=np.array([1, exact], dtype))
    assert read_features(tmp_path / "x.npz").ids == ["1", str(exact)]
    np.savez(tmp_path / "x.npz", X=np.zeros((2, 2)), ids=np.array([1, exact + 2], dtype))
    with pytest.raises(AlignmentError, match="Give them as text"):
        read_features(tmp_path / "x.npz")

"""Broken exports of Label Studio: every change ends in one of our errors, never in another one."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.exceptions import ManyhandsError
from manyhands.io.documents import Records, parse
from manyhands.io.formats import label_studio
from manyhands.io.sources import Source

SAMPLES = Path(__file__).parents[2] / "samples" / "label_studio"
EXPORT = json.loads((SAMPLES / "export.json").read_text())
FLAT = {"label-studio-csv": SAMPLES / "csv" / "result.csv", "label-studio-min": SAMPLES / "min" / "result.json"}

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 200) | st.floats(-2, 2) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "email", "x", "a"]), inner),
    max_leaves=4,
)


def places(value, path=()):
    """The path of every value inside a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places(inner, (*path, key))


@pytest.mark.parametrize("whole", [EXPORT, json.loads(FLAT["label-studio-min"].read_text())], ids=["json", "min"])
@given(data=st.data())
def test_broken_pieces_never_end_in_a_crash(whole, data):
    value = copy.deepcopy(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(places(value)) or [()]))
        if not path:
            break
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        if data.draw(st.booleans()):
            del inner[path[-1]]
        else:
            inner[path[-1]] = data.draw(JUNK)
    document = Records("export.json", value)
    name = label_studio.recognise(document)
    if name is not None:
        try:
            found = label_studio.read(document, name, label_studio.ColumnOptions())
        except ManyhandsError as error:
            assert "export.json" in str(error)
        else:
            assert len(found.item) == len(found.worker) and all(len(found) == len(a) for a in found.answers.values())


@given(JUNK)
def test_anything_may_be_asked_whether_it_is_an_export(value):
    assert label_studio.recognise(Records("x", value)) in (None, "label-studio", "label-studio-min")


@given(st.integers(1, 700))
def test_a_table_that_was_cut_off(end):
    content = FLAT["label-studio-csv"].read_bytes()[:end]
    try:
        document = parse(Source("result.csv", content=content))
        name = label_studio.recognise(document)
        found = label_studio.read(document, name, label_studio.ColumnOptions()) if name else None
    except ManyhandsError as error:
        assert "result.csv" in str(error)
    else:
        assert found is None or len(found) == len(document)

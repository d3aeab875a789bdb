"""JSON and JSON lines: what is read, and what is refused with its line."""

import gc
import json
import math
from contextlib import suppress

import numpy as np
import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError
from manyhands.io import documents
from manyhands.io.documents import as_text, parse_json
from manyhands.io.reading import read_export
from manyhands.io.sources import Source

pytestmark = pytest.mark.fast

ROW = '{"item": "1", "worker": "ann", "label": "cat"}'


def parsed(text, name="x.json"):
    return parse_json(Source(name, content=text.encode() if isinstance(text, str) else text))


def test_lines_by_name_and_by_content():
    """JSON lines under any name, with blank lines and Windows' line ends."""
    for name in ("x.jsonl", "x.ndjson", "x.json", "x.txt"):
        assert parsed(f"{ROW}\r\n\r\n{ROW}\n", name)[0] == [json.loads(ROW)] * 2
    assert parsed(ROW)[0] == json.loads(ROW)
    assert parsed(ROW, "x.jsonl")[0] == [json.loads(ROW)]


@pytest.mark.parametrize("opening", ["[", '{"a":', "[{"])
@pytest.mark.parametrize("closed", [True, False])
def test_a_hundred_thousand_levels(opening, closed):
    end = {"[": "]", '{"a":': "1" + "}" * 100_000, "[{": ""}[opening] if closed else ""
    text = opening * 100_000 + (end * 100_000 if end == "]" else end)
    with pytest.raises(AnnotationError):
        parsed(text)


@pytest.mark.parametrize("depth", [200, 300, 900, 1000, 1020])
def test_depths_that_one_reader_takes_and_another_does_not(depth, tmp_path):
    """orjson reads 1024 levels, writes 254, and Python's own reader gives up in between."""
    nested = "[" * depth + "]" * depth
    path = tmp_path / "x.jsonl"
    path.write_text(f'{{"item": "1", "worker": "ann", "label": {nested}}}\n')
    if depth < 250:
        assert read_export(path).annotations.classes.tolist() == [nested]
    else:
        with pytest.raises(AnnotationError):
            read_export(path)


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_numbers_that_are_none(token, name):
    """Named with their line, after letters of several bytes, too."""
    with pytest.raises(AnnotationError, match=rf"line 1: {token.lstrip('-')} is not JSON"):
        parsed(f'{{"text": "éééé", "label": {token}}}', name)


def test_a_key_that_comes_twice_is_told():
    value, notes = parsed('[{"item": "1", "item": "2"}]')
    assert value == [{"item": "2"}]
    assert notes["repeated_keys"].startswith("Some objects have a key twice (item)")
    assert parsed(ROW)[1] == {}


def test_a_key_that_comes_twice_reaches_the_reader(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"item": "1", "worker": "ann", "label": "cat", "label": "dog"}\n')
    with pytest.warns(CrowdWarning, match="repeated_keys"):
        assert read_export(path).annotations.classes.tolist() == ["dog"]


def test_a_line_without_end():
    long_line = json.dumps({"text": "x" * (11 << 20)})
    with pytest.raises(LimitError, match=r"x\.jsonl, line 2: 11,5"):
        parsed(f"{ROW}\n{long_line}\n", "x.jsonl")


def test_a_file_that_is_too_large(monkeypatch):
    monkeypatch.setattr(documents, "MAX_BYTES", 10)
    with pytest.raises(LimitError, match="at most 10 of JSON"):
        parsed(ROW)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not JSON"),
        ("[1, 2", "line 1, column 6: not JSON"),
        ('[{"a": 1},\n{"a": 2', r"x\.json, line 2"),
        (f"{ROW}\n{{broken\n", r"x\.json, line 2"),
        ('{"a": "\\ud800"}', "surrogate"),
        ("{'a': 1}", "not JSON"),
        ('{"a": 1}garbage', "not JSON"),
    ],
)
def test_what_is_no_json(text, said):
    with pytest.raises(AnnotationError, match=said):
        parsed(text)


@pytest.mark.parametrize("text", ["null", "5", '"x"', "true", "[]", "{}", "[null]", "[[1]]", '{"a": {"b": {"c": 1}}}'])
def test_json_that_is_no_export(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(AnnotationError):
        read_export(path)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("1.0", "1.0"),
        (True, "true"),
        (1, "1"),
        (1.0, "1.0"),
        (1e300, "1e+300"),
        (2**70, str(2**70)),
        (np.float64(1.5), "1.5"),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": {1}}, '{"a":"{1}"}'),
        ({1: 2}, '{"1":2}'),
    ],
)
def test_values_as_text(value, text):
    assert as_text(value) == text


def test_values_that_have_no_text():
    deep = []
    for _ in range(300):
        deep = [deep]
    with pytest.raises(AnnotationError, match="cannot be written as JSON"):
        as_text(deep)
    assert as_text(math.nan) == "nan"


def test_the_collector_is_left_as_it_was():
    for text in (ROW, "[1,"):
        for on in (True, False):
            gc.enable() if on else gc.disable()
            with suppress(AnnotationError):
                parsed(text)
            assert gc.isenabled() is on
    gc.enable()

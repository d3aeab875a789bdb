"""Numbers that 64 bits cannot hold: every one stays another one, in whatever way it is written."""

import json
import random
import re

import orjson
import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io import documents
from manyhands.io.documents import as_text
from manyhands.io.reading import read_export

LONG = 12345678901234567890123
NUMBERS = ["12345678901234567890123", "-12345678901234567890123", "18446744073709551616", "-9223372036854775809"]
NUMBERS += ["1e400", "-1E+400", "1e-400", "2.5e-330", "0.12345678901234567890123", "9007199254740993.0", "1" * 5000]
EXACT = [
    "18446744073709551615",
    "-9223372036854775808",
    "0.1",
    "0.30000000000000004",
    "1.7976931348623157e308",
    "0e999",
]
EXACT += ["5e-324", "0.10000000000000000000000", "-0.0", "100000000000000000000.0", "1E5"]


def label_studio(numbers):
    """Three tasks with a worker each, all of whose ids are long."""
    task = '{"id": %s, "data": {"text": "t"}, "annotations": [{"id": %s, "completed_by": %s, "result": [%s]}]}'
    result = '{"from_name": "q", "to_name": "t", "type": "choices", "value": {"choices": ["yes"]}}'
    return "[" + ",".join(task % (n, n, n, result) for n in numbers) + "]"


def rows(numbers, between):
    return between.join(f'{{"item": {n}, "worker": {n}, "label": {n}}}' for n in numbers)


@pytest.mark.parametrize("name", ["x.json", "x.jsonl", "label-studio.json"])
@pytest.mark.parametrize("sign", [1, -1])
def test_six_long_ids_stay_six(tmp_path, name, sign):
    numbers = [str(sign * (LONG + k)) for k in range(6)]
    text = {"x.json": f"[{rows(numbers, ',')}]", "x.jsonl": rows(numbers, "\n")}.get(name) or label_studio(numbers)
    (tmp_path / name).write_text(text)
    reading = read_export(tmp_path / name)
    assert reading.annotations.item_ids.tolist() == sorted(numbers)
    assert reading.annotations.worker_ids.tolist() == sorted(numbers)
    assert reading.annotations.n_annotations == 6
    if name != "label-studio.json":
        assert reading.annotations.classes.tolist() == sorted(numbers)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "around", ["%s", " %s ", "[%s]", '[\n1,%s\t,"%s"]', '{"a":%s}', '{"a": "\\\\", "b": {"c": [[%s]]}}']
)
def test_what_no_float_is_becomes_text(number, around):
    """Wherever it stands; the same digits within a text are left alone."""
    if around.count("%s") == 2:
        assert documents.loads(around % (number, number)) == [1, number, number]
        return
    wanted = json.loads(around % json.dumps(number))
    assert documents.loads(around % number) == documents.loads((around % number).encode()) == wanted


@pytest.mark.parametrize("number", EXACT)
def test_what_a_float_or_64_bits_hold_stays_a_number(number):
    found = documents.loads(f"[{number}]")[0]
    assert found == orjson.loads(number) and type(found) in (int, float)


def test_texts_are_never_changed():
    texts = [f"a {LONG}, b", f'say \\" {LONG} \\"', f"\\\\ : {LONG}", f"[{LONG}]", f",{LONG},", f"é: {LONG} "]
    document = "[" + ",".join(f'"{text}", {LONG}' for text in texts) + "]"
    assert documents.loads(document) == json.loads(document, parse_int=str)


@pytest.mark.parametrize(
    "text", ["{%s: 1}", "[%s", "0%s", "[%s 1]", '{"a" %s}', "[+%s]", "%s.", "%se", "[- %s]", '"%s']
)
def test_what_is_no_json_is_not_made_json(text):
    """The quotes that are put around a number make no key of it, and the place of an error is the one in the file."""
    with pytest.raises(orjson.JSONDecodeError) as found:
        documents.loads(text % LONG)
    with pytest.raises(orjson.JSONDecodeError) as plain:
        orjson.loads(text % LONG)
    assert found.value.pos == plain.value.pos


def test_numbers_across_the_pieces_of_a_document(monkeypatch):
    """Against Python's own reader, with pieces so small that numbers, texts and escapes are cut by their ends."""
    rng = random.Random(0)
    monkeypatch.setattr(documents, "_SMALL", 0)
    some = [*NUMBERS[:-1], *EXACT, '"\\""', '"\\\\"', f'"{LONG}"', '"a, 1e400 "', "true", "[]", '{"k": 3e999}']
    for _ in range(300):
        document = "[" + ", ".join(rng.choice(some) for _ in range(rng.randrange(1, 30))) + "]"
        monkeypatch.setattr(documents, "_PIECE", rng.randrange(1, 60))
        wanted = json.loads(document, parse_int=lambda n: n if exceeds(n) else int(n), parse_float=kept)
        assert documents.loads(document) == wanted


def exceeds(number):
    return not -(2**63) <= int(number) < 2**64


def kept(number):
    return number if number in NUMBERS or number == "3e999" else float(number)


def test_long_numbers_in_cells_of_a_table(tmp_path):
    """A list within a cell of a table is JSON, too."""
    lists = [json.dumps([LONG + k, LONG + k + 1]).replace('"', '""') for k in range(3)]
    lines = [f'i{k},"{cell}","[""a"",""b""]"' for k, cell in enumerate(lists)]
    (tmp_path / "x.csv").write_text("id,annotators,labels\n" + "\n".join(lines))
    found = read_export(tmp_path / "x.csv").annotations
    assert found.worker_ids.tolist() == [str(LONG + k) for k in range(4)]


def test_long_numbers_in_a_frame():
    frame = pl.DataFrame(
        {"item": [LONG, LONG + 1], "worker": ["a", "b"], "label": ["x", "y"]}, schema_overrides={"item": pl.Int128}
    )
    assert read_export(frame).annotations.item_ids.tolist() == [LONG, LONG + 1]
    assert as_text([LONG, {"a": -LONG}]) == f'[{LONG},{{"a":-{LONG}}}]'
    with pytest.raises(AnnotationError, match="more digits"):
        as_text(10**5000)


def test_a_file_of_ordinary_numbers_is_read_by_orjson_alone(monkeypatch):
    """The second reading is for files that need it."""
    monkeypatch.setattr(documents, "rewritten", lambda *_, **__: pytest.fail("it was written again"))
    document = json.dumps([{"id": k, "score": k / 7, "name": f"{LONG + k}.jpg", "hash": f"3e{k}"} for k in range(500)])
    assert documents.loads(document) == json.loads(document)
    assert re.search("[0-9.]{16}", document)

"""Members of JSON objects as they stand in the file."""

import json
import random
import time

import pytest

from manyhands.io.write import write_back as module
from manyhands.io.write.write_back import raw_members


def spelled(value, rng):
    """JSON of a value with blanks anywhere, and the bytes of `id` and `data` of the objects of its first level."""
    if isinstance(value, dict):
        inner = (f"{json.dumps(key)}{rng.choice(['', ' '])}:{spelled(item, rng)}" for key, item in value.items())
        return rng.choice(["", " ", "\n"]) + "{" + " , ".join(inner) + rng.choice(["}", "\n}"])
    if isinstance(value, list):
        return "[" + ",".join(spelled(item, rng) for item in value) + " ]"
    return rng.choice(["", " "]) + json.dumps(value, ensure_ascii=rng.random() < 0.5)


def made_up(rng, depth):
    texts = ["", "id", "data", '"', "\\", '\\"', "}{][", ',"id":1', "\u00e9\u65e5\n", "\\\\"]
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([*texts, 1, -2.5e-7, None, True])
    if rng.random() < 0.5:
        return [made_up(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(["id", "data", "x", *texts]): made_up(rng, depth - 1) for _ in range(rng.randrange(5))}


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_members_of_made_up_objects(monkeypatch, piece):
    """Texts with brackets, quotes and backslashes, keys as values, nested keys, cut into pieces anywhere."""
    monkeypatch.setattr(module, "_PIECE", piece)
    rng = random.Random(0)
    for _ in range(20):
        objects = [{key: made_up(rng, 3) for key in rng.sample(["id", "data", "x", "i", "y"], 3)} for _ in range(3)]
        shapes = [spelled(objects, rng), "\n".join(json.dumps(one) for one in objects), spelled(objects[0], rng)]
        for text, wanted in zip(shapes, (objects, objects, objects[:1])):
            found = list(raw_members(text.encode(), ["id", "data"]))
            told = [{key: one[key] for key in one if key in ("id", "data")} for one in wanted]
            assert [{key: json.loads(raw) for key, raw in one.items()} for one in found] == told
            assert all(raw in text.encode() and raw == raw.strip() for one in found for raw in one.values())


def test_numbers_and_escapes_stand_as_they_did():
    content = rb'[{"id": 1.10, "data" : {"a": 123456789012345678901234567890, "b": "\u00e9\/"}}, {"id": "\"\\"}]'
    assert list(raw_members(content, ["id", "data"])) == [
        {"id": b"1.10", "data": rb'{"a": 123456789012345678901234567890, "b": "\u00e9\/"}'},
        {"id": rb'"\"\\"'},
    ]
    assert list(raw_members(b"", ["id"])) == [] == list(raw_members(b"5", ["id"]))


def test_a_large_file_is_looked_through_quickly():
    """Millions of quotes and brackets that do not matter, and a long row of backslashes."""
    noise = b'"annotations": [%s]' % b",".join([b'{"a": [["b"], "c"]}'] * 400_000)
    content = b'[{"id": 1, %s, "x": "%s", "data": {}}]' % (noise, b"\\" * 1_000_000)
    begun = time.process_time()
    assert list(raw_members(content, ["id", "data"])) == [{"id": b"1", "data": b"{}"}]
    assert time.process_time() - begun < 1

"""Exports as they should not be: strategies that damage a good one, and a reader that keeps its notes quiet."""

import copy
import csv
import io
import warnings

from hypothesis import strategies as st

from manyhands.exceptions import CrowdWarning
from manyhands.io.reading import read

JUNK = [
    None,
    True,
    0,
    -1.5,
    "",
    " ",
    "junk",
    "\x00",
    "true",
    "[",
    "{}",
    [],
    {},
    [[]],
    [None],
    {"a": [1]},
    {"label": {}},
]
CELLS = ["", " ", "junk", "true", "false", "[", "[1]", "{}", '{"a":{"label":[{}]}}', "a\nb", "2026", "\x00", "é"]


def quiet_read(path, **options):
    """`read` without warnings; its notes are in the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return read(path, **options)


def triples(reading):
    """(item, worker, label) as in the file's own words, in order."""
    votes = reading.annotations
    names = (votes.item_ids[votes.item], votes.worker_ids[votes.worker], votes.classes[votes.label])
    return sorted(zip(*(column.tolist() for column in names)))


@st.composite
def broken_json(draw, value):
    """A JSON value with some keys gone, some entries replaced, and some there twice."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 4))):
        places = list(_places(value))
        if not places:
            break
        inside, key = draw(st.sampled_from(places))
        change = draw(st.sampled_from(["delete", "replace", "repeat"]))
        if change == "delete":
            del inside[key]
        elif change == "replace":
            inside[key] = copy.deepcopy(draw(st.sampled_from(JUNK)))
        elif isinstance(inside, list):
            inside.append(copy.deepcopy(inside[key]))
    return value


def _places(value):
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


@st.composite
def broken_table(draw, content, separator):
    """The bytes of a table with columns gone, cells replaced, rows there twice, or the end cut off."""
    rows = list(csv.reader(io.StringIO(content.decode()), delimiter=separator))
    for _ in range(draw(st.integers(1, 4))):
        change = draw(st.sampled_from(["drop column", "rename", "cell", "cell", "cell", "repeat row", "blank row"]))
        at, row = draw(st.integers(0, len(rows[0]) - 1)), draw(st.integers(0, len(rows) - 1))
        if change == "drop column" and len(rows[0]) > 1:
            rows = [cells[:at] + cells[at + 1 :] for cells in rows]
        elif change == "rename":
            rows[0][at] = draw(st.sampled_from([*rows[0], "junk", "Input.id3", "INPUT:x", "Answer.", "_worker_id"]))
        elif change == "cell" and row:
            rows[row][at] = draw(st.sampled_from(CELLS))
        elif change == "repeat row":
            rows.insert(row + 1, list(rows[row]))
        elif change == "blank row":
            rows.insert(row + 1, [""] * len(rows[0]))
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows(rows)
    written = out.getvalue().encode()
    return written[: draw(st.integers(1, len(written)))] if draw(st.booleans()) else written

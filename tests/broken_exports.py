"""What the tests of formats share: reading and writing exports, and strategies that damage a good one."""

import copy
import csv
import io
import json
import warnings

from hypothesis import strategies as st

from manyhands.exceptions import CrowdWarning, ManyhandsError
from manyhands.io.documents import open_document
from manyhands.io.reading import read_export

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
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
CELLS = ["", " ", "junk", "true", "false", "[", "[1]", "{}", '{"a":{"label":[{}]}}', "a\nb", "2026", "\x00", "é"]


def quiet_read(path, **options):
    """`read` without warnings; its notes are in the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return read_export(path, **options)


def triples(reading):
    """(item, worker, label) as in the file's own words, in order."""
    votes = reading.annotations
    names = (votes.item_ids[votes.item], votes.worker_ids[votes.worker], votes.classes[votes.label])
    return sorted(zip(*(column.tolist() for column in names)))


def write_json(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def lines_writer(folder, name):
    """A function that writes objects as JSON lines, to a file of this name or another."""

    def write(*objects, name=name):
        path = folder / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in objects), encoding="utf-8")
        return path

    return write


def check_broken(path, **options):
    """What is broken is refused in a sentence of ours, or read such that the ledger tells how many labels are left."""
    try:
        reading = quiet_read(path, **options)
    except ManyhandsError as error:
        assert 10 < len(str(error)) < 2000
    else:
        assert reading.ledger.kept == reading.annotations.n_annotations


def check_broken_table(data, sample, folder, format_name):
    """Damage a sample that is a table, and read it by its name or by its looks."""
    path = folder / f"broken-{sample.name}"
    path.write_bytes(data.draw(broken_table(sample.read_bytes(), "\t" if sample.suffix == ".tsv" else ",")))
    check_broken(path, format=data.draw(st.sampled_from([None, format_name])))


def broken_entries(*samples):
    """The list that one of these JSON files holds, or the only object as a list, after it was damaged."""
    values = [open_document(path).value for path in samples]
    return st.sampled_from([value if isinstance(value, list) else [value] for value in values]).flatmap(broken_json)


@st.composite
def broken_json(draw, value):
    """A JSON value with some keys gone, some entries replaced, and some there twice."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.sampled_from([1, 1, 2, 3]))):  # often one, as the first complaint hides the others
        levels = list(_levels(value))
        if not levels:
            break
        inside, key = draw(st.sampled_from(draw(st.sampled_from(levels))))
        repeatable = ["repeat"] if isinstance(inside, list) else []
        change = draw(st.sampled_from(["delete", "replace", "replace", *repeatable]))
        if change == "delete":
            del inside[key]
        elif change == "replace":
            inside[key] = copy.deepcopy(draw(st.sampled_from(JUNK) | st.sampled_from(JUNK) | ANY_JSON))
        else:
            inside.append(copy.deepcopy(inside[key]))
    return value


def _levels(value):
    """All (container, key), level by level: few places are high up, and they are checked as much as the others."""
    containers = [value]
    while True:
        keys = [(inside, list(inside) if isinstance(inside, dict) else range(len(inside))) for inside in containers]
        places = [(inside, key) for inside, held in keys for key in held]
        if not places:
            return
        yield places
        containers = [inside[key] for inside, key in places if isinstance(inside[key], dict | list)]


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


SMALL_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def mutated(draw, value):
    """A JSON value in which one piece was removed or replaced by junk."""
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value)))
        if not draw(st.integers(0, 4)):
            return {other: value[other] for other in value if other != key}
        return {**value, key: draw(mutated(value[key]))}
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], draw(mutated(value[at])), *value[at + 1 :]]
    return draw(SMALL_JSON)

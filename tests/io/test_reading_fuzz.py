"""Ten thousand broken and hostile files: each is read with an account of every row, or refused in one sentence.

What was read is then told as `manyhands inspect` tells it. Some files come in pairs, as batches of one job.
"""

import io
import json
import random
import sys
import warnings
import zipfile
from contextlib import nullcontext, redirect_stderr
from pathlib import Path
from types import SimpleNamespace

import pytest

from manyhands.cli.label_commands import _show_reading
from manyhands.exceptions import CrowdWarning, ManyhandsError
from manyhands.io import formats, judgements
from manyhands.io import overview as overview_module
from manyhands.io import reading as reading_module
from manyhands.io.documents import Folder, parse
from manyhands.io.overview import overview
from manyhands.io.reading import read_export
from manyhands.io.sources import Source, is_archive, unpack, zip_members
from manyhands.io.write.results import to_json

SAMPLES = Path(__file__).parents[1] / "samples"
N_FILES, N_CHUNKS = 10_000, 10
SHOWN = 10  # every tenth reading is shown as on a terminal, which takes longer than to read it
LONGEST_SENTENCE = 800  # letters; names from the file are cut to 40 each, and at most ten are listed

WORDS = ["", " ", "\t", '"', '""', "'", ",", ";", "\\", "a", "b", "ann", "bob", "item-1", "item-2", "cat", "dog"]
WORDS += ["None", "NaN", "nan", "NA", "null", "true", "-1", "0", "1", "1.0", "007", "-0", "1e9", "9" * 400, str(2**63)]
WORDS += ["=1+1", "@x", "caf\u00e9", "cafe\u0301", "\U0001f600", "\u202eabc", "\u2028", "\x85", "\x1b[31m", "\ufeff"]
WORDS += ["x" * 300, "two\nlines", "\r", "<b>", "[1,2]", "{}", "[", '{"a":1}', "2026-01-05T09:00:00Z", "1/5/2026 9:00"]
HEADERS = ["item", "worker", "label", "task", "annotator", "answer", "id", "timestamp", "gold", "question", "count", ""]
HEADERS += ["HITId", "WorkerId", "AssignmentStatus", "Input.text", "Answer.label", "Answer.taskAnswers", "_unit_id"]
HEADERS += ["_worker_id", "_golden", "_tainted", "label:confidence", "INPUT:image", "OUTPUT:result", "GOLDEN:result"]
HEADERS += ["ASSIGNMENT:worker_id", "ASSIGNMENT:status", "annotation_id", "annotators", "labels", "a_count", "b_count"]
HEADERS += ["item", "Item ", "x" * 100, "a\nb", "\u202e", "text", "_session_id", "accept", "options", "choice"]
KEYS = [*HEADERS, "annotations", "completed_by", "result", "data", "predictions", "answers", "answerContent", "spans"]
KEYS += ["workerId", "datasetObjectId", "source-ref", "projects", "data_row", "responses", "records", "was_cancelled"]
KEYS += ["_annotator_id", "_task_hash", "fields", "known_solutions", "solutions", "output_values", "task_id", "status"]
SCALARS = [None, True, False, 0, -1, 1.5, 1e300, 2**62, "", "a", "\U0001f600", "x" * 50, "2026-01-05", "NaN", [], {}]
BEGINNINGS = [b"", b"PAR1", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"["]


def _cell(draw):
    return draw.choice(WORDS) if draw.random() < 0.7 else draw.choice(WORDS) + draw.choice(WORDS)


def _table(draw):
    """Rows of nasty cells under headers that tools use; now and then ragged, unquoted or without an end."""
    separator, end = draw.choice(",,,;\t"), draw.choice(["\n", "\n", "\r\n", "\r"])
    header = draw.sample(HEADERS, draw.randint(1, 6))
    if draw.random() < 0.5:
        header = ["item", "worker", "label", *header[: draw.randint(0, 2)]]
    rows = [header]
    for _ in range(draw.randint(0, 6)):
        width = len(header) if draw.random() < 0.9 else draw.randint(0, len(header) + 2)
        rows.append([_cell(draw) for _ in range(width)])
    quoted = draw.random() < 0.8
    lines = [separator.join('"' + c.replace('"', '""') + '"' if quoted else c for c in row) for row in rows]
    return draw.choice([".csv", ".csv", ".tsv", ".txt", ""]), end.join(lines).encode()


def _words(draw):
    width, words = draw.randint(1, 4), draw.choice([["0", "1", "2", "-1"], ["0", "nan", "1."], WORDS])
    lines = [" ".join(draw.choice(words) for _ in range(width)) for _ in range(draw.randint(0, 6))]
    return draw.choice([".txt", ""]), "\n".join(lines).encode()


def _value(draw, depth=3):
    kind = draw.random()
    if depth == 0 or kind < 0.4:
        return draw.choice(SCALARS)
    if kind < 0.6:
        return [_value(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    return {draw.choice(KEYS): _value(draw, depth - 1) for _ in range(draw.randint(0, 4))}


def _json(draw):
    if draw.random() < 0.5:
        return ".json", json.dumps(_value(draw)).encode()
    lines = [json.dumps({key: _value(draw, 2) for key in draw.sample(KEYS, 4)}) for _ in range(draw.randint(0, 4))]
    return ".jsonl", "\n".join(lines).encode()


def _bytes(draw):
    content = bytes(draw.randrange(256) for _ in range(draw.randint(0, 40)))
    suffix = draw.choice([".csv", ".json", ".parquet", ".xlsx", ".zip", ".txt", ".gz"])
    return suffix, draw.choice(BEGINNINGS) + content


def _sample_files():
    return sorted(path for path in SAMPLES.rglob("*") if path.is_file())


def _mutated_sample(draw):
    """A real export in which values were replaced, removed, doubled or cut off."""
    path = draw.choice(_FILES)
    content = _CONTENT[path]
    if path.suffix in (".json", ".jsonl", ".ndjson", ".manifest") and draw.random() < 0.7:
        whole = path.suffix == ".json"
        values = [json.loads(line) for line in ([content] if whole else content.splitlines())]
        for _ in range(draw.choice([0, 1, 1, 2, 3])):
            values = _mutated_value(draw, values)
        lines = values if isinstance(values, list) else [values]
        return path.suffix, "\n".join(json.dumps(value) for value in lines).encode()
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        content = _mutated_bytes(draw, content)
    return path.suffix, content


def _mutated_value(draw, value):
    """The same value with one change somewhere below it."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        kind = draw.random()
        if kind < 0.15:
            return {other: value[other] for other in value if other != key}
        if kind < 0.25:
            return {**value, draw.choice(KEYS): value[key]}
        return {**value, key: _mutated_value(draw, value[key])}
    if isinstance(value, list) and value and draw.random() < 0.9:
        at, kind = draw.randrange(len(value)), draw.random()
        if kind < 0.1:
            return value[:at] + value[at + 1 :]
        if kind < 0.2:
            return [*value, value[at]]
        return [*value[:at], _mutated_value(draw, value[at]), *value[at + 1 :]]
    return _value(draw, 2)


def _mutated_bytes(draw, content):
    at, kind = draw.randint(0, len(content)), draw.random()
    if kind < 0.2:
        return content[:at]
    if kind < 0.6:
        return content[:at] + _cell(draw).encode() + content[at:]
    if kind < 0.8:
        return content[:at] + content[at + draw.randint(1, 20) :]
    if kind < 0.9:
        return content.replace(b",", draw.choice([b";", b"", b",,"]), 1)
    return content[:at] + b"\xff" + content[at:]


def _zipped(draw):
    """A few files in a zip, which is damaged now and then."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for at in range(draw.randint(0, 2)):
            suffix, content = draw.choice([_table, _json, _mutated_sample])(draw)
            names = [f"{at}{suffix}", f"annotations/worker-response/iteration-1/{at}/x.json", f"../{at}"]
            archive.writestr(draw.choice(names[:2]) if draw.random() < 0.95 else names[2], content)
    content = buffer.getvalue()
    return ".zip", content if draw.random() < 0.6 else _mutated_bytes(draw, content)


_FILES = _sample_files()
_CONTENT = {path: path.read_bytes() for path in _FILES}
_KINDS = [_table] * 4 + [_words] + [_json] * 3 + [_bytes] + [_mutated_sample] * 6 + [_zipped]


def _files(draw):
    """One file, or two that are read together: a file and itself, a damaged copy of it, or another."""
    if draw.random() < 0.9:
        return [draw.choice(_KINDS)(draw)]
    kind = draw.choice([_table, _json, _mutated_sample, _mutated_sample])
    suffix, content = kind(draw)
    other = draw.choice([(suffix, content), (suffix, _mutated_bytes(draw, content)), kind(draw)])
    return [(suffix, content), other]


def _open(source):
    """What `open_document` makes of a file with this content."""
    source = unpack(source)
    return Folder(source.name, dict(zip_members(source))) if is_archive(source) else parse(source)


def _options(draw):
    """What a user may ask for, sensible or not."""
    options = {}
    if draw.random() < 0.2:
        options["format"] = draw.choice(sorted(formats.NAMES))
    if draw.random() < 0.1:
        options[draw.choice(["item", "worker", "label", "question"])] = draw.choice(KEYS)
    if draw.random() < 0.3:
        options["question"] = draw.choice(["sentiment", "label", "topic", "topic=refund", "result", "accept=accept"])
    if draw.random() < 0.2:
        options["combinations"] = True
    if draw.random() < 0.1:
        options |= {"duplicates": draw.choice(["first", "all", "error"]), "missing": ("NA", "0")}
    if draw.random() < 0.1:
        options["types"] = {"label": int}
    return options


def _complaint(outcome):
    """What is wrong with the way a file was read or refused; None where nothing is."""
    if isinstance(outcome, ManyhandsError):
        said = str(outcome)
        sentence = 10 < len(said) < LONGEST_SENTENCE and said.endswith((".", "?")) and "\n" not in said
        return None if sentence else f"not a sentence: {said!r}"
    if isinstance(outcome, BaseException):
        return f"{type(outcome).__name__}: {outcome}"
    ledger, labels = outcome.ledger, outcome.annotations
    if ledger.rows_read != ledger.kept + sum(ledger.excluded.values()):
        return f"the ledger does not add up: {ledger}"
    return None if len(labels.label) == ledger.kept else f"{len(labels.label)} labels, but {ledger.kept} kept"


def _complaint_about_telling(reading, shown):
    """What is wrong with what `inspect` prints as JSON or, if `shown`, on a terminal."""
    said = io.StringIO()
    try:
        told = overview(reading)
        text = to_json(told).decode()
        if shown:
            with redirect_stderr(said):
                _show_reading(reading, told)
    except Exception as error:
        return f"{type(error).__name__} while it was told: {error}"
    if json.loads(text) != told:
        return f"not what was told: {text}"
    if not (text + said.getvalue()).replace("\n", "").isprintable():
        return f"a terminal would obey {text + said.getvalue()!r}"
    return "nothing was shown" if shown and not said.getvalue() else None


def attempt(files, options):
    """The reading or the error of files with this content; any other error counts as an outcome, too."""
    sources = [Source(f"fuzzed{at}{suffix}", content=content) for at, (suffix, content) in enumerate(files)]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CrowdWarning)
            return read_export(sources if len(sources) > 1 else sources[0], **options)
    except Exception as error:
        return error


@pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=pytest.mark.slow if chunk > 2 else ()) for chunk in range(N_CHUNKS)]
)
@pytest.mark.slow
def test_nothing_undocumented_is_raised(chunk, monkeypatch):
    monkeypatch.setattr(reading_module, "open_document", lambda source, encoding: _open(source))
    monkeypatch.setattr(overview_module, "_N_BOOTSTRAP", 2)
    in_turn = nullcontext(SimpleNamespace(map=map))  # to start threads takes longer than to read such a file
    monkeypatch.setattr(judgements, "ThreadPoolExecutor", lambda n_threads: in_turn)
    draw, n_files = random.Random(chunk), 0
    outcomes = {"read": 0, "refused": 0, "pairs read": 0}
    while n_files < N_FILES // N_CHUNKS:
        files, options = _files(draw), _options(draw)
        n_files += len(files)
        outcome = attempt(files, options)
        complaint = _complaint(outcome)
        if not isinstance(outcome, Exception):
            complaint = complaint or _complaint_about_telling(outcome, outcomes["read"] % SHOWN == 0)
            outcomes["read"] += 1
            outcomes["pairs read"] += len(files) > 1
        else:
            outcomes["refused"] += 1
        assert complaint is None, f"{complaint}\nfrom {options} and {[(name, text[:2000]) for name, text in files]}"
    # else the files are not worth reading, or nothing is ever refused
    assert min(outcomes["read"], outcomes["refused"]) > 50 and outcomes["pairs read"] > 2, outcomes


def test_a_crash_is_told_from_a_refusal():
    """The judge of this file, judged: it must see what it is there to see."""
    assert _complaint(KeyError("x")) == "KeyError: 'x'"
    assert _complaint(ManyhandsError("")) is not None
    assert _complaint(ManyhandsError("The file is empty. Export it again.")) is None


def test_a_crash_while_telling_is_seen(monkeypatch):
    monkeypatch.setattr(reading_module, "open_document", lambda source, encoding: _open(source))
    reading = attempt([(".csv", b"item,worker,label\n1,a,\x1b[1mx\n1,b,y\n")], {})
    assert _complaint_about_telling(reading, shown=True) is None
    for name, broken, said in [
        ("overview", lambda reading: {}, "KeyError while"),
        ("to_json", lambda told: b"{}", "not what was told"),
        ("_show_reading", lambda reading, told: sys.stderr.write("\x9b"), "a terminal would obey"),
        ("_show_reading", lambda reading, told: None, "nothing was shown"),
    ]:
        with monkeypatch.context() as patch:
            patch.setitem(globals(), name, broken)
            assert said in _complaint_about_telling(reading, shown=True)

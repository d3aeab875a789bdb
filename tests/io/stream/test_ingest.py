"""Reading in parts: bad input is named, folders appear whole, the cache is found again, limits hold."""

import errno
import gzip
import os
import shutil
import subprocess
import sys
import threading
from collections import namedtuple

import numpy as np
import polars as pl
import pytest

from manyhands._core.progress import listening
from manyhands._core.writing import held
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ParameterError
from manyhands.io.stream import ingest
from manyhands.io.stream.ingest import PASSES, cache_entries, remove_entries, stream_to_codes
from manyhands.sharded.code_folder import CodeFolder
from manyhands.sharded.passes import PassLog

SMALL = 256 << 20
HEADER = "item,worker,label\n"


@pytest.fixture
def stream(tmp_path, monkeypatch):
    """Read in parts of some dozen rows, with a cache of this test."""
    monkeypatch.setattr(ingest, "_BYTES_PER_ROW", SMALL // 50)
    monkeypatch.setattr(ingest, "_BYTES_PER_TEXT_BYTE", SMALL // 1000)
    monkeypatch.setattr(ingest, "_BYTES_PER_JSON_BYTE", SMALL // 1000)
    return lambda paths, **options: stream_to_codes(
        paths, **{"cache": tmp_path / "cache", "max_memory": SMALL} | options
    )


def rows(n, first=0):
    return "".join(f"i{at // 3},w{at % 3},{'xyz'[at % 3]}\n" for at in range(first, first + n))


def table_file(tmp_path, text, name="t.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def left(tmp_path):
    """What is in the cache: whole folders and nothing else."""
    return sorted(path.name for path in (tmp_path / "cache").iterdir()) if (tmp_path / "cache").exists() else []


BAD = {
    "blank item": (HEADER + rows(300) + ",w,x\n" + rows(3, 300), "t.csv, line 302: the item (item) is blank"),
    "blank worker": (HEADER + rows(300) + "i,  ,x\n", "t.csv, line 302: the worker (worker) is blank"),
    "no label column": ("item,worker,text\n" + rows(3), "Column for the label is not in"),
    "no labels": (HEADER + "a,w,\nb,v,\n", "None of the 2 rows has a label"),
    "too many cells": (HEADER + rows(300) + "a,b,c,d\n", "line 302: 4 cells where the header names 3 columns"),
    "open quote": (HEADER + rows(300) + 'a,"b,c\n' + rows(300), "after line 301: cannot be read as a table"),
    "two separators": (HEADER + rows(300) + "a;b;c\n", "line 302: cells are separated by ';'"),
    "wide table": (
        "item,ann,bob\n" + "".join(f"i{n},yes,no\n" for n in range(9)),
        "Columns for the worker and the label",
    ),
    "several questions": (
        "item,worker,label,question\n" + "".join(f"i{n},w,x,q{n // 250}\n" for n in range(300)),
        "several questions",
    ),
    "several questions at once": (
        "item,worker,label,question\n" + "".join(f"i{n},w,x,q{n % 2}\n" for n in range(30)),
        "several questions (q0, q1), of which one cannot be chosen where a file is read in parts",
    ),
    "header only": (HEADER, "None of the 0 rows has a label in column 'label'"),
    "lines that end with CR": (HEADER.replace("\n", "\r") + "a,w,x\r", "lines that end with CR alone"),
    "free text": (
        HEADER + "".join(f"i{n},w,the answer {n}\n" for n in range(30)),
        "t.csv: the labels of 'label' look like free text: 30 of 30",
    ),
    "two label columns": ("item,worker,label,answer\na,w,x,y\n", "2 columns for the label"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_named_and_nothing_stays(tmp_path, stream, name):
    text, said = BAD[name]
    path = table_file(tmp_path, text)
    with pytest.raises(AnnotationError) as caught:
        stream(path)
    assert said in str(caught.value)
    assert left(tmp_path) == []


def test_bytes_that_are_not_utf8_are_named(tmp_path, stream):
    (tmp_path / "t.csv").write_bytes((HEADER + rows(300)).encode() + "a,Müller,x\n".encode("cp1252"))
    with pytest.raises(AnnotationError, match=r"line 302: byte \d+ is not UTF-8"):
        stream(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_bytes((HEADER + "a,Müller,x\n" + rows(3)).encode("cp1252"))
    with pytest.raises(AnnotationError, match=r"line 2: byte 21 is not UTF-8 .* Save the file as UTF-8\.$"):
        stream(tmp_path / "t.csv")  # the part by which columns are chosen
    (tmp_path / "t.csv").write_bytes((HEADER + rows(300)).encode("utf-16"))
    with pytest.raises(AnnotationError, match=r"line 1: a NUL byte.*save the file as UTF-8"):
        stream(tmp_path / "t.csv")


JSON_BAD = {
    "not json": ('{"item": 1, "worker": 2, "label": 3}\n' * 100 + "{item}\n", "line 101"),
    "no object": ('{"item": 1, "worker": 2, "label": 3}\n\n' * 100 + "[1]\n", "line 201: not an object"),
    "null item": ('{"item": 1, "worker": 2, "label": 3}\n' * 100 + '{"worker": 2, "label": 1}\n', "line 101: the item"),
    "one list": ('[{"item": 1, "worker": 2, "label": 3}]', "is one JSON list, which is not read in parts"),
}


@pytest.mark.parametrize("name", JSON_BAD)
def test_bad_json_lines_are_named(tmp_path, stream, name):
    text, said = JSON_BAD[name]
    with pytest.raises(AnnotationError) as caught:
        stream(table_file(tmp_path, text, "t.jsonl"))
    assert said in str(caught.value) and left(tmp_path) == []


def test_bad_parquet_files_are_named(tmp_path, stream):
    table = pl.DataFrame({"item": ["a", None] * 100, "worker": ["w", "v"] * 100, "label": [0.5, 1.0] * 100})
    path = tmp_path / "t.parquet"
    table.write_parquet(path)
    with pytest.raises(AnnotationError, match="column 'label' holds fractions"):
        stream(path)
    table.with_columns(label=pl.lit("x")).write_parquet(path)
    with pytest.raises(AnnotationError, match=r"t.parquet, row 2: the item"):
        stream(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(AnnotationError, match="cannot be read as Parquet"):
        stream(path)
    path.write_text(HEADER + rows(3))
    with pytest.raises(AnnotationError, match="wrong name"):
        stream(path)
    table.with_columns(item=pl.lit(b"a")).write_parquet(path)
    with pytest.raises(AnnotationError, match="'item' holds bytes"):
        stream(path)
    assert left(tmp_path) == []


def test_paths_that_cannot_be_read(tmp_path, stream):
    with pytest.raises(AnnotationError, match="does not exist"):
        stream(tmp_path / "nothing.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AnnotationError, match="holds no rows"):
        stream(tmp_path / "empty")
    with pytest.raises(AnnotationError, match="not read in parts"):
        stream(table_file(tmp_path, "x", "t.xlsx"))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((HEADER + rows(3000)).encode())[:-200])
    with pytest.raises(AnnotationError, match=r"t.csv.gz is damaged"):
        stream(tmp_path / "t.csv.gz")
    for name in ("e.csv.gz", "e.jsonl.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b""))
        with pytest.raises(AnnotationError, match=r"is empty"):
            stream(tmp_path / name)
    one, other = table_file(tmp_path, HEADER + rows(3)), table_file(tmp_path, "task,worker,label\na,w,x\n", "u.csv")
    with pytest.raises(AnnotationError, match=r"Items are item in .*but task in"):
        stream([one, other])


def test_folders_that_an_engine_wrote(tmp_path, stream):
    folder = tmp_path / "table"
    (folder / "_temporary").mkdir(parents=True)
    for n, name in enumerate(["part-1.csv", "part-0.csv", "_temporary/part-2.csv", ".part-0.csv.crc"]):
        (folder / name).write_text(HEADER + rows(3 * n + 3, 30 * n))
    (folder / "_SUCCESS").touch()
    (folder / "_started_17").write_text("{}")
    assert stream(folder).n_labels == 9
    (folder / "_delta_log").mkdir()
    with pytest.raises(AnnotationError, match="is a Delta table"):
        stream(folder)


def test_an_unreadable_option_is_refused(tmp_path, stream):
    path = table_file(tmp_path, HEADER + rows(3))
    with pytest.raises(ParameterError, match="max_memory"):
        stream(path, max_memory=1000)
    with pytest.raises(ParameterError, match="rare_classes"):
        stream(path, rare_classes="merge:x")


def test_a_cache_that_is_a_file_is_named(tmp_path, stream):
    path = table_file(tmp_path, HEADER + rows(3))
    with pytest.raises(ParameterError, match=r"cache folder .*t.csv is a file\. Name another"):
        stream(path, cache=path)
    with pytest.raises(ParameterError, match=r"cache folder .*below cannot be created \(Not a directory\)"):
        stream(path, cache=path / "below")


def test_a_file_that_changes_meanwhile_is_refused(tmp_path, stream):
    path = table_file(tmp_path, HEADER + rows(300))

    def append(done, total, what):
        with path.open("a") as file:
            file.write("late,w,x\n")

    with listening(append), pytest.raises(AnnotationError, match="was changed while it was read"):
        stream(path)
    assert left(tmp_path) == []


def test_the_second_run_finds_the_folder(tmp_path, stream):
    path = table_file(tmp_path, HEADER + rows(300))
    first, reports = stream(path), []
    with listening(lambda *report: reports.append(report)):
        second = stream(path)
    assert second.folder == first.folder and reports == []
    assert left(tmp_path) == [first.folder.name]
    moved = path.rename(tmp_path / "other name.csv")
    assert stream(moved).folder == first.folder  # names are not part of the fingerprint


@pytest.mark.parametrize("change", ["content", "time", "options", "another file"])
def test_a_change_gives_another_folder(tmp_path, stream, change):
    path = table_file(tmp_path, HEADER + rows(300))
    first, status = stream(path).folder, path.stat()
    if change == "content":
        path.write_text(path.read_text().replace("i7,w1,y", "i7,w1,x"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "time":
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    options = {"rare_classes": "keep"} if change == "options" else {}
    paths = [path, table_file(tmp_path, HEADER + rows(3), "u.csv")] if change == "another file" else path
    assert stream(paths, **options).folder != first


def test_entries_of_the_cache_are_listed_and_removed(tmp_path, stream):
    cache = tmp_path / "cache"
    assert cache_entries(cache) == []
    one, other = (stream(table_file(tmp_path, HEADER + rows(n), f"{n}.csv")).folder for n in (30, 300))
    os.utime(one, (0, 0))
    entries = cache_entries(cache)
    assert [entry.path for entry in entries] == [other, one]
    assert all(entry.n_bytes == sum(file.stat().st_size for file in entry.path.iterdir()) for entry in entries)
    assert remove_entries(cache, keep=entries[0].n_bytes) == entries[1].n_bytes
    assert other.exists() and not one.exists()
    remove_entries(cache)
    assert cache_entries(cache) == []


def test_records_of_runs_that_did_not_end_are_listed_and_removed(tmp_path, stream):
    cache, key = tmp_path / "cache", "ab" * 16
    folder = stream(table_file(tmp_path, HEADER + rows(30))).folder
    records = PassLog(cache / PASSES, key).folder
    (records / "pass-00000").write_bytes(b"12345")
    assert {(entry.path, entry.n_bytes) for entry in cache_entries(cache)} >= {(records, 5)}
    with held(records.with_name(f"{key}.lock"), records):
        remove_entries(cache)
    assert records.exists() and not folder.exists()
    assert remove_entries(cache) == 5 and not any((cache / PASSES).iterdir())


def test_names_that_may_be_errors_are_noted(tmp_path, stream):
    """Classes that may mean a missing label, and names that differ in spelling only, as where a file is read whole."""
    text = HEADER + rows(60) + "i0,W1,X\ni1,w9,N/A\ni2,w9 ,N/A\n"
    with pytest.warns(CrowdWarning) as caught:
        notes = stream(table_file(tmp_path, text)).ledger["notes"]
    assert "'N/A'" in notes["class_like_missing"] and len(caught) == 3
    assert "'x' and 'X'" in notes["look_alike_classes"]
    assert "'W1' and 'w1', 'w9' and 'w9 '" in notes["look_alike_workers"]
    assert stream(table_file(tmp_path, HEADER + rows(60))).ledger["notes"] == {}


def test_too_small_a_disk_is_said_before_it_is_full(tmp_path, stream, monkeypatch):
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(80 << 20))
    path = table_file(tmp_path, HEADER + rows(300))
    assert stream(path).n_labels == 300
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(60 << 20))
    with pytest.raises(LimitError, match=r"GB free; reading these labels in parts needs about .* `cache=`"):
        stream(path, rare_classes="keep")
    assert len(left(tmp_path)) == 1


def test_a_disk_that_gets_full_is_named_and_nothing_stays(tmp_path, stream, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = table_file(tmp_path, HEADER + rows(300))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device.*cache"):
        stream(path)
    assert left(tmp_path) == []


def test_tables_that_do_not_fit_are_refused_with_their_size(tmp_path, stream):
    text = HEADER + "".join(f"i{n},w{n % 2000},c{n % 60}\n" for n in range(6000) for _ in range(1))
    path = table_file(tmp_path, text)
    with pytest.raises(LimitError, match=r"2,000 workers and 60 classes take about 0\.3 GB; 0\.3 GB are allowed"):
        stream(path)
    assert left(tmp_path) == []
    assert stream(path, tables=False).n_labels == 6000
    with pytest.raises(LimitError, match="2,000 workers"):  # of a folder that was written for a vote
        stream(path)


def test_an_item_with_too_many_rows_is_refused(tmp_path, stream, monkeypatch):
    monkeypatch.setattr(ingest, "_BYTES_PER_CODED_ROW", SMALL // 1000)
    path = table_file(tmp_path, HEADER + rows(900) + "".join(f"hot,w{n},x\n" for n in range(1001)))
    with pytest.raises(LimitError, match=r"1,0\d\d rows must be sorted together, about 0\.3 GB.*one item may have"):
        stream(path)
    assert left(tmp_path) == []


def test_too_many_distinct_workers_are_refused(tmp_path, stream, monkeypatch):
    monkeypatch.setattr(ingest, "_BYTES_PER_ID", SMALL // 4 // 1000)
    path = table_file(tmp_path, HEADER + "".join(f"i{n},w{n},x\n" for n in range(1500)))
    with pytest.raises(LimitError, match="more than 1,000 distinct workers"):
        stream(path)
    assert left(tmp_path) == []


PROGRAM = """
import os, signal, sys
from manyhands.io.stream import ingest
if sys.argv[3] == "reading":
    ingest._check_disk = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
else:
    ingest.CodeFolderWriter.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
ingest.stream_to_codes(sys.argv[1], cache=sys.argv[2])
"""


@pytest.mark.parametrize("when", ["reading", "writing"])
def test_leftovers_of_a_killed_process_are_removed(tmp_path, stream, when):
    path = table_file(tmp_path, HEADER + rows(300))
    ended = subprocess.run([sys.executable, "-c", PROGRAM, path, tmp_path / "cache", when], check=False)
    assert ended.returncode < 0
    assert any(name.endswith(".spill" if when == "reading" else ".part") for name in left(tmp_path))
    other = stream(table_file(tmp_path, HEADER + rows(30), "u.csv"))  # another run cleans up too
    assert left(tmp_path) == [other.folder.name]
    assert stream(path).n_labels == 300


def test_a_second_process_waits_and_finds_the_folder(tmp_path, stream):
    path = table_file(tmp_path, HEADER + rows(300))
    folder = stream(path).folder
    folder.rename(tmp_path / "written by another process")
    found = []
    with held(tmp_path / "cache" / f"{folder.name}.reading.lock", "the codes"):
        waiting = threading.Thread(target=lambda: found.append(stream(path)))
        waiting.start()
        waiting.join(0.3)
        assert not found and left(tmp_path) == [f"{folder.name}.reading.lock"]
        (tmp_path / "written by another process").rename(folder)
    waiting.join(20)
    assert found[0].n_labels == 300


def test_damage_in_the_cache_is_named(tmp_path, stream):
    path = table_file(tmp_path, HEADER + rows(300))
    folder = stream(path).folder
    os.truncate(folder / "codes.bin", 10)
    with pytest.raises(
        AnnotationError, match=r"codes\.bin cannot be used: .* Delete the folder; the next run writes it"
    ):
        stream(path)
    shutil.rmtree(folder)
    assert stream(path).n_labels == 300


LIMITED = """
import resource, sys
limit = 512 << 20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
from manyhands.io.stream.ingest import stream_to_codes
folder = stream_to_codes(sys.argv[1], cache=sys.argv[2], max_memory=limit)
print(folder.n_labels)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of the data size needs Linux")
@pytest.mark.slow
def test_a_hard_limit_of_memory_holds(tmp_path):
    """Two million rows in one row group; as a whole, their cells alone would take more than the limit."""
    n = 2_000_000
    row = pl.DataFrame({"row": np.arange(n)})
    table = row.select(
        item=pl.lit("a rather long name of an item ") + (pl.col("row") * 7919 % (n // 5)).cast(pl.String),
        worker=pl.lit("a rather long name of a worker ") + (pl.col("row") % 997).cast(pl.String),
        label=pl.lit("class ") + (pl.col("row") % 4).cast(pl.String),
        text=pl.lit("something else ") + pl.col("row").cast(pl.String),
    )
    table.write_parquet(tmp_path / "t.parquet", row_group_size=n)
    del table, row
    command = [sys.executable, "-c", LIMITED, tmp_path / "t.parquet", tmp_path / "cache"]
    # As the command line sets it: otherwise polars keeps address space that the limit counts. Each of its threads has
    # memory of its own, so their number is the same on every machine.
    environment = os.environ | {"_RJEM_MALLOC_CONF": "retain:false", "POLARS_MAX_THREADS": "2"}
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=120)
    assert ended.returncode == 0, ended.stderr[-2000:]
    (folder,) = (tmp_path / "cache").iterdir()
    assert CodeFolder(folder).ledger["rows_read"] == n

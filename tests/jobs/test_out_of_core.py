"""`aggregate` out of core: the bits of the same shards in memory, and runs that were killed go on."""

import json
import os
import shutil
import subprocess
import sys

import polars as pl
import pytest

from manyhands.cli.app import run
from manyhands.jobs import out_of_core
from manyhands.jobs.aggregate import aggregate
from manyhands.sharded.fit import METHODS
from small_votes import FILES, LIMIT, command, contents

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


@pytest.mark.parametrize("method", METHODS)
def test_the_bits_are_those_of_the_same_shards_in_memory(votes, tmp_path, monkeypatch, method):
    """All tables byte by byte, for every method."""
    options = {"method": method, "write": ["jsonl", "parquet"]}
    path = [str(votes / "votes.parquet")]
    inside = aggregate(path, out=tmp_path / "inside", shards="hash", **options)
    monkeypatch.setattr(out_of_core, "_BYTES_IN_MEMORY", 10**9)
    outside = aggregate(path, out=tmp_path / "outside", max_memory=LIMIT, **options)
    assert (inside.route.kind, outside.route.kind) == ("in memory, on shards", "out of core")
    assert contents(tmp_path / "inside") == contents(tmp_path / "outside")
    assert inside.summary | {"route": None} == outside.summary | {"route": None}
    assert inside.fit.history == outside.fit.history


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", ["votes.csv", "votes.csv.gz", "votes.jsonl", "parts"])
def test_the_format_of_the_file_changes_nothing(votes, tmp_path, name):
    """Each format gives the files of the Parquet file."""
    options = {"method": "dawid-skene", "max_memory": LIMIT}
    for source, out in (("votes.parquet", "one"), (name, "other")):
        aggregate([str(votes / source)], out=tmp_path / out, **options)
    names = ["labels.csv", "workers.csv"]
    assert contents(tmp_path / "one", names) == contents(tmp_path / "other", names)


@pytest.mark.usefixtures("large")
def test_the_command_says_what_it_does(votes, tmp_path, capsys):
    """The route and why, the cache and its disk; the second run finds the codes."""
    command = ["aggregate", str(votes / "votes.csv"), "-m", "dawid-skene", "-o", str(tmp_path / "out")]
    command += ["--max-memory", LIMIT]
    assert run(command) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    first, second = [line for line in printed.err.splitlines() if not line.startswith("note:")][:2]
    assert first.startswith("Out of core: ") and first.endswith("and the limit is 500 MB.")
    assert second.startswith("The labels were coded into the cache: ") and second.endswith(" kB of disk).")
    assert "Out of core, 1 shard, " in printed.err
    assert run([*command, "--force"]) == 0
    assert "The codes of this file are in the cache: " in capsys.readouterr().err
    assert run([*command, "--force", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["timings"]["cache_hit"] is True
    assert found["timings"]["passes_replayed"] == 0
    assert found["ledger"]["excluded"] == {"no_label": 1, "duplicate": 1}
    assert list((tmp_path / "codes" / "passes").iterdir()) == []


@pytest.mark.usefixtures("large")
def test_the_cache_of_the_user_is_the_default(votes, tmp_path, monkeypatch):
    """It is beside the downloads."""
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path / "own"))
    found = aggregate([str(votes / "votes.csv")], method="majority-vote", out=tmp_path, max_memory=LIMIT)
    assert found.timings["cache"].startswith(str(tmp_path / "own" / "codes"))


DYING = """
import importlib, os, signal, sys
module, name, function, calls = {module!r}, {name!r}, {function!r}, [{calls}]
owner = importlib.import_module(module)
owner = getattr(owner, name) if name else owner
done = getattr(owner, function)
def die(*given, **more):
    calls[0] -= 1
    if not calls[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return done(*given, **more)
setattr(owner, function, die)
importlib.import_module("manyhands.jobs.out_of_core")._BYTES_IN_MEMORY = 10**9
from manyhands.cli.app import run
sys.exit(run(sys.argv[1:]))
"""
KILLED = {  # step -> module, class, function and number of the call during which the process is killed
    "read": ("manyhands.io.stream.ingest", "Spill", "add", 1),
    "sort": ("manyhands.sharded.code_folder", "CodeFolderWriter", "add_block", 99),
    "fit": ("manyhands.sharded.passes", "PassLog", "_write", 5),
    "output": ("manyhands._core.writing", "StagedFile", "write", 50),
    "placing": ("manyhands._core.writing", "", "_move", 1),
}


@pytest.fixture(scope="module")
def undisturbed(votes, tmp_path_factory):
    """Files of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MANYHANDS_CACHE", str(folder))
        patch.setattr(out_of_core, "_BYTES_IN_MEMORY", 10**9)
        assert run(command(votes, folder)) == 0
    return contents(folder / "out", [*FILES, "summary.json", "manifest.json"])


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("step", KILLED)
@pytest.mark.slow
def test_a_killed_run_goes_on(votes, tmp_path, undisturbed, capsys, step):
    """Nothing is under the final names; the same command gives the bytes of an undisturbed run, and says so."""
    module, name, function, calls = KILLED[step]
    code = DYING.format(module=module, name=name, function=function, calls=calls)
    asked = command(votes, tmp_path)
    assert subprocess.run([sys.executable, "-c", code, *asked], capture_output=True).returncode == -9
    out = tmp_path / "out"
    assert not out.exists() or all(name.startswith(".") for name in os.listdir(out))
    assert run([one for one in asked if one != "-q"]) == 0
    printed = capsys.readouterr().err
    assert contents(out, undisturbed) == undisturbed
    assert sorted(os.listdir(out)) == sorted(undisturbed)
    assert ("are in the cache" in printed) == (step not in ("read", "sort"))
    assert ("taken from the record of a run that did not end" in printed) == (step in ("fit", "output", "placing"))
    if step == "fit":
        assert "4 passes were taken from the record" in printed
    left = sorted(os.listdir(tmp_path / "codes"))
    assert len(left) == 2 and "passes" in left and os.listdir(tmp_path / "codes" / "passes") == []


@pytest.mark.usefixtures("large")
def test_an_interrupted_run_says_how_it_goes_on(votes, tmp_path, capsys, monkeypatch):
    """With the exit code of interruptions."""

    def interrupt(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(out_of_core, "write_labels", interrupt)
    assert run([one for one in command(votes, tmp_path) if one != "-q"]) == 130
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2].endswith("stay in the cache: the same command goes on from here.")
    assert lines[-1] == "manyhands: interrupted; all files that exist are complete"


@pytest.mark.usefixtures("large")
def test_a_cache_among_the_files_that_are_read_is_refused(votes, tmp_path, capsys, monkeypatch):
    """The next run would take it for labels."""
    parts = shutil.copytree(votes / "parts", tmp_path / "parts")
    monkeypatch.setenv("MANYHANDS_CACHE", str(parts))
    asked = ["aggregate", str(parts), "--max-memory", LIMIT, "-o", str(tmp_path / "out")]
    assert run(asked) == 2
    assert f"The cache {parts}/codes is within {parts}, whose files are read." in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not (parts / "codes").exists()


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ({"item": ["a", None], "worker": ["w", "v"], "label": ["x", "x"]}, "item"),
        ({"item": ["a", "b"], "worker": ["w", None], "label": ["x", "x"]}, "worker"),
        ({"item": ["a", "b"], "worker": ["w", "v"], "label": [None, None]}, "label"),
        ({"item": ["a", "b"], "rating": ["x", "x"]}, "worker"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(tmp_path, capsys, rows, part):
    """As an ordinary run does."""
    pl.DataFrame(rows).cast(pl.String).write_parquet(tmp_path / "bad.parquet")
    asked = ["aggregate", str(tmp_path / "bad.parquet"), "-m", "dawid-skene", "-o", str(tmp_path / "out")]
    assert run([*asked, "--max-memory", LIMIT]) == 3
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(("note:", "Out of core:"))]
    assert part in line
    assert not (tmp_path / "out").exists()
    assert all(path.name == "passes" for path in (tmp_path / "codes").glob("*"))


@pytest.mark.usefixtures("large")
def test_a_damaged_cache_is_named(votes, tmp_path, capsys):
    """With what to do; nothing is written."""
    asked = command(votes, tmp_path)
    assert run(asked) == 0
    (codes,) = (path for path in (tmp_path / "codes").iterdir() if path.name != "passes")
    with open(codes / "codes.bin", "r+b") as file:
        file.write(b"\xff" * 8)
    assert run([*asked, "--force"]) == 3
    assert "codes.bin cannot be used: block" in capsys.readouterr().err


@pytest.mark.usefixtures("large")
def test_the_same_fit_runs_once_at_a_time(votes, tmp_path, capsys, monkeypatch):
    """A second run on the same record of passes is refused with the process that holds it."""
    asked, first = command(votes, tmp_path), out_of_core.SourceLabels

    def second(*given):
        monkeypatch.setattr(out_of_core, "SourceLabels", first)
        assert run([*asked[:-1], str(tmp_path / "other")]) == 2
        raise KeyboardInterrupt

    monkeypatch.setattr(out_of_core, "SourceLabels", second)
    assert run(asked) == 130
    printed = capsys.readouterr().err
    assert "Another run is writing the passes of the same fit to " in printed
    assert f"(process {os.getpid()} on " in printed and "or give another folder with MANYHANDS_CACHE." in printed

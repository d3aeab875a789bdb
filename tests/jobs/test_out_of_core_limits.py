"""`aggregate` out of core: limits of memory and disk are kept, and said in one sentence."""

import errno
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from manyhands import cli
from manyhands.cli.app import run
from manyhands.exceptions import LimitError
from manyhands.jobs import out_of_core
from manyhands.jobs.aggregate import aggregate
from small_votes import LIMIT, command, contents

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("step", ["read", "output", "parts"])
@pytest.mark.slow
def test_a_full_disk_is_one_sentence(votes, tmp_path, capsys, monkeypatch, step):
    """With the file that could not grow; nothing is half-written, and the same command goes on."""
    module, name, function = {
        "read": ("manyhands.io.stream.ingest", "Spill", "add"),
        "output": ("manyhands._core.writing", "StagedFile", "write"),
        "parts": ("polars", "DataFrame", "write_parquet"),
    }[step]
    owner = getattr(__import__(module, fromlist=[name]), name)
    where = str(tmp_path / "out" / "labels.parquet") if step == "parts" else "the/file"

    def full(*given, **more):
        if step == "parts":
            raise pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)")
        raise OSError(errno.ENOSPC, "No space left on device", "the/file")

    asked = command(votes, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(owner, function, full)
        assert run(asked) == 3
    (line,) = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("note:")]
    assert line.startswith(f"manyhands: The disk is full: {where} cannot grow (No space left on device). Make room")
    assert not (tmp_path / "out").exists()
    assert run(asked) == 0


@pytest.mark.usefixtures("large")
@pytest.mark.slow
def test_memory_that_the_system_refuses_is_one_sentence(votes, tmp_path, capsys, monkeypatch):
    """What was finished stays, and the same command goes on."""
    asked = command(votes, tmp_path)

    def refuse(*given):
        raise MemoryError("Unable to allocate 8 GiB")

    with monkeypatch.context() as patch:
        patch.setattr(out_of_core, "write_labels", refuse)
        assert run(asked) == 5
    printed = capsys.readouterr().err
    assert "The system gave no more memory to this process (Unable to allocate 8 GiB). The job was to stay" in printed
    assert not (tmp_path / "out").exists()
    assert run([one for one in asked if one != "-q"]) == 0
    assert "taken from the record of a run that did not end; 0 were computed." in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory as Linux states it")
def test_the_peak_of_the_parent_is_not_counted():
    """A process that was started by a larger one."""
    code = "from manyhands._core.system import peak_bytes; print(peak_bytes())"
    fill = np.ones(60_000_000)  # 480 MB
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, preexec_fn=lambda: None)
    assert len(fill) and 0 < int(done.stdout) < 400_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="a limit on data of Linux")
@pytest.mark.slow
def test_a_hard_limit_on_data_is_kept(tmp_path):
    """A million labels under 500 MB, which the system enforces; polars returns what it freed."""
    rng = np.random.default_rng(0)
    item = rng.permutation(1_000_000) // 3
    label = np.where(rng.random(len(item)) < 0.8, item % 2, 1 - item % 2)
    table = pl.DataFrame({"item": item, "worker": rng.integers(0, 200, len(item)), "label": label})
    table.select(pl.format("item-{}", "item").alias("item"), "worker", "label").write_parquet(tmp_path / "v.parquet")
    code = (
        "import resource, runpy, sys\nresource.setrlimit(resource.RLIMIT_DATA, (500_000_000, 500_000_000))\n"
        "runpy.run_module('manyhands', run_name='__main__')"
    )
    asked = ["aggregate", str(tmp_path / "v.parquet"), "-m", "one-coin", "-o", str(tmp_path / "out"), "--json"]
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["route"] == "out of core" and "400 MB may be used" in found["reason"]
    assert max(found["timings"]["peak_bytes"].values()) < 500_000_000


@pytest.mark.parametrize("limited", [False, True])
def test_polars_is_told_to_return_memory_where_it_is_limited(monkeypatch, limited):
    """Before it is loaded, and not where the user has told it otherwise."""
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    cli._return_memory(["aggregate", "v.csv", *(["--max-memory=4GB"] if limited else [])])
    assert os.environ.pop("_RJEM_MALLOC_CONF", None) == ("retain:false" if limited else None)


@pytest.mark.parametrize(
    ("n_workers", "n_shards", "part"),
    [
        (10, 2, "2 shard(s) of 4,000,000 labels at a time 623 MB), and 500 MB may be used. Give `max"),
        (10, 2, "823MB` or more, or set MANYHANDS_THREADS=1."),
        (100_000, 1, "(tables of 100,000 x 8^2 numbers 717 MB, 1 shard(s) of 8,000,000"),
        (100_000, 1, "MB` or more, or merge rare classes."),
        (10, 1, "Give `max_memory=772MB` or more."),
    ],
)
def test_the_reason_for_the_least_memory_is_named(monkeypatch, n_workers, n_shards, part):
    """What takes the most decides what is proposed besides a larger limit."""
    monkeypatch.setenv("MANYHANDS_THREADS", "2")
    sizes = {"n_labels": 8_000_000, "n_items": 1_000_000, "n_shards": n_shards}
    labels = SimpleNamespace(worker_ids=range(n_workers), classes=range(8), **sizes)
    with pytest.raises(LimitError) as refused:
        out_of_core.check_memory_of_shards(labels, "dawid-skene", 500_000_000)
    assert part in str(refused.value)


@pytest.mark.usefixtures("large")
def test_too_little_disk_or_memory_is_said_beforehand(votes, tmp_path, capsys, monkeypatch):
    """With what is needed; nothing is written."""
    asked = command(votes, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(out_of_core.shutil, "disk_usage", lambda path: _Usage(1000))
        assert run(asked) == 5
        assert "The codes of these labels need about " in capsys.readouterr().err
    monkeypatch.setattr(out_of_core, "BYTES_ON_SHARDS", 600_000_000)
    assert run(asked) == 5
    printed = capsys.readouterr().err
    assert "pooled-dawid-skene on 30 workers and 3 classes needs at least 6" in printed
    assert "Give --max-memory 6" in printed and "MB or more" in printed
    assert run(["aggregate", str(votes / "votes.csv"), "--max-memory", "100MB", "-o", str(tmp_path / "out")]) == 5
    assert "out of core it needs at least 268 MB. Give --max-memory 270MB or more" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


class _Usage:
    """A disk with some bytes free."""

    def __init__(self, free):
        self.free = free


@pytest.mark.usefixtures("large")
def test_all_questions_are_in_memory_or_refused(votes, tmp_path, capsys):
    """With a limit, before anything is read; without one they are tried in memory."""
    asked = ["aggregate", str(votes / "votes.csv"), "--all-questions", "-m", "majority-vote", "-o", str(tmp_path / "o")]
    assert run([*asked, "--max-memory", LIMIT]) == 5
    assert "does not support --all-questions. Give a file with the rows of one question." in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
    assert run(asked) == 0 and (tmp_path / "o" / "questions.csv").exists()


def test_a_file_beyond_the_limit_goes_out_of_core_by_itself(tmp_path, capsys):
    """Without any help of a test: three hundred thousand labels under 280 MB, and the same in memory."""
    rng = np.random.default_rng(0)
    item = np.arange(330_000) // 3
    label = np.where(rng.random(len(item)) < 0.8, item % 2, 1 - item % 2)
    table = pl.DataFrame({"item": item, "worker": rng.integers(0, 200, len(item)), "label": label})
    table.select(pl.format("i{}", "item").alias("item"), "worker", "label").write_parquet(tmp_path / "votes.parquet")
    command = ["aggregate", str(tmp_path / "votes.parquet"), "-m", "one-coin", "-q"]
    assert run([*command, "-o", str(tmp_path / "outside"), "--max-memory", "280MB"]) == 0
    aggregate([str(tmp_path / "votes.parquet")], method="one-coin", out=tmp_path / "inside", shards="hash")
    names = ["labels.csv", "workers.csv"]
    assert contents(tmp_path / "outside", names) == contents(tmp_path / "inside", names)
    summary = json.loads((tmp_path / "outside" / "summary.json").read_text())
    assert summary["route"] == "out of core"
    assert summary["n_items"] == 110_000

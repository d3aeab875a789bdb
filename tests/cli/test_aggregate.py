"""`manyhands aggregate`: gold, comparison, privacy, spreadsheets, writing back, and a kill in the middle."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from manyhands.cli.app import run

pytestmark = pytest.mark.fast

SAMPLES = Path(__file__).parents[1] / "samples"
VOTES = "task,worker,label\n1,a@x.org,x\n1,b,x\n1,c,y\n2,a@x.org,y\n2,b,y\n3,a@x.org,x\n3,c,x\n4,b,\n"


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return str(path)


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_rows_are_in_the_order_of_the_file(tmp_path):
    """Ids as they first appear; another order of the file changes the order of the rows and nothing else."""
    names = {}
    for order in (1, -1):
        cells = [(i * 37 % 101, w, (i + (w == i % 5)) % 3) for i in range(101) for w in range(4)][::order]
        path, out = tmp_path / f"{order}.csv", tmp_path / f"out{order}"
        path.write_text("task,worker,label\n" + "".join(f"{i},w{w},k{k}\n" for i, w, k in cells))
        assert run(["aggregate", str(path), "-o", str(out), "-q"]) == 0
        names[order] = [row["item"] for row in rows_of(out / "labels.csv")]
        assert names[order] == list(dict.fromkeys(str(item) for item, _, _ in cells))
    one, other = (sorted(map(str, rows_of(tmp_path / f"out{order}" / "labels.csv"))) for order in names)
    assert one == other and names[1] == names[-1][::-1]
    assert (tmp_path / "out1" / "workers.csv").read_text() == (tmp_path / "out-1" / "workers.csv").read_text()


def test_gold_decides(votes, tmp_path):
    """What is known is not inferred, and the summary says how much was known."""
    (tmp_path / "gold.csv").write_text("item,label\n1,y\n")
    out = tmp_path / "out"
    assert run(["aggregate", votes, "--gold", str(tmp_path / "gold.csv"), "-o", str(out), "-q"]) == 0
    assert rows_of(out / "labels.csv")[0]["label"] == "y"
    assert json.loads((out / "summary.json").read_text())["n_gold_used"] == 1


def test_the_gold_of_an_export_is_used_only_if_asked(tmp_path, capsys):
    """A control item's answer is known to the file; a file without any says so."""
    sample = str(SAMPLES / "toloka" / "assignments.tsv")
    assert run(["aggregate", sample, "-q", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["n_gold"] == 1 and told["n_gold_used"] == 0
    assert run(["aggregate", sample, "--use-gold", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_gold_used"] == 1
    assert run(["aggregate", str(SAMPLES / "nltk" / "triples.txt"), "--use-gold"]) == 3
    assert "no known answers" in capsys.readouterr().err


def test_all_methods_can_be_compared(votes, tmp_path, capsys):
    """A table of methods, a table of the items in dispute, and both are named."""
    out = tmp_path / "out"
    assert run(["aggregate", votes, "--compare", "-o", str(out)]) == 0
    err = capsys.readouterr().err
    assert "The methods differ on 0 of 4 items" in err and "methods.csv" in err
    assert {row["method"] for row in rows_of(out / "methods.csv")} >= {"kos", "mace", "majority-vote"}
    assert rows_of(out / "differences.csv") == []


def test_no_worker_id_is_written(votes, tmp_path, capsys):
    """Neither in a file nor on the terminal."""
    out = tmp_path / "out"
    assert run(["aggregate", votes, "--worker-names", "pseudonyms", "--compare", "-o", str(out)]) == 0
    written = b"".join(path.read_bytes() for path in out.iterdir())
    said = capsys.readouterr().err
    assert b"x.org" not in written and "x.org" not in said and "come from manyhands.key: keep it" in said
    names = {row["worker"] for row in rows_of(out / "workers.csv")}
    assert len(names) == 3 and all("-" in name for name in names)
    assert (out / "manyhands.key").stat().st_mode & 0o077 == 0
    assert run(["aggregate", votes, "--worker-names", "pseudonyms", "--compare", "-o", str(out), "--force"]) == 0
    assert {row["worker"] for row in rows_of(out / "workers.csv")} == names


def test_spreadsheets_run_nothing(tmp_path):
    """Cells that a spreadsheet would run get an apostrophe in CSV; machine formats stay as they are."""
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n=1+1,@w,-2\n=1+1,b,+x\n")
    plain, safe = tmp_path / "plain", tmp_path / "safe"
    assert run(["aggregate", str(path), "-o", str(plain), "-q", "--write", "parquet"]) == 0
    assert run(["aggregate", str(path), "-o", str(safe), "-q", "--write", "parquet", "--spreadsheet-safe"]) == 0
    assert rows_of(plain / "labels.csv")[0]["item"] == "=1+1"
    assert rows_of(safe / "labels.csv")[0]["item"] == "'=1+1"
    assert {row["worker"] for row in rows_of(safe / "workers.csv")} == {"'@w", "b"}
    assert (plain / "labels.parquet").read_bytes() == (safe / "labels.parquet").read_bytes()
    assert pl.read_parquet(safe / "labels.parquet")["item"].to_list() == ["=1+1"]


def test_label_studio_gets_its_labels_back(tmp_path, capsys):
    """Predictions name tasks of the export; copies of the tasks, read again, hold predictions and no labels."""
    out = tmp_path / "out"
    export = str(SAMPLES / "label_studio" / "export.json")
    written = ["--write", "label-studio", "--write", "label-studio-tasks"]
    assert run(["aggregate", export, "--question", "sentiment", "-o", str(out), "-q", *written]) == 0
    (result,) = [p for p in json.loads((out / "label_studio_predictions.json").read_text()) if p["task"] == 101]
    assert result["result"][0]["value"] == {"choices": ["neutral"]} and 0 < result["score"] <= 1
    capsys.readouterr()
    assert run(["inspect", str(out / "label_studio_tasks.json"), "--question", "sentiment", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    labelled = [row for row in rows_of(out / "labels.csv") if row["label"]]
    assert told["ledger"]["excluded"]["prediction"] == len(labelled) and told["ledger"]["kept"] == 0


def test_unusable_files_say_why(capsys):
    """Aggregated, without workers, or only counted: what cannot be done, and what can."""
    for name in ("appen/aggregated.csv", "toloka/aggregated.tsv", "doccano/collaborative"):
        assert run(["aggregate", str(SAMPLES / name)]) == 3
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    counts = str(SAMPLES / "hf" / "counts.jsonl")
    assert run(["aggregate", counts]) == 3
    assert "Only -m majority-vote can use it" in capsys.readouterr().err
    assert run(["aggregate", counts, "-m", "majority-vote", "-q"]) == 0
    assert "offensive_language" in capsys.readouterr().out


def test_a_quality_gate(votes):
    """Exit code 4 where too few labels are sure."""
    assert run(["aggregate", votes, "-q", "--json", "--fail-under", "0"]) == 0
    assert run(["aggregate", votes, "-q", "--json", "--fail-under", "1"]) == 4
    assert run(["aggregate", votes, "-q", "--json", "--fail-under", "1.1"]) == 2


def test_standard_input_is_a_file(votes):
    """`simulate | aggregate -` needs no file in between."""
    command = [sys.executable, "-m", "manyhands", "aggregate", "-", "-q"]
    done = subprocess.run(command, input=VOTES.encode(), capture_output=True, check=True)
    assert done.stdout.startswith(b"item,label,confidence")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed there")
def test_a_kill_leaves_whole_files(votes, tmp_path):
    """A run that dies with some files in place: what is there is whole, and a second run completes it.

    tests/_core/test_writing.py kills at every step.
    """
    out, whole = tmp_path / "out", tmp_path / "whole"
    assert run(["aggregate", votes, "-q", "-o", str(whole)]) == 0
    done = subprocess.run([sys.executable, "-c", _DIES_AT_THE_THIRD_FILE, votes, str(out)])
    assert done.returncode == -signal.SIGKILL
    wanted = {path.name: path.read_bytes() for path in whole.iterdir()}
    found = {path.name: path.read_bytes() for path in out.iterdir() if not path.name.startswith(".")}
    assert len(found) == 2 and found.items() < wanted.items()
    assert run(["aggregate", votes, "-q", "-o", str(out)]) == 2  # the set is whole again, and nothing is replaced
    assert {path.name: path.read_bytes() for path in out.iterdir()} == wanted


_DIES_AT_THE_THIRD_FILE = """
import os, signal, sys
from manyhands.cli.app import run
replace, steps = os.replace, iter(range(2))
os.replace = lambda a, b: os.kill(os.getpid(), signal.SIGKILL) if next(steps, None) is None else replace(a, b)
sys.exit(run(["aggregate", sys.argv[1], "-q", "-o", sys.argv[2]]))
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to(votes, tmp_path, capsys):
    """One sentence, and nothing else."""
    tmp_path.chmod(0o500)
    assert run(["aggregate", votes, "-o", str(tmp_path / "out")]) == 2
    assert "Permission denied" in capsys.readouterr().err


def test_what_cannot_be_done_in_the_end_is_refused_at_once(votes, tmp_path, capsys):
    """Before anything is fitted."""
    for arguments in (["--write", "jsonl"], ["--write", "docx", "-o", "out"]):
        assert run(["aggregate", votes, *arguments]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    (tmp_path / "file").write_text("x")
    assert run(["aggregate", votes, "-o", str(tmp_path / "file")]) == 2
    assert "file is not a folder" in capsys.readouterr().err


def test_gold_that_the_votes_contradict_is_named(tmp_path, capsys):
    """Gold wins, and somebody should look at it."""
    (tmp_path / "votes.csv").write_text("task,worker,label\n" + "".join(f"1,w{w},x\n2,w{w},y\n" for w in range(5)))
    (tmp_path / "gold.csv").write_text("item,label\n1,y\n2,y\n")
    out = tmp_path / "out"
    arguments = ["--gold", str(tmp_path / "gold.csv"), "-o", str(out)]
    assert run(["aggregate", str(tmp_path / "votes.csv"), *arguments]) == 0
    assert "contradict the gold of 1 item, such as '1'" in capsys.readouterr().err
    assert json.loads((out / "summary.json").read_text())["gold_contradicted"] == ["1"]
    assert [row["alerts"] for row in rows_of(out / "labels.csv")] == ["gold", "gold"]


def test_writing_back_needs_an_export_that_can_be_read_again(tmp_path, capsys):
    """Not standard input, and not a question that Label Studio does not have; said before anything is fitted."""
    export = str(SAMPLES / "label_studio" / "export.json")
    arguments = ["--question", "topic=refund", "-o", str(tmp_path / "out"), "--write", "label-studio"]
    assert run(["aggregate", export, *arguments]) == 2
    assert "whether 'refund' was chosen for 'topic'" in capsys.readouterr().err
    table = tmp_path / "votes.csv"
    table.write_text("task,worker,label\n1,a,x\n1,b,x\n")
    assert run(["aggregate", str(table), "-o", str(tmp_path / "out"), "--write", "label-studio"]) == 2
    assert "--write label-studio-tasks" in capsys.readouterr().err
    assert run(["aggregate", str(table), "-o", str(tmp_path / "out"), "--write", "label-studio-tasks"]) == 0
    told = capsys.readouterr().err
    assert (
        "contains new tasks" in told and "no other fields of items: name a table with their texts with --items" in told
    )
    (tmp_path / "texts.csv").write_text("task,text\n1,Hello\n")
    arguments = ["--items", str(tmp_path / "texts.csv"), "--write", "label-studio-tasks"]
    assert run(["aggregate", str(table), "-o", str(tmp_path / "out"), "--force", *arguments]) == 0
    assert "The data of each task are the fields of its item." in capsys.readouterr().err

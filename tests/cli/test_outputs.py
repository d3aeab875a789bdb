"""What commands write: checked before the work, by one run at a time, all files together."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from manyhands import load_model
from manyhands.cli.app import run
from manyhands.exceptions import ParameterError
from manyhands.io import verify_folder
from manyhands.reproduce.records import appending
from training_job import MODEL, QUICK

SET = ["labels.csv", "summary.json", "workers.csv"]
FOLDERS = {  # commands that write a folder, with the files in it
    "aggregate": (["aggregate", "missing.csv"], SET),
    "agree": (["agree", "missing.csv"], ["agreement.csv", "agreement.json", "classes.csv", "items.csv", "pairs.csv"]),
    "simulate": (["simulate", "--items", "10"], ["planted_workers.csv", "ratings.csv", "truth.csv"]),
    "train": (["train", "missing.csv", "--features", "missing.npz", *QUICK], sorted(MODEL - {"manifest.json"})),
    "demo": (["demo"], sorted([*SET, "ratings.csv", "methods.csv", "report.html", "without_flagged.csv"])),
    "reproduce": (["reproduce", "crowding/table-1", "--quick"], ["crowding-table-1.jsonl"]),
}
FILES = {  # commands that write one file
    "convert": ["convert", "missing.csv", "-o"],
    "predict": ["predict", "missing", "--features", "missing.npz", "-o"],
    "leaderboard": ["leaderboard", "--quick", "--only", "nothing", "--write"],
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def votes():
    Path("votes.csv").write_text("task,worker,label\n" + "".join(f"{i},{w},{i % 2}\n" for i in range(6) for w in "abc"))
    return "votes.csv"


def sentence(capsys):
    """The one line that was printed."""
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


class TestBeforeAnythingIsRead:
    """The exports do not exist, and are not asked for: the output is refused first."""

    @pytest.mark.parametrize("command", FOLDERS)
    def test_a_file_where_a_folder_is_needed(self, command, capsys):
        Path("file").write_text("mine")
        assert run([*FOLDERS[command][0], "-o", "file"]) == 2
        assert sentence(capsys) == "manyhands: file is not a folder, so nothing can be written to file."
        assert Path("file").read_text() == "mine"

    @pytest.mark.parametrize("command", FOLDERS)
    def test_a_folder_in_the_place_of_a_file_of_the_set(self, command, capsys):
        arguments, names = FOLDERS[command]
        Path("out", names[-1]).mkdir(parents=True)
        assert run([*arguments, "-o", "out", "--force"]) == 2
        assert f"{names[-1]} is a folder, and cannot be replaced by a file" in sentence(capsys)

    @pytest.mark.parametrize("command", sorted(FOLDERS.keys() - {"reproduce"}))
    def test_a_file_that_is_there(self, command, capsys):
        arguments, names = FOLDERS[command]
        Path("out").mkdir()
        Path("out", names[0]).write_text("mine")
        assert run([*arguments, "-o", "out"]) == 2
        assert f"already has {names[0]}. Add --force" in sentence(capsys)
        assert os.listdir("out") == [names[0]]

    @pytest.mark.parametrize("command", FILES)
    def test_one_file(self, command, capsys):
        Path("folder.csv").mkdir()
        Path("file").write_text("mine")
        Path("link.csv").symlink_to("nowhere")
        for place, message in {
            "folder.csv": "folder.csv is a folder, and cannot be replaced by a file",
            "file/new.csv": "file is not a folder, so nothing can be written to file",
            "link.csv": "already has link.csv. Add --force",
        }.items():
            assert run([*FILES[command], place]) == 2
            assert message in sentence(capsys)
        assert sorted(os.listdir()) == ["file", "folder.csv", "link.csv"] and Path("link.csv").is_symlink()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["aggregate", "missing.csv", "--write", "docx", "-o", "out"], "cannot be written as 'docx'"),
            (["aggregate", "missing.csv", "--write", "jsonl"], "--write needs a folder"),
            (["aggregate", "missing.csv", "--fail-under", "2"], "--fail-under is 2"),
            (["agree", "missing.csv", "--level", "interval", "--order", "a,b"], "--order is for ordinal classes"),
            (["convert", "missing.csv", "-o", "table.docx"], "Tables are written as"),
            (["predict", "missing", "--features", "missing.npy", "-o", "table.pkl"], "Tables are written as"),
        ],
    )
    def test_options_that_make_no_sense(self, arguments, message, capsys):
        assert run(arguments) == 2
        assert message in sentence(capsys)
        assert os.listdir() == []

    @pytest.mark.parametrize("command", ["aggregate", "agree", "train"])
    def test_nothing_is_left_where_the_export_cannot_be_read(self, command, capsys):
        assert run([*FOLDERS[command][0], "-o", "a/b"]) == 3
        assert "missing.csv does not exist" in sentence(capsys)
        assert os.listdir() == []


class TestManifest:
    """Which files belong together."""

    @pytest.mark.parametrize("command", ["aggregate", "agree", "simulate", "demo"])
    def test_every_command_that_writes_a_folder_writes_one(self, command, votes, capsys):
        arguments, names = FOLDERS[command]
        assert run([votes if part == "missing.csv" else part for part in arguments] + ["-o", "out"]) == 0
        assert verify_folder("out") == names
        message = capsys.readouterr().err.strip().splitlines()[-1]
        assert message.startswith("Written to out: ") and all(name in message for name in [*names, "manifest.json"])
        assert sorted(os.listdir("out")) == sorted([*names, "manifest.json"])

    def test_files_of_a_replaced_run_are_named(self, votes, capsys):
        assert run(["aggregate", votes, "-q", "--compare", "-o", "out"]) == 0
        assert run(["aggregate", votes, "-q", "-o", "out", "--force"]) == 0
        assert "differences.csv, methods.csv in out" in capsys.readouterr().err.splitlines()[-1]
        assert verify_folder("out") == SET

    def test_a_model_of_two_runs_is_not_loaded(self, job, capsys):
        """Each file is whole, and was written by manyhands; but they do not belong together."""
        os.chdir(job)
        for name, more in (("one", []), ("two", ["--no-standardise"])):
            assert run(["train", "ratings.csv", "--features", "X.npz", *QUICK, *more, "-q", "-o", name]) == 0
        capsys.readouterr()
        Path("one", "model.json").write_bytes(Path("two", "model.json").read_bytes())
        evaluation = ["--features", "X.npz", "--truth", "truth.csv"]
        for arguments in (["predict", "one", "--features", "X.npz"], ["evaluate", "one", *evaluation]):
            assert run(arguments) == 2
            assert "model.json is not the file that manifest.json names: a run was killed" in sentence(capsys)
        with pytest.raises(ParameterError, match="one is not a model that can be read"):
            load_model("one")


def start(*arguments):
    command = [sys.executable, "-m", "manyhands", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "force"])
@pytest.mark.slow
def test_of_two_runs_at_once_one_writes(force, tmp_path):
    """The other gets one sentence, before it has read anything."""
    arguments = ["-q", "-o", "out", *force]
    first = _held(arguments)
    second = start("aggregate", "missing.csv", *arguments)
    message = second.communicate(timeout=60)[1]
    assert second.returncode == 2 and len(message.splitlines()) == 1
    assert f"Another run is writing out (process {first.pid} on " in message
    first.communicate(b"task,worker,label\n1,a,x\n1,b,x\n", timeout=60)
    assert first.returncode == 0 and verify_folder("out") == SET


def _held(arguments):
    """A run that has claimed its folder and waits for its export on standard input."""
    command = [sys.executable, "-m", "manyhands", "aggregate", "-", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not Path("out", ".manyhands.lock").exists() or not Path("out", ".manyhands.lock").stat().st_size:
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nobody is killed there")
def test_runs_killed_at_any_time_are_repaired_by_the_next(votes):
    """Twenty kills of whole runs, from the start of Python to the end."""
    assert run(["aggregate", votes, "-q", "-o", "out"]) == 0
    wanted = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    begin = time.monotonic()
    start("aggregate", votes, "-q", "-o", "out", "--force").communicate(timeout=60)
    takes = time.monotonic() - begin
    for k in range(20):
        process = start("aggregate", votes, "-q", "-o", "out", "--force", "-m", ("wawa", "glad")[k % 2])
        time.sleep(takes * (0.5 + 0.6 * k / 20))
        process.kill()
        process.communicate()
        assert run(["aggregate", votes, "-q", "-o", "out", "--force"]) == 0
        assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == wanted


_LIMITED = """
import resource, sys
from manyhands.cli.app import run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
class TestFileSizeLimits:
    """A disk that is full looks the same."""

    def limited(self, size, *arguments, **options):
        command = [sys.executable, "-c", _LIMITED, str(size), *arguments]
        return subprocess.run(command, stderr=subprocess.PIPE, text=True, **options)

    @pytest.mark.parametrize(
        ("arguments", "name"), [(["aggregate", "-o", "out"], "out/labels.csv"), (["convert", "-o", "t.csv"], "t.csv")]
    )
    def test_the_file_is_named(self, votes, arguments, name):
        command, *place = arguments
        done = self.limited(10, command, votes, "-q", *place, stdout=subprocess.DEVNULL)
        assert done.returncode == 3
        assert done.stderr == f"manyhands: {Path(name)}: File too large.\n"
        assert sorted(os.listdir()) == ["votes.csv"]

    @pytest.mark.parametrize("unbuffered", ["", "1"])
    def test_standard_output_is_named(self, votes, unbuffered):
        with open("labels", "wb") as file:
            environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
            done = self.limited(10, "convert", votes, "-q", stdout=file, env=environment)
        assert (done.returncode, done.stderr) == (3, "manyhands: Standard output: File too large.\n")

    def test_a_file_of_results_is_named(self, tmp_path):
        import resource

        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        with appending(tmp_path / "r.jsonl") as append:
            resource.setrlimit(resource.RLIMIT_FSIZE, (5, limits[1]))
            try:
                with pytest.raises(OSError, match="too large") as caught:
                    append({"key": "x" * 100})
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.filename == str(tmp_path / "r.jsonl")


def test_an_error_without_a_file_is_not_blamed_on_standard_output(votes, monkeypatch, capsys):
    def fail(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("manyhands.jobs.options.read_export", fail)
    assert run(["aggregate", votes]) == 3
    assert sentence(capsys) == "manyhands: The system cannot read or write a file: Input/output error."


def test_every_command_that_prints_data_prints_exact_bytes(votes, capfdbinary):
    """The same on every system: lines end as they do in files."""
    assert run(["convert", votes, "-q"]) == 0
    printed = capfdbinary.readouterr().out
    assert run(["convert", votes, "-q", "-o", "table.csv"]) == 0
    assert printed == Path("table.csv").read_bytes()

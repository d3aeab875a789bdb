"""`manyhands doctor`, as typed."""

import json
import os
import subprocess
import sys

import pytest

from manyhands.cli.app import run
from manyhands.jobs import doctor
from manyhands.jobs.doctor import Diagnosis, Finding

GOOD = Finding("python", "ok", "CPython 3.12")
NOTE = Finding("torch", "note", "not installed", "pip install 'manyhands[learn]'")
BAD = Finding("data", "problem", "MANYHANDS_DATA is x, which is not a folder", "Unset it.")


@pytest.fixture
def found(monkeypatch):
    """Sets the findings."""
    return lambda *findings: monkeypatch.setattr(doctor, "doctor", lambda: Diagnosis(findings))


def start(*arguments, program="", **variables):
    """A fresh process, through the console script's function."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MANYHANDS_")}
    code = f"{program}\nfrom manyhands.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment | variables
    )


def test_the_list_goes_to_stdout_and_the_conclusion_to_stderr(found, capsys):
    """One line per finding, what to do below it; notes are no problem."""
    found(GOOD, NOTE)
    assert run(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[:2] for line in out.splitlines()] == [["ok", "python"], ["note", "torch"], ["->", "pip"]]
    assert err == "No problem found; 1 note about what is optional.\n"


def test_a_problem_has_exit_code_3(found, capsys):
    """Also with --json, which is still one object."""
    found(GOOD, NOTE, BAD)
    assert run(["doctor"]) == 3
    assert capsys.readouterr().err.startswith("1 problem found")
    assert run(["doctor", "--json"]) == 3
    out, err = capsys.readouterr()
    assert err == "" and json.loads(out) == {
        "schema": 1,
        "status": "problem",
        "findings": [
            {"key": one.key, "status": one.status, "found": one.found, "advice": one.advice}
            for one in (GOOD, NOTE, BAD)
        ],
    }


def test_the_real_environment(monkeypatch, tmp_path, capsys):
    """No problem here; a wrong folder is one."""
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    assert run(["doctor"]) == 0
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path / "nowhere"))
    assert run(["doctor"]) == 3
    assert "which is not a folder" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("library", ["polars", "numpy", "typer"])
def test_it_runs_where_no_other_command_can(library):
    """A missing library: the others refuse with one sentence, `doctor` says what is wrong."""
    gone = f"import sys; sys.modules[{library!r}] = None"
    other = start("inspect", "votes.csv", program=gone)
    assert other.returncode == 3 and len(other.stderr.splitlines()) == 1 and "manyhands doctor" in other.stderr
    this = start("doctor", "--json", program=gone)
    assert "Traceback" not in this.stderr and json.loads(this.stdout)["schema"] == 1
    if library == "polars":
        assert this.returncode == 3 and "tables cannot be read or written" in this.stdout
    assert start("doctor", "--yaml", program=gone).returncode == 2


def test_an_instruction_set_that_does_not_exist():
    """One sentence from all other commands, and a finding."""
    other = start("inspect", "votes.csv", MANYHANDS_SIMD="abacus")
    if other.returncode == 3:
        pytest.skip("the compiled modules were not built")
    assert other.returncode == 2 and len(other.stderr.splitlines()) == 1
    this = start("doctor", MANYHANDS_SIMD="abacus")
    assert this.returncode == 3 and "MANYHANDS_SIMD is 'abacus'" in this.stdout


def test_an_old_processor(tmp_path):
    """polars refuses to load: the sentence and the build to install, and the rest of the list."""
    program = """
import warnings, sys
class Old:
    def find_spec(self, name, path=None, target=None):
        if name == "polars":
            warnings.warn("Missing required CPU features. not detected: avx2", RuntimeWarning)
sys.meta_path.insert(0, Old())
"""
    run = start("doctor", program=program)
    text = " ".join(run.stdout.split())
    assert run.returncode == 3 and "needs avx2" in text and "pip install 'polars[rtcompat]'" in text
    assert "streams" in text and "Traceback" not in run.stderr

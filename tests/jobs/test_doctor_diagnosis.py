"""`doctor`: every finding in a healthy environment, and what it says where something is missing."""

import os
import subprocess
import sys
from importlib import metadata
from types import SimpleNamespace

import pytest

from manyhands import datasets, frames
from manyhands._core import elementary
from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.jobs import doctor

KEYS = [
    "manyhands", "python", "system", "compiled", "tables", "numpy", "scipy", "scikit-learn", "polars",
    "other-libraries", "torch", "matplotlib", "data", "cache", "threads", "variables", "memory", "streams",
]  # fmt: skip


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No variable of ours is set, but for a cache that can be written to."""
    for name in [name for name in os.environ if name.startswith("MANYHANDS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path / "cache"))


def found(key):
    """The finding with this key."""
    (finding,) = (finding for finding in doctor.doctor().findings if finding.key == key)
    return finding


def without(monkeypatch, *missing, **versions):
    """Metadata that lacks some packages, and has others in another version."""
    real = metadata.version

    def version(name):
        if name in missing:
            raise metadata.PackageNotFoundError(name)
        return versions.get(name) or real(name)

    monkeypatch.setattr(metadata, "version", version)


def test_a_healthy_environment_has_no_problem(tmp_path, capsys):
    """All findings in their order, nothing printed, nothing created."""
    result = doctor.doctor()
    assert [finding.key for finding in result.findings] == KEYS
    assert result.with_status("problem") == [] and result.status in ("ok", "note")
    assert all(finding.found for finding in result.findings)
    assert found("numpy").found.startswith(metadata.version("numpy"))
    assert list(tmp_path.iterdir()) == [] and capsys.readouterr() == ("", "")


def test_the_schema_is_stable():
    """Programs may rely on these names."""
    result = doctor.doctor().to_dict()
    assert list(result) == ["schema", "status", "findings"] and result["schema"] == 1
    assert all(list(finding) == ["key", "status", "found", "advice"] for finding in result["findings"])
    assert {finding["status"] for finding in result["findings"]} <= {"ok", "note", "problem"}


def test_modules_that_are_switched_off(monkeypatch):
    """The variable is named; it is no problem."""
    monkeypatch.setenv("MANYHANDS_PLAIN", "1")
    assert found("compiled").status == "note" and "Unset MANYHANDS_PLAIN" in found("compiled").advice
    assert "MANYHANDS_PLAIN=1" in found("variables").found


def test_modules_that_were_not_built(monkeypatch):
    """A compiler is advised."""
    monkeypatch.setattr(elementary, "load", lambda name: None)
    finding = found("compiled")
    assert finding.status == "note" and "_fused and _columns were not built" in finding.found
    assert "C compiler" in finding.advice


def test_the_instruction_set_is_named(monkeypatch):
    """The first that is available, the one in MANYHANDS_SIMD, or an error that lists all."""
    module = SimpleNamespace(instruction_sets=lambda: ("avx2", "default"))
    monkeypatch.setattr(elementary, "load", lambda name: module)
    assert "instruction set avx2 (available: avx2, default)" in found("compiled").found
    monkeypatch.setenv("MANYHANDS_SIMD", "default")
    assert "instruction set default" in found("compiled").found

    def refuse(name):
        raise ParameterError("MANYHANDS_SIMD is 'x', but there is y. Unset it.")

    monkeypatch.setattr(elementary, "load", refuse)
    assert found("compiled").status == "problem" and found("compiled").advice == "Unset it."


def test_without_extras_the_command_is_named(monkeypatch):
    """torch and matplotlib are optional."""
    without(monkeypatch, "torch", "matplotlib")
    assert found("torch").status == found("matplotlib").status == "note"
    assert "pip install 'manyhands[learn]' torch==2.13.0" in found("torch").advice
    assert "pip install 'manyhands[plot]'" in found("matplotlib").advice


def test_required_libraries_that_are_missing_or_old(monkeypatch):
    """Both are problems with a command."""
    monkeypatch.setattr(metadata, "requires", lambda name: ["numpy>=2.0", "scipy>=1.13", "rich>=13.7", "polars"])
    without(monkeypatch, "scipy", "rich", numpy="1.26.4")
    result = doctor.doctor()
    assert {finding.key for finding in result.with_status("problem")} >= {"numpy", "scipy", "other-libraries"}
    assert found("numpy").found == "1.26.4, but 2.0 is required"
    assert found("numpy").advice.endswith("pip install --upgrade 'numpy>=2.0'")
    assert found("other-libraries").found == "rich not installed"


def test_a_package_that_is_not_installed(monkeypatch):
    """Run from its source, minimum versions are unknown, which is said."""

    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    monkeypatch.setattr(metadata, "metadata", absent)
    without(monkeypatch, "manyhands")
    assert found("manyhands").status == "note" and "not installed" in found("manyhands").found
    assert found("python").status == found("numpy").status == "ok" and found("other-libraries").status == "note"


def test_an_old_python(monkeypatch):
    """The minimum is that of the metadata."""
    monkeypatch.setattr(metadata, "metadata", lambda name: {"Requires-Python": ">=99.1"})
    assert found("python").status == "problem" and found("python").advice == "Install Python 99.1."


def test_a_processor_that_polars_cannot_run_on(monkeypatch):
    """The sentence of `load_polars`."""

    def refuse():
        raise MissingExtraError("It needs avx2. Install the build: pip install 'polars[rtcompat]'")

    monkeypatch.setattr(frames, "load_polars", refuse)
    assert found("tables").status == "problem" and "polars[rtcompat]" in found("tables").advice


def test_the_folder_of_data_sets(monkeypatch, tmp_path):
    """Not set, wrong, empty, and with data sets."""
    assert found("data").status == "note"
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path / "nowhere"))
    assert found("data").status == "problem" and "not a folder" in found("data").found
    monkeypatch.setenv("MANYHANDS_DATA", str(tmp_path))
    assert found("data").status == "problem"
    (tmp_path / datasets.names()[0]).mkdir(parents=True)
    assert found("data").status == "ok" and found("data").found.startswith("1 of ")


def test_a_home_that_cannot_be_written_to(monkeypatch, tmp_path):
    """A note for the home folder, a problem for a folder that was named; a file stops even the root user."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path / "file" / "cache"))
    assert found("cache").status == "problem" and "cannot be written to" in found("cache").found
    monkeypatch.delenv("MANYHANDS_CACHE")
    monkeypatch.setattr(datasets.remote, "cache_folder", lambda: tmp_path / "file" / "home")
    assert found("cache").status == "note" and "MANYHANDS_CACHE" in found("cache").advice


def test_no_home_at_all(monkeypatch):
    """Neither a cache nor a tilde; nothing fails."""

    def refuse():
        raise RuntimeError("Could not determine home directory.")

    for name in ("MANYHANDS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", refuse)
    assert found("cache").status == "note" and found("cache").found.startswith("there is no home folder")


def test_the_home_folder_is_not_shown(monkeypatch, tmp_path):
    """A report can be passed on."""
    monkeypatch.setattr("pathlib.Path.home", lambda: tmp_path)
    assert str(tmp_path) not in str(doctor.doctor()) and os.path.join("~", "cache") in found("cache").found


def test_variables_that_have_no_effect(monkeypatch):
    """A number of threads that is none, and a name that nothing reads."""
    monkeypatch.setenv("MANYHANDS_THREADS", "many")
    monkeypatch.setenv("MANYHANDS_THREAD", "2")
    assert found("threads").status == "note" and "ignored" in found("threads").found
    assert "without effect: MANYHANDS_THREAD" in found("variables").found
    monkeypatch.setenv("MANYHANDS_THREADS", "3")
    assert found("threads").found == "3 (MANYHANDS_THREADS)"


def test_memory_is_stated_where_it_is_known(monkeypatch):
    """Little memory is a note, and so is a system that does not state it."""
    monkeypatch.setattr(doctor, "available_bytes", lambda: 1 << 33)
    monkeypatch.setattr(doctor, "physical_bytes", lambda: 1 << 34)
    monkeypatch.setattr(doctor, "limit_bytes", lambda: 1 << 28)
    assert found("memory").status == "note"
    assert found("memory").found == "8.0 GiB available, 16.0 GiB in the machine, 0.2 GiB limit"
    for name in ("available_bytes", "physical_bytes", "limit_bytes"):
        monkeypatch.setattr(doctor, name, lambda: None)
    assert "could not be determined" in found("memory").found


def test_streams_that_are_not_utf_8(monkeypatch):
    """The variable that changes it is named; a closed stream is none of them."""
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(encoding="cp1252"))
    assert found("streams").status == "note" and "PYTHONUTF8=1" in found("streams").advice
    assert "input closed, output cp1252" in found("streams").found


def test_a_check_that_fails_is_a_finding(monkeypatch):
    """Whatever is broken, there is a list."""

    def fail():
        raise ZeroDivisionError("broken")

    monkeypatch.setattr(doctor, "_CHECKS", dict.fromkeys(doctor._CHECKS, fail))
    result = doctor.doctor()
    assert len(result.findings) == len(doctor._CHECKS) and result.status == "note"
    assert "could not be determined (ZeroDivisionError: broken)" in result.findings[0].found


def test_versions_are_compared_by_number():
    """Not as text, and local parts do not count."""
    assert doctor.is_older("2.9", "2.10") and not doctor.is_older("2.13.0+cpu", "2.4")
    assert doctor.is_older("1", "1.0.1") and not doctor.is_older("3.14.0rc1", "3.11")


def test_nothing_slow_is_imported():
    """Neither torch nor scikit-learn nor matplotlib; and the module itself loads without numpy."""
    program = (
        "import sys; from manyhands.jobs.doctor import doctor; print('numpy' in sys.modules); doctor();"
        "print(*({'torch', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]

"""What is installed, and what a source distribution holds."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from manyhands import registry

ROOT = Path(__file__).parents[1]
# torch, what only torch needs, and what needs torch: they are installed after the lock (CONTRIBUTING.md).
OUTSIDE = {"torch", "mpmath", "networkx", "sympy", "pytorch-metric-learning"}
ADDED = {"setuptools", "colorama"}  # the build, and Windows


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture
def lock():
    """The lock, if this is a source tree."""
    path = ROOT / "requirements.lock"
    if not path.is_file():
        pytest.skip("the tests run apart from their source tree")
    return path.read_text(encoding="utf-8")


def pins(text):
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^\s;]+)", text, re.MULTILINE)
    assert len({canonical(name) for name, _ in found}) == len(found)
    return {canonical(name): version for name, version in found}


def test_the_lock_has_the_versions_of_the_constraints(lock):
    """All of them, but what cannot be locked, and hardly anything else."""
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert registry.install_command("learn").endswith(f" torch=={constraints['torch']}")
    locked = pins(lock)
    assert {name: version for name, version in locked.items() if name not in ADDED} == {
        name: version for name, version in constraints.items() if name not in OUTSIDE
    }
    assert locked.keys() >= ADDED


def test_everything_in_the_lock_has_a_checksum(lock):
    """And nothing says where to get it from."""
    blocks = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", lock, flags=re.MULTILINE).strip())
    for block in blocks:
        head, *hashes = [line.strip().removesuffix("\\").strip() for line in block.splitlines()]
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+( ; .+)?", head), head
        assert hashes and all(re.fullmatch("--hash=sha256:[0-9a-f]{64}", line) for line in hashes), head
    assert "://" not in lock and "index" not in lock


def test_the_lock_has_what_is_required(lock):
    """Whatever the package and its developers need directly."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["dev"], *extras["plot"], *extras["bench"]]
    names = {canonical(re.match(r"[\w.-]+", requirement)[0]) for requirement in wanted}
    assert names - OUTSIDE <= pins(lock).keys()


def test_a_source_distribution_has_all_that_is_tracked(tmp_path, monkeypatch):
    """The tests, the constraints and the rest of the source tree; nothing that a run made, and no data."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("not a checkout")
    filelist = pytest.importorskip("setuptools.command.egg_info").FileList
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name for name in listed.splitlines() if not name.startswith("src/")}
    made = {
        "tests/__pycache__/a.pyc",
        "benchmarks/results/a.json",
        "demo/a.csv",
        "reproduced/a.jsonl",
        "data/a.csv",
    }
    for name in [*tracked, *made]:  # the names decide, not the contents
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    found = filelist()
    for line in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            found.process_template_line(line)
    held = {Path(name).as_posix() for name in found.files}
    always = {"LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"}  # whatever MANIFEST.in says
    assert tracked - always - held == {".gitignore"}
    assert not held & made

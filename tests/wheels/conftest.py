"""The wheels of this source, each built twice, and empty environments into which they are installed."""

import shutil
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/conftest.py needs manyhands, which is not installed here

from wheels.building import ROOT, build, run


@pytest.fixture(scope="session")
def sdist(tmp_path_factory):
    """The source distribution of what git tracks, so that nothing that a run left behind is in it."""
    source = tmp_path_factory.mktemp("tracked")
    listed = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    return build("compiled", source, tmp_path_factory.mktemp("sdist"), "--sdist")


@pytest.fixture(scope="session")
def wheels(sdist, tmp_path_factory):
    """Kind of a wheel -> two builds of it, each from the source distribution unpacked into a folder of its own."""
    found = {}
    for kind in ("compiled", "pure"):
        for at in ("first", "second"):
            folder = tmp_path_factory.mktemp(f"{kind}-{at}")
            with tarfile.open(sdist) as archive:
                archive.extractall(folder, filter="data")
            (source,) = folder.iterdir()
            found.setdefault(kind, []).append(build(kind, source, folder / "wheel", "--wheel"))
    return found


@pytest.fixture(scope="session")
def environment(wheels, tmp_path_factory):
    """A function: the Python of a new environment with a wheel, what it requires, and nothing else."""

    def environment(kind, python=sys.executable, *more, name=None):
        folder = tmp_path_factory.mktemp("environment") / (name or "venv")
        run("uv", "venv", "-q", "--python", python, folder)
        own = folder / "bin" / "python"
        run("uv", "pip", "install", "-q", "--python", own, wheels[kind][0], *more)
        return own

    return environment

"""Running commands, building, and the Pythons of this machine: what the tests of the wheels share."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EPOCH = "1700000000"  # any fixed time: the clock of the files in a wheel


def run(program, *arguments, **options):
    """Run a program, of this environment if it is there, and return what it printed; a failure shows both streams."""
    own = Path(sys.executable).parent / program  # an absolute path stays as it is
    command = [own if own.is_file() else program, *arguments]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, (
        f"{command} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
    return done.stdout


def build(kind, source, target, made):
    """Build a wheel (`made` is --wheel) or a source distribution, and return its path."""
    environment = os.environ | {"MANYHANDS_BUILD": kind, "SOURCE_DATE_EPOCH": EPOCH}
    run(sys.executable, "-m", "build", "--no-isolation", made, "--outdir", target, source, env=environment)
    (found,) = target.iterdir()
    return found


def pythons():
    """Every Python of at least 3.11 that is installed here: on the path, of pyenv, or named in MANYHANDS_PYTHONS."""
    names = [f"python3.{minor}" for minor in range(11, 16)]
    candidates = [Path(folder) / name for folder in os.environ["PATH"].split(os.pathsep) for name in names]
    candidates += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    candidates += [Path(name) for name in os.environ.get("MANYHANDS_PYTHONS", "").split(os.pathsep) if name]
    ask = "import sys, os; print(*sys.version_info[:3], os.path.realpath(sys.executable), sep='|')"
    found = {}
    for path in candidates:
        if path.is_file() and "shims" not in path.parts:
            done = subprocess.run([str(path), "-I", "-c", ask], capture_output=True, text=True)
            major, minor, micro, real = (done.stdout.strip() or "0|0|0|").split("|")
            if (int(major), int(minor)) >= (3, 11):
                found.setdefault(real, f"{major}.{minor}.{micro}")
    return found

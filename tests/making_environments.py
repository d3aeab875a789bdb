"""Python environments that lack something, made from the present one in a second and without the network."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]


def environment_without(folder, *missing):
    """The Python of a new environment with links to all that is installed here, except these packages."""
    venv.create(folder, symlinks=os.name != "nt", with_pip=False)
    paths = {"base": str(folder), "platbase": str(folder)}
    there = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    left_out = {name.lower() for name in missing}
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        package = path.name.lower().partition("-")[0].partition(".")[0]
        if package not in left_out and not path.name.startswith(("__editable__", "_manyhands", "manyhands")):
            (there / path.name).symlink_to(path)
    return Path(sysconfig.get_path("scripts", "venv", vars=paths)) / Path(sys.executable).name


def run_in(python, *arguments, cwd=ROOT, source=ROOT / "src", without=(), **variables):
    """Run this Python on the package's source; `without` names variables that are taken away."""
    environment = {name: value for name, value in os.environ.items() if name not in (*without, "PYTHONPATH")}
    environment |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"} | variables
    return subprocess.run([str(python), *arguments], capture_output=True, text=True, cwd=cwd, env=environment)

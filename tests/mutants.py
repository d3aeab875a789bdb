"""Put the faults of mutants.toml into copies of the source, one at a time: the named tests must find each.

    python tests/mutants.py [-j 2] [--only WORD]

Each mutant is a small change of one file. Before the first, all named tests must pass on the unchanged source. A mutant
counts as found if every test (or file of tests) that it names fails on an assertion or an error of its own; a mutant
that survives, cannot be applied or breaks the import is an error of this list or of the tests.
"""

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_name("mutants.toml")
COPIED = ("src", "tests", "setup.py", "pyproject.toml", "README.md", "LICENSE", "conftest.py")
PATIENCE = 180  # seconds for the tests of one mutant
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One change, and the tests that must see it."""

    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    why: str

    @property
    def name(self) -> str:
        return f"{self.file.removeprefix('src/manyhands/')}: {self.why}"

    def problem(self, root: Path = ROOT) -> str | None:
        """What is wrong with the entry itself, None if nothing is."""
        path = root / self.file
        if not path.is_file():
            return "there is no such file"
        if self.before == self.after:
            return "nothing is changed"
        times = path.read_text(encoding="utf-8").count(self.before)
        missing = [test for test in self.tests if not (root / test.partition("::")[0]).is_file()]
        if missing or not self.tests:
            return f"no test, or not there: {missing}"
        return None if times == 1 else f"the text to be changed occurs {times} times, not once"


def read_mutants() -> list[Mutant]:
    """All entries of mutants.toml."""
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


class Copy:
    """A copy of the source in which tests are run; the project itself is never changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.egg-info"))
            else:
                shutil.copy2(source, folder / name)

    def run(self, tests: list[str], *options: str, patience: float = PATIENCE) -> tuple[int, str]:
        """The exit code of pytest and what it said."""
        # No bytecode is written: two versions of a file may have the same size and time.
        environment = os.environ | {"PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        # An example that fails is enough: to make it smaller takes most of the time.
        arguments = [
            "-q",
            "-rfE",
            "--tb=line",
            "-p",
            "no:cacheprovider",
            "--hypothesis-profile=first-failure",
            *options,
            *tests,
        ]
        command = [sys.executable, "-m", "pytest", *arguments]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=patience
            )
        except subprocess.TimeoutExpired:
            return -1, f"no end within {patience:.0f} seconds"
        return done.returncode, done.stdout + done.stderr

    def build(self, libraries: list[Path]) -> str | None:
        """Compile the C modules that are not there; what went wrong, if it did."""
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        missing = [library.name for library in libraries if not library.exists()]
        return f"not built: {', '.join(missing)}: {done.stderr.strip()[-300:]}" if missing else None

    def judge(self, mutant: Mutant) -> str | None:
        """Apply the mutant, run its tests, undo it; None if they all failed, or what went wrong."""
        problem = mutant.problem(self.folder)
        if problem:
            return problem
        path = self.folder / mutant.file
        text = path.read_text(encoding="utf-8")
        # All C modules are built again, from nothing: setuptools would copy those of an earlier build over ours.
        libraries = sorted(path.parent.glob("_*.so")) if path.suffix in (".c", ".h") else []
        if path.suffix in (".c", ".h") and not libraries:
            return "the C modules are not built, so this mutant cannot be tried"
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        # Files come back with their old time, so that bytecode made from them is valid again.
        aside = [(each, each.with_name(each.name + ".kept")) for each in (path, *libraries)]
        for each, kept in aside:
            each.rename(kept)
        try:
            path.write_text(text.replace(mutant.before, mutant.after), encoding="utf-8")
            return (self.build(libraries) if libraries else None) or self._survived(mutant)
        finally:
            for each, kept in aside:
                kept.replace(each)

    def changed_files(self) -> list[str]:
        """Files of the source that are not as they were: after the last mutant there must be none."""
        files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".c", ".h", ".so", ".pyd")]
        names = [path.relative_to(ROOT) for path in files]
        return filecmp.cmpfiles(ROOT, self.folder, [str(name) for name in names], shallow=False)[1]

    def _survived(self, mutant: Mutant) -> str | None:
        code, said = self.run(list(mutant.tests), "-p", "no:xdist")
        if code not in (0, 1):  # 1: tests ran, and some failed
            return f"pytest ended with {code}: {said.strip()[-300:]}"
        failed = _FAILED.findall(said)
        unaware = [test for test in mutant.tests if not any(name.startswith(test) for name in failed)]
        return f"SURVIVED {', '.join(unaware)}" if unaware else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="mutants whose file or reason holds this text")
    options = parser.parse_args()
    mutants = [mutant for mutant in read_mutants() if options.only in mutant.name]
    began, wrong = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.jobs):
            copies.put(Copy(Path(folder) / str(number)))
        if not _sound(copies, mutants, options.jobs):
            return 1

        def judge(mutant: Mutant) -> str | None:
            copy = copies.get()
            try:
                return copy.judge(mutant)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(options.jobs) as pool:
            for number, (mutant, problem) in enumerate(zip(mutants, pool.map(judge, mutants)), 1):
                wrong += problem is not None
                outcome = "killed" if problem is None else "ERROR "
                print(f"{number:3d}/{len(mutants)} {outcome} {mutant.name}", flush=True)
                if problem:
                    print(f"            {problem}", flush=True)
        left = [name for _ in range(options.jobs) for name in copies.get().changed_files()]
    if left:
        print(f"Mutants were not undone, so that what came after them means nothing: {', '.join(left)}.")
    print(f"{len(mutants) - wrong} of {len(mutants)} mutants killed in {time.monotonic() - began:.0f} s.")
    return 1 if wrong or left or not mutants else 0


def _sound(copies: "SimpleQueue[Copy]", mutants: list[Mutant], jobs: int) -> bool:
    """Whether all named tests pass on the unchanged source, and run there: not in the project's own folder."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    copy = copies.get()
    code, said = copy.run(tests, "-n", str(jobs), patience=10 * PATIENCE)
    copies.put(copy)
    print(f"Unchanged source, {len(tests)} named tests: {said.strip().splitlines()[-1] if said.strip() else 'no word'}")
    if code:
        print(said[-3000:])
    return code == 0


if __name__ == "__main__":
    sys.exit(main())

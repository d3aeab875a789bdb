"""A processor that polars cannot run on gets one sentence, before polars crashes."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from manyhands.exceptions import MissingExtraError
from manyhands.frames import load_polars

_SPEC = find_spec("polars")
_CHECK = Path(_SPEC.submodule_search_locations[0]) / "_cpu_check.py"

# polars reads the processor's abilities itself; here they are those of a processor without AVX2.
_OLD_PROCESSOR = """
import importlib.util, sys

spec = importlib.util.spec_from_file_location("polars._cpu_check", sys.argv.pop(1))
check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check)
found = check._read_cpu_flags()
if "avx2" not in found:
    sys.exit(77)
check._read_cpu_flags = lambda: found | {"avx2": False, "fma": False}
sys.modules["polars._cpu_check"] = check
"""


def run_on_old_processor(program, *arguments, **environment):
    """Run a program with a polars that sees neither AVX2 nor FMA."""
    if not _CHECK.is_file():
        pytest.skip("this polars looks at the processor in another way")
    command = [sys.executable, "-c", _OLD_PROCESSOR + program, str(_CHECK), *arguments]
    environment = {k: v for k, v in os.environ.items() if k != "POLARS_SKIP_CPU_CHECK"} | environment
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    if run.returncode == 77:
        pytest.skip("this is no x86 processor, or polars has no check for it")
    return run


def test_the_command_line_says_what_to_install():
    """One sentence that names the missing instructions and the build to install; no traceback, no crash."""
    run = run_on_old_processor("from manyhands.cli import main; main()", "inspect", "votes.csv")
    assert run.returncode == 3 and run.stdout == ""
    (sentence,) = run.stderr.splitlines()
    assert sentence.startswith("manyhands: The installed build of polars") and "needs avx2, fma," in sentence
    assert sentence.endswith("pip install 'polars[rtcompat]'")


def test_the_library_raises_our_error_and_needs_no_tables_to_aggregate():
    """Reading a table is refused with the same sentence; aggregation, which needs no polars, works."""
    program = """
import manyhands as mh
print(*mh.DawidSkene().fit_predict(mh.Annotations.from_matrix([[0, 0], [1, 1]])))
try:
    mh.read_annotations("export.csv")
except mh.exceptions.MissingExtraError as error:
    print(error)
"""
    run = run_on_old_processor(program)
    assert run.returncode == 0, run.stderr
    labels, sentence = run.stdout.splitlines()
    assert labels == "0 1" and "polars[rtcompat]" in sentence


def test_who_turns_the_check_of_polars_off_turns_ours_off():
    """POLARS_SKIP_CPU_CHECK is polars' own variable, for processors that it misjudges."""
    run = run_on_old_processor("import manyhands.io; print('loaded')", POLARS_SKIP_CPU_CHECK="1")
    assert run.stdout.strip() == "loaded", run.stderr


def test_a_polars_that_is_not_installed_is_another_error(monkeypatch):
    """It is a dependency, so that its absence is a broken installation and no matter of processors."""
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError) as refused:
        load_polars()
    assert not isinstance(refused.value, MissingExtraError)

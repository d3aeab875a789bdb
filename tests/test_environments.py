"""Environments that lack something give the sentence or the skip that docs/troubleshooting.md promises; each is made.

An old processor is in tests/test_frames_old_processor.py.
"""

import os
import shutil
import sys

import pytest

from making_environments import ROOT, environment_without, run_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="environments are made with links and shell variables"),
]
TORCH = ("torch", "torchgen", "functorch", "triton")
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rs")
VOTES = "task,worker,label\n1,a,x\n1,b,x\n2,a,y\n2,b,y\n3,a,x\n3,b,y\n"


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory):
    """A Python that has everything but torch."""
    return environment_without(tmp_path_factory.mktemp("environment") / "no-torch", *TORCH)


def test_without_torch_networks_are_refused_and_the_rest_works(without_torch, tmp_path):
    """One sentence names the extra, and votes are aggregated as ever."""
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "features.csv").write_text("id,size\n1,0.1\n2,0.9\n3,0.2\n")
    command = ("-m", "manyhands")
    trained = run_in(
        without_torch,
        *command,
        "train",
        "votes.csv",
        "--features",
        "features.csv",
        "-m",
        "crowd-layer",
        "-o",
        "model",
        cwd=tmp_path,
    )
    assert trained.returncode == 3, trained.stderr
    assert trained.stderr.splitlines()[-1].endswith(
        "crowd_layer needs torch, which is not installed. Install it with: pip install 'manyhands[learn]' torch==2.13.0"
    )
    voted = run_in(without_torch, *command, "aggregate", "votes.csv", "-m", "dawid-skene", cwd=tmp_path)
    assert voted.returncode == 0 and len(voted.stdout.splitlines()) == 4, voted.stderr


def test_without_torch_its_tests_are_skipped_with_a_reason(without_torch):
    """Files that import torch, tests that meet its absence, and commands that say so; nothing fails."""
    run = run_in(
        without_torch, *PYTEST, "tests/nn/test_losses.py", "tests/test_features.py", "tests/test_registry.py",
        "src/manyhands/nn/losses.py", "src/manyhands/representation/metric_learners.py",
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:]
    skipped = [line for line in run.stdout.splitlines() if line.startswith("SKIPPED")]
    assert skipped and all("torch is not installed: pip install 'manyhands[learn]'" in line for line in skipped)
    assert any("nn/test_losses.py" in line for line in skipped) and " passed" in run.stdout.splitlines()[-1]


def test_without_a_compiler_the_package_builds_and_works(tmp_path):
    """The build ends well without C modules; the plain path is used, and tests of the C modules are skipped."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("src", "tests"):
        ignored = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    compilers = dict.fromkeys(("CC", "CXX", "LDSHARED"), "false")
    built = run_in(sys.executable, "setup.py", "-q", "build_ext", "--inplace", cwd=tmp_path, **compilers)
    assert built.returncode == 0, built.stderr
    assert not list((tmp_path / "src").rglob("*.so"))
    program = "from manyhands.em import kernels; print(kernels.__file__, kernels._fused, kernels._columns)"
    said = run_in(sys.executable, "-c", program, cwd=tmp_path, source=tmp_path / "src").stdout.split()
    assert said == [str(tmp_path / "src" / "manyhands" / "em" / "kernels.py"), "None", "None"]
    tests = ("tests/_core/test_elementary_compiled.py", "tests/em/test_decisions.py")
    run = run_in(sys.executable, *PYTEST, *tests, cwd=tmp_path, source=tmp_path / "src")
    assert run.returncode == 0, run.stdout[-2000:]
    assert "the compiled modules were not built" in run.stdout and " passed" in run.stdout.splitlines()[-1]


@pytest.mark.parametrize("there", [False, True])
def test_without_data_tests_on_real_crowds_are_skipped_and_with_wrong_data_they_fail(there, tmp_path):
    """Nobody who has named a folder takes a skip for a pass."""
    variables = {"MANYHANDS_DATA": str(tmp_path)} if there else {}
    arguments = (*PYTEST, "tests/em/test_driver.py", "-k", "real_crowds")
    run = run_in(sys.executable, *arguments, without=("MANYHANDS_DATA",), **variables)
    if there:
        assert run.returncode == 1 and "MANYHANDS_DATA is set, but" in run.stdout
    else:
        assert run.returncode == 0 and "2 skipped" in run.stdout.splitlines()[-1]
        assert "MANYHANDS_DATA is not set" in run.stdout


@pytest.mark.parametrize("home", ["a file", "none"])
def test_without_a_home_that_can_be_written_to(home, tmp_path):
    """Nothing is kept there but downloads, and they say what to do; a file in its place stops even the root user."""
    (tmp_path / "file").write_text("")
    (tmp_path / "votes.csv").write_text(VOTES)
    variables = {"HOME": str(tmp_path / "file" / "home")} if home == "a file" else {}
    gone = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MANYHANDS_CACHE", "MPLCONFIGDIR")
    program = (
        "from manyhands.cli.app import run; from manyhands.datasets import fetch;"
        "assert run(['aggregate', 'votes.csv', '-o', 'out']) == 0;"
        "import manyhands.report.matplotlib_figures;"
        "from manyhands.exceptions import DownloadError\n"
        "try:\n    fetch('usps') if 'HOME' in __import__('os').environ else None\n"
        "except DownloadError as error:\n    print(error)"
    )
    run = run_in(sys.executable, "-c", program, cwd=tmp_path, without=gone, **variables)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "out" / "labels.csv").is_file()
    if home == "a file":
        assert "cannot be written to" in run.stdout and "MANYHANDS_CACHE" in run.stdout

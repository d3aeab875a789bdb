"""What a release needs: one version everywhere, and workflows that hold nothing secret and pin what they use."""

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest

import manyhands

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def check():
    spec = importlib.util.spec_from_file_location("check_release", ROOT / ".ci" / "check_release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_the_same_everywhere(check):
    assert check.problems(f"v{manyhands.__version__}") == []


def test_a_tag_that_does_not_fit_is_refused(check, tmp_path):
    """One sentence for the tag, and one for each file that has another version."""
    assert check.problems("v9.9.9") == [
        f"The tag is v9.9.9, but pyproject.toml has the version {manyhands.__version__}."
    ]
    names = ("pyproject.toml", "src/manyhands/__init__.py", "CITATION.cff", "CHANGELOG.md", "SECURITY.md")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    project = tmp_path / "pyproject.toml"
    project.write_text(re.sub(r'^version = ".*"$', 'version = "9.9.9"', project.read_text(), flags=re.MULTILINE))
    said = check.problems("v9.9.9", tmp_path)
    assert said == [f"{name} does not have the version 9.9.9." for name in names[1:]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_actions_and_start_without_rights(path):
    """Every action by its commit, with the version beside it; rights are given to single jobs."""
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert all(name.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) for name, _ in used)
    assert all(name.startswith("./") or re.fullmatch(r" # v[\d.]+", rest) for name, rest in used)
    assert "\npermissions: {}\n" in text and "secrets." not in text and "pull_request_target" not in text
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_wheels_are_built_for_the_lowest_python():
    """The abi3 tag of setup.py, the Python of cibuildwheel and `requires-python` are one version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lowest = re.fullmatch(r">=3\.(\d+)", project["project"]["requires-python"])[1]
    assert project["tool"]["cibuildwheel"]["build"] == f"cp3{lowest}-*"
    assert f'"py_limited_api": "cp3{lowest}"' in (ROOT / "setup.py").read_text(encoding="utf-8")
    assert f"0x030{int(lowest):x}0000" in (ROOT / "src" / "manyhands" / "_views.h").read_text(encoding="utf-8")
    assert len(WORKFLOWS) == 3

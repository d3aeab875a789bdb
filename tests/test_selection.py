"""The sizes of the suite: what the Makefile selects is there, and every marker has a target."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")


def variable(name):
    """The words of a variable of the Makefile."""
    return re.search(rf"^{name} := (.*)$", MAKEFILE, re.MULTILINE)[1]


def test_the_fast_selection_has_a_part_of_every_package():
    """Each folder of tests has a file with the marker."""
    files = [path for path in (ROOT / "tests").glob("*/test_*.py")]
    of_their_own = {"golden", "contracts", "browser", "spark", "wheels"}  # environments
    folders = {path.parent.name for path in files} - of_their_own
    fast = {path.parent.name for path in files if "pytest.mark.fast" in path.read_text(encoding="utf-8")}
    assert folders and not folders - fast, f"no fast test in {sorted(folders - fast)}"


def test_what_is_left_out_of_make_test_is_run_by_make_test_all():
    """The markers of pyproject.toml are those that the Makefile knows; a marker that some test has is run somewhere."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    registered = {line.partition(":")[0] for line in settings["tool"]["pytest"]["ini_options"]["markers"]}
    assert {*variable("MARKED").split(" or "), "fast"} == registered
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py")]
    used = {name for name in registered if any(f"pytest.mark.{name}" in source for source in sources)}
    run = set(re.findall(r"-m \"?(\w+)", MAKEFILE))
    assert "slow" in used and used <= run

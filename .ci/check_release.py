"""Check that a tag fits the source: `python .ci/check_release.py v0.2.0`. It needs Python alone."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(tag, root=ROOT):
    """Return what is wrong, a sentence each."""
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    found = [] if tag == f"v{version}" else [f"The tag is {tag}, but pyproject.toml has the version {version}."]
    places = {
        "src/manyhands/__init__.py": rf'^__version__ = "{re.escape(version)}"$',
        "CITATION.cff": rf"^version: {re.escape(version)}$",
        "CHANGELOG.md": rf"^## {re.escape(version)}( |$)",
        "SECURITY.md": rf"^\| {re.escape('.'.join(version.split('.')[:2]))} \| yes \|$",
    }
    for name, pattern in places.items():
        if not re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE):
            found.append(f"{name} does not have the version {version}.")
    return found


if __name__ == "__main__":
    said = problems(*sys.argv[1:2])
    print("\n".join(said) or f"{sys.argv[1]} fits the source.")
    sys.exit(1 if said else 0)

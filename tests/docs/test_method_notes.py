"""What the pages of methods say beside the source: an entry for every name, with what the template needs."""

import re
import tomllib
from pathlib import Path

import pytest

from manyhands import registry

DOCS = Path(__file__).parents[2] / "docs"
NOTES = tomllib.loads((DOCS / "methods" / "methods.toml").read_text(encoding="utf-8"))
pytestmark = pytest.mark.fast


def full(name):
    """An entry with what it takes from another."""
    entry = NOTES[name]
    return (full(entry["like"]) if "like" in entry else {}) | entry


def test_every_method_has_an_entry():
    """And no entry is left of a method that is gone."""
    assert set(NOTES) == {name for name in registry.names() if name in registry._METHODS}


@pytest.mark.parametrize("name", NOTES)
def test_an_entry_is_complete(name):
    """Formula, idea, where it works and fails; the pages of results that it names exist, and so do the methods."""
    entry = full(name)
    assert all(entry[key].strip() for key in ("formula", "idea", "works", "fails"))
    assert entry["formula"].count("{") == entry["formula"].count("}")
    missing = [page for page in entry.get("results", []) if not (DOCS / "results" / f"{page}.md").is_file()]
    assert not missing
    said = " ".join(entry[key] for key in ("idea", "works", "fails"))
    named = [word for word in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", said) if word not in registry.names()]
    assert not named, f"{name} names methods that do not exist: {named}"
    assert not re.search(r"\d %", said), "measured figures stand in rows, which the page shows"

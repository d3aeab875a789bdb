"""Result rows of the papers' tables are committed with the source; others stay in the current folder."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from manyhands.reproduce import load_table
from manyhands.reproduce import records as folders
from manyhands.reproduce.leaderboard import tables
from manyhands.reproduce.records import checkout, figures_folder, rows_file, rows_folder
from measuring import small_table

ROOT = Path(__file__).parents[2]


def test_a_checkout_has_a_folder_of_rows(monkeypatch):
    """For tables that come with manyhands, and the leaderboard; not for quick runs and tables of the user."""
    monkeypatch.setattr(folders, "checkout", lambda: ROOT)
    table = load_table("crowding/table-1")
    assert rows_file(table) == ROOT / "docs" / "results" / "rows" / "crowding-table-1.jsonl"
    assert figures_folder(table) == ROOT / "docs" / "results" / "reproduced"
    assert rows_folder(tables()[0]) == ROOT / "docs" / "results" / "rows"
    assert rows_folder(table, quick=True) == rows_folder(small_table()) == Path("reproduced")
    assert rows_file(table, "out") == Path("out") / "crowding-table-1.jsonl"


def test_an_installed_package_uses_the_current_folder(monkeypatch, tmp_path):
    """Also where the sources come without the folder."""
    for root in (None, tmp_path):
        monkeypatch.setattr(folders, "checkout", lambda root=root: root)
        assert rows_folder(load_table("crowding/table-1")) == Path("reproduced")


def test_the_folder_is_found_from_the_sources():
    if checkout() is None:
        pytest.skip("manyhands is installed here")
    assert (checkout() / "docs" / "results" / "rows" / "README.md").is_file()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no clone")
def test_rows_are_not_ignored_by_git():
    """They were, and every new machine began all tables again."""
    table = replace(small_table(), name="crowding/table-1")
    path = ROOT / "docs" / "results" / "rows" / rows_file(table).name
    assert subprocess.run(["git", "check-ignore", "-q", str(path)], cwd=ROOT).returncode == 1

"""Where figures come from."""

import re
import shutil
import subprocess

import pytest

import manyhands
from manyhands.reproduce.records import commit, machine, versions


def test_versions_and_machine_say_what_matters_and_no_more():
    """No host name, no path."""
    assert versions()["manyhands"] == manyhands.__version__ and versions()["numpy"]
    assert re.fullmatch(r"[0-9]+ cores?, \w+", machine())


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_git(tmp_path):
    """On a branch, packed, detached, in a worktree, and where there is none."""

    def git(*words, cwd=tmp_path / "clone"):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        done = subprocess.run(["git", *who, *words], cwd=cwd, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert commit(tmp_path) is None
    (tmp_path / "clone").mkdir()
    git("init", "-q", "-b", "main")
    assert commit(tmp_path / "clone") is None
    git("commit", "-q", "--allow-empty", "-m", "one")
    first = git("rev-parse", "HEAD")
    assert commit(tmp_path / "clone") == first
    git("pack-refs", "--all")
    assert commit(tmp_path / "clone") == first
    git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    git("commit", "-q", "--allow-empty", "-m", "two", cwd=tmp_path / "tree")
    assert commit(tmp_path / "tree") == git("rev-parse", "other") != first
    git("checkout", "-q", "--detach", first, cwd=tmp_path / "tree")
    assert commit(tmp_path / "tree") == first

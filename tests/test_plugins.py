"""Methods of other packages: found by entry points, used like ours, left out with a sentence where they cannot be."""

import os
import subprocess
import sys

import pytest

METHOD = '''"""A vote in which the first label of an item counts twice."""

import numpy as np

from manyhands.aggregation.base import Aggregator, Inference


class FirstVote(Aggregator):
    """Majority vote with one more vote for the first label of each item.

    Parameters
    ----------
    extra : float, default=1.0
        Votes that are added.
    """

    _constraints = {}

    def __init__(self, extra=1.0):
        self.extra = extra

    def _infer(self, annotations, gold):
        return Inference(self._posterior(annotations, gold))

    def _posterior(self, annotations, gold):
        votes = np.full((annotations.n_items, annotations.n_classes), 1e-3)
        np.add.at(votes, (annotations.item, annotations.label), 1.0)
        first = np.unique(annotations.item, return_index=True)[1]
        votes[annotations.item[first], annotations.label[first]] += self.extra
        return votes / votes.sum(axis=1, keepdims=True)


class NoMethod:
    """Derives from nothing of ours."""
'''
PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "first-vote"
version = "1.0"

[tool.setuptools]
py-modules = ["first_vote"]

[project.entry-points."manyhands.methods"]
"""


@pytest.fixture(scope="module")
def install(tmp_path_factory):
    """A function that installs a plug-in with these entry points, and returns what runs Python with it."""

    def install(**entries):
        source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
        (source / "first_vote.py").write_text(METHOD)
        lines = "\n".join(f'"{name}" = "{place}"' for name, place in entries.items())
        (source / "pyproject.toml").write_text(PROJECT + lines + "\n")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--target", target, source], check=True, capture_output=True)

        def run(*command, cwd=None):
            environment = os.environ | {"PYTHONPATH": str(target)}
            return subprocess.run(
                [sys.executable, *command], env=environment, cwd=cwd, capture_output=True, text=True, timeout=120
            )

        return run

    return install


@pytest.fixture(scope="module")
def with_first_vote(install):
    """Python with the plug-in."""
    return install(**{"first-vote": "first_vote:FirstVote"})


@pytest.mark.slow
def test_it_is_listed_and_used_on_the_command_line(with_first_vote, tmp_path):
    """`methods` shows its summary, `aggregate -m` runs it, and a mistyped name suggests it."""
    (tmp_path / "votes.csv").write_text("item,worker,label\na,x,yes\na,y,no\nb,x,no\nb,y,no\n")
    listed = with_first_vote("-m", "manyhands", "methods")
    assert "first-vote" in listed.stdout and "Majority vote with one more vote" in listed.stdout
    ran = with_first_vote("-m", "manyhands", "aggregate", "votes.csv", "-m", "first-vote", "-o", "out", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out" / "labels.csv").read_text().splitlines()[1].startswith("a,yes")
    wrong = with_first_vote("-m", "manyhands", "aggregate", "votes.csv", "-m", "first-vot", cwd=tmp_path)
    assert wrong.returncode != 0 and "Did you mean 'first-vote'?" in wrong.stderr


def test_it_is_compared_saved_and_loaded(with_first_vote, tmp_path):
    """What our methods can do, it can."""
    code = """
import manyhands as mh
votes = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 1, 0]] * 5)
print("first-vote" in str(mh.compare(["majority-vote", "first-vote"], votes)))
model = mh.registry.create("first-vote", extra=2.0).fit(votes)
model.save("model")
print(mh.load_model("model").extra, mh.registry.name_of(type(model)), "first-vote" in mh.registry.names("aggregator"))
"""
    ran = with_first_vote("-c", code, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("\n")[1] == "2.0 first-vote True"


def test_what_cannot_be_used_is_said_and_left_out(install):
    """A name of ours, a class of another kind and a module that is not there: one sentence each, and the rest works."""
    run = install(
        **{
            "glad": "first_vote:FirstVote",
            "odd": "first_vote:NoMethod",
            "gone": "no_such:X",
            "good": "first_vote:FirstVote",
        }
    )
    code = "from manyhands import registry; print('good' in registry.names(), 'odd' in registry.names('aggregator'))"
    ran = run("-c", code)
    assert ran.stdout.split() == ["True", "False"], ran.stderr
    said = [line for line in ran.stderr.splitlines() if "is left out" in line]
    assert len(said) == 3
    assert any("'glad' of first-vote" in line and "manyhands.aggregation.glad:GLAD" in line for line in said)
    assert any("'odd'" in line and "derives from none" in line for line in said)
    assert any("'gone'" in line and "ModuleNotFoundError" in line for line in said)

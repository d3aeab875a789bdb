"""Measures of the source: length of files and functions, and how much of it is documented."""

import ast
from pathlib import Path

import pytest

import manyhands

SOURCE = Path(manyhands.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
KINDS = (ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.fixture(scope="module")
def trees():
    """Every file of the package, parsed once."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


def n_lines(path):
    """Lines of a file."""
    return path.read_text(encoding="utf-8").count("\n")


def docstring_lines(node):
    """Lines of a docstring; 0 without one."""
    if ast.get_docstring(node) is None:
        return 0
    return node.body[0].end_lineno - node.body[0].lineno + 1


def test_files_are_short():
    """No file has more than 350 lines, and half of them at most 150."""
    lengths = sorted((n_lines(path), path.relative_to(SOURCE).as_posix()) for path in FILES)
    assert not [entry for entry in lengths if entry[0] > 350]
    assert lengths[len(lengths) // 2][0] <= 150


def test_functions_fit_a_screen(trees):
    """19 of 20 functions have at most 30 lines without their docstring."""
    lengths = sorted(
        node.end_lineno - node.lineno + 1 - docstring_lines(node)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, KINDS)
    )
    assert lengths[int(0.95 * len(lengths))] <= 30


def test_the_package_is_documented(trees):
    """Docstrings are at least 30 % of all lines."""
    documented = sum(
        docstring_lines(node)
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, *KINDS))
    )
    assert documented >= 0.3 * sum(map(n_lines, FILES))

"""Pages on the five papers: each function, line and test of a table exists, and figures are those of the results."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "papers").glob("*.md"))
HEADER = ["paper", "formula", "function", "line", "test"]
NUMBERED = {  # what the paper numbers, all of which a table must have in its first column
    "iced": [*(f"Eq. 2.{n}" for n in range(1, 6)), "Definition 2", "Algorithm 1", "Table 1", "Table 3"],
    "self-crowd": [*(f"Eq. {n}" for n in range(1, 7)), "Algorithm 1"],
    "crowding": [*(f"Eq. {n}" for n in range(1, 7)), "Section 3.3.1", "Section 3.3.3"],
    "neucrowd": [*(f"Definition {n}" for n in range(1, 5)), "Step 1", "Step 2", "Step 3"],
    "difficulty-em": ["Eq. 1", "Eq. 2", "Eq. 3 and 4", "Eq. 5 and 6", *(f"Algorithm {n}" for n in (1, 2, 3))],
}

_LINK = re.compile(r"\[`([^`]+)`\]\(([^)\s]+)\)")
_SPAN = re.compile(r"`([^`]+)`")
_CELL = re.compile(r"(?<!\\)\|")
_FIGURE = re.compile(r"(?<![\w.])[-+]?\d+\.\d+(?: ± \d+\.\d+)?(?![\w.])")


class Row(NamedTuple):
    """A row of an equation-to-code table."""

    paper: str
    formula: str
    function: str
    line: str
    test: str


def cells_of(line):
    """The cells of a row of a Markdown table."""
    return [cell.strip() for cell in _CELL.split(line.strip().strip("|"))]


def rows_of(text):
    """The rows of all equation-to-code tables of a page."""
    rows, inside = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
        elif cells_of(line) == HEADER:
            inside = True
        elif inside and not set(line) <= set("|- "):
            cells = cells_of(line)
            assert len(cells) == len(HEADER), f"{len(cells)} cells: {line[:80]}"
            rows.append(Row(*cells))
    return rows


def squeezed(code):
    """Source text without white space, so that a statement is found however it is wrapped, and without a last comma."""
    return re.sub(r"\s", "", code).rstrip(",")


@cache
def sources(path):
    """Source of every function, method, class and constant of a file without white space, by dotted name."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = {}

    def visit(node, prefix):
        for part in ast.iter_child_nodes(node):
            names = []
            if isinstance(part, ast.FunctionDef | ast.ClassDef):
                names = [part.name]
                visit(part, f"{prefix}{part.name}.")
            elif isinstance(part, ast.Assign | ast.AnnAssign):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            found.update(
                {prefix + name: squeezed("\n".join(lines[part.lineno - 1 : part.end_lineno])) for name in names}
            )

    visit(ast.parse("\n".join(lines)), "")
    return found


def faults_of(page, row):
    """What is wrong with a row: a function, a line or a test that is not there."""
    faults, bodies = [], []
    functions, tests = _LINK.findall(row.function), _LINK.findall(row.test)
    if not functions or not tests or not _SPAN.findall(row.line):
        faults.append("a row needs a function, a line and a test")
    for shown, target in functions:
        path = (page.parent / target).resolve()
        file, _, name = shown.partition(":")
        if not path.is_file() or path.name != file:
            faults.append(f"no file {target}")
        elif name not in sources(path):
            faults.append(f"no {name} in {target}")
        else:
            bodies.append(sources(path)[name])
    for line in _SPAN.findall(row.line):
        if not any(squeezed(line) in body for body in bodies):
            faults.append(f"no line {line!r} in {row.function}")
    for name, target in tests:
        path = (page.parent / target).resolve()
        if not path.is_file() or name not in sources(path):
            faults.append(f"no test {name} in {target}")
    return [f"{row.paper}: {fault}" for fault in faults]


def test_five_papers_have_a_page():
    """One page each, and each has what the paper numbers."""
    assert [page.stem for page in PAGES] == sorted(NUMBERED)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_functions_lines_and_tests_exist(page):
    """Every row names a function, a line of it and a test; the numbers of the paper are complete."""
    rows = rows_of(page.read_text(encoding="utf-8"))
    assert len(rows) >= 25
    faults = [fault for row in rows for fault in faults_of(page, row)]
    assert not faults, "\n".join(faults)
    places = "\n".join(row.paper for row in rows)
    missing = [number for number in NUMBERED[page.stem] if number not in places]
    assert not missing, f"{page.name} has no row for {', '.join(missing)}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_are_those_of_the_results(page):
    """Every measured figure stands on the page of results, which is written from stored rows."""
    text = page.read_text(encoding="utf-8")
    results = (ROOT / "docs" / "results" / page.name).read_text(encoding="utf-8")
    claims = text.partition("## Claims, and what was measured")[2].partition("## Run it")[0]
    assert claims
    figures = set(_FIGURE.findall(re.sub(r"arXiv:[\d.]+|Section [\d.]+", "", claims)))
    assert len(figures) >= 8
    unknown = sorted(figure for figure in figures if figure not in results)
    assert not unknown, f"not in docs/results/{page.name}: {', '.join(unknown)}"


def test_faults_are_noticed():
    """A function, a line, a test that do not exist; and a row without any."""
    page = ROOT / "docs" / "papers" / "iced.md"
    function = "[`iced.py:label_certainty`](../../src/manyhands/classifiers/iced.py)"
    test = "[`test_limits`](../../tests/classifiers/test_iced_certainty.py)"
    good = Row("Eq. 2.4", "", function, "`variance[gold >= 0] = 0.0`", test)
    assert faults_of(page, good) == []
    assert faults_of(page, good._replace(function=function.replace("certainty", "surety")))
    assert faults_of(page, good._replace(line="`variance[gold >= 0] = 1.0`"))
    assert faults_of(page, good._replace(test=test.replace("limits", "bounds")))
    assert faults_of(page, good._replace(line="the last one"))

"""The notebooks run from their first cell to their last, and are stored without outputs."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def cells_of(path):
    """The code cells of a notebook."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_there_are_two_without_outputs():
    """What a run leaves is not committed."""
    assert len(NOTEBOOKS) == 2
    for path in NOTEBOOKS:
        assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells_of(path)), path.name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_notebook_runs(path, monkeypatch):
    """Cell after cell, as a program."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(EXAMPLES)
    names: dict = {}
    for number, cell in enumerate(cells_of(path)):
        exec(compile("".join(cell["source"]), f"{path.name}, cell {number}", "exec"), names)


@pytest.mark.documents
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_jupyter(path):
    """With a kernel: every cell ends without an error, and the last ones show something."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(shown) >= 4

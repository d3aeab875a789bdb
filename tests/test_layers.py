"""The house stands: imports go down only, heavy libraries stay where they are used, names are what they seem."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import manyhands
from manyhands import registry

SOURCE = Path(manyhands.__file__).parent

GROUND = {"compiled", "sorting", "annotations", "encoding", "exceptions", "validation"}
GROUND |= {"randomness", "progress", "parameters", "writing"}
FIRST = {"kernels", "em", "priors", "noise", "table_model", "consensus", "dependence", "heldout", "simulate"}
FIRST |= {"scorecards", "difficulty_model", "exchangeable", "triads"}
FIRST |= {"_fused", "certainty", "balance", "synthesis", "neighbours", "tuplets", "metrics", "nn"}
SECOND = {"aggregation", "classifiers", "representation"}
BESIDE = {"testing", "registry", "model_selection"}
THIRD = {"io", "datasets", "planning", "spark", "report", "web", "reproduce", "cli", "__main__"}
FLOOR = dict.fromkeys(GROUND, 0) | dict.fromkeys(FIRST, 1) | dict.fromkeys(SECOND | BESIDE, 2) | dict.fromkeys(THIRD, 3)

# Within a floor: who may import whom. Everything else on the same floor may not, unless it is the same part.
SIDEWAYS = {
    0: {(a, b) for a in GROUND for b in GROUND},
    1: {(a, b) for a in FIRST for b in FIRST if "simulate" not in (b,) and "nn" not in (b,)},
    2: {
        ("classifiers", "aggregation"),
        ("classifiers", "registry"),
        ("representation", "aggregation"),
        ("representation", "classifiers"),
        ("representation", "registry"),
    }
    | {(a, b) for a in BESIDE for b in SECOND | BESIDE},
    3: {("cli", other) for other in THIRD}
    | {("web", "report"), ("web", "io"), ("report", "planning"), ("reproduce", "datasets"), ("datasets", "io")}
    | {("__main__", "cli")},
}

HEAVY = {  # library -> parts of the package that may import it
    "torch": {"nn", "classifiers", "representation", "randomness"},
    "safetensors": {"nn", "classifiers", "representation"},
    "sklearn": {
        "classifiers",
        "representation",
        "model_selection",
        "datasets",
        "reproduce",
        "testing",
        "neighbours",
        "simulate",
        "parameters",
    },
    "polars": {"io", "spark", "cli"},
    "pandas": {"io", "spark"},
    "orjson": {"io"},
    "fastexcel": {"io"},
    "defusedxml": {"io"},
    "pyarrow": {"io", "spark"},
    "pyspark": {"spark"},
    "matplotlib": {"report", "reproduce"},
    "starlette": {"web"},
    "uvicorn": {"web"},
    "typer": {"cli"},
    "rich": {"cli"},
}

FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path):
    """The part of the house a file belongs to: its module at the top, or the package below the top."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports_of(path):
    """Every imported module of a file as a dotted name, with whether it is imported when the file is."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        id(n) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef) for n in ast.walk(f)
    }
    typing_only = {id(n) for b in ast.walk(tree) if _is_type_checking(b) for n in ast.walk(b)}
    for node in ast.walk(tree):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            names = [f"{node.module}.{a.name}" for a in node.names]
        for name in names:
            yield name, id(node) not in inside and id(node) not in typing_only


def _is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def is_allowed(importer, imported):
    """Down is allowed, sideways where the table says so, up never."""
    if importer == imported:
        return True
    if FLOOR[importer] == FLOOR[imported]:
        return (importer, imported) in SIDEWAYS[FLOOR[importer]]
    return FLOOR[importer] > FLOOR[imported]


def test_every_part_has_a_floor():
    """Whoever adds a module or package says on which floor it stands."""
    parts = {part_of(path) for path in FILES} - {"__init__"}
    assert parts <= set(FLOOR), f"on no floor: {sorted(parts - set(FLOOR))}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_down(path):
    """No file imports from a floor above its own, not even inside a function."""
    if part_of(path) == "__init__":
        return  # the front door shows everything, lazily
    for name, _ in imports_of(path):
        top, _, rest = name.partition(".")
        if top == "manyhands":
            imported = rest.partition(".")[0]
            if imported in ("__version__", "Annotations", "registry", "exceptions"):
                imported = {"Annotations": "annotations", "__version__": "exceptions"}.get(imported, imported)
            assert imported in FLOOR, f"{path.name} imports {name}, which stands on no floor"
            assert is_allowed(part_of(path), imported), f"{path.relative_to(SOURCE)} may not import {name}"


@pytest.mark.parametrize("part", sorted(SECOND))
def test_methods_do_not_import_each_other(part):
    """What two methods share moves down a floor, or into the base of the family."""
    shared = {"base", "bench", "votes", "network", "noise_layer", "regression", "saving", "self_training"}
    shared |= {
        "linear_head",
        "neucrowd_epochs",
        "trust",
        "iced_rounds",
        "adversaries",
        "generated_labels",
        "heard",
        "fillers",
        "wrapping",
    }
    shared |= {"__init__", "compiled_on_disk", "estimators_on_disk", "parts_on_disk"}
    for path in sorted((SOURCE / part).glob("*.py")):
        for name, _ in imports_of(path):
            pieces = name.split(".")
            if pieces[:2] == ["manyhands", part]:
                assert pieces[2] in shared, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_libraries_stay_where_they_are_used(path):
    """torch, scikit-learn, data frames and the like appear only in the parts that are theirs."""
    for name, _ in imports_of(path):
        library = name.partition(".")[0]
        assert part_of(path) in HEAVY.get(library, {part_of(path)}), f"{path.name} imports {library}"


@pytest.mark.parametrize("path", [p for p in FILES if FLOOR.get(part_of(p), 9) <= 2], ids=lambda p: p.stem)
def test_nothing_heavy_loads_with_the_lower_floors(path):
    """On the lower floors, scikit-learn and scipy.sparse are imported inside functions only."""
    for name, at_import in imports_of(path):
        late = name.startswith(("sklearn", "scipy.sparse", "scipy.optimize", "scipy.stats"))
        if part_of(path) not in ("classifiers", "representation"):
            assert not (late and at_import), f"{path.name} loads {name} when it is imported"


def test_import_is_light():
    """`import manyhands` loads neither scikit-learn, scipy, polars, torch, typer nor pandas."""
    program = "import sys, manyhands; print(*sorted(sys.modules))"
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "manyhands" in loaded
    assert not loaded & {"sklearn", "scipy", "polars", "torch", "typer", "pandas", "rich", "matplotlib"}


def test_voting_needs_no_scientific_library():
    """A majority vote and a Dawid-Skene fit with the compiled pass load neither scipy.sparse nor scikit-learn."""
    program = (
        "import sys, manyhands as mh; from manyhands import kernels;"
        "a = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1]]); mh.MajorityVote().fit(a); mh.DawidSkene().fit(a);"
        "print(kernels._fused is not None, 'scipy.sparse' in sys.modules, 'sklearn' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() in (["True", "False", "False"], ["False", "True", "False"])


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_only_the_command_line_prints(path):
    """`print` belongs to the command line."""
    calls = [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Call)]
    printing = [n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"]
    assert not printing or part_of(path) == "cli", f"{path.name} prints in lines {printing}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_every_file_says_what_it_is(path):
    """Every file opens with a sentence."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, f"{path.name} has no docstring"


def test_registered_classes_are_public():
    """Every registered class is also a public name of the package."""
    for name in registry.names():
        found = registry.get(name)
        assert found.__name__ in manyhands.__all__
        assert getattr(manyhands, found.__name__) is found


def test_public_names_exist_and_are_all_that_is_seen():
    """`__all__` has no repeats, every name in it loads, and it is what `dir` shows."""
    assert len(manyhands.__all__) == len(set(manyhands.__all__))
    assert all(getattr(manyhands, name) is not None for name in manyhands.__all__)
    assert sorted(manyhands.__all__) == dir(manyhands)


def test_type_checkers_see_the_lazy_names():
    """Every lazy name is also imported under TYPE_CHECKING, from the same module."""
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if _is_type_checking(node))
    seen = {a.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert seen == manyhands._LAZY


def test_unknown_names_are_attribute_errors():
    """A name that does not exist gives the error that `hasattr` expects."""
    assert not hasattr(manyhands, "NoSuchThing")

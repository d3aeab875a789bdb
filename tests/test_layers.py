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

GROUND = {"compiled", "elementary", "sorting", "annotations", "encoding", "exceptions", "validation"}
GROUND |= {"randomness", "progress", "parameters", "writing"}
FIRST = {
    "kernels",
    "plain_pass",
    "em",
    "priors",
    "noise",
    "table_model",
    "consensus",
    "dependence",
    "heldout",
    "simulate",
}
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


def shown(path):
    """A file as messages name it."""
    return path.relative_to(SOURCE).as_posix()


def imports_of(path, node, at_import=True):
    """Every imported module below a node as (file, dotted name, whether it is imported when the file is)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((path, alias.name, at_import) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{shown(path)} imports relatively"
            yield from ((path, f"{child.module}.{alias.name}", at_import) for alias in child.names)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _is_type_checking(child)
            yield from imports_of(path, child, at_import and not later)


def _is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@pytest.fixture(scope="module")
def trees():
    """Every file of the package, parsed once for all rules."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


@pytest.fixture(scope="module")
def imports(trees):
    """Every import of the package: file, dotted name, and whether it is imported when the file is."""
    return [found for path, tree in trees.items() for found in imports_of(path, tree)]


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


def imported_part(name):
    """The part of the package that a dotted name belongs to, None for other packages."""
    top, _, rest = name.partition(".")
    found = {"Annotations": "annotations", "__version__": "exceptions"}
    imported = rest.partition(".")[0]
    return found.get(imported, imported) if top == "manyhands" else None


def test_imports_go_down(imports):
    """No file imports from a floor above its own, not even inside a function."""
    wrong = []
    for path, name, _ in imports:
        imported = imported_part(name)
        if imported is None or part_of(path) == "__init__":  # the front door shows everything, lazily
            continue
        if imported not in FLOOR or not is_allowed(part_of(path), imported):
            wrong.append(f"{shown(path)} imports {name}")
    assert not wrong


def test_methods_do_not_import_each_other(imports):
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
    wrong = []
    for path, name, _ in imports:
        pieces = name.split(".")
        if path.parent.name in SECOND and pieces[:2] == ["manyhands", path.parent.name] and pieces[2] not in shared:
            wrong.append(f"{shown(path)} imports {name}")
    assert not wrong


def test_heavy_libraries_stay_where_they_are_used(imports):
    """torch, scikit-learn, data frames and the like appear only in the parts that are theirs."""
    found = [(path, name, name.partition(".")[0]) for path, name, _ in imports]
    assert {library for _, _, library in found} & set(HEAVY), "no file imports any of them: nothing was tested"
    wrong = [
        f"{shown(path)} imports {name}"
        for path, name, library in found
        if library in HEAVY and part_of(path) not in HEAVY[library]
    ]
    assert not wrong


def test_nothing_heavy_loads_with_the_lower_floors(imports):
    """On the lower floors, scikit-learn and scipy.sparse are imported inside functions only."""
    heavy = ("sklearn", "scipy.sparse", "scipy.optimize", "scipy.stats")
    excepted = ("classifiers", "representation")
    wrong = [
        f"{shown(path)} loads {name} when it is imported"
        for path, name, at_import in imports
        if at_import and name.startswith(heavy) and FLOOR.get(part_of(path), 9) <= 2 and part_of(path) not in excepted
    ]
    assert not wrong


def test_every_file_was_looked_at(imports):
    """The rules above are about all files, and about the imports inside functions too."""
    assert len(FILES) > 200 and len(imports) > 1000
    assert {at_import for _, _, at_import in imports} == {True, False}


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


def test_only_the_command_line_prints(trees):
    """`print` belongs to the command line."""
    wrong = [
        f"{shown(path)}:{node.lineno} prints"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        if part_of(path) != "cli"
    ]
    assert not wrong


def test_every_file_says_what_it_is(trees):
    """Every file opens with a sentence."""
    wrong = [shown(path) for path, tree in trees.items() if not ast.get_docstring(tree)]
    assert not wrong


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

"""The layers: imports go down only, heavy libraries stay where they are used, names are what they seem."""

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import manyhands
from manyhands import registry
from manyhands.validation import NameOr, NoneOr

pytestmark = pytest.mark.fast

SOURCE = Path(manyhands.__file__).parent

# From the lowest layer to the highest; a part imports parts of lower layers, and those before it in its own.
LAYERS = [
    ("exceptions", "_core"),
    ("frames", "validation", "annotations", "estimator"),
    ("classes", "features"),
    ("linear", "nn", "em", "heldout"),  # numerics without estimators
    ("simulate", "metrics", "scorecards"),
    ("registry", "persistence_sklearn", "persistence"),
    ("aggregation",),
    ("sharded", "spark"),  # labels in shards: in memory, on disk, on a cluster
    ("classifiers", "representation"),
    ("comparison", "trust", "testing"),
    ("io", "datasets"),
    ("report", "plots"),
    ("jobs", "reproduce"),
    ("cli", "__main__"),
]
RANK = {part: (rank, place) for rank, layer in enumerate(LAYERS) for place, part in enumerate(layer)}

HEAVY = {  # library -> parts of the package that may import it
    "torch": {"nn", "classifiers", "representation", "_core", "persistence"},
    "safetensors": {"nn", "persistence"},
    "sklearn": {
        "classifiers",
        "representation",
        "comparison",
        "datasets",
        "reproduce",
        "testing",
        "_core",
        "simulate",
        "estimator",
        "metrics",
        "persistence",
        "persistence_sklearn",
    },
    "polars": {"io", "jobs", "cli", "frames", "report"},
    "pandas": {"io", "spark", "frames"},
    "orjson": {"io"},
    "fastexcel": {"io"},
    "defusedxml": {"io"},
    "pyarrow": {"io", "spark", "frames"},
    "pyspark": {"spark"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "typer": {"cli"},
    "rich": {"cli", "_core"},
}

FILES = sorted(SOURCE.rglob("*.py"))


def part_of(path):
    """The part of the package that a file belongs to: its module at the top, or the package below the top."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def shown(path):
    """A file as messages name it."""
    return path.relative_to(SOURCE).as_posix()


def imports_of(path, node, at_import=True, types=True):
    """Every imported module below a node as (file, dotted name, whether it is imported when the file is).

    Without `types`, imports for type checkers alone are left out.
    """
    for child in ast.iter_child_nodes(node):
        if not types and _is_type_checking(child):
            continue
        if isinstance(child, ast.Import):
            yield from ((path, alias.name, at_import) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{shown(path)} imports relatively"
            yield from ((path, f"{child.module}.{alias.name}", at_import) for alias in child.names)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) or _is_type_checking(child)
            yield from imports_of(path, child, at_import and not later, types)


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
    """A part imports itself, parts of lower layers, and those before it in its own."""
    return importer == imported or RANK[importer] > RANK[imported]


def test_every_part_has_a_layer():
    """Whoever adds a module or package states its layer."""
    parts = {part_of(path) for path in FILES} - {"__init__"}
    assert parts == set(RANK), f"in no layer: {sorted(parts - set(RANK))}; not there: {sorted(set(RANK) - parts)}"


def imported_part(name):
    """The part of the package that a dotted name belongs to, None for other packages."""
    top, _, rest = name.partition(".")
    found = {"Annotations": "annotations", "__version__": "exceptions"}
    imported = rest.partition(".")[0]
    return found.get(imported, imported) if top == "manyhands" else None


def test_imports_go_down(imports):
    """No file imports from a layer above its own, not even inside a function."""
    wrong = []
    for path, name, _ in imports:
        imported = imported_part(name)
        if imported is None or part_of(path) == "__init__":  # the public names, which load on first use
            continue
        if imported not in RANK or not is_allowed(part_of(path), imported):
            wrong.append(f"{shown(path)} imports {name}")
    assert not wrong


def test_what_is_reached_by_name_is_stated(trees):
    """What names modules above itself as text.

    The registry; names that are loaded on first use (`_core.exports`); frames (one function of `io`); what a notebook
    shows of a model (`estimator`); groups of options in saved models (`persistence`).
    """
    reached = set()
    for path, tree in trees.items():
        names = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        modules = [name for name in names if name.startswith("manyhands.") and name.replace(".", "").isidentifier()]
        parts = {imported_part(name) for name in modules} & set(RANK)
        reached |= {(part_of(path), part) for part in parts if part_of(path) in RANK}
    above = {pair for pair in reached if RANK[pair[1]] > RANK[pair[0]] and pair[0] != "registry"}
    groups = {("persistence", "classifiers"), ("persistence", "representation")}
    assert above == {("_core", "registry"), ("estimator", "report"), ("frames", "io")} | groups


def module_of(path):
    """The dotted name of a file below the package."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def test_no_module_imports_itself_through_others(trees):
    """There is no cycle of imports, those inside functions included."""
    modules = {module_of(path) for path in FILES}
    imported = {module: set() for module in modules}
    for path, tree in trees.items():
        for _, name, _ in imports_of(path, tree, types=False):
            below = name.removeprefix("manyhands.")
            found = below if below in modules else below.rpartition(".")[0]
            if name.startswith("manyhands.") and found in modules - {module_of(path), "__init__"}:
                imported[module_of(path)].add(found)
    while leaves := {module for module, used in imported.items() if not used & imported.keys()}:
        imported = {module: used for module, used in imported.items() if module not in leaves}
    assert not imported, f"these import each other in a circle: {sorted(imported)}"


# Modules of a family that are no method of their own: what methods share.
SHARED = {
    "aggregation": {"base", "tempering", "voting"},
    "classifiers": {"base", "network", "noise_layer"},
    "representation": {"base"},
}
METHOD_OF = {  # a module that belongs to one method -> its main module
    "crowding_game": "crowding",
    "difficulty_network": "difficulty_em",
    "neucrowd_training": "neucrowd",
}
USES = {  # method -> the method whose functions it calls, where they belong to that method's paper
    "crowding": "self_crowd",  # pseudo-annotations of all pairs, and the comparison of rounds by held-out labels
    "imputation": "crowding",  # the baselines of CrowdInG's paper: its generator and discriminator
    "difficulty_em": "raykar",  # its paper extends Raykar's EM: the regression and the starts
}


def test_methods_do_not_import_each_other(imports):
    """A method imports the shared modules of its family, its own modules, and the method in `USES`; no other method."""
    wrong = []
    for path, name, _ in imports:
        pieces, own = name.split("."), path.relative_to(SOURCE).parts
        family = own[0]
        if path.name == "__init__.py" or family not in SHARED or pieces[:2] != ["manyhands", family] or len(pieces) < 3:
            continue
        importer, imported = (METHOD_OF.get(part, part) for part in (own[1].removesuffix(".py"), pieces[2]))
        if imported not in SHARED[family] and imported not in (importer, USES.get(importer)):
            wrong.append(f"{shown(path)} imports {name}")
    assert not wrong


# What is built on other methods, by a name of the registry: module -> the kinds or the names that it fetches.
NOISE_LAYERS = {"crowd-layer", "conal", "spee-lfc", "trace-reg"}
BUILT_ON = {
    "classifiers.self_crowd": NOISE_LAYERS,
    "classifiers.crowding": NOISE_LAYERS | {"max-mig", "aggnet"},
    "classifiers.imputation": {"crowd-layer", "crowding"},
    "classifiers.wrappers": set(registry.names("classifier")) - {"prior-adjusted", "neucrowd", "neucrowd-plus"},
}


def names_in(constraint):
    """The names that a constraint allows, of the methods in the registry."""
    constraint = constraint.other if isinstance(constraint, NoneOr) else constraint
    return set(constraint.names) & set(registry.names()) if isinstance(constraint, NameOr) else set()


def test_what_is_fetched_through_the_registry_is_stated(trees):
    """A method that is built on another one names it here; every method may use the aggregators."""
    fetched = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args
            if is_call and getattr(node.func.value, "id", "") == "registry" and isinstance(node.args[0], ast.Constant):
                fetched.setdefault(module_of(path), set()).add(node.args[0].value)
    for name in registry.names():
        cls = registry.get(name)
        for constraint in cls._constraints.values():
            fetched.setdefault(cls.__module__.removeprefix("manyhands."), set()).update(names_in(constraint))
    others = set(registry.names("classifier")) | set(registry.names("representation"))
    estimators = ("aggregation.", "classifiers.", "representation.")
    found = {module: names & others for module, names in fetched.items() if module.startswith(estimators)}
    assert {module: names for module, names in found.items() if names} == BUILT_ON


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


def test_nothing_heavy_loads_with_the_lower_layers(imports):
    """In the lower layers, scikit-learn and scipy.sparse are imported inside functions only."""
    heavy = ("sklearn", "scipy.sparse", "scipy.optimize", "scipy.stats")
    excepted = ("classifiers", "representation")
    wrong = [
        f"{shown(path)} loads {name} when it is imported"
        for path, name, at_import in imports
        if at_import
        and name.startswith(heavy)
        and RANK.get(part_of(path), (99, 0)) < RANK["io"]
        and part_of(path) not in excepted
    ]
    assert not wrong


def test_every_file_was_looked_at(imports):
    """The rules above are about all files, and about the imports inside functions too."""
    assert len(FILES) > 150 and len(imports) > 1000
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
        "import sys, manyhands as mh; from manyhands.em import kernels;"
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


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*(?![\w:-])")  # not a variable of a style sheet
OWN_COMMAND_LINE = {"spark/job.py", "reproduce/workflow.py"}  # the latter composes the command that made a figure


def test_only_the_command_line_names_options(trees):
    """Sentences of the library name parameters; an option stands there in a whole command alone, to be copied."""
    wrong = [
        f"{shown(path)}:{node.lineno}: {text}"
        for path, tree in trees.items()
        if part_of(path) != "cli" and shown(path) not in OWN_COMMAND_LINE
        for node, text in _texts(tree)
        if _OPTION.search(text) and not re.search(r"manyhands [a-z]|pip install", text)
    ]
    assert not wrong


def _texts(tree):
    """Every string of a file that is not a docstring, parts of an f-string together."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    inside = {id(node.body[0].value) for node in nodes if ast.get_docstring(node, clean=False) is not None}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield node, "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node, node.value


def test_every_file_says_what_it_is(trees):
    """Every file opens with a sentence."""
    wrong = [shown(path) for path, tree in trees.items() if not ast.get_docstring(tree)]
    assert not wrong


def test_registered_classes_are_public():
    """Every registered class is a public name of its package, and every aggregator one of the root too."""
    for name in registry.names():
        cls = registry.get(name)
        package = import_module(".".join(cls.__module__.split(".")[:2]))
        assert cls.__name__ in package.__all__ and getattr(package, cls.__name__) is cls
        assert cls.__name__ in manyhands.__all__ or name not in registry.names("aggregator")


LAZY = ("", ".aggregation", ".classifiers", ".representation")  # packages whose names are loaded on first use


@pytest.mark.parametrize("package", LAZY)
def test_public_names_exist_and_are_all_that_is_seen(package):
    """`__all__` has no repeats, every name in it loads, and it is what `dir` shows."""
    module = import_module(f"manyhands{package}")
    assert len(module.__all__) == len(set(module.__all__))
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert sorted(module.__all__) == dir(module)


@pytest.mark.parametrize("package", LAZY)
def test_type_checkers_see_the_lazy_names(package):
    """Every lazy name is also imported under TYPE_CHECKING, from the same module."""
    module = import_module(f"manyhands{package}")
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if _is_type_checking(node))
    seen = {a.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert seen == module._HOMES


def test_unknown_names_are_attribute_errors():
    """A name that does not exist gives the error that `hasattr` expects."""
    assert not hasattr(manyhands, "NoSuchThing")
    with pytest.raises(AttributeError, match=r"has no attribute 'DawidSken'\. Did you mean 'DawidSkene'\?"):
        _ = manyhands.DawidSken


def test_nn_is_torch_only(trees):
    """Every module of `nn` imports torch; what needs none stands elsewhere."""
    inside = {path for path in FILES if part_of(path) == "nn" and path.name != "__init__.py"}
    wrong = [shown(p) for p in inside if not any(n.startswith("torch") for _, n, _ in imports_of(p, trees[p]))]
    assert not wrong

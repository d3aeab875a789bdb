"""The layers: imports go down only, heavy libraries stay where they are used, names are what they seem."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import manyhands
from manyhands import registry
from manyhands.validation import NameOr, NoneOr

SOURCE = Path(manyhands.__file__).parent

# From the lowest part to the highest; a part imports only parts before it, and parts of its own line.
LAYERS = [
    ("exceptions",),
    ("data_frames", "notebook_display", "spelling"),
    ("compiled", "validation", "writing", "progress", "immutable"),
    ("item_order", "progress_display", "html_tables"),
    ("elementary", "encoding", "sorting", "options", "randomness", "stream_selection"),
    ("grouping", "label_matrix", "repeated_pairs", "model_html", "id_matching"),
    ("label_weights", "label_probabilities"),
    ("repeated_weights",),
    ("crowd_triples",),
    ("crowd_building",),
    ("annotations", "estimator", "features", "feature_names"),
    ("label_splits", "row_order", "result_rows", "class_order"),
    ("row_matching",),
    ("em", "noise", "heldout"),  # numerics without estimators; their modules have no cycle
    ("class_balance", "neighbours", "linear", "nn"),
    ("metrics", "scorecards", "simulate"),
    ("registry",),
    ("persistence",),
    ("aggregation",),
    ("sharded",),  # labels in shards: in memory, on disk, on a cluster
    ("spark",),
    ("classifiers",),
    ("representation",),
    ("model_selection",),
    ("trust",),
    ("testing",),
    ("io",),
    ("datasets",),
    ("report",),
    ("panel_figures",),
    ("plots",),
    ("workflows",),
    ("reproduce",),
    ("cli",),
    ("__main__",),
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
# Parts of one line that may import each other; all others of a line may not.
TOGETHER = {"em", "noise", "heldout"}

HEAVY = {  # library -> parts of the package that may import it
    "torch": {"nn", "classifiers", "representation", "randomness", "persistence"},
    "safetensors": {"nn", "persistence"},
    "sklearn": {
        "classifiers",
        "representation",
        "model_selection",
        "datasets",
        "reproduce",
        "testing",
        "neighbours",
        "simulate",
        "estimator",
        "persistence",
    },
    "polars": {"io", "workflows", "cli"},
    "pandas": {"io", "spark"},
    "orjson": {"io"},
    "fastexcel": {"io"},
    "defusedxml": {"io"},
    "pyarrow": {"io", "spark"},
    "pyspark": {"spark"},
    "matplotlib": {"reproduce", "panel_figures"},
    "jinja2": {"report", "reproduce"},
    "typer": {"cli"},
    "rich": {"cli", "progress_display"},
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
    """A part imports itself, parts of lower layers, and those that it forms a layer together with."""
    if importer == imported or {importer, imported} <= TOGETHER:
        return True
    return RANK[importer] > RANK[imported]


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

    The registry, options (groups of them), data_frames (two functions of `io`), notebook_display (three of `report`).
    """
    reached = set()
    for path, tree in trees.items():
        names = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        modules = [name for name in names if name.startswith("manyhands.") and name.replace(".", "").isidentifier()]
        parts = {imported_part(name) for name in modules} & set(RANK)
        reached |= {(part_of(path), part) for part in parts if part_of(path) in RANK}
    above = {pair for pair in reached if RANK[pair[1]] > RANK[pair[0]] and pair[0] not in ("registry", "options")}
    assert above == {("data_frames", "io"), ("notebook_display", "report")}


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
    "aggregation": {
        "base", "crowd_power", "em_fit", "limitations", "overruling", "safeguards", "tempering", "vote_shares",
    },
    "classifiers": {
        "active_workers", "base", "epoch_updates", "fitting", "nested_methods", "network", "network_options",
        "noise_layer", "regression", "self_training", "training_context", "training_data",
    },
    "representation": {"base", "label_confidence", "training_set"},
}  # fmt: skip


# Files that belong to one method of `aggregation`, which has no packages.
METHOD_OF = {"glad_steps": "glad", "pooled_fit": "pooled_dawid_skene", "vote_departure": "pooled_dawid_skene"}
METHOD_OF |= {"pooled_results": "pooled_dawid_skene", "ordinal_fit": "ordinal_dawid_skene"}


def test_methods_do_not_import_each_other(imports):
    """A method imports the shared modules of its family and those of its own package, no other method."""
    wrong = []
    for path, name, _ in imports:
        pieces, own = name.split("."), path.relative_to(SOURCE).parts
        family = own[0]
        if family not in SHARED or pieces[:2] != ["manyhands", family] or len(pieces) < 3:
            continue
        importer, imported = (METHOD_OF.get(part, part) for part in (own[1].removesuffix(".py"), pieces[2]))
        if imported not in SHARED[family] and imported != importer:
            wrong.append(f"{shown(path)} imports {name}")
    assert not wrong


# What is built on other methods, by a name of the registry: module -> the kinds or the names that it fetches.
NOISE_LAYERS = {"crowd-layer", "conal", "spee-lfc", "trace-reg"}
BUILT_ON = {
    "classifiers.self_crowd.self_crowd": NOISE_LAYERS,
    "classifiers.crowding.crowding": NOISE_LAYERS | {"max-mig", "aggnet"},
    "classifiers.deep_ensemble": NOISE_LAYERS
    | {"aggnet", "doctor-net", "doctor-net-biwdn", "doctor-net-iwdn", "max-mig", "mbem", "spee-lfc-d", "two-stage"},
    "classifiers.imputation.imputed_crowd_layer": {"crowd-layer", "crowding"},
    "classifiers.prior_adjusted": set(registry.names("classifier")) - {"prior-adjusted", "neucrowd", "neucrowd-plus"},
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
        and RANK.get(part_of(path), 99) < RANK["io"]
        and part_of(path) not in excepted
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
    with pytest.raises(AttributeError, match=r"has no attribute 'DawidSken'\. Did you mean 'DawidSkene'\?"):
        _ = manyhands.DawidSken


def test_nn_is_torch_only(trees):
    """Every module of `nn` imports torch; what needs none stands elsewhere."""
    inside = {path for path in FILES if part_of(path) == "nn" and path.name != "__init__.py"}
    wrong = [shown(p) for p in inside if not any(n.startswith("torch") for _, n, _ in imports_of(p, trees[p]))]
    assert not wrong


# Why two modules may share a name: a noise model and its aggregator, the base of a family, a method and its package.
SAME_NAME = {"base", "options", "one_coin", "difficulty"}
SAME_NAME |= {"features", "truth", "comparison"}  # a package of readers, and what is read
SAME_NAME |= {"train", "leaderboard", "report"}  # a command, and what it calls
SAME_NAME |= {"plots"}  # the pictures of the report as functions, and those of papers' tables


SAME_NAME |= {"__main__"}  # two programs: manyhands and manyhands-spark
SAME_NAME |= {"labels"}  # in shards, and in the exports of a platform


def test_modules_have_names_of_their_own():
    """No two modules of the package share a name without a reason that is listed here."""
    names = [path.stem for path in FILES if path.stem != "__init__"]
    shared = {name for name in names if names.count(name) > 1}
    assert shared <= SAME_NAME, f"several modules are called {sorted(shared - SAME_NAME)}"

"""The documents are correct: links and module paths exist, and the code in the documents runs."""

import re
import subprocess
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from typer.main import get_command

import manyhands
from manyhands.cli.app import app
from manyhands.spark.job import parser as spark_parser
from manyhands.testing.crowds import feature_crowd

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "manyhands"
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
DOCUMENTS += sorted((ROOT / "docs").rglob("*.md"))
# Old names are in these two on purpose; a test of its own looks at the new ones of migration.md.
OF_OLD_NAMES = {ROOT / "docs" / "migration.md", ROOT / "docs" / "history.md"}
GUIDES = [ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - OF_OLD_NAMES)]
GUIDES += [path for folder in ("guides", "papers") for path in sorted((ROOT / "docs" / folder).glob("*.md"))]
OF_OTHERS = {"--max-restarts", "--nproc-per-node"}  # options of other programs that documents name: torchrun
OF_OTHERS |= {"--archives", "--conf", "--deploy-mode", "--master", "--name"}  # spark-submit
OF_OTHERS |= {"--torch-backend"}  # uv
OF_OTHERS |= {"--cluster", "--cluster-id", "--properties", "--region", "--steps"}  # aws and gcloud

_CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MODULE = re.compile(r"(?:(?<=[\s`(])\.)?\b[a-z_]+(?:/[a-z_0-9]+)*\.py\b")
_DOTTED = re.compile(r"(?:import|from) manyhands\.([a-z_]+(?:\.[a-z_]+)*)")
_NAME = re.compile(r"`(?:mh|manyhands)\.([A-Za-z_][\w.]*\w)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links_of(text):
    """The relative links of a document, outside of code."""
    for target in _LINK.findall(_CODE.sub("", text)):
        if not re.match(r"[a-z]+:|#", target):
            yield target.partition("#")[0]


def exists(name):
    """Whether a dotted name below the package is an attribute or a module."""
    found, path = manyhands, "manyhands"
    for part in name.split("."):
        path = f"{path}.{part}"
        try:
            found = getattr(found, part) if hasattr(found, part) else import_module(path)
        except ImportError:
            return False
    return True


def python_of(text):
    """The Python blocks of a document, in order."""
    return [code for language, code in _CODE.findall(text) if language == "python"]


def test_links_and_code_are_found():
    """The two readers above see what they should."""
    text = "[a](docs/a.md#top) [b](https://b.org) [c](#c)\n```python\nx = 1\n```\n```\n[d](d.md)\n```\n"
    assert list(links_of(text)) == ["docs/a.md"]
    assert python_of(text) == ["x = 1\n"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    """Every relative link is a file of this repository."""
    broken = [link for link in links_of(document.read_text(encoding="utf-8")) if not (document.parent / link).exists()]
    assert not broken, f"{document.name} links to what is not there: {', '.join(broken)}"


HANDBOOKS = [*GUIDES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "results").rglob("*.md"))]
OF_READERS = {"src/manyhands/aggregation/agreement_vote.py", "tests/aggregation/test_agreement_vote.py"}  # the example
OF_READERS |= {"src/manyhands/io/formats/votebox.py"}  # the example of a format
OF_READERS |= {"opt/spark_job.py"}  # where an image has it


MODULE_FILES = [path.as_posix() for folder in (SOURCE, ROOT / "examples") for path in folder.rglob("*.py")]


def module_paths(text):
    """The paths of Python files that a document names, and the dotted names of modules of the package."""
    dotted = {name.replace(".", "/") for name in _DOTTED.findall(text)}
    return set(_MODULE.findall(text)) | {f"src/manyhands/{path}.py" for path in dotted}


def is_there(path):
    """Whether a path is below the package or the repository; a package is as good as its `__init__`."""
    places = (SOURCE / path, ROOT / path, ROOT / f".{path}")
    return any(place.is_file() or place.with_suffix("").is_dir() for place in places)


@pytest.mark.parametrize("document", HANDBOOKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_that_documents_name_exist(document):
    """A path such as `em/driver.py` is below the package or the repository; so is `manyhands.em.driver`."""
    missing = {path for path in module_paths(document.read_text(encoding="utf-8")) if not is_there(path)}
    missing -= OF_READERS | {path.rpartition("/")[2] for path in MODULE_FILES}  # a name without its folder is enough
    assert not missing, f"{document.name} names modules that do not exist: {', '.join(sorted(missing))}"


def test_new_places_in_the_table_of_moved_modules_exist():
    """The last column of each row names a file; the others name what is gone."""
    text = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    places = re.findall(r"^\|.*\| `([\w/]+\.py)` \|$", text, re.MULTILINE)
    assert len(places) > 80 and [place for place in places if not is_there(place)] == []


def test_modules_that_do_not_exist_are_noticed():
    """The test above can fail, and it sees the page that names most modules."""
    assert len(module_paths((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))) > 20
    assert module_paths("`em/drivers.py` and `import manyhands.em.drivers`") >= {"em/drivers.py"}
    assert is_there("em/driver.py") and is_there("tests/mutants.py") and not is_there("em/drivers.py")


@pytest.mark.parametrize("document", GUIDES, ids=lambda path: path.name)
def test_public_names_in_documents_exist(document):
    """Every `mh.name` and `manyhands.name` in backticks can be imported."""
    missing = [name for name in _NAME.findall(document.read_text(encoding="utf-8")) if not exists(name)]
    assert not missing, f"{document.name} names what does not exist: {', '.join(missing)}"


def test_names_that_do_not_exist_are_noticed():
    """The test above can fail."""
    assert exists("io.read_export") and exists("em.kernels") and not exists("io.read_everything")


def spark_options():
    """The help of `manyhands-spark aggregate`."""
    with pytest.raises(SystemExit), redirect_stdout(StringIO()) as printed:
        spark_parser().parse_args(["aggregate", "--help"])
    return printed.getvalue()


OPTIONS_IN = [
    "command-line.md",
    "formats.md",
    "get-started.md",
    "learning.md",
    "reproduce.md",
    "scale.md",
    "which-method.md",
]
OPTIONS_IN += [f"guides/{path.name}" for path in sorted((ROOT / "docs" / "guides").glob("*.md"))]


@pytest.mark.parametrize("name", OPTIONS_IN)
def test_options_in_documents_exist(name):
    """Every `--option` of a document is an option of some command."""
    command = get_command(app)
    known = (
        {"--help"}
        | OF_OTHERS
        | set(_OPTION.findall(spark_options()))
        | {
            option
            for part in [command, *command.commands.values()]
            for p in part.params
            for option in (*p.opts, *p.secondary_opts)
        }
    )
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    missing = sorted(set(_OPTION.findall(text)) - known)
    assert not missing, f"docs/{name} names options that no command has: {', '.join(missing)}"


def test_the_code_for_people_from_crowd_kit_runs():
    """What crowd-kit calls a frame is read as it is."""
    pandas = pytest.importorskip("pandas")
    votes = {"task": [1, 1, 1, 2, 2, 2], "worker": list("abcabc"), "label": list("xxxyyy")}
    names = {"frame": pandas.DataFrame(votes)}
    for code in python_of((ROOT / "docs" / "from-crowd-kit.md").read_text(encoding="utf-8")):
        exec(compile(code, "from-crowd-kit.md", "exec"), names)
    assert names["model"].labels_.tolist() == ["x", "y"]


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_the_code_on_notebooks_runs(tmp_path, monkeypatch):
    """Frames in and out, a comparison, a saved model, and a search that is scored by truth."""
    pandas = pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    rows = zip("111222333", "abcabcabc", ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat", "dog"])
    Path("ratings.csv").write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    names: dict = {}
    for code in python_of((ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")):
        exec(compile(code, "notebooks.md", "exec"), names)
    assert names["again"].labels_.tolist() == names["model"].labels_.tolist() == ["cat", "dog", "cat"]
    assert isinstance(names["found"].to_frame(), pandas.DataFrame)
    assert names["search"].best_score_ <= 1.0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_the_code_on_learning_runs(tmp_path, monkeypatch):
    """From a first fit to a choice among several and a pipeline."""
    monkeypatch.chdir(tmp_path)
    X, votes, _ = feature_crowd(3)
    names = {"X": X, "annotations": votes, "ids": votes.item_ids, "X_new": X[:20], "their_labels": votes[:20]}
    for code in python_of((ROOT / "docs" / "learning.md").read_text(encoding="utf-8")):
        exec(compile(code, "learning.md", "exec"), names)
    assert names["found"].best in names["found"].names and hasattr(names["model"], "predict")


def test_parts_of_the_package_load_on_first_use():
    """`mh.simulate` and `mh.testing` need no import of their own, and cost nothing before they are used."""
    program = (
        "import sys, manyhands as mh;"
        "loaded = [f'manyhands.{part}' in sys.modules for part in ('simulate', 'testing')];"
        "print(*loaded, mh.simulate.make_crowd.__name__, mh.testing.check_aggregator.__name__)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False", "make_crowd", "check_aggregator"]

"""The Python of every document runs, block after block, and every command of a document is one that the program takes.

Start, guides and papers have a test of their own in test_pages.py; README.md, from-crowd-kit.md, notebooks.md and
learning.md in tests/test_readme.py; CONTRIBUTING.md in tests/test_contributing.py.
"""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

import manyhands as mh
from manyhands.cli.app import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"from-crowd-kit.md", "learning.md", "notebooks.md"}  # in tests/test_readme.py
# Blocks that need what a test cannot have: a line of the block -> the reason. They are compiled.
NOT_HERE = {
    "argilla.Argilla(": "a server of Argilla",
    "doccano_client.DoccanoClient(": "a server of doccano",
    "labelbox.Client(": "an account of Labelbox",
    "em_pass(packed": "a line of the package, in its context",
    "from manyhands.spark import": "Spark: tests/spark run it",
    "SparkSubmitOperator(": "Airflow",
    "from pyspark": "Spark: tests/spark run it",
    "spark.table(": "Spark: tests/spark run it",
    'aggregate(["huge.parquet"]': "a file larger than memory: tests/jobs run it on a small one",
}
DATA = {"datasets.load(", "make_long_tail_on("}  # real data in MANYHANDS_DATA


def documents():
    """The documents with Python in them that no other test runs: the handbook."""
    others = {"get-started.md", "which-method.md", "comparison.md"}
    for path in sorted(DOCS.glob("*.md")):
        if path.name not in ELSEWHERE | others and not path.name.startswith("coming-from") and python_of(path):
            yield path


def python_of(path):
    """The Python blocks of a document."""
    return [code for language, code in _CODE.findall(path.read_text(encoding="utf-8")) if language == "python"]


def crowd():
    """A small crowd whose items an expert can be asked about."""
    return mh.simulate.make_crowd(n_items=120, n_workers=12, labels_per_item=5, random_state=0)


def _trust():
    made = crowd()
    truth = dict(zip(made.annotations.item_ids.tolist(), made.truth.tolist(), strict=True))
    first, second = (mh.trust.random_items(made.annotations, n=20, random_state=seed) for seed in (1, 2))
    return {
        "annotations": made.annotations,
        "ask_expert": truth.get,
        "monday_answers": first.answer({item: truth[item] for item in first}),
        "wednesday_answers": second.answer({item: truth[item] for item in second}),
        "friday": made.annotations,
    }


def _verdicts():
    rows = [(i, w, o) for i in range(30) for w in "abc" for o in (0, 1)]
    names = np.array(["first", "second"])
    said = [names[(i + o + (w == "c" and o)) % 2] for i, w, o in rows]
    table = {"item": [r[0] for r in rows], "worker": [r[1] for r in rows], "order": [r[2] for r in rows], "label": said}
    answers = ["A" if (label == "first") == (order == 0) else "B" for label, order in zip(said, table["order"])]
    return {
        "table": pytest.importorskip("polars").DataFrame(table),
        "items": table["item"],
        "judges": table["worker"],
        "labels": answers,
        "swapped": [bool(order) for order in table["order"]],
    }


def _scale():
    import polars as pl

    made = crowd().annotations
    X = np.random.default_rng(0).normal(size=(made.n_items, 768)).astype(np.float32)
    np.save("X.npy", X)
    Path("features").mkdir()
    shard = {"item": made.item_ids, "vector": X.tolist()}
    pl.DataFrame(shard).write_parquet("features/0.parquet")
    Path("cache").mkdir()
    return {"annotations": made, "ids": made.item_ids}


PREPARED = {  # document -> what its text supposes to be there
    "scale.md": _scale,
    "scorecards.md": lambda: {"annotations": crowd().annotations},
    "trust.md": _trust,
    "machines.md": _verdicts,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # notes on small crowds
@pytest.mark.parametrize("path", [*documents()], ids=lambda path: path.relative_to(DOCS).as_posix())
def test_the_python_of_a_document_runs(path, tmp_path, monkeypatch):
    """In the order of the document, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names = {"mh": mh, "np": np} | PREPARED.get(path.name, dict)()
    n_run = 0
    for code in python_of(path):
        if "\n%" in f"\n{code}":  # a notebook's own commands
            continue
        compiled = compile(code, path.name, "exec")
        if not any(line in code for line in NOT_HERE):
            try:
                exec(compiled, names)
            except (FileNotFoundError, mh.exceptions.AnnotationError) as error:
                if not any(line in code for line in DATA):
                    raise
                pytest.skip(f"no real data here: {error}")
            n_run += 1
    assert n_run or all(any(line in code for line in NOT_HERE) for code in python_of(path))


def commands_of(path):
    """The commands of the program in the code of a document, without what follows a comment or a pipe."""
    for _, code in _CODE.findall(path.read_text(encoding="utf-8")):
        joined = code.replace("\\\n", " ")
        for line in re.findall(r"^\s*(?:\$ |\.venv/bin/)*manyhands (.*)$", joined, re.MULTILINE):
            for part in ("manyhands " + line).split(" | "):
                words = shlex.split(part.split(" # ")[0].partition(" #")[0].split(" > ")[0].split(" && ")[0])
                if words[:1] == ["manyhands"]:
                    yield words[1:]


def offenders():
    """Commands that do not exist, and options that a command lacks."""
    group = get_command(app)
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        for words in commands_of(path):
            if words[0].startswith("-"):
                continue
            if words[0] not in group.commands:
                yield f"{path.name}: manyhands {words[0]}"
                continue
            known = {"--help"} | {
                option for p in group.commands[words[0]].params for option in (*p.opts, *p.secondary_opts)
            }
            given = [word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-zA-Z]", word)]
            yield from (f"{path.name}: manyhands {words[0]} {option}" for option in given if option not in known)


def test_commands_of_documents_exist_with_their_options():
    """One list of all that the program would refuse; files need not be there."""
    n_commands = sum(len([*commands_of(path)]) for path in [ROOT / "README.md", *DOCS.rglob("*.md")])
    assert n_commands > 40
    assert not [*offenders()]

"""The first pages of the documentation: their code runs, their transcripts are what the program prints."""

import io
import re
import shlex
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run
from manyhands.reproduce import table_names

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [DOCS / "get-started.md", DOCS / "which-method.md", *sorted((DOCS / "guides").glob("*.md"))]
PAGES += sorted(DOCS.glob("coming-from-*.md"))
TRANSCRIPTS = [ROOT / "README.md", DOCS / "index.md", *PAGES, *sorted((DOCS / "papers").glob("*.md"))]
TRANSCRIPTS += [pytest.param(DOCS / "learning.md", marks=pytest.mark.slow)]  # trains six models
NO_COMMAND = {"spark.md", "imbalanced-sparse-few-labels.md"}  # a cluster, which tests/spark have; Python alone

_CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks_of(path, language):
    """The code blocks of a document in this language, in order."""
    return [code for name, code in _CODE.findall(path.read_text(encoding="utf-8")) if name == language]


def transcripts_of(text):
    """The commands of `$ manyhands` lines, each with the lines printed below it."""
    found = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and line.strip():
            found[-1][1].append(line)
    return [(command, printed) for command, printed in found if command.startswith("manyhands ")]


def squeezed(text):
    """Text with single spaces: the width of the terminal does not matter."""
    return " ".join(text.split())


def make_files(folder):
    """The files that stand for a reader's own: judges, verdicts, stars, labelling functions, a Parquet file."""
    rng = np.random.default_rng(0)
    crowd = mh.simulate.make_crowd(60, 6, labels_per_item=6, accuracy=0.85, random_state=1)
    names = ["ann", "bob", "cy", "dee", "gpt-a", "gpt-b"]
    votes = crowd.annotations
    rows = [(i, names[w], f"c{k}") for i, w, k in zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist())]
    write(folder / "judges.csv", "item,worker,label", rows)
    stars = mh.simulate.make_ordinal_crowd(random_state=0).annotations
    rows = [(i, f"w{w}", k + 1) for i, w, k in zip(stars.item.tolist(), stars.worker.tolist(), stars.label.tolist())]
    write(folder / "stars.csv", "item,worker,label", rows)
    rows = []
    for item in range(40):
        for judge in ("ann", "bob", "cy"):
            first = int(rng.random() < 0.7)  # 1: the answer shown first in the original order
            rows += [(item, judge, 1 if first else 2, "ab"), (item, judge, 2 if first else 1, "ba")]
    write(folder / "verdicts.csv", "item,worker,label,order", rows)
    truth, rows = rng.integers(2, size=200), []
    for name, of_class, hit, false in [("a", 0, 0.5, 0.1), ("b", 0, 0.3, 0.1), ("c", 1, 0.6, 0.1), ("d", 1, 0.3, 0.1)]:
        fires = np.flatnonzero(rng.random(200) < np.where(truth == of_class, hit, false))
        rows += [(item, name, f"class {of_class}") for item in fires.tolist()]
    write(folder / "functions.csv", "item,worker,label", rows)
    make_features(folder, votes, crowd.truth)
    import polars

    large = mh.simulate.make_crowd(300, 20, n_classes=3, random_state=0).annotations
    columns = {"item": large.item.astype(str), "worker": large.worker.astype(str), "label": large.label.astype(str)}
    polars.DataFrame(columns).write_parquet(folder / "huge.parquet")


def make_features(folder, votes, truth):
    """Labels with arrays, texts and known classes of the same items."""
    rows = [(i, f"w{w}", f"c{k}") for i, w, k in zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist())]
    for name in ("ratings.csv", "tickets.csv"):
        write(folder / name, "item,worker,label", rows)
    items = np.arange(len(truth))
    X = np.random.default_rng(0).normal(size=(len(truth), 4)) + 2 * truth[:, None]
    for name in ("X.npz", "new.npz", "test.npz"):
        np.savez(folder / name, X=X, ids=items.astype(str))
    words = ("it arrived late and broken", "very good and works well")
    write(folder / "texts.csv", "item,text", [(i, f"{words[k]} {i}") for i, k in zip(items.tolist(), truth.tolist())])
    known = [(i, f"c{k}") for i, k in zip(items.tolist(), truth.tolist())]
    write(folder / "known.csv", "item,label", known[:10])
    write(folder / "truth.csv", "item,label", known)
    shutil.copy(ROOT / "examples" / "export.json", folder)


def write(path, head, rows):
    """Write a table as CSV."""
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A reader's folder: the examples and files of their own."""
    (tmp_path / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "export.json", tmp_path / "examples")
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MANYHANDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_the_python_of_a_page_runs(page, folder):
    """Block after block, with nothing but what the page itself defines."""
    names: dict = {}
    for code in blocks_of(page, "python"):
        exec(compile(code, page.name, "exec"), names)


@pytest.mark.parametrize("page", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_transcripts_of_a_page_are_real(page, folder):
    """Every `$ manyhands` command succeeds, in order, and prints the lines that stand below it."""
    transcripts = [pair for code in blocks_of(page, "") for pair in transcripts_of(code)]
    if page.name not in NO_COMMAND:
        assert transcripts or page.stem.startswith("coming-from-"), f"{page.name} shows no command"
    for command, printed in transcripts:
        arguments = shlex.split(command, comments=True)[1:]
        if arguments[0] == "reproduce":  # needs real data: its table must exist, its own tests run it
            assert arguments[1] in table_names()
            continue
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            code = run(arguments)
        said = squeezed(out.getvalue())
        assert code == 0, f"{command}: exit code {code}\n{said[-500:]}"
        missing = [line for line in printed if squeezed(line) not in said]
        assert not missing, f"{command} does not print: {missing}\n{said[:2000]}"


def test_a_transcript_is_read():
    """Commands with the lines below them; other programs are left alone."""
    text = "$ pip install .\nDone\n$ manyhands a b  # c\none\ntwo\n\n$ manyhands d\n"
    assert transcripts_of(text) == [("manyhands a b  # c", ["one", "two"]), ("manyhands d", [])]


def test_the_readme_is_one_screen():
    """About 70 lines; the two commands that set everything up; numbers of methods as they are."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    assert all(f"`{command}`" in text for command in ("git clone", "make demo", "make test"))
    aggregators, learners = (mh.registry.names(kind) for kind in ("aggregator", "classifier"))
    embeddings = set(mh.registry.names("representation")) - set(learners)
    assert f"{len(aggregators)} aggregators and {len(learners) + len(embeddings)} learners" in text


def test_every_aggregator_is_in_the_table_of_methods():
    """Which method? has a row for each."""
    text = (DOCS / "which-method.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)`(?: \(default\))? \| `(\w+)` \|", text, re.MULTILINE)
    assert {name for name, _ in rows} == set(mh.registry.names("aggregator"))
    assert all(type(mh.registry.create(name)).__name__ == shown for name, shown in rows)

"""Exports with several questions: overview and aggregation of each."""

from __future__ import annotations

import json

import polars as pl
import pytest

from manyhands.cli.app import run
from manyhands.exceptions import ParameterError, SeveralQuestionsError
from manyhands.jobs.aggregate import aggregate_questions
from manyhands.jobs.convert import describe_questions, inspect
from manyhands.jobs.options import ExportOptions
from manyhands.report.html import read_page

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")]


@pytest.fixture
def export(tmp_path):
    """Two questions of one choice each, and one of several choices."""

    def result(name, *choices):
        return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(choices)}}

    tasks = [
        {
            "id": task,
            "data": {"text": f"text {task}"},
            "annotations": [
                {
                    "id": 10 * task + worker,
                    "completed_by": worker,
                    "result": [
                        result("tone", "good" if (task + (worker == 3)) % 2 else "bad"),
                        result("topic/area", "a" if task % 3 else "b"),
                        result("tags", *(["x", "y"] if task == 1 else ["x"])),
                    ],
                }
                for worker in (1, 2, 3)
            ],
        }
        for task in range(1, 9)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return str(path)


def test_the_error_names_the_questions(export):
    with pytest.raises(SeveralQuestionsError, match="all_questions=True") as caught:
        inspect([export])
    assert caught.value.questions == ("tone", "topic/area", "tags")


def test_every_question_is_described_or_has_a_reason(export):
    tone, topic, tags = describe_questions([export], ExportOptions(), ["tone", "topic/area", "tags"])
    assert (tone["labels"], tone["items"], tone["workers"], tone["classes"]) == (24, 8, 3, "bad, good")
    assert tone["agreement"] == pytest.approx(1 / 3, abs=1e-3) and topic["agreement"] == 1
    assert "several choices" in tags["reason"] and "`question=` (tags=x, tags=y)" in tags["reason"]


def test_inspect_shows_all_questions_and_succeeds(export, capsys):
    assert run(["inspect", export]) == 0
    shown = capsys.readouterr().err
    assert "3 questions" in shown and "tone" in shown and "tags: " in shown and "--question NAME" in shown
    assert run(["inspect", export, "--json"]) == 0
    assert [row["question"] for row in json.loads(capsys.readouterr().out)["questions"]] == [
        "tone",
        "topic/area",
        "tags",
    ]


def test_all_questions_are_aggregated_each_in_its_folder(export, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["aggregate", export, "--all-questions", "-o", str(out)]) == 0
    table = pl.read_csv(out / "questions.csv")
    assert table["question"].to_list() == ["tone", "topic/area", "tags"]
    assert table["folder"].to_list() == ["tone", "topic-area", "tags"] and "reason" not in table.columns
    assert "by_choice: Answers to 'tags' have several choices" in capsys.readouterr().err.replace("\n", " ")
    assert pl.read_csv(out / "tags" / "labels.csv")["label"].to_list() == ["x + y", *["x"] * 7]
    assert {path.name for path in (out / "topic-area").iterdir()} >= {"labels.csv", "workers.csv", "summary.json"}
    assert pl.read_csv(out / "tone" / "labels.csv").height == 8
    assert run(["aggregate", export, "--all-questions", "-o", str(out)]) != 0  # nothing is replaced without --force


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all-questions"], "needs a folder"),
        (["--all-questions", "-o", "x", "--question", "tone"], "exclude each other"),
        (["--all-questions", "-o", "x", "--fail-under", "0.5"], "--fail-under is about one question"),
    ],
)
def test_options_that_do_not_fit_get_one_sentence(export, capsys, arguments, message):
    assert run(["aggregate", export, *arguments]) != 0
    assert message in capsys.readouterr().err


def test_standard_input_cannot_be_read_for_each_question(tmp_path):
    with pytest.raises(ParameterError, match="give a file"):
        aggregate_questions(["-"], out=tmp_path / "out")


def test_a_single_question_gets_its_folder_too(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("item,worker,label\n" + "".join(f"{i},{w},{i % 2}\n" for i in range(6) for w in "abc"))
    assert run(["aggregate", str(path), "--all-questions", "-o", str(tmp_path / "out"), "-q"]) == 0
    assert pl.read_csv(tmp_path / "out" / "questions.csv")["folder"].to_list() == ["labels"]


def test_a_worker_has_one_pseudonym_on_the_pages_of_all_questions(export, tmp_path):
    """One key beside the overview, and none in the folders of the questions."""
    out = tmp_path / "out"
    assert run(["aggregate", export, "--all-questions", "--report", "-o", str(out), "-q"]) == 0
    names = [set(read_page(page)["workers"]["worker"]) for page in sorted(out.glob("*/report.html"))]
    assert len(names) == 2 and names[0] == names[1] and len(names[0]) == 3
    assert [path.parent for path in out.rglob("manyhands.key")] == [out]


def test_a_question_that_is_left_out_is_named_even_if_quiet(tmp_path, capsys):
    """A question of free text has no classes; the note says so, and the overview has the reason."""
    path = tmp_path / "votes.csv"
    rows = [f"{i},{w},tone,{'ab'[i % 2]}\n{i},{w},why,since {w} saw number {i}\n" for i in range(20) for w in "uvw"]
    path.write_text("item,worker,question,label\n" + "".join(rows))
    out = tmp_path / "out"
    assert run(["aggregate", str(path), "--all-questions", "-o", str(out), "-q"]) == 0
    said = capsys.readouterr().err
    assert "'why' was left out" in said and "free text" in said
    assert "free text" in pl.read_csv(out / "questions.csv")["reason"][1]

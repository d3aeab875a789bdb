"""Questions with several choices in an answer: one table of all choices, and back into Label Studio."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from manyhands.cli.app import run
from manyhands.exceptions import ParameterError, SeveralChoicesError
from manyhands.io.reading import read_export
from manyhands.jobs.aggregate import aggregate, aggregate_choices
from manyhands.jobs.options import ExportOptions

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")]
RIGHT = [["a"], ["b"], ["a", "b"], ["b + c"], ["a", "b + c"], ["b"]]  # the choices of each task; one contains the joint


def result(*choices):
    return {"from_name": "tags", "to_name": "text", "type": "choices", "value": {"choices": list(choices)}}


@pytest.fixture
def export(tmp_path):
    """Thirty tasks; the fourth worker always says "b"."""
    tasks = [
        {
            "id": task + 1,
            "data": {"text": f"text {task}"},
            "annotations": [
                {
                    "id": 10 * task + w,
                    "completed_by": f"w{w}@x.org",
                    "result": [result(*(RIGHT[task % 6] if w < 3 else ["b"]))],
                }
                for w in range(4)
            ],
        }
        for task in range(30)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return str(path)


def test_one_table_has_all_choices(export, tmp_path):
    """The posterior of a column is that of the choice alone; the label joins the choices that are right."""
    found = aggregate_choices([export], out=tmp_path / "out")
    table = pl.read_csv(tmp_path / "out" / "labels.csv")
    assert table.columns == ["item", "label", "confidence", "n_labels", "alerts", "p_a", "p_b", "p_b + c"]
    assert table["label"].to_list() == [" + ".join(RIGHT[task % 6]) for task in range(30)]
    alone = aggregate([export], ExportOptions(question="tags=a")).tables["labels.csv"]
    np.testing.assert_allclose(table["p_a"].to_numpy(), alone["p_yes"].to_numpy(), atol=1e-6)
    p = table.select("p_a", "p_b", "p_b + c").to_numpy()
    np.testing.assert_allclose(table["confidence"].to_numpy(), np.maximum(p, 1 - p).prod(axis=1), atol=1e-5)
    assert found.summary["n_classes"] == 3 and [row["choice"] for row in found.summary["choices"]] == [
        "a",
        "b",
        "b + c",
    ]
    workers = pl.read_csv(tmp_path / "out" / "workers.csv")
    assert workers.height == 12 and set(workers["choice"]) == {"a", "b", "b + c"}
    assert (tmp_path / "out" / "a" / "summary.json").exists() and (tmp_path / "out" / "b-c" / "labels.csv").exists()


def test_labels_return_into_label_studio_by_choice(export, tmp_path):
    """Predictions name the chosen choices, also one whose name contains the sign that joins names."""
    written = ["--write", "label-studio", "--write", "jsonl", "--write", "parquet"]
    assert run(["aggregate", export, "--by-choice", "-o", str(tmp_path / "out"), "-q", *written]) == 0
    predictions = json.loads((tmp_path / "out" / "label_studio_predictions.json").read_text())
    chosen = {one["task"]: one["result"][0]["value"]["choices"] for one in predictions}
    assert chosen == {task + 1: RIGHT[task % 6] for task in range(30)}
    assert pl.read_parquet(tmp_path / "out" / "labels.parquet")["labels"].to_list() == list(chosen.values())
    assert pl.read_ndjson(tmp_path / "out" / "labels.jsonl")["labels"].to_list() == list(chosen.values())


def test_workbooks_and_training_sets(export, tmp_path):
    """Each choice has its own, and a workbook has the joined tables; nothing that was asked for is left out."""
    assert (
        run(["aggregate", export, "--by-choice", "-o", str(tmp_path), "-q", "--write", "xlsx", "--write", "training"])
        == 0
    )
    assert {path.parent.name for path in tmp_path.rglob("training.csv")} == {"a", "b", "b-c"}
    assert {path.parent for path in tmp_path.rglob("results.xlsx")} == {
        tmp_path,
        *(tmp_path / x for x in ("a", "b", "b-c")),
    }
    labels, workers = (pl.read_excel(tmp_path / "results.xlsx", sheet_name=x) for x in ("labels", "workers"))
    assert labels["label"].to_list() == [" + ".join(RIGHT[task % 6]) for task in range(30)]
    assert set(workers["choice"]) == {"a", "b", "b + c"}


def test_nothing_is_written_where_an_output_cannot_be(export, tmp_path, capsys):
    """Before any choice is fitted, not after the folders of the choices were written."""
    assert run(["aggregate", export, "--by-choice", "-o", str(tmp_path / "out"), "--write", "prodigy"]) == 2
    assert "is not an export of prodigy" in capsys.readouterr().err
    assert not list((tmp_path / "out").rglob("labels.csv"))


def test_an_item_has_at_least_one_choice(tmp_path):
    """Where no choice is more probable than not, the most probable one is taken, with an alert."""
    path = tmp_path / "votes.jsonl"
    answers = [["a"], ["a"], ["b"], ["c"], ["d"]], [["a", "b"]] * 5, [["c", "d"]] * 5
    rows = [
        {"item": i, "worker": w, "label": answer} for i, given in enumerate(answers) for w, answer in enumerate(given)
    ]
    tasks = [
        {
            "id": i,
            "data": {"t": "x"},
            "annotations": [
                {"id": 9 * i + r["worker"], "completed_by": r["worker"], "result": [result(*r["label"])]}
                for r in rows
                if r["item"] == i
            ],
        }
        for i in range(3)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    table = aggregate_choices([str(path)], method="majority-vote").tables["labels.csv"]
    assert table["label"].to_list() == ["a", "a + b", "c + d"]
    assert table["alerts"].to_list() == ["below-half", None, None]


def test_the_error_names_the_choices_and_the_option(export, capsys):
    with pytest.raises(SeveralChoicesError, match="by_choice=True") as caught:
        read_export(export)
    assert caught.value.question == "tags" and caught.value.choices == ("a", "b", "b + c")
    assert run(["aggregate", export]) != 0
    assert "aggregate with --by-choice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--combinations"], "--by-choice and --combinations exclude each other"),
        (["--question", "tags=a"], "leave out --by-choice"),
        (["--all-questions", "-o", "x"], "leave out --by-choice"),
        (["--gold", "gold.csv"], "name one choice with --question"),
        (["--ordinal"], "have no order"),
    ],
)
def test_options_that_do_not_fit_get_one_sentence(export, capsys, arguments, message):
    assert run(["aggregate", export, "--by-choice", *arguments]) != 0
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_standard_input_cannot_be_read_for_each_choice():
    with pytest.raises(ParameterError, match="give a file"):
        aggregate_choices(["-"])


def test_one_key_names_the_workers_of_all_choices(export, tmp_path):
    out = tmp_path / "out"
    assert run(["aggregate", export, "--by-choice", "--worker-names", "pseudonyms", "-o", str(out), "-q"]) == 0
    assert pl.read_csv(out / "workers.csv")["worker"].n_unique() == 4
    assert [path.parent for path in out.rglob("manyhands.key")] == [out]
    assert not any(b"x.org" in path.read_bytes() for path in out.rglob("*.csv"))

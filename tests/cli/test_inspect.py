"""`manyhands inspect` on the samples of every tool, as a person would run it."""

import json
import shutil
from pathlib import Path

import pytest

from manyhands.cli.app import run
from manyhands.io.row_filtering import Ledger

SAMPLES = Path(__file__).parents[1] / "samples"

LEDGERS = {  # sample -> rows read, kept, excluded
    "appen/aggregated.csv": (1, 0, {"aggregated": 1}),
    "appen/full.csv": (3, 2, {"tainted": 1}),
    "argilla/feedback_api.json": (6, 3, {"prediction": 1, "draft": 1, "discarded": 1}),
    "argilla/feedback_hub.jsonl": (5, 3, {"prediction": 1, "draft": 1}),
    "argilla/records_flat.jsonl": (4, 1, {"prediction": 1, "draft": 1, "discarded": 1}),
    "argilla/records_nested.json": (4, 2, {"prediction": 1, "no_label": 1}),
    "doccano/collaborative": (2, 0, {"no_worker": 2}),
    "doccano/individual": (4, 3, {"no_label": 1}),
    "doccano/legacy_1x.jsonl": (2, 2, {}),
    "doccano/legacy_2018.jsonl": (1, 1, {}),
    "hf/counts.jsonl": (3, 3, {}),
    "hf/lewidi.json": (3, 3, {}),
    "hf/lewidi2025.json": (2, 2, {}),
    "hf/lists_per_item.jsonl": (3, 3, {}),
    "hf/row_per_annotation.jsonl": (1, 1, {}),
    "label_studio/export.json?sentiment": (
        8,
        2,
        {"prediction": 1, "gold_account": 1, "draft": 1, "skipped": 1, "no_label": 1, "duplicate": 1},
    ),
    "label_studio/csv/result.csv?sentiment": (5, 3, {"no_label": 1, "duplicate": 1}),
    "label_studio/min/result.json?sentiment": (5, 3, {"no_label": 1, "duplicate": 1}),
    "labelbox/export.ndjson": (4, 2, {"gold_account": 1, "skipped": 1}),
    "long/crowdkit.csv": (1, 1, {}),
    "long/triples.csv": (3, 3, {}),
    "mturk/batch_results.csv": (4, 2, {"rejected": 1, "duplicate": 1}),
    "mturk/batch_results_multi.csv": (2, 2, {}),
    "mturk/batch_results_radio.csv": (1, 1, {}),
    "mturk/batch_results_taskanswers.csv?sentiment": (1, 1, {}),
    "nltk/triples.txt": (2, 2, {}),
    "peerannot/answers.json": (3, 3, {}),
    "prodigy/binary.jsonl": (1, 1, {}),
    "prodigy/choice.jsonl": (5, 2, {"skipped": 1, "rejected": 1, "duplicate": 1}),
    "rodrigues/answers.txt": (9, 4, {"no_label": 5}),
    "sagemaker": (3, 2, {"no_label": 1}),
    "scale/genai_task.json": (1, 1, {}),
    "scale/task.json": (1, 1, {}),
    "toloka/aggregated.tsv": (1, 0, {"aggregated": 1}),
    "toloka/assignments.tsv": (4, 2, {"rejected": 1, "blank": 1}),
    "toloka/assignments_api.json": (2, 2, {}),
    "wide/blank.csv": (9, 4, {"no_label": 5}),
    "wide/minus1.csv": (6, 4, {"no_label": 2}),
}


def arguments(sample, *more):
    name, _, question = sample.partition("?")
    return ["inspect", str(SAMPLES / name), *(["--question", question] if question else []), *more]


@pytest.mark.parametrize("sample", LEDGERS)
def test_the_ledger_of_every_sample(sample, capsys):
    """Every row of every tool's export is kept, or counted with its reason."""
    assert run(arguments(sample, "--json")) == 0
    result = json.loads(capsys.readouterr().out)
    rows_read, kept, excluded = LEDGERS[sample]
    assert result["ledger"] == {"rows_read": rows_read, "kept": kept, "excluded": excluded}
    assert result["schema"] == 1 and result["format"] and (result["refusal"] is None) == (kept > 0)


@pytest.mark.parametrize("sample", LEDGERS)
def test_words_go_to_stderr(sample, capsys):
    """A person sees format, mapping and ledger; nothing goes to stdout."""
    assert run(arguments(sample, "--json")) == 0
    format_name = json.loads(capsys.readouterr().out)["format"]
    assert run(arguments(sample)) == 0
    out, err = capsys.readouterr()
    assert out == "" and Ledger(*LEDGERS[sample]).of_format(format_name) in err


@pytest.mark.parametrize(
    ("name", "questions"),
    [
        ("label_studio/export.json", ["sentiment", "topic"]),
        ("label_studio/csv/result.csv", ["sentiment", "topic"]),
        ("label_studio/min/result.json", ["sentiment", "topic"]),
        ("mturk/batch_results_taskanswers.csv", ["sentiment", "confident"]),
    ],
)
def test_several_questions_are_listed(name, questions, capsys):
    """All are described, on the screen and as an object for --json; other commands ask for one of them."""
    assert run(["inspect", str(SAMPLES / name), "--json"]) == 0
    assert [row["question"] for row in json.loads(capsys.readouterr().out)["questions"]] == questions
    assert run(["inspect", str(SAMPLES / name)]) == 0
    assert "--question NAME" in capsys.readouterr().err
    assert run(["aggregate", str(SAMPLES / name), "--json"]) == 3
    out, err = capsys.readouterr()
    assert all(question in err for question in questions) and "--question NAME" in err
    assert json.loads(out)["error"]["code"] == 3 and questions[0] in json.loads(out)["error"]["message"]


def test_several_choices_are_asked_about(capsys):
    """`topic` of the sample has an answer with two choices."""
    export = str(SAMPLES / "label_studio" / "export.json")
    assert run(["inspect", export, "--question", "topic"]) == 3
    assert "topic=delivery" in capsys.readouterr().err
    assert run(["inspect", export, "--question", "topic=refund", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == {"yes": 1}
    assert run(["inspect", export, "--question", "topic", "--combinations", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["labels"] == {"delivery + refund": 1}


@pytest.mark.parametrize("name", ["doccano/individual", "sagemaker"])
def test_a_zip_is_read_like_its_folder(name, tmp_path, capsys):
    """Nothing needs to be unpacked."""
    archive = shutil.make_archive(str(tmp_path / "export"), "zip", SAMPLES / name)
    assert run(["inspect", archive, "--json"]) == 0
    rows_read, kept, excluded = LEDGERS[name]
    assert json.loads(capsys.readouterr().out)["ledger"] == {"rows_read": rows_read, "kept": kept, "excluded": excluded}


def test_batches_are_read_together(tmp_path, capsys):
    """Two files of one job: repeats across them are repeats."""
    for number, label in enumerate("xy"):
        (tmp_path / f"{number}.csv").write_text(f"task,worker,label\n1,a,{label}\n{number},b,x\n")
    assert run(["inspect", str(tmp_path / "0.csv"), str(tmp_path / "1.csv"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ledger"] == {"rows_read": 4, "kept": 3, "excluded": {"duplicate": 1}}
    assert result["labels"] == {"x": 2, "y": 1}
    (tmp_path / "2.jsonl").write_text('{"task": 1, "worker": "a", "label": ["x"]}\n')
    assert run(["inspect", str(tmp_path / "0.csv"), str(SAMPLES / "prodigy" / "choice.jsonl")]) == 3
    assert "Read one format at a time" in capsys.readouterr().err


def test_the_output_of_inspect(tmp_path, capsys):
    """Coverage, sparsity, imbalance and agreement, worked by hand."""
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n1,a,x\n1,b,x\n2,a,x\n2,b,y\n3,a,x\n4,c,\n")
    assert run(["inspect", str(path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_items"], result["n_workers"], result["n_unlabelled"], result["n_labelled_once"]) == (4, 3, 1, 1)
    assert result["density"] == pytest.approx(5 / 12) and result["sparsity"] == pytest.approx(7 / 12)
    assert result["imbalance"] == pytest.approx(3 / 5) and result["labels"] == {"x": 4, "y": 1}
    assert result["labels_per_item"] == {"mean": 1.25, "min": 0, "median": 1.5, "max": 2}
    percent = result["agreement"][0]
    assert percent["measure"] == "percent agreement" and percent["value"] == 0.5 and percent["n_items"] == 2
    assert result["examples"][0] == {"item": "1", "worker": "a", "label": "x"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("blank.csv", "task,worker,label\n1,a,\n"),
        ("header.csv", "task,worker,label\n"),
        (
            "skipped.json",
            '[{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "was_cancelled": true, "result": '
            '[{"type": "choices", "from_name": "q", "to_name": "t", "value": {"choices": ["x"]}}]}]}]',
        ),
    ],
)
def test_a_file_in_which_no_label_counts(name, text, tmp_path, capsys):
    """It is shown as what it is; there is nothing to aggregate."""
    (tmp_path / name).write_text(text)
    assert run(["inspect", str(tmp_path / name)]) == 0
    assert "No label counts" in capsys.readouterr().err
    assert run(["inspect", str(tmp_path / name), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["imbalance"] is None
    assert run(["aggregate", str(tmp_path / name)]) == 3
    assert "no label that counts" in capsys.readouterr().err

"""Labels back into Argilla, doccano, Labelbox and Prodigy: only for what exists, and nothing of it is lost."""

import json
import shutil
from pathlib import Path

import pytest

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.write.write_back import SUGGESTIONS
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.options import ExportOptions

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
SAMPLES = Path(__file__).parents[2] / "samples"


def written(path, kind, folder, **options):
    """Aggregate by majority vote, and return what was written for the tool."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    aggregate([str(path)], ExportOptions(**options), method="majority-vote", out=out, write=[kind])
    text = (out / SUGGESTIONS[kind]).read_text()
    return json.loads(text) if kind == "argilla" else [json.loads(line) for line in text.splitlines()]


def saved(path, entries):
    """Write entries as JSON, or as JSON lines."""
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, entries)) if lines else json.dumps(entries))
    return path


def record(number, values, **more):
    """A nested record of Argilla with the answers of one user each."""
    responses = [{"value": value, "user_id": f"u{at}"} for at, value in enumerate(values)]
    return {"id": f"r{number}", "fields": {"text": f"text {number}"}, "responses": {"mood": responses}, **more}


def test_argilla_keeps_metadata_and_gets_a_suggestion(tmp_path):
    """An update of a record replaces its metadata, so they are repeated; responses are not written."""
    records = [
        record(1, ["good", "good", "bad"], metadata={"src": "a"}, _server_id="s1"),
        record(2, ["bad", "bad"], suggestions={"topic": {"value": "x"}}),
        record(3, []),
    ]
    first, second = written(saved(tmp_path / "records.json", records), "argilla", tmp_path)
    assert first == {
        "id": "r1",
        "_server_id": "s1",
        "fields": {"text": "text 1"},
        "metadata": {"src": "a", "manyhands_priority": 0.333333},
        "suggestions": {"mood": {"value": "good", "score": 0.666667, "agent": "manyhands-majority-vote"}},
    }
    assert second["id"] == "r2" and list(second["suggestions"]) == ["mood"]


def test_argilla_flattened_records_stay_flat(tmp_path):
    (only,) = written(SAMPLES / "argilla" / "records_flat.jsonl", "argilla", tmp_path)
    assert only == {
        "id": "item-1",
        "text": "Arrived broken",
        "src": "a",
        "sentiment.suggestion": "negative",
        "sentiment.suggestion.score": 1.0,
        "sentiment.suggestion.agent": "manyhands-majority-vote",
        "manyhands_priority": 0.0,
    }


@pytest.mark.parametrize(
    ("values", "options", "value", "score"),
    [
        ([4, 4, 5], {}, 4, 0.666667),  # a rating is a number
        ([["a"], ["a"], ["b"]], {}, ["a"], [0.666667]),
        ([["a", "b"], ["a", "b"], ["a"]], {"combinations": True}, ["a", "b"], [0.666667, 0.666667]),
    ],
)
def test_argilla_values_have_the_type_of_the_answers(values, options, value, score, tmp_path):
    path = saved(tmp_path / "records.json", [record(1, values), record(2, values[::-1])])
    suggestion = written(path, "argilla", tmp_path, **options)[0]["suggestions"]["mood"]
    assert suggestion["value"] == value and suggestion["score"] == score


def test_prodigy_tasks_are_shown_again_with_the_label_chosen(tmp_path):
    """The least certain first, each once, with the hashes by which Prodigy recognises it, and without a worker."""
    options = [{"id": 1, "text": "good"}, {"id": 2, "text": "bad"}]
    common = {"options": options, "answer": "accept", "_timestamp": 1}
    rows = [
        {"text": f"t{n}", "_input_hash": n, "_task_hash": 10 + n, "_annotator_id": f"d-w{w}", "accept": [a], **common}
        for n, answers in enumerate([(1, 1, 1), (1, 2, 2)])
        for w, a in enumerate(answers)
    ]
    rows[0]["meta"] = {"source": "x"}
    tasks = written(saved(tmp_path / "rows.jsonl", rows), "prodigy", tmp_path)
    assert [task["_task_hash"] for task in tasks] == [11, 10]
    assert tasks[0]["accept"] == [2] and tasks[0]["options"] == options  # ids of options keep their type
    assert tasks[0]["meta"] == {"score": 0.666667, "manyhands_priority": 0.333333}
    assert tasks[1]["meta"] == {"source": "x", "score": 1.0, "manyhands_priority": 0.0}
    assert not {"answer", "_annotator_id", "_session_id", "_timestamp"} & {key for task in tasks for key in task}


def test_prodigy_binary_answers_are_about_one_label(tmp_path):
    rows = [
        {"text": f"t{n}", "label": label, "answer": answer, "_input_hash": n, "_task_hash": f"{n}{label}"}
        | {"_annotator_id": f"d-w{w}"}
        for n, answer in enumerate(["accept", "reject"])
        for label in ("POS", "NEG")
        for w in range(2)
    ]
    tasks = written(saved(tmp_path / "rows.jsonl", rows), "prodigy", tmp_path, question="POS")
    assert [(task["text"], task["label"], task["answer"]) for task in tasks] == [
        ("t0", "POS", "accept"),
        ("t1", "POS", "reject"),
    ]


def test_doccano_examples_occur_once_with_their_number(tmp_path):
    rows = written(SAMPLES / "doccano" / "individual", "doccano", tmp_path)
    assert [row["id"] for row in rows] == [1, 2]
    assert rows[0] == {
        "id": 1,
        "text": "Arrived broken",
        "ref": "item-1",
        "label": rows[0]["label"],
        "manyhands_priority": 0.5,
    }
    assert rows[1]["label"] == ["positive"] and rows[1]["manyhands_priority"] == 0.0


def test_a_class_may_be_called_like_a_combination(tmp_path):
    folder = tmp_path / "members"
    folder.mkdir()
    for worker in ("ann", "bob"):
        saved(folder / f"{worker}.jsonl", [{"id": 1, "text": "t", "label": ["C + D"]}])
    assert written(folder, "doccano", tmp_path)[0]["label"] == ["C + D"]


def test_labelbox_predictions_have_the_names_of_the_ontology(tmp_path):
    """Not the stable values by which labels are read; and the same uuid in every run."""
    path = SAMPLES / "labelbox" / "export.ndjson"
    (only,) = written(path, "labelbox", tmp_path)
    assert only["dataRow"] == {"id": "dr1"} and only["name"] == "Sentiment"
    assert only["answer"] == {"name": "Negative", "confidence": 0.5}
    assert written(path, "labelbox", tmp_path) == [only]


def test_labelbox_checklists_are_lists_and_nested_questions_are_refused(tmp_path):
    inner = {"name": "Why", "value": "why", "radio_answer": {"name": "Late", "value": "late"}}
    options = [{"name": "Red", "value": "red", "classifications": [inner]}]
    found = [{"name": "Colours", "value": "colours", "checklist_answers": options}]
    labels = [
        {"label_details": {"created_by": f"w{w}"}, "annotations": {"classifications": found}, "id": str(w)}
        for w in range(2)
    ]
    entry = {"data_row": {"global_key": "k"}, "projects": {"p": {"name": "n", "labels": labels}}}
    path = saved(tmp_path / "rows.jsonl", [entry])
    (only,) = written(path, "labelbox", tmp_path, question="colours", combinations=True)
    assert only["answer"] == [{"name": "Red", "confidence": 1.0}] and only["dataRow"] == {"globalKey": "k"}
    with pytest.raises(AnnotationError, match="question within an answer"):
        written(path, "labelbox", tmp_path, question="colours/red/why")


def test_what_cannot_be_written_is_refused_before_the_fit(tmp_path):
    path = saved(tmp_path / "records.json", [record(1, [["a"], ["a", "b"]])])
    with pytest.raises(ParameterError, match="is not an export of prodigy"):
        written(path, "prodigy", tmp_path, combinations=True)
    with pytest.raises(ParameterError, match="whether 'a' was chosen for 'mood'"):
        written(path, "argilla", tmp_path, question="mood=a")
    assert not (tmp_path / "out").exists()

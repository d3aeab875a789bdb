"""Label Studio's three exports: what counts, what does not, and why."""

import gc
import json
import warnings
from pathlib import Path

import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.documents import Records
from manyhands.io.formats import label_studio
from manyhands.io.formats.label_studio import as_answer, as_value, read_results
from manyhands.io.reading import read_export

SAMPLES = Path(__file__).parents[2] / "samples" / "label_studio"
EXPORT = json.loads((SAMPLES / "export.json").read_text())
FLAT = {"label-studio-csv": SAMPLES / "csv" / "result.csv", "label-studio-min": SAMPLES / "min" / "result.json"}


def choice(*labels, name="q", **value):
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": list(labels), **value}}


def annotation(by, *results, **more):
    return {"id": 1, "completed_by": by, "was_cancelled": False, "result": list(results), **more}


def task(number, *annotations, **more):
    return {"id": number, "data": {"text": "...", "ref": f"item-{number}"}, "annotations": list(annotations), **more}


@pytest.fixture
def read_json(tmp_path):
    def read_value(value, name="export.json", **options):
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)
            return read_export(path, **options)

    return read_value


def triples(reading):
    """(item, worker, label) of every judgement that counts."""
    found = reading.annotations
    return [
        (found.item_ids[i], found.worker_ids[w], found.classes[k])
        for i, w, k in zip(found.item, found.worker, found.label)
    ]


def test_the_sample():
    reading = read_export(SAMPLES / "export.json", question="sentiment")
    assert reading.format == "label-studio"
    assert reading.ledger.rows_read == 8 and reading.ledger.kept == 2
    once = ("duplicate", "draft", "prediction", "skipped", "gold_account", "no_label")
    assert reading.ledger.excluded == dict.fromkeys(once, 1)
    assert triples(reading) == [("101", "11", "neutral"), ("101", "bo@example.org", "neutral")]
    assert reading.gold == {"102": "positive"}
    assert list(reading.annotations.item_ids) == ["101", "102", "103"]
    assert list(reading.annotations.worker_ids) == ["11", "bo@example.org", "cy@example.org"]
    assert reading.questions == {"sentiment": 6, "topic": 1}
    places = {"item": "id", "worker": "completed_by", "label": "result[].value", "time": "updated_at"}
    assert reading.columns == places | {"working_time": "lead_time"}


def test_several_questions_are_listed():
    with pytest.raises(AnnotationError, match=r"several questions: sentiment, topic\. Pick one with `question=`"):
        read_export(SAMPLES / "export.json")


def test_one_of_several_choices_and_the_label_as_question():
    assert triples(read_export(SAMPLES / "export.json", question="topic=refund")) == [("101", "11", "yes")]
    assert read_export(SAMPLES / "export.json", label="sentiment").ledger.kept == 2
    with pytest.raises(AnnotationError, match=r"no question 'mood'\. It has: sentiment, topic"):
        read_export(SAMPLES / "export.json", label="mood")


@pytest.mark.parametrize("wish", ["ref", "data.ref"])
def test_another_item(wish):
    reading = read_export(SAMPLES / "export.json", question="sentiment", item=wish)
    assert list(reading.annotations.item_ids) == ["item-1", "item-2", "item-3"]
    assert reading.columns["item"] == "data.ref"


def test_wishes_that_cannot_be_granted(read_json):
    with pytest.raises(AnnotationError, match=r"no 'data\.sku' in the data of its tasks\. It has: text, ref"):
        read_export(SAMPLES / "export.json", question="sentiment", item="data.sku")
    with pytest.raises(AnnotationError, match=r"completed_by, so `worker=.user.` has no meaning"):
        read_export(SAMPLES / "export.json", question="sentiment", worker="user")
    lacking = [task(1, annotation(1, choice("a"))), {"id": 2, "data": {}, "annotations": []}]
    with pytest.raises(AnnotationError, match="task 2: no 'ref' in its data"):
        read_json(lacking, item="ref")


def test_a_user_is_one_worker_by_number_and_by_address(read_json):
    user = {"id": 12, "email": "bo@example.org"}
    reading = read_json([task(1, annotation(12, choice("a"))), task(2, annotation(user, choice("a")))])
    assert triples(reading) == [("1", "bo@example.org", "a"), ("2", "bo@example.org", "a")]
    nameless = {"id": 12, "email": " "}
    assert triples(read_json([task(1, annotation(nameless, choice("a")))] * 2)) == [("1", "12", "a")]


def draft(user, *results, **more):
    return {"id": 5, "user": user, "result": list(results), **more}


def test_a_draft_joins_the_number_of_its_author(read_json):
    """By created_username, by an object with both, or by the annotation that the draft changes; a note says so."""
    ann, bob, cy = "ann@example.org", "bob@example.org", "cy@example.org"
    tasks = [
        task(1, annotation(11, choice("a")), drafts=[draft(ann, choice("b"), created_username=f"Ann Lee {ann}, 11")]),
        task(2, annotation(12, choice("a"), id=70), drafts=[draft(bob, choice("b"), annotation=70)]),
        task(3, annotation(13, choice("a")), annotation({"id": 13, "email": cy}, choice("b")), drafts=[draft(cy)]),
    ]
    reading = read_json(tasks)
    assert list(reading.annotations.worker_ids) == [ann, bob, cy]
    assert reading.notes["joined_workers"].startswith("3 workers are numbers in some places and e-mail addresses")
    assert "example.org" not in " ".join(reading.notes.values()) and "draft_authors" not in reading.notes


def test_a_draft_that_others_may_have_written_joins_nobody(read_json):
    """A reviewer who changes the annotations of two people is neither of them."""
    both = [
        task(n, annotation(n, choice("a"), id=70 + n), drafts=[draft("r@x.org", annotation=70 + n)]) for n in (1, 2)
    ]
    reading = read_json(both)
    assert list(reading.annotations.worker_ids) == ["1", "2", "r@x.org"]
    assert "joined_workers" not in reading.notes
    assert reading.notes["draft_authors"].startswith("1 author of drafts is known by e-mail address only")


def test_nothing_is_said_of_drafts_whose_author_is_clear(read_json):
    same = read_json([task(1, annotation({"id": 1, "email": "a@x.org"}, choice("a")), drafts=[draft("a@x.org")])])
    assert not same.notes and list(same.annotations.worker_ids) == ["a@x.org"]


def test_old_exports(read_json):
    old = {"id": 1, "data": {}, "completions": [annotation(3, choice("a")), annotation(4, skipped=True)]}
    reading = read_json([old])
    assert reading.ledger.excluded == {"skipped": 1} and triples(reading) == [("1", "3", "a")]


def test_annotations_of_nobody_are_refused(read_json):
    reading = read_json([task(1, annotation(None, choice("a")))])
    assert reading.ledger.excluded == {"no_worker": 1} and "completed_by" in reading.refusal
    mixed = read_json([task(1, annotation(None, choice("a")), annotation(2, choice("a")))])
    assert mixed.ledger.excluded == {"no_worker": 1} and mixed.refusal is None


def test_regions_are_no_labels_of_items(read_json):
    span = {"from_name": "ner", "type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"]}}
    box = choice("cat", name="what", x=1, y=2, width=3, height=4)
    reading = read_json([task(1, annotation(1, span, box), annotation(2, span, choice("a")))])
    assert reading.questions == {"q": 1} and reading.ledger.excluded == {"region": 1}
    only = read_json([task(1, annotation(1, span))])
    assert only.ledger.excluded == {"region": 1} and "has only spans (ner), not classes of whole items" in only.refusal


def test_kinds_of_answers():
    def result(kind, **value):
        return {"from_name": kind, "type": kind, "value": value}

    found, *_ = read_results(
        [
            result("rating", rating=4),
            result("number", number=2.5),
            result("pairwise", selected="left"),
            result("taxonomy", taxonomy=[["food"], ["food", "fruit"]]),
            result("textarea", text=["words"]),
            choice("b", "a", name="several"),
        ]
    )
    several = ["b", "a"]
    paths = {"taxonomy": "food > fruit", "several": several}
    assert found == {"rating": "4", "number": "2.5", "pairwise": "left"} | paths


@pytest.mark.parametrize(
    ("kind", "label"),
    [("choices", "a"), ("rating", "4"), ("number", "2.5"), ("pairwise", "left"), ("taxonomy", "a > b")],
)
def test_values_read_as_what_they_were_made_of(kind, label):
    (answers, *_) = read_results([{"from_name": "q", "type": kind, "value": as_value(kind, label)}])
    assert answers == {"q": label}


def test_junk_is_no_answer():
    assert [as_answer(value) for value in (None, {}, [], [None], [{}], [[]], [[["a"]]])] == [None] * 7


def test_predictions_alone(read_json):
    guess = {"model_version": "m", "score": 0.5, "result": [choice("a")]}
    reading = read_json([{"id": 1, "data": {}, "predictions": [guess, 77]}], question="q")
    assert reading.ledger.excluded == {"prediction": 2, "no_label": 1} and not len(reading.annotations.worker_ids)


def test_one_file_per_annotation(tmp_path):
    """As a cloud storage gets them; the same annotation in two files counts once."""
    for name, by, label in (("1", 5, "a"), ("2", 6, "b"), ("3", 6, "b")):
        content = annotation({"id": by}, choice(label), task={"id": 101, "data": {"text": "..."}})
        (tmp_path / name).write_text(json.dumps(content))
    reading = read_export(tmp_path)
    assert triples(reading) == [("101", "5", "a"), ("101", "6", "b")] and reading.ledger.excluded == {"duplicate": 1}
    (tmp_path / "4").write_text(json.dumps(annotation(7, choice("a"), task=102)))
    assert triples(read_export(tmp_path / "4")) == [("102", "7", "a")]


def test_json_lines(read_json):
    lines = "\n".join(json.dumps(task(number, annotation(1, choice("a")))) for number in (1, 2))
    assert read_json(lines, "export.jsonl").ledger.kept == 2


def test_later_answers_count_whatever_their_form_of_time(read_json):
    early, late = "2026-01-05T09:10:00+02:00", "2026-01-05T08:00:00.000000Z"
    two = [annotation(1, choice("b"), updated_at=late), annotation(1, choice("a"), created_at=early)]
    assert triples(read_json([task(1, *two)])) == [("1", "1", "b")]


def test_an_answer_is_as_old_as_its_last_change(read_json):
    changed = annotation(1, choice("b"), created_at="2026-01-01T00:00:00Z", updated_at="2026-01-03T00:00:00Z")
    other = annotation(1, choice("a"), created_at="2026-01-02T00:00:00Z", updated_at="2026-01-02T00:00:00Z")
    assert triples(read_json([task(1, changed, other)])) == [("1", "1", "b")]


def test_notes(tmp_path):
    reviewed = annotation(1, choice("a"), reviews=[{"accepted": False}])
    guessed = annotation(2, choice("a") | {"origin": "prediction"})
    path = tmp_path / "export.json"
    path.write_text(json.dumps([task(1, reviewed, guessed)]))
    with pytest.warns(CrowdWarning) as told:
        notes = read_export(path).notes
    assert set(notes) == {"rejected_in_review", "suggested_answers"} and len(told) == 2


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([task(1), 5], "entry 2: a number where a task should be"),
        ([task(1) | {"predictions": "x"}], "task 1: 'predictions' is text, not a list"),
        ([task(7, 9001)], "task 7: a number where an annotation should be. Export annotations in full"),
        ([task(7, annotation(1) | {"result": {}})], "task 7, annotation 1: 'result' is an object, not a list"),
    ],
)
def test_broken_exports_say_where(read_json, value, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        read_json(value)


def test_a_table_is_not_a_json_export():
    with pytest.raises(AnnotationError, match="not a JSON export of Label Studio"):
        read_export(FLAT["label-studio-csv"], format="label-studio")
    with pytest.raises(AnnotationError, match="lacks the columns annotation_id, annotator, id"):
        read_export(SAMPLES / "export.json", format="label-studio-min")


@pytest.mark.parametrize("name", FLAT)
def test_flat_samples(name):
    with pytest.warns(CrowdWarning):
        reading = read_export(FLAT[name], question="sentiment")
    assert reading.format == name
    assert reading.ledger.as_dict() == {"rows_read": 5, "kept": 3, "excluded": {"no_label": 1, "duplicate": 1}}
    workers = [("101", "11", "neutral"), ("101", "bo@example.org", "neutral"), ("102", "13", "positive")]
    assert triples(reading) == workers
    assert set(reading.notes) == {"incomplete_export", "mixed_worker_ids"}
    assert "example.org" not in " ".join(reading.notes.values())
    with pytest.raises(AnnotationError, match="several questions: sentiment, topic"):
        read_export(FLAT[name])
    with pytest.warns(CrowdWarning):
        assert triples(read_export(FLAT[name], question="topic=refund")) == [("101", "11", "yes")]
    with pytest.warns(CrowdWarning):
        assert list(read_export(FLAT[name], label="sentiment", item="ref").annotations.item_ids) == [
            "item-1",
            "item-2",
            "item-3",
        ]


def flat(number, annotator, **values):
    marks = {"annotation_id": annotator, "lead_time": 1.0, "updated_at": "2026-01-05T09:00:00Z"}
    return {"id": number, "annotator": annotator, **marks, **values}


def test_columns_that_are_questions(read_json):
    rows = [
        flat(1, 5, text="t", mood="a", fixed="c", stars=[{"rating": 4}]),
        flat(1, 6, text="t", mood="b", fixed="c", stars=[{"rating": 5}]),
    ]
    assert read_json(rows, question="mood").questions == {"mood": 2, "stars": 2}, "constant columns are data"
    open_row = {"id": 2, "annotator": None, "annotation_id": None, "text": "u"}
    assert read_json([*rows, open_row], question="mood").questions == {"mood": 2, "fixed": 2, "stars": 2}
    assert read_json(rows, question="fixed").annotations.classes.tolist() == ["c"], "what the user names is a question"
    alone = read_json(rows[:1], question="stars")
    assert alone.questions == {"text": 1, "mood": 1, "fixed": 1, "stars": 1} and triples(alone) == [("1", "5", "4")]


def test_all_agree(read_json):
    rows = [flat(1, worker, text="t", mood="a") for worker in (5, 6)]
    with pytest.raises(AnnotationError, match="several questions: text, mood"):
        read_json(rows)


def test_a_taxonomy_as_a_bare_list(read_json, tmp_path):
    """It is a path as in the JSON export, and tells the question from the data also where all agree."""
    rows = [flat(1, worker, text="t", kind=[["Animals", "Dog"]]) for worker in (5, 6)]
    reading = read_json(rows)
    assert reading.question == "kind" and reading.annotations.classes.tolist() == ["Animals > Dog"]
    rows[1]["kind"] = [["Animals"], ["Animals", "Cat"], ["Plants"]]
    assert read_json(rows, question="kind=Plants").annotations.classes.tolist() == ["no", "yes"]
    path = tmp_path / "x.csv"
    cells = [f'1,{worker},{worker},1.0,t,"[[""Animals"",""Dog""]]"\n' for worker in (5, 6)]
    path.write_text("id,annotator,annotation_id,lead_time,text,kind\n" + "".join(cells))
    with pytest.warns(CrowdWarning):
        assert read_export(path).annotations.classes.tolist() == ["Animals > Dog"]
    boxes = [flat(1, worker, table=[[1, 2], [3, 4]], mood="ab"[worker - 5]) for worker in (5, 6)]
    assert read_json(boxes).question == "mood"


def test_data_with_the_name_of_a_question(read_json):
    assert read_json([flat(1, 5, mood="a", _data_mood="x")]).questions == {"mood": 1}


def test_flat_regions(read_json):
    span = [{"start": 0, "end": 1, "labels": ["PER"]}]
    reading = read_json([flat(1, 5, ner=span), flat(1, 6, ner=span)])
    assert reading.ledger.excluded == {"region": 2} and "(ner)" in reading.refusal
    assert read_json([flat(1, 5, ner=span), flat(1, 6, mood="a")]).ledger.excluded == {"region": 1}


def test_other_files_are_left_alone():
    for value in (None, 5, [], [5], {}, {"data": 1, "annotations": []}, [{"data": {}, "images": []}], {"task": 1}):
        assert label_studio.recognise(Records("x", value)) is None


def test_the_garbage_collector_is_as_it_was(read_json):
    assert gc.isenabled() and not gc.get_freeze_count()
    read_json([task(1, annotation(1, choice("a")))])
    assert gc.isenabled() and not gc.get_freeze_count()

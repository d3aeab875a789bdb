"""Spans, boxes, relations, free text, rankings: found in the exports of each tool, and named in one sentence."""

import json

import pytest

from manyhands.cli.app import run
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io import read_annotations, read_export
from manyhands.io.judgements import OtherKinds, kind_of_mark

READ = "manyhands reads labels of whole items: choices, ratings, taxonomies, numbers."


def label_studio(*results):
    annotation = {"id": 1, "completed_by": 11, "result": list(results)}
    return [{"id": 1, "data": {"text": "t"}, "annotations": [annotation]}]


def result(kind, name, **value):
    return {"from_name": name, "to_name": "text", "type": kind, "value": value}


def prodigy(**more):
    return [{"_input_hash": 1, "_session_id": "a", "answer": "accept", "text": "t", **more}]


def labelbox(mark):
    label = {"label_details": {"created_by": "a@x.org"}, "annotations": {"objects": [mark], "classifications": []}}
    return [{"data_row": {"id": "1"}, "projects": {"p": {"labels": [label]}}}]


def argilla(value):
    return [{"id": "1", "fields": {"text": "t"}, "responses": {"q": [{"value": value, "user_id": "u"}]}}]


def doccano(**more):
    return [{"id": 1, "text": "t", "Comments": [], **more}]


CHOICE = result("choices", "mood", choices=["a"])
SPAN = result("labels", "ner", start=0, end=3, text="abc", labels=["PER"])
BOX = result("rectanglelabels", "box", x=1, y=2, width=3, height=4, rotation=0, rectanglelabels=["cat"])
POLYGON = result("polygonlabels", "shape", points=[[1, 2], [3, 4]], polygonlabels=["cat"])
POINT = result("keypointlabels", "nose", x=1, y=2, width=0.5, keypointlabels=["nose"])
TEXT = result("textarea", "why", text=["because it is"])
RANKING = result("ranker", "order", ranker={"rank": ["a", "b"]})
RELATION = {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right"}

ONLY = {  # name of the file -> (content, what it has)
    "label studio, spans": (label_studio(SPAN), "spans (ner)"),
    "label studio, boxes": (label_studio(BOX), "boxes (box)"),
    "label studio, polygons": (label_studio(POLYGON), "polygons (shape)"),
    "label studio, keypoints": (label_studio(POINT), "keypoints (nose)"),
    "label studio, texts": (label_studio(TEXT), "free text (why)"),
    "label studio, rankings": (label_studio(RANKING), "rankings (order)"),
    "label studio, several": (label_studio(SPAN, RELATION, TEXT), "spans (ner), relations and free text (why)"),
    "prodigy, spans": (prodigy(spans=[{"start": 0, "end": 3, "label": "PER"}]), "spans"),
    "prodigy, polygons": (prodigy(spans=[{"points": [[1, 2]], "label": "cat"}]), "polygons"),
    "prodigy, relations": (prodigy(spans=[], relations=[{"head": 1, "child": 2, "label": "x"}]), "relations"),
    "prodigy, texts": (prodigy(field_id="user_input", user_input="it is so"), "free text"),
    "labelbox, boxes": (labelbox({"name": "Cat", "bounding_box": {"top": 1}}), "boxes (Cat)"),
    "labelbox, spans": (labelbox({"name": "Person", "location": {"start": 1, "end": 2}}), "spans (Person)"),
    "argilla, spans": (argilla([{"start": 0, "end": 3, "label": "PER"}]), "spans (q)"),
    "argilla, rankings": (argilla([{"value": "x", "rank": 1}]), "rankings (q)"),
    "doccano, relations": (doccano(entities=[{"id": 1}], relations=[{"from_id": 1}]), "spans and relations"),
    "doccano, boxes": (doccano(bbox=[{"x": 1, "y": 2, "width": 3, "height": 4}]), "boxes"),
}


@pytest.fixture
def write(tmp_path):
    def written(content, name="export.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return written


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
@pytest.mark.parametrize(("content", "found"), ONLY.values(), ids=ONLY)
def test_an_export_without_classes_is_refused_by_what_it_has(write, content, found):
    path = write(content)
    reading = read_export(path)
    assert reading.refusal.startswith(
        f"{reading.source} has only {found}, not classes of whole items. {READ} To compare"
    )
    assert reading.ledger.kept == 0 and "not_read" not in reading.notes
    with pytest.raises(AnnotationError, match="not classes of whole items"):
        read_annotations(path)


def test_what_is_not_read_beside_classes_is_named(write):
    with pytest.warns(CrowdWarning, match=r"also has spans \(ner\) and free text \(why\), which were not read"):
        reading = read_export(write(label_studio(CHOICE, SPAN, TEXT)))
    assert reading.refusal is None and reading.ledger.kept == 1


def test_the_command_line_says_so(write, capsys):
    path = str(write(label_studio(SPAN)))
    assert run(["aggregate", path]) == 3
    assert "has only spans (ner), not classes of whole items" in capsys.readouterr().err
    assert run(["inspect", path]) == 0
    assert "has only spans (ner), not classes of whole items" in capsys.readouterr().err


def table(labels, workers=2):
    rows = [f'{at // workers},w{at % workers},"{label}"' for at, label in enumerate(labels)]
    return "item,worker,label\n" + "\n".join(rows) + "\n"


SENTENCES = [
    f"the {a} {b} of it" for a in ("red", "old", "big", "wet", "dry") for b in ("cat", "dog", "ox", "bee", "ant")
]


def test_free_text_in_a_table(write, capsys):
    path = write(table(SENTENCES), "x.csv")
    refusal = read_export(path).refusal
    assert (
        "the labels of 'label' look like free text: 25 of 25 occur only once" in refusal and "`label_map=`" in refusal
    )
    assert run(["aggregate", str(path)]) == 3
    assert run(["convert", str(path)]) == 0  # to group the texts elsewhere
    assert capsys.readouterr().out.count("of it") == 25


@pytest.mark.parametrize(
    "labels",
    [
        SENTENCES[:19],  # too few to conclude anything
        [text for text in SENTENCES for _ in range(2)],  # two workers agree on each
        [str(number / 7) for number in range(40)],  # numbers, which can be compared at another level
        ["very good", "not so good at all", "bad"] * 10,
    ],
    ids=["few", "agreed", "numbers", "classes"],
)
def test_labels_that_may_be_classes_are_read(write, labels):
    assert read_export(write(table(labels), "x.csv")).refusal is None


def test_words_that_are_all_different(write):
    assert "look like free text" in read_export(write(table([f"name{at}" for at in range(30)]), "x.csv")).refusal


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ('[{""startOffset"": 0, ""endOffset"": 4, ""label"": ""PER""}]', "spans (label)"),
        ('[{""left"": 1, ""top"": 1, ""width"": 5, ""height"": 6, ""label"": ""cat""}]', "boxes (label)"),
    ],
)
def test_marks_in_the_cells_of_a_table(write, cell, found):
    assert f"has only {found}" in read_export(write(table([cell] * 4), "x.csv")).refusal


def test_a_table_of_spans(write):
    """All but one of a worker's spans would be left out as repeated labels."""
    spans = "item,worker,start,end,label\n1,a,0,4,PER\n1,a,7,9,LOC\n1,b,0,4,PER\n"
    reading = read_export(write(spans, "x.csv"))
    assert "has only spans (columns start, end)" in reading.refusal and reading.ledger.excluded == {"region": 3}
    boxes = "item,worker,xmin,ymin,xmax,ymax,label\n1,a,0,4,9,9,cat\n1,a,7,9,11,12,cat\n"
    assert "has only boxes (columns xmin, ymin, xmax, ymax)" in read_export(write(boxes, "y.csv")).refusal


@pytest.mark.parametrize(
    "rows",
    [
        "1,a,09:00,09:01,yes\n1,a,09:02,09:03,no\n",  # times
        "1,a,100,130,yes\n1,b,90,95,no\n",  # one row per worker and item
        "1,a,,,yes\n1,a,,,no\n",
    ],
)
def test_start_and_end_of_the_work_are_no_spans(write, rows):
    reading = read_export(write(f"item,worker,start,end,label\n{rows}", "x.csv"))
    assert reading.refusal is None and reading.ledger.kept > 0


def test_kinds_of_marks():
    assert kind_of_mark([[0, 4, "PER"]]) == "spans" and kind_of_mark({"rle": [1], "width": 2, "height": 3}) == "masks"
    assert [kind_of_mark(value) for value in (None, "x", [], {}, {"choices": ["a"]}, [1, 2, 3], [["a", "b"]])] == [
        None
    ] * 7


def test_long_lists_are_shortened():
    found = OtherKinds()
    for at in range(12):
        found.add("spans", f"q{at}")
    assert str(found).endswith("q9 and 2 more)") and not OtherKinds()

"""doccano: members by the names of their files, shared annotations, older shapes."""

import json
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings

from broken_exports import ANY_JSON, broken_entries, check_broken, lines_writer, quiet_read, triples, write_json
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Records, open_document
from manyhands.io.formats.doccano import recognise

SAMPLES = Path(__file__).parents[2] / "samples" / "doccano"


@pytest.fixture
def export(tmp_path):
    return lines_writer(tmp_path, "alice.jsonl")


def record(item=1, label=("negative",), **more):
    return {"id": item, "text": f"text {item}", "label": list(label), "Comments": []} | more


def test_one_file_per_member():
    reading = quiet_read(SAMPLES / "individual")
    assert reading.format == "doccano"
    assert reading.ledger.as_dict() == {"rows_read": 4, "kept": 3, "excluded": {"no_label": 1}}
    assert triples(reading) == [("1", "alice", "negative"), ("1", "bob", "neutral"), ("2", "bob", "positive")]
    assert "alice.csv" in reading.notes["read_once"]
    assert reading.columns == {"item": "id", "worker": "the name of the file", "label": "label"}


def test_a_zip_reads_like_the_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "doccano.zip", "w") as archive:
        for path in sorted((SAMPLES / "individual").iterdir()):
            archive.write(path, path.name)
    reading = quiet_read(tmp_path / "doccano.zip")
    assert triples(reading) == triples(quiet_read(SAMPLES / "individual")) and "read_once" in reading.notes


@pytest.mark.parametrize("path", ["collaborative", "collaborative/all.jsonl"])
def test_shared_annotations_have_lost_their_workers(path):
    reading = quiet_read(SAMPLES / path)
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 0, "excluded": {"no_worker": 2}}
    assert "does not name the workers" in reading.refusal
    assert reading.annotations.worker_ids.tolist() == []


def test_shared_records_without_labels(export):
    path = export(record(label=["a"]), record(2, label=[]), name="all.jsonl")
    assert quiet_read(path).ledger.excluded == {"no_worker": 1, "no_label": 1}


def test_members_that_are_nobody_do_not_spoil_the_rest(export):
    """`unknown` lists records without an annotator."""
    path = export(record(2, label=[]), record(3, label=["x"]), name="unknown.jsonl")
    export(record(), name="alice.jsonl")
    reading = quiet_read(path.parent)
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"no_worker": 1, "no_label": 1}}
    assert reading.annotations.worker_ids.tolist() == ["alice"] and reading.refusal is None


def test_a_file_given_alone_is_one_workers():
    reading = quiet_read(SAMPLES / "individual" / "alice.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"no_label": 1}}
    assert triples(reading) == [("1", "alice", "negative")]
    assert "names a file after the worker" in reading.notes["worker_from_name"]


def test_labels_of_a_csv_file_are_joined():
    path = SAMPLES / "individual" / "alice.csv"
    reading = quiet_read(path, question="label=refund")
    assert triples(reading) == [("1", "alice", "yes")]
    assert triples(quiet_read(path, combinations=True)) == [("1", "alice", "negative + refund")]
    assert "#" in reading.notes["joined_labels"]
    with pytest.raises(AnnotationError, match="have several choices"):
        quiet_read(path)


def test_csv_members_in_a_folder(tmp_path):
    (tmp_path / "ann.csv").write_text("id,text,label,Comments\n1,a,x,\n2,b,,\n", encoding="utf-8")
    (tmp_path / "bo.csv").write_text("id,text,label,Comments\n1,a,y,\n", encoding="utf-8")
    reading = quiet_read(tmp_path)
    assert triples(reading) == [("1", "ann", "x"), ("1", "bo", "y")]
    assert reading.ledger.excluded == {"no_label": 1} and "joined_labels" not in reading.notes


def test_annotations_by_users_with_numbers():
    reading = quiet_read(SAMPLES / "legacy_1x.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
    assert triples(reading) == [("15", "1", "7"), ("15", "2", "8")]
    assert "numbers" in reading.notes["numbered_labels"]


def test_several_labels_of_one_user_are_one_answer(export):
    given = [{"label": 7, "user": 1}, {"label": 8, "user": 1}, {"label": 9}, {"label": 7, "user": 2, "start_offset": 0}]
    path = export({"id": 1, "text": "a", "annotations": given}, {"id": 2, "text": "b", "annotations": []})
    reading = quiet_read(path, combinations=True)
    assert triples(reading) == [("1", "1", "7 + 8")]
    assert reading.ledger.excluded == {"region": 1, "no_worker": 1, "no_label": 1}


def test_labels_with_a_username():
    reading = quiet_read(SAMPLES / "legacy_2018.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert triples(reading) == [("20", "alice", "negative")]


@pytest.mark.parametrize(
    "spans",
    [
        {"label": [[0, 4, "PER"]]},
        {"label": [{"start_offset": 0, "end_offset": 4, "label": "PER"}]},
        {"label": None, "entities": [{"id": 1, "start_offset": 0}], "relations": []},
    ],
)
def test_spans_are_no_classes(export, spans):
    reading = quiet_read(export(record() | spans, name="alice.jsonl"))
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 0, "excluded": {"region": 1}}
    assert "has only spans, not classes of whole items" in reading.refusal


def test_an_item_by_a_key_of_the_meta_data():
    reading = quiet_read(SAMPLES / "individual", item="ref")
    assert reading.annotations.item_ids.tolist() == ["item-1", "item-2"] and reading.columns["item"] == "ref"


@pytest.mark.parametrize(
    ("objects", "options", "sentence"),
    [
        ([record()], {"item": "ref"}, "Field 'ref' is not in .*It has: id, text, label, Comments"),
        ([record(ref="a"), record()], {"item": "ref"}, "row 2 has no ref"),
        ([record()], {"worker": "x"}, 'so `worker="x"` has no meaning'),
        ([record()], {"label": "x"}, 'so `label="x"` has no meaning'),
        ([record(), record({})], {}, "row 2: id is an object"),
        ([{"id": 1, "text": "a", "annotations": [{"label": 1, "user": 1}, 3]}], {}, "row 1: annotations is not a list"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, objects, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        quiet_read(export(*objects), **options)


def test_a_table_of_another_kind_is_refused(tmp_path):
    (tmp_path / "votes.csv").write_text("id,text\n1,a\n", encoding="utf-8")
    with pytest.raises(AnnotationError, match="no column called label"):
        quiet_read(tmp_path / "votes.csv", format="doccano")


@pytest.mark.parametrize(
    "entry",
    [
        {"id": 1, "text": "a", "labels": [0, 1], "annotator_ids": ["a", "b"]},
        {"id": 1, "text": "a", "label": ["x"], "annotator": "ann"},
        {"id": 1, "text": "a", "label": [0, 1], "annotator_ids": ["a", "b"]},
        {"id": 1, "text": "a", "label": "x"},
        {"text": "a", "label": ["x"]},
        {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": []}]},
    ],
)
def test_files_of_others_are_not_claimed(export, entry):
    path = export(entry)
    assert recognise(open_document(path)) is None
    assert recognise(open_document(path.parent)) is None


def test_folders_of_others_are_not_claimed(export):
    """One file that is no member's, and the folder is not doccano's."""
    path = export(record(), name="alice.jsonl")
    assert recognise(open_document(path.parent)) == "doccano"
    (path.parent / "bo.csv").write_text("id,text,label\n1,a,x\n", encoding="utf-8")
    assert recognise(open_document(path.parent)) is None


def test_a_long_first_line_and_a_byte_order_mark(tmp_path):
    for name, start in (("alice", b""), ("bo", b"\xef\xbb\xbf")):
        line = json.dumps(record(text="long " * 2000)).encode()
        (tmp_path / f"{name}.jsonl").write_bytes(start + line + b"\n")
    assert len(triples(quiet_read(tmp_path))) == 2


def test_files_of_members_given_one_by_one():
    reading = quiet_read([SAMPLES / "individual" / "alice.jsonl", SAMPLES / "individual" / "bob.jsonl"])
    assert triples(reading) == triples(quiet_read(SAMPLES / "individual"))


@settings(max_examples=200)
@given(
    entries=broken_entries(
        SAMPLES / "individual/alice.jsonl", SAMPLES / "legacy_1x.jsonl", SAMPLES / "legacy_2018.jsonl"
    )
)
def test_whatever_is_broken_gives_one_of_our_errors(entries, tmp_path_factory):
    recognise(Records("odd.json", entries))
    check_broken(write_json(tmp_path_factory.getbasetemp() / "broken-doccano.json", entries), format="doccano")


@given(ANY_JSON)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None

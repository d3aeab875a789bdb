"""doccano: members by the names of their files, shared annotations, older shapes."""

import json
import warnings
import zipfile
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manyhands.exceptions import AnnotationError, CrowdWarning, ManyhandsError
from manyhands.io.documents import Records, open_document
from manyhands.io.formats.doccano import recognise
from manyhands.io.reading import read as read_aloud

SAMPLES = Path(__file__).parents[2] / "samples" / "doccano"


def read(path, **options):
    """A reading whose notes are not warned of; tests look at them by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return read_aloud(path, **options)


def labels_of(reading):
    """(item, worker, label) of every judgement that counts."""
    votes = reading.annotations
    columns = votes.item_ids[votes.item], votes.worker_ids[votes.worker], votes.classes[votes.label]
    return list(zip(*(column.tolist() for column in columns)))


@pytest.fixture
def export(tmp_path):
    """A function that writes objects as JSON lines."""

    def write(*objects, name="alice.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(entry) + "\n" for entry in objects), encoding="utf-8")
        return path

    return write


def record(item=1, label=("negative",), **more):
    return {"id": item, "text": f"text {item}", "label": list(label), "Comments": []} | more


def test_one_file_per_member():
    reading = read(SAMPLES / "individual")
    assert reading.format == "doccano"
    assert reading.ledger.as_dict() == {"rows_read": 4, "kept": 3, "excluded": {"no_label": 1}}
    assert labels_of(reading) == [("1", "alice", "negative"), ("1", "bob", "neutral"), ("2", "bob", "positive")]
    assert "alice.csv" in reading.notes["read_once"]
    assert reading.columns == {"item": "id", "worker": "the name of the file", "label": "label"}


def test_a_zip_reads_like_the_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "doccano.zip", "w") as archive:
        for path in sorted((SAMPLES / "individual").iterdir()):
            archive.write(path, path.name)
    reading = read(tmp_path / "doccano.zip")
    assert labels_of(reading) == labels_of(read(SAMPLES / "individual")) and "read_once" in reading.notes


@pytest.mark.parametrize("path", ["collaborative", "collaborative/all.jsonl"])
def test_shared_annotations_have_lost_their_workers(path):
    reading = read(SAMPLES / path)
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 0, "excluded": {"no_worker": 2}}
    assert "does not say whose labels these are" in reading.refusal
    assert reading.annotations.worker_ids.tolist() == []


def test_shared_records_without_labels(export):
    path = export(record(label=["a"]), record(2, label=[]), name="all.jsonl")
    assert read(path).ledger.excluded == {"no_worker": 1, "no_label": 1}


def test_members_that_are_nobody_do_not_spoil_the_rest(export):
    """`unknown` lists records without an annotator."""
    path = export(record(2, label=[]), record(3, label=["x"]), name="unknown.jsonl")
    export(record(), name="alice.jsonl")
    reading = read(path.parent)
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 1, "excluded": {"no_worker": 1, "no_label": 1}}
    assert reading.annotations.worker_ids.tolist() == ["alice"] and reading.refusal is None


def test_a_file_given_alone_is_one_workers():
    reading = read(SAMPLES / "individual" / "alice.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 1, "excluded": {"no_label": 1}}
    assert labels_of(reading) == [("1", "alice", "negative")]
    assert "names a file after the worker" in reading.notes["worker_from_name"]


def test_labels_of_a_csv_file_are_joined():
    path = SAMPLES / "individual" / "alice.csv"
    reading = read(path, question="label=refund")
    assert labels_of(reading) == [("1", "alice", "yes")]
    assert labels_of(read(path, combinations=True)) == [("1", "alice", "negative + refund")]
    assert "#" in reading.notes["joined_labels"]
    with pytest.raises(AnnotationError, match="have several choices"):
        read(path)


def test_csv_members_in_a_folder(tmp_path):
    (tmp_path / "ann.csv").write_text("id,text,label,Comments\n1,a,x,\n2,b,,\n", encoding="utf-8")
    (tmp_path / "bo.csv").write_text("id,text,label,Comments\n1,a,y,\n", encoding="utf-8")
    reading = read(tmp_path)
    assert labels_of(reading) == [("1", "ann", "x"), ("1", "bo", "y")]
    assert reading.ledger.excluded == {"no_label": 1} and "joined_labels" not in reading.notes


def test_annotations_by_users_with_numbers():
    reading = read(SAMPLES / "legacy_1x.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
    assert labels_of(reading) == [("15", "1", "7"), ("15", "2", "8")]
    assert "numbers" in reading.notes["numbered_labels"]


def test_several_labels_of_one_user_are_one_answer(export):
    given = [{"label": 7, "user": 1}, {"label": 8, "user": 1}, {"label": 9}, {"label": 7, "user": 2, "start_offset": 0}]
    path = export({"id": 1, "text": "a", "annotations": given}, {"id": 2, "text": "b", "annotations": []})
    reading = read(path, combinations=True)
    assert labels_of(reading) == [("1", "1", "7 + 8")]
    assert reading.ledger.excluded == {"region": 1, "no_worker": 1, "no_label": 1}


def test_labels_with_a_username():
    reading = read(SAMPLES / "legacy_2018.jsonl")
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}
    assert labels_of(reading) == [("20", "alice", "negative")]


@pytest.mark.parametrize(
    "spans",
    [
        {"label": [[0, 4, "PER"]]},
        {"label": [{"start_offset": 0, "end_offset": 4, "label": "PER"}]},
        {"label": None, "entities": [{"id": 1, "start_offset": 0}], "relations": []},
    ],
)
def test_spans_are_no_classes(export, spans):
    reading = read(export(record() | spans, name="alice.jsonl"))
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 0, "excluded": {"region": 1}}
    assert "marks spans" in reading.refusal


def test_an_item_by_a_key_of_the_meta_data():
    reading = read(SAMPLES / "individual", item="ref")
    assert reading.annotations.item_ids.tolist() == ["item-1", "item-2"] and reading.columns["item"] == "ref"


@pytest.mark.parametrize(
    ("objects", "options", "sentence"),
    [
        ([record()], {"item": "ref"}, "Field 'ref' is not in .*It has: id, text, label, Comments"),
        ([record(ref="a"), record()], {"item": "ref"}, "row 2 has no ref"),
        ([record()], {"worker": "x"}, "so --worker x has no meaning"),
        ([record()], {"label": "x"}, "so --label x has no meaning"),
        ([record(), record({})], {}, "row 2: id is an object"),
        ([{"id": 1, "text": "a", "annotations": [{"label": 1, "user": 1}, 3]}], {}, "row 1: annotations is not a list"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(export, objects, options, sentence):
    with pytest.raises(AnnotationError, match=sentence):
        read(export(*objects), **options)


def test_a_table_of_another_kind_is_refused(tmp_path):
    (tmp_path / "votes.csv").write_text("id,text\n1,a\n", encoding="utf-8")
    with pytest.raises(AnnotationError, match="no column called label"):
        read(tmp_path / "votes.csv", format="doccano")


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
    assert len(labels_of(read(tmp_path))) == 2


def test_files_of_members_given_one_by_one():
    reading = read([SAMPLES / "individual" / "alice.jsonl", SAMPLES / "individual" / "bob.jsonl"])
    assert labels_of(reading) == labels_of(read(SAMPLES / "individual"))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def broken(draw, value):
    """A copy in which some entries are gone or are something else."""
    value = deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        holder = value
        while holder:
            key = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
            if isinstance(holder[key], dict | list) and holder[key] and draw(st.integers(0, 3)):
                holder = holder[key]
                continue
            if draw(st.booleans()):
                del holder[key]
            else:
                holder[key] = draw(JUNK)
            break
    return value


@settings(max_examples=200)
@given(data=st.data())
def test_whatever_is_broken_gives_one_of_our_errors(data, tmp_path_factory):
    """Missing keys and values of other kinds are rows with a reason or one sentence, and every row is accounted for."""
    name = data.draw(st.sampled_from(["individual/alice.jsonl", "legacy_1x.jsonl", "legacy_2018.jsonl"]))
    value = open_document(SAMPLES / name).value
    value = data.draw(broken(value if isinstance(value, list) else [value]))
    recognise(Records("odd.json", value))
    path = tmp_path_factory.mktemp("broken") / "odd.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    try:
        ledger = read(path, format="doccano").ledger
    except ManyhandsError as error:
        assert 10 < len(str(error)) < 2000
    else:
        assert ledger.rows_read == ledger.kept + sum(ledger.excluded.values())


@given(JUNK)
def test_recognising_never_fails(value):
    assert recognise(Records("odd.json", value)) is None

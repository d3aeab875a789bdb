"""Published data sets: lists per item, Le-Wi-Di, peerannot, and votes that are only counted."""

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broken_exports import mutated, quiet_read, triples
from manyhands import registry
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ManyhandsError
from manyhands.io.documents import Records
from manyhands.io.formats import lists
from manyhands.io.judgements import ColumnOptions
from manyhands.io.reading import read_export

SAMPLES = Path(__file__).parents[2] / "samples"


def judged(value, format_name, options=None):
    return lists.read(Records("x.json", value), format_name, options or ColumnOptions())


@pytest.mark.parametrize(
    ("sample", "format_name", "expected"),
    [
        (
            "hf/lists_per_item.jsonl",
            "lists",
            [("item-1", f"u{w}", c) for w, c in ((1, "None"), (2, "Basic"), (3, "None"))],
        ),
        ("hf/lewidi.json", "lewidi", [("1", "Ann1", "1"), ("1", "Ann4", "0"), ("1", "Ann9", "1")]),
        ("hf/lewidi2025.json", "lewidi", [("1", "Ann1", "1"), ("1", "Ann4", "0")]),
        ("peerannot/answers.json", "peerannot", [("0", "0", "1"), ("0", "3", "2"), ("1", "3", "2")]),
        ("peerannot", "peerannot", [("0", "0", "1"), ("0", "3", "2"), ("1", "3", "2")]),
        (
            "hf/counts.jsonl",
            "counts",
            [
                ("item-1", f"vote {v}", c)
                for v, c in ((1, "offensive_language"), (2, "offensive_language"), (3, "neither"))
            ],
        ),
    ],
)
def test_samples(sample, format_name, expected):
    reading = quiet_read(SAMPLES / sample)
    assert reading.format == format_name
    assert triples(reading) == sorted(expected)
    assert reading.ledger.as_dict() == {"rows_read": len(expected), "kept": len(expected), "excluded": {}}
    assert reading.workers_known is (format_name != "counts")


def test_a_row_per_annotation_is_a_long_table():
    reading = quiet_read(SAMPLES / "hf" / "row_per_annotation.jsonl")
    assert (reading.format, triples(reading)) == ("long", [("item-1", "A17", "1")])
    assert reading.ledger.as_dict() == {"rows_read": 1, "kept": 1, "excluded": {}}


@pytest.mark.parametrize("sample", ["triples.csv", "crowdkit.csv"])
def test_long_samples(sample):
    reading = quiet_read(SAMPLES / "long" / sample)
    n_rows = {"triples.csv": 3, "crowdkit.csv": 1}[sample]
    assert reading.format == "long"
    assert reading.ledger.as_dict() == {"rows_read": n_rows, "kept": n_rows, "excluded": {}}
    assert reading.gold == ({"gold-7": "positive"} if sample == "triples.csv" else {})


class TestLists:
    def test_lengths_that_differ_are_named_by_the_item(self):
        entries = [{"id": "a", "users": ["u"], "ratings": [1]}, {"id": "b", "users": ["u", "v"], "ratings": [1]}]
        with pytest.raises(AnnotationError, match=r"item 'b': 2 worker\(s\) but 1 label\(s\)"):
            judged(entries, "lists")

    def test_items_without_votes_and_votes_without_a_label(self):
        entries = [
            {"id": 1, "workers": None, "labels": []},
            {"id": 2, "workers": ["u", "v"], "labels": [None, ["x", "y"]]},
        ]
        rows = judged(entries, "lists")
        assert rows.item.to_list() == ["1", "2", "2"]
        assert rows.worker.to_list() == [None, "u", "v"]
        assert rows.answers["labels"].to_list() == [None, None, ["x", "y"]]

    def test_other_names_and_no_id(self):
        entries = [{"who": ["u"], "what": ["x"]}, {"who": ["u"], "what": ["y"]}]
        rows = judged(entries, "lists", ColumnOptions(worker="who", label="WHAT"))
        assert rows.item.to_list() == ["1", "2"]
        assert rows.mapping == {"item": "the number of the entry", "worker": "who[]", "label": "what[]"}
        with pytest.raises(AnnotationError, match="no list of workers under a usual name"):
            judged(entries, "lists")

    def test_parquet_with_columns_of_lists(self, tmp_path):
        path = tmp_path / "votes.parquet"
        pl.DataFrame({"id": [1, 2], "annotators": [["u", "v"], []], "labels": [[0, 1], []]}).write_parquet(path)
        reading = quiet_read(path)
        assert (reading.format, triples(reading)) == ("lists", [("1", "u", "0"), ("1", "v", "1")])
        assert reading.ledger.excluded == {"no_label": 1}

    @pytest.mark.parametrize(
        ("entry", "said"),
        [
            ({"id": None, "workers": ["u"], "labels": ["x"]}, "entry 2: no id"),
            ({"id": "b", "workers": "u", "labels": ["x"]}, "item 'b': workers is not a list but str"),
            ({"id": "b", "workers": "[u]", "labels": ["x"]}, "item 'b': workers is not a list in JSON"),
            ({"id": "b", "workers": [""], "labels": ["x"]}, "item 'b': a label without a worker"),
            ({"id": "b", "workers": [["u"]], "labels": ["x"]}, "item 'b': a list in place of a worker"),
            ({"id": "b", "workers": ["u"], "labels": [{"x": 1}]}, "item 'b': a dict in place of"),
        ],
    )
    def test_entries_that_are_refused(self, entry, said):
        with pytest.raises(AnnotationError, match=said):
            judged([{"id": "a", "workers": ["u"], "labels": ["x"]}, entry], "lists")

    def test_a_long_table_with_roles_is_left_to_others(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("item,worker,label,a_count,b_count,count\n1,ann,cat,0,1,1\n")
        assert quiet_read(path).format == "long"


class TestObjects:
    def test_commas_and_gaps(self):
        entry = {"annotators": "A, B,C", "annotations": "1,,-1"}
        rows = judged({"7": entry, "8": {"annotators": "", "annotations": ""}}, "lewidi")
        assert rows.worker.to_list() == ["A", "B", "C", None]
        assert rows.answers["label"].to_list() == ["1", "", "-1", None]

    def test_lengths_that_differ(self):
        with pytest.raises(AnnotationError, match=r"item '7': 2 worker\(s\) but 1 label\(s\)"):
            judged({"7": {"annotators": "A,B", "annotations": "1"}}, "lewidi")

    def test_labels_by_worker_may_be_several_or_none(self):
        rows = judged({"7": {"annotators": "A,B", "annotations": {"A": ["x", "y"], "B": None}}}, "lewidi")
        assert rows.answers["label"].to_list() == [["x", "y"], None]

    def test_an_entry_that_is_no_object(self):
        with pytest.raises(AnnotationError, match="item '1': not an object but int"):
            judged({"0": {"w": 1}, "1": 5}, "peerannot")

    def test_the_description_of_a_data_set_is_not_its_answers(self):
        with pytest.raises(
            AnnotationError, match=r"metadata\.json describes a data set; its answers are in answers\.json"
        ):
            read_export(SAMPLES / "peerannot" / "metadata.json")

    def test_wishes_without_a_meaning(self):
        with pytest.raises(AnnotationError, match='`worker="x"` has no meaning'):
            judged({"0": {"w": 1}}, "peerannot", ColumnOptions(worker="x"))


class TestCounts:
    def test_a_vote_is_a_row_and_an_item_without_votes_has_none(self):
        entries = [
            {"id": "a", "x_count": 2, "y_count": 1, "count": 3},
            {"id": "b", "x_count": 0, "y_count": None, "count": 0},
            {"id": "c", "x_count": "0", "y_count": 1.0, "count": 1},
        ]
        rows = judged(entries, "counts")
        assert rows.item.to_list() == ["a", "a", "a", "b", "c"]
        assert rows.worker.to_list() == ["vote 1", "vote 2", "vote 3", None, "vote 1"]
        assert rows.answers["label"].to_list() == ["x", "x", "y", None, "y"]
        assert not rows.workers_known

    def test_the_majority_can_be_found(self, tmp_path):
        path = tmp_path / "x.csv"
        path.write_text("tweet_id,hate_count,fine_count,count\n1,2,1,3\n2,0,3,3\n")
        with pytest.warns(CrowdWarning, match="workers_unknown"):
            labels = read_export(path, item="tweet_id").annotations
        assert registry.create("majority-vote").fit_predict(labels).tolist() == ["hate", "fine"]

    @pytest.mark.parametrize(
        ("entry", "said"),
        [
            ({"id": "b", "x_count": 1, "y_count": 1, "count": 3}, r"item 'b': 2 votes .* count is 3; 1 such item"),
            ({"id": "b", "x_count": -1, "y_count": 1, "count": 0}, "item 'b': x_count is '-1'"),
            ({"id": "b", "x_count": "many", "y_count": 1, "count": 0}, "item 'b': x_count is 'many'"),
            ({"id": "b", "x_count": 1e300, "y_count": 1, "count": 0}, r"item 'b': x_count is '1e\+300'"),
        ],
    )
    def test_counts_that_are_refused(self, entry, said):
        with pytest.raises(AnnotationError, match=said):
            judged([{"id": "a", "x_count": 1, "y_count": 1, "count": 2}, entry], "counts")

    def test_more_votes_than_memory(self):
        with pytest.raises(LimitError, match="counts 999,999,999 votes"):
            judged([{"id": "a", "x_count": 999_999_999, "y_count": 0, "count": 999_999_999}], "counts")

    def test_without_a_total_or_an_id(self):
        rows = judged([{"x_count": 1, "y_count": 1}], "counts")
        assert (rows.item.to_list(), rows.mapping["item"]) == (["1", "1"], "the number of the row")

    def test_a_table_that_counts_nothing(self):
        with pytest.raises(AnnotationError, match="no column that ends in _count"):
            judged([{"id": 1, "votes": 2}], "counts")
        assert lists.is_counts(Records("x", [{"like_count": 1, "share_count": 2}])) is False


VALUES = [json.loads((SAMPLES / name).read_text()) for name in ("hf/lewidi.json", "hf/lewidi2025.json")]
VALUES += [json.loads((SAMPLES / "peerannot" / "answers.json").read_text())]
VALUES += [[json.loads((SAMPLES / "hf" / name).read_text())] for name in ("lists_per_item.jsonl", "counts.jsonl")]


@given(st.sampled_from(VALUES).flatmap(mutated), st.sampled_from(["lists", "lewidi", "peerannot", "counts"]))
def test_nothing_but_sentences_for_a_broken_file(value, format_name):
    found = lists.recognise(Records("x.json", value))
    assert found in (None, "lists", "lewidi", "peerannot", "counts")
    try:
        assert judged(value, found or format_name).format == (found or format_name)
    except ManyhandsError as error:
        assert len(str(error)) > 20


def table_of(tmp_path, header, *rows):
    frame = pl.DataFrame(list(rows), schema=header, orient="row")
    frame.write_csv(tmp_path / "x.csv")
    return tmp_path / "x.csv"


@pytest.mark.parametrize(
    "header", [["item", "worker", "label"], ["id", "annotator", "answer"], ["task", "user", "label"]]
)
def test_names_in_brackets_are_names(tmp_path, header):
    """[bot] is a worker, and [none] a label; nothing in quotes, and no number, makes them lists."""
    rows = [("1", "[bot]", "[none]"), ("1", "ann", "[cat, dog]"), ("2", "[bot]", "[true]"), ("2", "ann", "[null]")]
    reading = quiet_read(table_of(tmp_path, header, *rows))
    assert reading.format == "long"
    assert triples(reading) == sorted(rows)


def test_a_few_cells_that_could_be_lists(tmp_path):
    """Among names they are names, too."""
    rows = [("1", "ann", "[1]"), ("2", "ann", "[bot]"), ("3", "[7]", "[bot]"), ("4", "[bob]", "cat")]
    reading = quiet_read(table_of(tmp_path, ["item", "worker", "label"], *rows))
    assert (reading.format, triples(reading)) == ("long", sorted(rows))


@pytest.mark.parametrize(
    ("workers", "labels"),
    [
        ('["u", "v"]', '["x", "y"]'),
        ("['u', 'v']", "['x', 'y']"),
        (" ['u','v',] ", "[\"x\", 'y']"),
        ("['\\x75', \"v\"]", "['x', 'y']"),
    ],
)
def test_lists_in_cells_as_json_and_as_python_writes_them(tmp_path, workers, labels):
    path = table_of(tmp_path, ["id", "annotators", "labels"], ("a", workers, labels), ("b", "[]", "[]"))
    reading = quiet_read(path)
    assert reading.format == "lists"
    assert triples(reading) == [("a", "u", "x"), ("a", "v", "y")]


def test_numbers_and_nothing_in_lists_of_python(tmp_path):
    path = table_of(
        tmp_path, ["id", "annotators", "labels"], ("a", "['u', 'v', 'w']", "[12345678901234567890123, None, True]")
    )
    assert triples(quiet_read(path)) == [("a", "u", "12345678901234567890123"), ("a", "w", "true")]


@pytest.mark.parametrize("cell", ["['u' 'v']", "['u', [", "['u", "[u, v]", "['u'] + ['v']", "['\\ud800']", "[" * 10**5])
def test_a_cell_that_is_no_list_among_lists(tmp_path, cell):
    rows = [("a", "['u']", "['x']"), ("b", cell, "['x']")]
    with pytest.raises(AnnotationError, match="item 'b': annotators is not a list in JSON"):
        quiet_read(table_of(tmp_path, ["id", "annotators", "labels"], *rows))

"""Labels and workers in one spelling: maps of labels, merged spellings, stray classes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io import read_export
from manyhands.io.row_filtering import fold_class, fold_id
from manyhands.io.side_tables import read_label_map

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


def table(*rows):
    return pl.DataFrame(rows, schema=["item", "worker", "label"], orient="row")


MESSY = table(
    ("1", "Ann", "Yes"),
    ("1", "bob", "yes"),
    ("2", "ann ", "YES."),
    ("2", "bob", "no"),
    ("3", "Ann", "Yes"),
    ("3", "bob", " No"),
    ("3", "cem", "no"),
)


def test_spellings_are_kept_apart_with_a_note_that_names_the_option():
    reading = read_export(MESSY)
    assert reading.annotations.n_classes == 5 and reading.annotations.n_workers == 4
    classes, workers = reading.notes["look_alike_classes"], reading.notes["look_alike_workers"]
    assert classes.startswith("5 classes differ") and "'Yes' and 'YES.' and 'yes'" in classes
    assert "`merge_spellings=True`" in classes and "`label_map=`" in classes
    assert workers.startswith("2 worker ids differ") and "'Ann' and 'ann '" in workers and "label_map" not in workers


def test_merged_spellings_take_the_most_frequent_one_and_say_so():
    reading = read_export(MESSY, merge_spellings=True)
    assert reading.annotations.classes.tolist() == ["Yes", "no"]
    assert reading.annotations.worker_ids.tolist() == ["Ann", "bob", "cem"]
    assert reading.ledger.kept == 7
    assert "'YES.' and 'yes' into 'Yes'" in reading.notes["merged_classes"]
    assert "'ann ' into 'Ann'" in reading.notes["merged_workers"]
    assert reading.renamed == {"label": {"YES.": "Yes", "yes": "Yes", " No": "no"}, "worker": {"ann ": "Ann"}}
    assert not {"look_alike_classes", "look_alike_workers"} & reading.notes.keys()


def test_merging_workers_finds_their_second_answers():
    reading = read_export(table(("1", "ann", "a"), ("1", "ANN", "b"), ("2", "ann", "a")), merge_spellings=True)
    assert reading.ledger.excluded == {"duplicate": 1} and reading.annotations.n_workers == 1


def test_a_map_comes_first_and_an_empty_name_means_no_label():
    given = {"YES.": "yes", "no": "", "maybe": "yes"}
    reading = read_export(MESSY, label_map=given)
    assert reading.annotations.classes.tolist() == [" No", "Yes", "yes"]
    assert reading.ledger.excluded["no_label"] == 2  # " No" differs in case, too
    assert "'maybe'" in reading.notes["label_map_unused"]
    both = read_export(MESSY, label_map={"YES.": "yes"}, merge_spellings=True)
    assert both.annotations.classes.tolist() == ["Yes", "no"] and both.renamed["label"]["YES."] == "Yes"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("yes", "YES ", True),
        ("caf\u00e9", "cafe\u0301", True),
        ("yes", "yes.", True),
        ("stra\u00dfe", "STRASSE", True),
        ("A", "A-", False),
        ("C", "C#", False),
        (":)", ":(", False),
        ("1", "1.0", False),
        ("!", "", False),
    ],
)
def test_what_counts_as_another_spelling(one, other, alike):
    assert (fold_class(one) == fold_class(other)) == alike


def test_final_punctuation_distinguishes_workers():
    assert fold_id("w1.") != fold_id("w1") and fold_id("W1 ") == fold_id("w1")


def test_classes_that_differ_only_in_rows_that_do_not_count_get_no_note():
    export = MESSY.filter(pl.col("label").is_in(["Yes", "no"]))
    assert "look_alike_classes" not in read_export(export).notes


def test_gold_follows_the_names_of_the_labels(tmp_path):
    (tmp_path / "labels.csv").write_text(MESSY.write_csv())
    (tmp_path / "gold.csv").write_text("item,label\n1,YES.\n2,no\n")
    from manyhands.jobs.options import ExportOptions, collect_gold

    reading = ExportOptions(merge_spellings=True).read(tmp_path / "labels.csv")
    assert collect_gold(reading, tmp_path / "gold.csv", use_own=False) == {"1": "Yes", "2": "no"}


def crowd(n_items=7000, strays=(("0", "w0", "5"), ("1", "w1", "10"), ("2", "w0", "10"))):
    """Three workers, n_items items, labels 0 to 3, and a few others in place of some of them."""
    rows = {(str(i), f"w{w}"): str((i + (w == 2)) % 4) for i in range(n_items) for w in range(3)}
    rows.update({(item, worker): label for item, worker, label in strays})
    return table(*((item, worker, label) for (item, worker), label in rows.items()))


def test_labels_of_stray_classes_are_left_out_and_their_items_kept():
    # 21,000 labels: one label is fewer than 1 in 20,000, two are not
    reading = read_export(crowd())
    assert reading.annotations.classes.tolist() == ["0", "1", "10", "2", "3"]
    assert reading.ledger.excluded == {"stray_class": 1} and reading.annotations.n_items == 7000
    note = reading.notes["stray_classes"]
    assert (
        note.startswith("'5' (1 label) among 21000 labels") and "`rare_classes=` decides" in note and "left out" in note
    )


def test_a_class_that_two_workers_chose_for_one_item_is_no_stray():
    strays = [("0", "w0", "5"), ("1", "w1", "5"), ("9", "w0", "10"), ("9", "w1", "10")]
    reading = read_export(crowd(14_500, strays))
    assert "10" in reading.annotations.classes and "5" not in reading.annotations.classes
    assert reading.ledger.excluded == {"stray_class": 2}


@pytest.mark.parametrize("named", [{"classes": ["0", "1", "2", "3", "5", "10"]}, {"rare_classes": "keep"}])
def test_classes_that_the_caller_names_or_keeps_stay(named):
    reading = read_export(crowd(), **named)
    assert "5" in reading.annotations.classes and reading.ledger.excluded == {}


def test_stray_labels_can_be_merged_or_refused():
    reading = read_export(crowd(), rare_classes="merge:3")
    assert "5" not in reading.annotations.classes and reading.ledger.excluded == {} and reading.ledger.kept == 21_000
    with pytest.raises(
        AnnotationError, match=r"'5' \(1 label\) among 21000 .* It was refused, as `rare_classes=.error.` asks"
    ):
        read_export(crowd(), rare_classes="error")
    with pytest.raises(AnnotationError, match="no other class 'x'"):
        read_export(crowd(), rare_classes="merge:x")
    with pytest.raises(ParameterError, match="`rare_classes` is 'drp'"):
        read_export(crowd(10), rare_classes="drp")


def test_many_rare_classes_are_not_stray():
    """Free text: one label in 500 is a class of its own."""
    at = pl.int_range(pl.len())
    rows = crowd().with_columns(label=pl.when(at % 500 == 0).then(pl.format("t{}", at)).otherwise("label"))
    assert read_export(rows).ledger.excluded == {}


def test_stray_classes_of_integers():
    reading = read_export(crowd(), types={"label": int})
    assert reading.annotations.classes.tolist() == [0, 1, 2, 3, 10] and reading.ledger.excluded == {"stray_class": 1}


def test_posteriors_are_as_if_the_stray_labels_were_not_there():
    votes = mh.read_annotations(crowd())
    without = mh.read_annotations(crowd().filter(pl.col("label") != "5"))
    assert np.array_equal(mh.DawidSkene().fit(votes).posterior_, mh.DawidSkene().fit(without).posterior_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("old,new\na,b\n", "has no column from, to"),
        ("from,to\na,b\na,c\n", "'a' is renamed to both 'b' and 'c'"),
        ("from,to\n,b\n", '"from" is empty'),
        ("from,to\n", "renames no label|no rows|empty"),
    ],
)
def test_bad_label_maps_get_one_sentence(tmp_path, text, message):
    (tmp_path / "map.csv").write_text(text)
    with pytest.raises(AnnotationError, match=message):
        read_label_map(tmp_path / "map.csv")


def test_a_label_map_is_read_with_spaces_and_empty_targets(tmp_path):
    (tmp_path / "map.csv").write_text("From ,to\n yes,Yes \nn/a,\n")
    assert read_label_map(tmp_path / "map.csv") == {"yes": "Yes", "n/a": ""}

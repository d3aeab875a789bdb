"""Which rows count, in which order they are looked at, whose values the codes stand for, and the ledger of all rows."""

import numpy as np
import polars as pl
import pytest

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.judgements import Judgements
from manyhands.io.row_filtering import Ledger, ReadOptions, code_rows, filter_rows

pytestmark = pytest.mark.fast


def rows(*entries):
    """Rows of item, worker, label and, where given, reason and time."""
    columns = list(zip(*(entry + (None,) * (5 - len(entry)) for entry in entries)))
    item, worker, label, reason = (pl.Series(column, dtype=pl.String) for column in columns[:4])
    time = pl.Series(columns[4], dtype=pl.Int64)
    made = Judgements("votes.csv", "long", item, worker, {"q": label}, reason=reason, time=time)
    return made, label


def kept(*entries, **settings):
    judgements, labels = rows(*entries)
    chosen = ReadOptions(**settings)
    annotations, ledger, *_ = filter_rows(judgements, code_rows(judgements, labels, chosen), chosen)
    codes = zip(annotations.item.tolist(), annotations.worker.tolist(), annotations.label.tolist())
    ids, who, classes = (v.tolist() for v in (annotations.item_ids, annotations.worker_ids, annotations.classes))
    return [(ids[i], who[w], classes[k]) for i, w, k in codes], ledger, annotations


def test_every_row_has_one_reason():
    """The format's own reason comes first, then blank lines, open answers and repeats."""
    found, ledger, _ = kept(
        ("1", "a", "x"),
        ("1", "a", "y"),
        ("1", "b", ""),
        ("2", None, None),
        (None, None, None),
        ("1", "c", "x", "draft"),
        ("1", "m", "x", "prediction"),
        ("3", "g", "y", "gold_account"),
    )
    assert found == [("1", "a", "y")]
    assert ledger.as_dict() == {
        "rows_read": 8,
        "kept": 1,
        "excluded": {"prediction": 1, "gold_account": 1, "draft": 1, "blank": 1, "no_label": 2, "duplicate": 1},
    }


def test_items_stay_and_outsiders_are_no_workers():
    """An item that only a model or a reviewer saw is one to label; neither of them is a worker."""
    _, _, annotations = kept(
        ("1", "a", "x"), ("2", "m", "x", "prediction"), ("3", "g", "y", "gold_account"), ("4", "d", "x", "draft")
    )
    assert annotations.item_ids.tolist() == ["1", "2", "3", "4"] and annotations.worker_ids.tolist() == ["a", "d"]
    assert annotations.classes.tolist() == ["x"]


@pytest.mark.parametrize(("policy", "expected"), [("last", ["z"]), ("first", ["x"]), ("all", ["x", "y", "z"])])
def test_time_decides_which_answer_is_the_later_one(policy, expected):
    """Then the order in the file; a row without a time is taken for the older one."""
    entries = [("1", "a", "z", None, 30), ("1", "a", "y", None, 20), ("1", "a", "x", None, None)]
    assert [label for _, _, label in kept(*entries, duplicates=policy)[0]] == expected
    in_order = [("1", "a", label, None, None) for label in "xyz"]
    assert [label for _, _, label in kept(*in_order, duplicates=policy)[0]] == expected


def test_repeats_can_be_refused():
    """The sentence names the first of them."""
    with pytest.raises(AnnotationError, match="row 3 after the header: worker 'a' labels item '1' again; 1 such"):
        kept(("1", "a", "x"), ("2", "a", "x"), ("1", "a", "x"), duplicates="error")
    assert kept(("1", "a", "x"), ("2", "a", "x"), duplicates="error")[1].kept == 2


def test_words_for_nothing():
    """What the user says means nothing means nothing."""
    _, ledger, annotations = kept(("1", "a", "NA"), ("1", "b", "x"), missing=("NA",))
    assert ledger.excluded == {"no_label": 1} and annotations.classes.tolist() == ["x"]


@pytest.mark.parametrize(("entry", "role"), [((None, "a", "x"), "item"), (("1", " ", "x"), "worker")])
def test_a_label_needs_an_item_and_a_worker(entry, role):
    """The row is named, and how many there are."""
    with pytest.raises(AnnotationError, match=rf"row 2 after the header: the {role} \({role}\) is blank.*1 such row"):
        kept(("1", "a", "x"), entry)


def test_other_types_can_be_asked_for():
    """Text that means the same value is then the same class."""
    found, _, annotations = kept(("1", "a", "1"), ("2", "a", "01"), types={"label": int, "item": int})
    assert found == [(1, "a", 1), (2, "a", 1)] and annotations.item_ids.tolist() == [1, 2]
    with pytest.raises(AnnotationError, match="The label 'x' is not int"):
        kept(("1", "a", "x"), types={"label": int})
    with pytest.raises(ParameterError, match="`types` names"):
        ReadOptions(types={"task": int})


def test_the_caller_decides_the_order():
    """Item i is row i of the caller's X; an item without a row is refused, and text is no number."""
    ids = {"item": ["2", "1", "0"], "label": ["y", "x"]}
    _, _, annotations = kept(("1", "a", "x"), ("2", "a", "y"), ids=ids)
    assert annotations.item_ids.tolist() == ["2", "1", "0"] and annotations.label.tolist() == [0, 1]
    assert annotations.n_labels.tolist() == [1, 1, 0]
    with pytest.raises(AnnotationError, match=r"'3'.* not among the given item_ids"):
        kept(("3", "a", "x"), ids=ids)
    with pytest.raises(AnnotationError, match="Ids are read as text unless `types=` says otherwise"):
        kept(("1", "a", "x"), ids={"item": np.arange(3)})


def test_policies_are_checked():
    """A policy nobody knows is named with those there are."""
    with pytest.raises(ParameterError, match="`duplicates` is 'newest'; allowed are last, first, all, share, error"):
        ReadOptions(duplicates="newest")


def test_repeats_are_seen_in_the_type_that_was_asked_for():
    """Workers 1 and 01 are one worker, who answers again."""
    found, ledger, _ = kept(("1", "1", "x"), ("1", "01", "y"), types={"worker": int})
    assert found == [("1", 1, "y")] and ledger.excluded == {"duplicate": 1}


def test_votes_of_nobody_repeat_nobody():
    """Where workers are not known, two votes of the same number are two votes."""
    judgements, labels = rows(("1", "vote 1", "x"), ("1", "vote 1", "y"))
    judgements.workers_known = False
    _, ledger, *_ = filter_rows(judgements, code_rows(judgements, labels, ReadOptions()), ReadOptions())
    assert ledger.kept == 2


def test_rows_that_vanish_are_an_error():
    """A ledger that does not add up cannot be made."""
    with pytest.raises(AssertionError, match="2 rows are unaccounted for"):
        Ledger(rows_read=5, kept=2, excluded={"duplicate": 1})


def test_the_sentence_names_every_reason():
    """What a person reads has all the counts."""
    text = str(Ledger(5, 2, {"no_label": 2, "duplicate": 1}))
    assert text == "5 rows read, 2 kept, 2 no label, 1 duplicate"

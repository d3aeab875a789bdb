"""Labels that mean that a worker looked and gave no label: no class, counted for a reason of their own."""

import warnings

import numpy as np
import polars as pl
import pytest

import manyhands as mh
from manyhands.exceptions import CrowdWarning
from manyhands.io import read_export


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return read_export(*args, **options)


def table(labels, items="aabbcc", workers="121212"):
    return pl.DataFrame({"item": list(items), "worker": list(workers), "label": labels})


def test_abstentions_are_counted_and_their_items_and_workers_stay():
    reading = quiet(table(["x", "abstain", " abstain", "abstain", "", "y"]), abstain="abstain")
    assert reading.ledger.as_dict() == {"rows_read": 6, "kept": 2, "excluded": {"abstained": 3, "no_label": 1}}
    votes = reading.annotations
    assert votes.item_ids.tolist() == ["a", "b", "c"] and votes.classes.tolist() == ["x", "y"]
    assert "class_like_abstention" not in reading.notes


def test_an_abstention_is_no_second_answer_and_does_not_stand_in_the_way_of_a_type():
    reading = quiet(table(["1", "abstain", "2"], "aaa", "111"), abstain=["abstain"], types={"label": int})
    assert reading.ledger.excluded == {"abstained": 1, "duplicate": 1} and reading.annotations.classes.tolist() == [2]


def test_abstentions_of_a_matrix_are_counted(tmp_path):
    (tmp_path / "votes.csv").write_text("item,f1,f2,f3\na,0,-1,0\nb,-1,1,1\n")
    assert quiet(tmp_path / "votes.csv", abstain="-1").ledger.excluded == {"abstained": 2}
    assert quiet(tmp_path / "votes.csv").ledger.excluded == {"no_label": 2}


def test_a_word_that_no_row_has_gets_a_note():
    with pytest.warns(CrowdWarning, match="no_abstention"):
        assert read_export(table(["x"] * 6), abstain=["skip"]).ledger.kept == 6


def test_classes_that_look_like_abstentions_get_a_note():
    """By their name, or because workers use one class each beside them; a grade -1 is none."""
    assert "class_like_abstention" in quiet(table(["x", "Abstain", "y"] * 2)).notes
    rng = np.random.default_rng(0)
    own, shape = np.arange(6) % 2, (200, 6)
    functions = np.where(rng.random(shape) < 0.3, own, -1)
    grades = rng.integers(-1, 2, shape)
    item, worker = (index.ravel().tolist() for index in np.indices(shape))
    for labels, found in ((functions, True), (grades, False)):
        frame = pl.DataFrame({"item": item, "worker": worker, "label": labels.ravel().tolist()})
        assert ("class_like_abstention" in quiet(frame).notes) == found
    marks = np.array(["fine", "spam", "hate"])[functions + 1].ravel().tolist()
    named = quiet(pl.DataFrame({"item": item, "worker": worker, "label": marks})).notes
    assert "'fine'" in named["class_like_abstention"] and "'spam'" not in named["class_like_abstention"]
    frame = pl.DataFrame({"item": item, "worker": worker, "label": functions.ravel().tolist()})
    votes = quiet(frame, abstain="-1").annotations
    three = (
        np.array(["fine", "spam", "hate", "nude"])[np.where(functions < 0, 0, np.arange(6) % 3 + 1)].ravel().tolist()
    )
    silent = pl.DataFrame({"item": item, "worker": worker, "label": three}).filter(pl.col("label") != "fine")
    assert "class_like_abstention" not in quiet(silent).notes  # nobody uses two classes
    with pytest.warns(CrowdWarning, match="one_class_workers"):
        mh.PooledDawidSkene().fit(votes)

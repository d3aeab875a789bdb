"""What is written about items and workers, and JSON that may be shown on a terminal."""

import csv
import io
import json
import sys

import numpy as np
import polars as pl
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from manyhands import Annotations, DawidSkene, MajorityVote
from manyhands.exceptions import AnnotationError, MissingExtraError, NotFittedError, ParameterError
from manyhands.io.write.results import (
    count_components,
    label_frame,
    summary,
    to_csv,
    to_json,
    training_frame,
    worker_frame,
)

pytestmark = pytest.mark.fast

HOSTILE = [
    "007",
    "=1+1",
    'say "hi"',
    "a,b",
    "two\nlines",
    " padded ",
    "\u00e9",
    "e\u0301",
    "🙂",
    "\u202eabc",
    "x" * 10_000,
]


def fitted():
    items = [item for item in HOSTILE for _ in range(3)]
    votes = Annotations.from_triples(
        items, ["ann", "bob", "cy"] * len(HOSTILE), ["None", "None", "NA"] * len(HOSTILE), item_ids=[*HOSTILE, "silent"]
    )
    return DawidSkene().fit(votes), votes


def test_ids_come_back_byte_for_byte():
    """A CSV reader gets back the very ids that went in, however hostile, and full probabilities."""
    model, _ = fitted()
    rows = list(csv.DictReader(io.StringIO(to_csv(label_frame(model)).decode(), newline="")))
    assert [row["item"] for row in rows] == [*HOSTILE, "silent"]
    assert list(rows[0]) == ["item", "label", "confidence", "n_labels", "alerts", "p_NA", "p_None"]
    assert rows[0]["label"] == "None" and rows[0]["n_labels"] == "3"
    assert rows[-1]["label"] == "" and rows[-1]["alerts"] == "unlabelled"
    assert all(abs(float(row["p_NA"]) + float(row["p_None"]) - 1) < 2e-6 for row in rows)


def test_workers_have_volume_accuracy_and_recalls():
    """The scorecard has a row for every worker."""
    model, _ = fitted()
    table = worker_frame(model)
    assert table.columns[:6] == ["worker", "n_labels", "n_checked", "accuracy", "accuracy_low", "accuracy_high"]
    assert table.columns[-3:] == ["items_NA", "recall_None", "items_None"]
    assert table["n_labels"].to_list() == [len(HOSTILE)] * 3
    assert (table["accuracy_low"] < table["accuracy"]).all() and (table["accuracy"] < table["accuracy_high"]).all()


def test_summary_counts_what_is_there():
    """The summary adds up."""
    model, _ = fitted()
    told = summary(model, "dawid-skene")
    assert told["n_items"] == len(HOSTILE) + 1 and told["n_unlabelled"] == 1
    assert sum(told["labels"].values()) == len(HOSTILE)


def test_classes_that_print_alike_are_refused():
    """1 and "1" would share a column, and one of them would be lost."""
    votes = Annotations.from_triples([1, 1, 2], ["a", "b", "a"], [1, "1", "2"])
    model = MajorityVote().fit(votes)
    for table in (label_frame, worker_frame, lambda model: summary(model, "majority-vote")):
        with pytest.raises(AnnotationError, match="1 and '1' have the same text") as error:
            table(model)
        assert "\n" not in str(error.value)


def test_every_summary_is_json():
    """NumPy's numbers become Python's; what JSON has no number for becomes null or a word."""
    votes = Annotations.from_triples([1, 1, 2], ["a", "b", "a"], np.array([True, False, True]))
    model = DawidSkene().fit(votes)
    model.smoothing = np.float64("inf")
    model.max_iter = np.int64(7)
    model.tol = {"deep": [np.nan, (np.bool_(True), np.arange(2))]}
    model.converged_, model.n_iter_ = np.bool_(True), np.int64(3)
    told = json.loads(json.dumps(summary(model, "dawid-skene"), allow_nan=False))
    assert told["converged"] is True and told["n_iter"] == 3 and told["labels"] == {"True": 2}
    assert told["parameters"]["smoothing"] == "inf" and told["parameters"]["max_iter"] == 7
    assert told["parameters"]["tol"] == {"deep": [None, [True, [0, 1]]]}


def test_long_class_names_are_counted_apart():
    """A trailing NUL, which NumPy's own text would lose, tells two classes apart."""
    votes = Annotations.from_triples([1, 2, 3], ["a", "a", "b"], ["x", "x\0", "y" * 10_000])
    with pytest.warns(match="no_redundancy"):
        model = MajorityVote().fit(votes)
    assert summary(model, "majority-vote")["labels"] == {"x": 1, "x\0": 1, "y" * 10_000: 1}


def test_components_are_counted():
    """Two crowds that share nobody are two; items and workers without labels are none."""
    votes = Annotations.from_triples([1, 1, 2], ["a", "b", "c"], [0, 1, 0], item_ids=[1, 2, 3])
    assert count_components(votes) == 2
    assert count_components(Annotations.from_triples([1, 1, 2], ["a", "b", "b"], [0, 1, 0])) == 1


def test_connected_components_are_those_of_scipy():
    """Of chains, whose ends are far apart, in an order that joins few at a time, and of sparse random graphs."""
    rng = np.random.default_rng(0)
    chain = rng.permutation(200)
    graphs = [(np.repeat(np.arange(199), 2), np.column_stack([chain[:-1], chain[1:]]).ravel())]
    graphs += [(rng.integers(0, 60, n), rng.integers(0, 50, n)) for n in (1, 20, 40, 60, 90)]
    for item, worker in graphs:
        votes = Annotations.from_triples(item, worker, np.zeros(len(item), int), duplicates="all")
        edges = coo_array((np.ones(votes.n_annotations), (votes.item, votes.worker + votes.n_items)), (500, 500))
        n_single = 500 - votes.n_items - votes.n_workers
        assert count_components(votes) == connected_components(edges)[0] - n_single


def test_labels_train_any_classifier():
    """Hard labels weigh what is known of them; soft ones are all classes, and the weights of an item sum to 1."""
    model, _ = fitted()
    hard = training_frame(model)
    assert hard.columns == ["item", "label", "weight"] and hard["item"].to_list() == HOSTILE
    assert np.allclose(hard["weight"], model.posterior_[:-1].max(axis=1))
    soft = training_frame(model, soft=True)
    assert np.allclose(soft.group_by("item").agg(pl.col("weight").sum())["weight"], 1.0)
    assert set(soft["label"]) <= {"NA", "None"}
    with pytest.raises(NotFittedError):
        training_frame(DawidSkene())


def test_frames_are_keyed_for_who_wants_pandas(monkeypatch):
    """Items and workers are the index; another library is refused, and so is pandas where there is none."""
    model, _ = fitted()
    assert label_frame(model, library="pandas").loc["007", "label"] == "None"
    assert worker_frame(model, library="pandas").index.tolist() == ["ann", "bob", "cy"]
    assert training_frame(model, library="pandas").index.name == "item"
    with pytest.raises(ParameterError, match="no library called 'excel'"):
        label_frame(model, library="excel")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        label_frame(model, library="pandas")


def test_more_classes_than_any_scorecard_can_hold():
    """The vote needs no confusion matrices; its workers then have volume and accuracy alone."""
    rng = np.random.default_rng(0)
    n = 6000
    columns = rng.integers(0, 2000, n), rng.integers(0, 2100, n), rng.integers(0, 3000, n)
    votes = Annotations.from_triples(*columns, duplicates="all")
    table = worker_frame(MajorityVote().fit(votes))
    assert table.columns == ["worker", "n_labels", "accuracy"] and table["n_labels"].sum() == n


def test_frames_keep_the_type_of_what_was_given():
    """Numbers in, numbers out; an item nobody labelled has neither label nor confidence."""
    votes = Annotations.from_triples([3, 3, 5], [1, 2, 1], [0, 0, 1], item_ids=[5, 3, 7])
    model = MajorityVote().fit(votes)
    labels = label_frame(model)
    assert labels["item"].to_list() == [5, 3, 7] and labels["label"].to_list() == [1, 0, None]
    assert labels["confidence"].to_list() == [1.0, 1.0, None]
    assert training_frame(model)["label"].to_list() == [1, 0] and worker_frame(model)["worker"].to_list() == [1, 2]
    assert training_frame(model, soft=True).rows() == [(5, 1, 1.0), (3, 0, 1.0)]


def test_a_label_that_nobody_gave_is_flagged():
    """As gold may be, and as a model of the workers may conclude."""
    votes = Annotations.from_triples([1, 1, 2, 2], list("abab"), list("xyxx"), item_ids=[1, 2])
    model = MajorityVote().fit(votes, gold={2: "y"})
    assert label_frame(model)["alerts"].to_list() == ["tie", "gold"]
    model.labels_ = np.array(["x", "x"], object)
    model._gold = {}
    assert label_frame(model)["alerts"].to_list() == ["tie", None]
    model.labels_ = np.array(["x", "y"], object)
    assert label_frame(model)["alerts"].to_list() == ["tie", "unvoted"]


def test_gold_is_contradicted_by_more_votes_for_another_class_only():
    """Neither by the vote that confirms it nor by a tie."""
    said = {"confirmed": "xxy", "tied": "xxyy", "overruled": "xyy"}
    triples = [(item, worker, label) for item, labels in said.items() for worker, label in enumerate(labels)]
    model = MajorityVote().fit(Annotations.from_triples(*zip(*triples)), gold=dict.fromkeys(said, "x"))
    assert summary(model, "majority-vote")["gold_contradicted"] == ["overruled"]


def test_json_is_that_of_the_standard_library():
    """With an indent of 2, for values in each other, empty ones, and names of all kinds."""
    inner = {"a": 1, "b": [1.5, None, True], "c": [], "d": {}, 'say "é"': [[1, 2], [], [{}], [{"x": "y"}]]}
    for told in (inner, [inner, [inner]], {"w": [{"p": 1, "q": "r, s"}] * 2}, [], {}, None, "text", 1e-7, [[[]]]):
        assert to_json(told).decode() == json.dumps(told, indent=2, ensure_ascii=False) + "\n"
    assert json.loads(to_json({1: np.float64(2.0), "n": float("nan"), "i": float("inf"), "s": np.str_("t")})) == {
        "1": 2.0,
        "n": None,
        "i": "inf",
        "s": "t",
    }


def test_readable_text_stays_readable():
    assert to_json({"caf\u00e9": "\u732b \U0001f600"}).decode() == '{\n  "caf\u00e9": "\u732b \U0001f600"\n}\n'


@pytest.mark.parametrize(
    "letter", ["\x1b", "\x7f", "\x85", "\x9b", "\u200f", "\u2028", "\u202e", "\u2066", "\ufeff", "\U000e0041", "\udce9"]
)
def test_what_a_terminal_obeys_is_spelled_out(letter):
    """In names and in values, and it is the same value still."""
    told = {f"a{letter}": [f"{letter}b\n", "\u00e9"]}
    text = to_json(told).decode()
    assert text.replace("\n", "").isprintable() and "\u00e9" in text
    assert json.loads(text) == told


def test_characters_of_every_kind_survive():
    """From all over Unicode, halves of surrogate pairs included."""
    told = [chr(at) for at in (*range(0x3000), *range(0x3000, sys.maxunicode + 1, 97))]
    assert json.loads(to_json(told)) == told

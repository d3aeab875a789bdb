"""What is written about items and workers."""

import csv
import io

import numpy as np

from manyhands import Annotations, DawidSkene
from manyhands.io.results import count_components, label_table, summary, to_csv, worker_table

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
    model, votes = fitted()
    rows = list(csv.DictReader(io.StringIO(to_csv(label_table(model, votes)).decode(), newline="")))
    assert [row["item"] for row in rows] == [*HOSTILE, "silent"]
    assert list(rows[0]) == ["item", "label", "confidence", "n_labels", "flags", "p_NA", "p_None"]
    assert rows[0]["label"] == "None" and rows[0]["n_labels"] == "3"
    assert rows[-1]["label"] == "" and rows[-1]["flags"] == "unlabelled"
    assert all(abs(float(row["p_NA"]) + float(row["p_None"]) - 1) < 2e-6 for row in rows)


def test_workers_have_volume_accuracy_and_recalls():
    """The scorecard has a row for every worker."""
    model, votes = fitted()
    table = worker_table(model, votes)
    assert table.columns == ["worker", "n_labels", "accuracy", "recall_NA", "recall_None"]
    assert table["n_labels"].to_list() == [len(HOSTILE)] * 3
    assert np.allclose(table["accuracy"].to_numpy(), model.worker_accuracy_)


def test_summary_counts_what_is_there():
    """The summary adds up."""
    model, votes = fitted()
    told = summary(model, votes, "dawid-skene")
    assert told["n_items"] == len(HOSTILE) + 1 and told["n_unlabelled"] == 1
    assert sum(told["labels"].values()) == len(HOSTILE)


def test_components_are_counted():
    """Two crowds that share nobody are two; items and workers without labels are none."""
    votes = Annotations.from_triples([1, 1, 2], ["a", "b", "c"], [0, 1, 0], item_ids=[1, 2, 3])
    assert count_components(votes) == 2
    assert count_components(Annotations.from_triples([1, 1, 2], ["a", "b", "b"], [0, 1, 0])) == 1

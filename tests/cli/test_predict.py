"""`manyhands predict` and `evaluate` on files that are not made as those of the training."""

import csv

import numpy as np
import pytest

from manyhands.cli.app import run
from training_job import NETWORK, fails, train


@pytest.fixture
def tables(job):
    """The features of the job as a table, and parts of it."""
    with np.load("X.npz") as arrays:
        ids, X = arrays["ids"].tolist(), arrays["X"].tolist()
    for name, columns in {"all": (0, 1, 2), "part": (0,)}.items():
        header = ",".join(["item", *(f"f{at}" for at in columns)])
        rows = (",".join([item, *(str(row[at]) for at in columns)]) for item, row in zip(ids, X))
        (job / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")
    return job


def test_features_of_another_form_name_what_the_model_was_trained_on(tables, capsys):
    """What it was trained on and what the file lacks, without advice that is for `train`."""
    predict = ["predict", "model", "--features"]
    assert train("-q", features="all.csv") == 0
    columns = "The model was trained on the columns f0, f1, f2; "
    fails(capsys, 3, columns + "X.npz has no columns with names. Give a table.", *predict, "X.npz")
    fails(capsys, 3, columns + "part.csv lacks f1, f2. It has: item, f0.", *predict, "part.csv")
    (tables / "gap.csv").write_text("item,f0,f1,f2\na,1,2,3\na,1,2,3\nb,1,,3\n")
    fails(capsys, 3, "column 'f1' has nothing where a finite number should be (row 3). Fill it; ", *predict, "gap.csv")
    assert train("-q", "--force", "--text", "body", features="texts.csv") == 0
    text = "The model was trained on the text of the column body; "
    fails(capsys, 3, text + "X.npz has no columns with names. Give a table.", *predict, "X.npz")
    assert train("-q", "--force") == 0
    sentence = "(row 1). Fill it; the model was trained on an array without names of columns."
    fails(capsys, 3, sentence, *predict, "texts.csv")
    fails(capsys, 2, "X.npz has no columns with names: leave out --id-column.", *predict, "X.npz", "--id-column", "id")


def test_new_rows_are_scaled_as_those_of_the_training(job, capsys):
    """A row alone gets what it gets among others; features in other units make no difference."""
    assert train("-q", method=NETWORK) == 0
    with np.load("X.npz") as arrays:
        np.savez("one.npz", X=arrays["X"][:1], ids=arrays["ids"][:1])
        np.savez("units.npz", X=arrays["X"] * 1024 + 4096, ids=arrays["ids"])
    capsys.readouterr()
    assert run(["predict", "model", "--features", "X.npz"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert run(["predict", "model", "--features", "one.npz"]) == 0
    alone = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert float(alone["p_cat"]) == pytest.approx(float(rows[0]["p_cat"]), abs=1e-5)
    assert train("-q", "--force", method=NETWORK, features="units.npz") == 0
    capsys.readouterr()
    assert run(["predict", "model", "--features", "units.npz"]) == 0
    others = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    found = [[float(row["p_cat"]) for row in table] for table in (rows, others)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
    assert np.ptp(found[0]) > 1e-3


def test_rows_in_order_must_be_as_many(job, capsys):
    """Fewer truths than rows would be compared with the wrong ones; an empty cell is a row, too."""
    assert train("-q") == 0
    with np.load("X.npz") as arrays:
        np.save("X.npy", arrays["X"])
    evaluation = ["evaluate", "model", "--features", "X.npy", "--truth", "lines.csv", "--rows-in-order"]
    labels = ["cat", "dog"] * 20
    for some, n in ((labels[:20], 20), ([*labels, "cat"], 41)):
        (job / "lines.csv").write_text("label\n" + "\n".join(some) + "\n")
        fails(capsys, 3, f"lines.csv has {n} rows for 40 rows of features", *evaluation)
    labels[7] = ""
    (job / "lines.csv").write_text("label\n" + "\n".join(labels) + "\n")
    assert run(evaluation) == 0
    assert "39 items compared; 0 with truth have no features, 1 with features no truth" in capsys.readouterr().err


def test_a_file_that_is_missing_is_called_what_it_is(job, capsys):
    assert train("-q") == 0
    evaluation = ["evaluate", "model", "--features", "X.npz", "--truth"]
    fails(capsys, 3, "no.csv does not exist. Give the file of truth.", *evaluation, "no.csv")
    for name in ("no.csv", "no.npz"):
        fails(capsys, 3, f"{name} does not exist. Give the file of features.", "predict", "model", "--features", name)


def test_ids_of_predictions_can_be_safe(job, capsys):
    """As the tables of every command."""
    assert train("-q") == 0
    np.savez("new.npz", X=np.ones((1, 3)), ids=np.array(["=1+1"]))
    capsys.readouterr()
    assert run(["predict", "model", "--features", "new.npz", "--spreadsheet-safe"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("'=1+1,")

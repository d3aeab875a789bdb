"""`manyhands train`, `predict` and `evaluate`: from labels and features to a model in a folder, and back."""

import csv
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run
from training_job import MODEL, NETWORK, QUICK, arguments, fails, train


def test_from_labels_and_features_to_predictions(job, capsys):
    """Four files, a table of predictions, and figures that are those of the table."""
    assert train() == 0
    assert {path.name for path in (job / "model").iterdir()} == MODEL
    assert "two-stage: trained on 40 items with 3 features" in capsys.readouterr().err
    assert run(["predict", "model", "--features", "X.npz", "-o", "out.csv"]) == 0
    assert "Written: out.csv, 40 rows (20 cat, 20 dog)" in capsys.readouterr().err
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["item", "label", "confidence", "p_cat", "p_dog"]
    assert [row["item"] for row in rows[:2]] == ["i0", "i1"] and [row["label"] for row in rows[:2]] == ["cat", "dog"]
    assert run(["evaluate", "model", "--features", "X.npz", "--truth", "truth.csv", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (
        result["accuracy"] == result["macro_f1"] == 1.0 and result["n_items"] == 40 and result["n_without_truth"] == 0
    )


def test_a_network_predicts_the_same_in_a_fresh_process(job, capsys):
    """To the last printed digit, from another folder's point of view."""
    assert train("-q", method=NETWORK) == 0
    capsys.readouterr()
    assert run(["predict", "model", "--features", "X.npz"]) == 0
    here = capsys.readouterr().out
    command = [sys.executable, "-m", "manyhands", "predict", str(job / "model"), "--features", str(job / "X.npz")]
    there = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert there.stdout == here and len(here.splitlines()) == 41


def test_a_representation_that_classifies_is_trained_as_any_classifier(job, capsys):
    """NeuCrowd predicts by itself; one that does not is refused with what to do."""
    small = ["-m", "neucrowd", "--set", "max_epochs=2", "--set", "members=2", "--set", "labels=majority-vote"]
    assert train("-q", method=small) == 0
    assert run(["evaluate", "model", "--features", "X.npz", "--truth", "truth.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.9
    fails(capsys, 2, "triplet learns a representation", *arguments("X.npz", method=["-m", "triplet"]))


def test_text_is_learnt_and_its_words_are_kept(job, capsys):
    """TF-IDF is the default for text; new texts are weighed with the old words."""
    assert train("--text", "body", features="texts.csv") == 0
    (job / "new.csv").write_text("id,body\nx,barks and meow wags\ny,purrs meow\n")
    capsys.readouterr()
    assert run(["predict", "model", "--features", "new.csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [(row["item"], row["label"]) for row in rows] == [("x", "dog"), ("y", "cat")]
    assert "meow" in json.loads((job / "model" / "features.json").read_text())["tfidf"]["terms"]
    (job / "new.csv").write_text("id,words\nx,meow\n")
    sentence = "trained on the text of the column body; new.csv lacks body. It has: id, words"
    fails(capsys, 3, sentence, "predict", "model", "--features", "new.csv")


def test_what_does_not_match_is_counted_and_reported(job, capsys):
    """Items without features and features without items are left out, and both are reported."""
    arrays = np.load("X.npz")
    ids = arrays["ids"].astype("U10")
    ids[:5] = [f"other{k}" for k in range(5)]
    np.savez("part.npz", X=arrays["X"], ids=ids)
    assert train("--json", features="part.npz") == 0
    message = capsys.readouterr()
    result = json.loads(message.out)
    assert (result["n_items_trained"], result["n_items_without_features"], result["n_rows_without_item"]) == (35, 5, 5)
    assert "left out: 5 items without features" in message.err and "5 rows of part.npz without a label" in message.err
    assert run(["evaluate", "model", "--features", "part.npz", "--truth", "truth.csv", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_items"], result["n_without_features"], result["n_without_truth"]) == (35, 5, 5)


def test_matching_by_position_is_an_option(job, capsys):
    """And then the first and the last pair are shown, for the user to see."""
    arrays = np.load("X.npz")
    order = range(40)
    np.save("X.npy", arrays["X"])
    fails(capsys, 3, "has no item ids", *arguments("X.npy"))
    assert train("--rows-in-order", features="X.npy") == 0
    assert "the first row is matched with 'i0', the last with 'i39'" in capsys.readouterr().err
    (job / "lines.csv").write_text("label\n" + "".join(f"{'cat' if k % 2 == 0 else 'dog'}\n" for k in order))
    evaluation = ["evaluate", "model", "--features", "X.npy", "--truth", "lines.csv", "--rows-in-order"]
    assert run(evaluation) == 0
    assert "accuracy 1.0000" in capsys.readouterr().out
    np.save("X.npy", arrays["X"][:30])
    fails(capsys, 3, "lines.csv has 40 rows for 30 rows of features", *evaluation)
    fails(capsys, 3, "30 rows for 40 items", *arguments("X.npy", "--rows-in-order"))


@pytest.mark.parametrize("value", [np.nan, np.inf, "x"])
def test_bad_features_write_nothing(value, job, capsys):
    """NaN, infinity and text: one sentence, and no folder."""
    arrays = np.load("X.npz")
    X = arrays["X"].astype(type(value) if isinstance(value, str) else float)
    X[7, 1] = value
    np.savez("bad.npz", X=X, ids=arrays["ids"])
    sentence = "X must hold numbers" if value == "x" else "bad.npz: X has NaN, infinity"
    fails(capsys, 3, sentence, *arguments("bad.npz"))
    assert not (job / "bad").exists()


@pytest.mark.parametrize(
    ("more", "method", "sentence"),
    [
        ([], ["-m", "no-such"], "There is no classifier called 'no-such'"),
        ([], ["-m", "dawid-skene"], "two-stage with dawid-skene as its aggregator"),
        (["--set", "soft"], QUICK, "--set soft has no value"),
        (["--set", "no=1"], QUICK, "two-stage has no parameter 'no'. It has: "),
        (["--set", "dropout=2"], QUICK, "`dropout` of two-stage must be a number at least 0 and at most 0.99"),
        (["--set", "max_epochs=1.5"], QUICK, "`max_epochs` of two-stage must be a whole number"),
        (["--choose"], QUICK, "--choose is for several methods"),
        (["-m", "crowd-layer"], QUICK, "--choose is for several methods"),
        (["--text", "body"], QUICK, "X.npz has no columns with names"),
    ],
)
def test_invalid_options_are_refused_before_the_work(more, method, sentence, job, capsys):
    fails(capsys, 2, sentence, *arguments("X.npz", *more, method=method))
    assert not (job / "bad").exists()


def test_a_model_is_not_replaced_without_force(job, capsys):
    assert train("-q") == 0
    before = (job / "model" / "model.json").read_bytes()
    fails(capsys, 2, "model already has model.json", "train", "ratings.csv", "--features", "X.npz", "-o", "model")
    assert (job / "model" / "model.json").read_bytes() == before
    assert train("-q", "--force", "--seed", "3") == 0
    assert (job / "model" / "model.json").read_bytes() != before
    (job / "out.csv").write_text("mine")
    fails(capsys, 2, "already has out.csv", "predict", "model", "--features", "X.npz", "-o", "out.csv")
    fails(capsys, 2, "Tables are written as", "predict", "model", "--features", "X.npz", "-o", "out.pkl")


@pytest.mark.parametrize("name", sorted(MODEL))
@pytest.mark.parametrize("damage", ["missing", "cut", "pickle", "changed"])
def test_a_damaged_model_names_the_file(name, damage, job, capsys):
    """A file that is missing, cut off, changed, or a pickle under its name: one sentence, and no code is run."""
    assert train("-q") == 0
    path = job / "model" / name
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "pickle":
        path.write_bytes(pickle.dumps(_Bomb(str(job / "bang"))))
    else:
        path.write_bytes(
            content.replace(b'"schema": ', b'"schema": 9') if name.endswith("json") else content[:-1] + b"!"
        )
    fails(capsys, 2, name, "predict", "model", "--features", "X.npz")
    assert not (job / "bang").exists()


class _Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_unknown_classes_and_other_shapes(job, capsys):
    """The truth may not know more than the model; a row must look as in training."""
    assert train("-q") == 0
    with open("truth.csv", "a") as file:
        file.write("i40,fox\n")
    with np.load("X.npz") as arrays:
        np.savez("more.npz", X=np.vstack([arrays["X"], [[1, 2, 3]]]), ids=[*arrays["ids"], "i40"])
        np.savez("wide.npz", X=np.ones((40, 4)), ids=arrays["ids"])
    evaluation = ["evaluate", "model", "--features", "more.npz", "--truth", "truth.csv"]
    fails(capsys, 3, "Classes of truth.csv not known: 'fox'. The model knows cat, dog", *evaluation)
    fails(capsys, 3, "these rows have 4", "predict", "model", "--features", "wide.npz", "-o", "out.csv")
    assert not (job / "out.csv").exists()


@pytest.mark.slow
def test_the_best_of_several_is_chosen_by_held_out_labels(job, capsys):
    """All are scored on the same folds; the best is fitted on everything."""
    methods = ["-m", "crowd-layer", "-m", "two-stage", "--set", "max_epochs=2", "--set", "hidden=4"]
    assert train("--choose", "--json", method=methods) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["method"] == result["methods"][0]["method"] and result["methods"][0]["rank"] == 1
    assert {row["method"] for row in result["methods"]} == {"crowd-layer", "two-stage"}
    assert json.loads((job / "model" / "model.json").read_text())["method"] == result["method"]


def test_gold_is_used_where_there_are_features(job, capsys):
    assert train("--gold", "truth.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_gold_used"] == 40


def without_labels(job, gone=("i0", "i1", "i2", "i3", "i4", "i5")):
    """Remove all labels of some items from ratings.csv; they stay in X.npz."""
    lines = (job / "ratings.csv").read_text().splitlines()
    kept = [line for line in lines if line.split(",")[0] not in gone]
    (job / "ratings.csv").write_text("\n".join(kept) + "\n")


def test_gold_without_labels_is_learned_from(job, capsys):
    """Items with gold and features are used though no worker labelled them; other rows are counted as not used."""
    without_labels(job)
    (job / "gold.csv").write_text("item,label\ni0,cat\ni1,dog\ni2,cat\ni9,dog\nnowhere,cat\n")
    assert train("--gold", "gold.csv") == 0
    err = capsys.readouterr().err
    assert "trained on 37 items (3 of them with gold and no label) with 3 features" in err
    assert "left out: 3 rows of X.npz without a label and without gold." in err
    assert "Left out of gold.csv: 1 item neither in the export nor in the features." in err
    assert train("--gold", "gold.csv", "--json", "--force") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["n_gold_used"], result["n_gold_without_labels"], result["n_rows_without_item"]) == (4, 3, 3)


def test_the_model_with_gold_alone_is_that_of_python(job, capsys):
    """The same coefficients as a fit in Python on the same items."""
    without_labels(job)
    assert train("--gold", "truth.csv", "-q", method=["-m", "raykar"]) == 0
    votes = mh.read_annotations("ratings.csv")
    with np.load("X.npz") as arrays:
        X, ids = arrays["X"], arrays["ids"].tolist()
    items = [*votes.item_ids.tolist(), *ids[:6]]
    X = X[[ids.index(item) for item in items]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    more = {"item_ids": items, "worker_ids": votes.worker_ids, "classes": votes.classes}
    votes = mh.Annotations(votes.item, votes.worker, votes.label, **more)
    gold = {item: ["cat", "dog"][k % 2] for k, item in enumerate(ids)}
    expected = mh.classifiers.Raykar().fit(X, votes, gold)
    np.testing.assert_allclose(mh.load_model("model").module_.coef_, expected.module_.coef_, rtol=1e-5)


def test_a_choice_uses_gold(job, capsys):
    """The ranking says so, and another gold gives another score."""
    methods = ["-m", "raykar", "-m", "two-stage", "--set", "two-stage.classifier=logistic-regression"]
    scores = []
    for gold in ([], ["--gold", "truth.csv"]):
        assert train("--choose", "--force", *gold, method=methods) == 0
        err = capsys.readouterr().err
        assert ("held-out labels and gold classes ±" in err) == bool(gold)
        scores.append(next(line for line in err.splitlines() if "raykar: " in line))
    assert scores[0] != scores[1]


def test_cpc_without_a_penalty(job, capsys):
    """One sentence that says what is wrong and what to do; with gold it trains."""
    cpc = ["-m", "cpc", "--set", "mu=0"]
    fails(capsys, 2, "With mu=0 no worker's labels reach the target classifier", *arguments("X.npz", method=cpc))
    assert train("--gold", "truth.csv", "-q", method=cpc) == 0


def test_text_is_found_and_said(job, capsys):
    """No option names the column: the sentence on standard error says what was used, and what was not."""
    assert train(features="texts.csv") == 0
    assert "Features: TF-IDF of 'body' (" in capsys.readouterr().err
    lines = (job / "texts.csv").read_text().splitlines()
    more = [f"{line},{at % 3},{'de' if at % 2 else 'en'}" for at, line in enumerate(lines[1:])]
    (job / "more.csv").write_text("\n".join([f"{lines[0]},n,lang", *more]) + "\n")
    assert train("--force", features="more.csv") == 0
    err = capsys.readouterr().err
    assert "; numbers of 'n'; not used: 'lang', unless --text or --column names them" in err
    assert run(["predict", "model", "--features", "more.csv", "-o", "out.csv"]) == 0


def test_the_export_itself_has_the_text(job, capsys):
    """Labels and text of one Label Studio file, with the items named by a key of the data; new tasks are predicted."""
    ratings = [line.split(",") for line in (job / "ratings.csv").read_text().splitlines()[1:]]
    texts = dict(line.split(",") for line in (job / "texts.csv").read_text().splitlines()[1:])
    tasks = [{"id": at, "data": {"ref": ref, "text": texts[ref]}, "annotations": []} for at, ref in enumerate(texts)]
    by_ref = {task["data"]["ref"]: task for task in tasks}
    for ref, worker, label in ratings:
        result = {"from_name": "pet", "to_name": "text", "type": "choices", "value": {"choices": [label]}}
        by_ref[ref]["annotations"].append({"completed_by": int(worker[1:]) + 1, "result": [result]})
    (job / "export.json").write_text(json.dumps(tasks))
    command = ["train", "export.json", "--item", "ref", "--features", "export.json", *QUICK, "-o", "model"]
    assert run(command) == 0
    err = capsys.readouterr().err
    assert "Features: TF-IDF of 'text' (" in err and "trained on 40 items" in err
    assert "not used: 'ref'" in err
    assert run(["predict", "model", "--features", "export.json", "--id-column", "ref", "-o", "out.csv"]) == 0
    assert run(["evaluate", "model", "--features", "texts.csv", "--truth", "truth.csv"]) == 3  # no column called text

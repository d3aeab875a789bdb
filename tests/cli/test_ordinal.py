"""`--ordinal` and `--order`: ordered classes on the command line."""

import csv
import json

import pytest

from manyhands.cli.app import run
from manyhands.simulate import make_ordinal_crowd

CROWD = make_ordinal_crowd(60, 8, 5, labels_per_item=4, random_state=1).annotations
WORDS = ["awful", "weak", "fine", "nice", "super"]
LIKERT = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"]


def write(path, names):
    rows = [f"i{i},w{w},{names[k]}" for i, w, k in zip(CROWD.item, CROWD.worker, CROWD.label)]
    path.write_text("task,worker,label\n" + "\n".join(rows) + "\n")
    return str(path)


@pytest.fixture
def stars(tmp_path):
    return write(tmp_path / "stars.csv", ["1", "2", "3", "10", "20"])


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_grades_are_ordered_as_numbers(stars, tmp_path, capsys):
    """2 precedes 10 in every table; the method for ordered classes is the default."""
    out = tmp_path / "out"
    assert run(["aggregate", stars, "--ordinal", "-o", str(out)]) == 0
    labels, workers = rows_of(out / "labels.csv"), rows_of(out / "workers.csv")
    assert [name for name in labels[0] if name.startswith("p_")] == ["p_1", "p_2", "p_3", "p_10", "p_20"]
    for row in labels:
        expected = sum(float(row[f"p_{grade}"]) * grade for grade in (1, 2, 3, 10, 20))
        assert float(row["expected"]) == pytest.approx(expected, abs=1e-4)
        assert row["median"] in {"1", "2", "3", "10", "20"}
    assert {"linear_kappa", "quadratic_kappa", "grade_bias", "grade_spread"} <= workers[0].keys()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["method"] == "ordinal-dawid-skene" and summary["order"] == ["1", "2", "3", "10", "20"]
    assert 0 < summary["linear_kappa"] < summary["quadratic_kappa"] < 1
    err = capsys.readouterr().err
    assert "Order of the classes: 1 < 2 < 3 < 10 < 20; kappa" in err and "ordered_classes" not in err


def test_words_need_an_order(tmp_path, capsys):
    """One sentence names the classes and the option; with the order the same results as with numbers."""
    path, out = write(tmp_path / "words.csv", WORDS), tmp_path / "out"
    assert run(["aggregate", path, "--ordinal"]) == 3
    assert run(["aggregate", path, "-m", "ordinal-dawid-skene"]) == 3
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2 and all("have no known order; name them from low to high: --order" in e for e in errors)
    for bad, sentence in (("awful,weak,fine,nice", "lacks 'super'"), ("awful,weak,fine,nice,super,weak", "twice")):
        assert run(["aggregate", path, "--order", bad]) == 2
        assert sentence in capsys.readouterr().err
    assert run(["aggregate", path, "--order", ",".join(WORDS), "-o", str(out), "-q"]) == 0
    numbers = tmp_path / "numbers"
    assert run(["aggregate", write(tmp_path / "n.csv", "12345"), "--ordinal", "-o", str(numbers), "-q"]) == 0
    for word, number in zip(rows_of(out / "labels.csv"), rows_of(numbers / "labels.csv")):
        assert word["median"] == WORDS[int(number["median"]) - 1]
        assert float(word["expected"]) == pytest.approx(float(number["expected"]), abs=1e-5)  # ranks from 1


def test_a_scale_is_offered_and_not_used(tmp_path, capsys):
    """The note names the option, with which there is no note; other classes have no note."""
    path = write(tmp_path / "my ratings.csv", "12345")
    for command in ("inspect", "aggregate"):
        assert run([command, path, "--label", "label", "-q"]) == 0
        out, err = capsys.readouterr()
        (note,) = [line for line in err.splitlines() if "ordered_classes" in line]
        assert "1 < 2 < 3 < 4 < 5. Their order was not used" in note
        assert note.endswith("If it has a meaning, add --ordinal.")
        assert "expected" not in out
    assert run(["aggregate", path, "--label", "label", "--ordinal", "-q"]) == 0
    assert "ordered_classes" not in capsys.readouterr().err
    assert run(["aggregate", write(tmp_path / "words.csv", WORDS), "-q"]) == 0
    assert "ordered_classes" not in capsys.readouterr().err


def test_known_words_have_an_order(tmp_path, capsys):
    """A Likert scale is recognised."""
    path = write(tmp_path / "likert.csv", LIKERT)
    assert run(["inspect", path, "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert "Strongly disagree < Disagree < Neutral < Agree < Strongly agree" in notes["ordered_classes"]
    assert run(["inspect", path, "--ordinal", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "ordered_classes" not in found["notes"] and list(found["labels"]) == LIKERT
    assert {row["measure"] for row in found["agreement"]} >= {"kappa, linear weights", "kappa, quadratic weights"}


def test_agreement_of_ordered_classes(stars, tmp_path, capsys):
    """Weighted kappa overall and by pair."""
    out = tmp_path / "out"
    assert run(["agree", stars, "--ordinal", "-o", str(out), "--bootstrap", "20", "-q"]) == 0
    measures = {row["measure"]: float(row["value"]) for row in rows_of(out / "agreement.csv")}
    assert measures["Fleiss' kappa"] < measures["kappa, linear weights"] < measures["kappa, quadratic weights"]
    assert {"linear_kappa", "quadratic_kappa"} <= rows_of(out / "pairs.csv")[0].keys()
    assert run(["agree", stars, "-o", str(tmp_path / "nominal"), "--bootstrap", "20", "-q"]) == 0
    assert "linear_kappa" not in rows_of(tmp_path / "nominal" / "pairs.csv")[0]


@pytest.mark.parametrize("method", ["majority-vote", "pooled-dawid-skene"])
def test_any_method_gives_median_and_expected_value(stars, tmp_path, method, capsys):
    """They follow from its posterior; pseudonyms do not lose the order."""
    out = tmp_path / "out"
    assert (
        run(["aggregate", stars, "--ordinal", "-m", method, "--worker-names", "pseudonyms", "-o", str(out), "-q"]) == 0
    )
    assert {"median", "expected"} <= rows_of(out / "labels.csv")[0].keys()
    assert ("grade_bias" in rows_of(out / "workers.csv")[0]) == (method != "majority-vote")


def test_an_unlabelled_item_has_no_grade(tmp_path):
    """Empty cells."""
    path, out = tmp_path / "votes.csv", tmp_path / "out"
    path.write_text("task,worker,label\n1,a,1\n1,b,2\n2,a,3\n2,b,3\n3,a,\n4,a,1\n4,b,1\n")
    assert run(["aggregate", str(path), "--ordinal", "-o", str(out), "-q"]) == 0
    row = next(row for row in rows_of(out / "labels.csv") if row["item"] == "3")
    assert row["label"] == row["median"] == row["expected"] == ""


def test_an_order_with_a_grade_that_nobody_gave(tmp_path):
    """It is a class without labels."""
    path, out = tmp_path / "votes.csv", tmp_path / "out"
    path.write_text("task,worker,label\n1,a,1\n1,b,2\n2,a,4\n2,b,4\n4,a,1\n4,b,1\n")
    assert run(["aggregate", str(path), "--order", "1,2,3,4", "-o", str(out), "-q"]) == 0
    assert "p_3" in rows_of(out / "labels.csv")[0]


@pytest.fixture
def two_questions(tmp_path):
    """A Label Studio export with a rating and a choice."""
    tasks = {}
    for n, (i, w, k) in enumerate(zip(CROWD.item.tolist(), CROWD.worker.tolist(), CROWD.label.tolist())):
        task = tasks.setdefault(i, {"id": i + 1, "data": {"text": f"text {i}"}, "annotations": []})
        stars = {"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": k + 1}}
        topic = {"from_name": "topic", "to_name": "text", "type": "choices", "value": {"choices": ["xy"[k % 2]]}}
        task["annotations"].append({"id": n, "completed_by": w, "result": [stars, topic]})
    path = tmp_path / "export.json"
    path.write_text(json.dumps(list(tasks.values())))
    return str(path)


def test_a_rating_among_several_questions_is_recognised(two_questions, capsys):
    """The overview of all questions names the option for the rating, and has no note on the other question."""
    assert run(["inspect", two_questions]) == 0
    assert "If it has a meaning, add --ordinal." in capsys.readouterr().err
    assert run(["inspect", two_questions, "--json"]) == 0
    rows = {row["question"]: row for row in json.loads(capsys.readouterr().out)["questions"]}
    assert "1 < 2 < 3 < 4 < 5" in rows["stars"]["note"] and "note" not in rows["topic"]


def test_all_questions_with_the_order_of_those_that_have_one(two_questions, tmp_path, capsys):
    """The choice is aggregated without an order, and a note says so."""
    out = tmp_path / "out"
    assert run(["aggregate", two_questions, "--all-questions", "--ordinal", "-o", str(out), "-q"]) == 0
    assert "The classes of 'topic' have no known order" in capsys.readouterr().err
    methods = {name: json.loads((out / name / "summary.json").read_text())["method"] for name in ("stars", "topic")}
    assert methods == {"stars": "ordinal-dawid-skene", "topic": "pooled-dawid-skene"}

"""`manyhands ask` and `manyhands aggregate --answers`: files, the terminal questionnaire, bad input."""

import csv
import io
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from manyhands.cli.app import run


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with ratings.csv: 150 items of three classes, a third of the workers inverted."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = np.arange(150) % 3
    names = ["cat", "dog", "owl"]
    rows = []
    for i in range(150):
        for w in rng.choice(12, 5, replace=False):
            right = rng.random() < (0.75 if w < 9 else 0.2)
            label = truth[i] if right else (truth[i] + rng.integers(1, 3)) % 3
            rows.append(f"i{i},w{w},{names[label]},animal {i}")
    (tmp_path / "ratings.csv").write_text("item,worker,label,text\n" + "\n".join(rows) + "\n")
    return tmp_path


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def fill(path, answer):
    rows = rows_of(path)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"answer": answer(row)} for row in rows)


def truth_of(row):
    return ["cat", "dog", "owl"][int(row["item"][1:]) % 3]


def test_questions_are_filled_in_and_used(job, capsys):
    assert run(["ask", "ratings.csv", "-n", "10", "-o", "questions.csv"]) == 0
    err = capsys.readouterr().err
    assert "Written: questions.csv, 10 questions" in err and "--answers questions.csv" in err
    rows = rows_of("questions.csv")
    assert len({row["item"] for row in rows}) == 10
    assert all(row["text"] == f"animal {row['item'][1:]}" for row in rows)
    assert {row["answer"] for row in rows} == {""} and {row["sampled"] for row in rows} == {"contested"}
    fill("questions.csv", truth_of)
    assert run(["aggregate", "ratings.csv", "--answers", "questions.csv", "-o", "out"]) == 0
    assert "10 answers (contested items)" in capsys.readouterr().err
    labels = {row["item"]: row for row in rows_of("out/labels.csv")}
    assert all(labels[row["item"]]["label"] == truth_of(row) for row in rows)
    assert all("gold" in labels[row["item"]]["alerts"] for row in rows)
    trust = json.loads((job / "out" / "summary.json").read_text())["trust"]
    assert trust["n_answers"] == 10 and trust["sampled"] == {"contested": 10}
    assert trust["selection"]["method"] == json.loads((job / "out" / "summary.json").read_text())["method"]


def test_a_named_method_is_followed(job, capsys):
    run(["ask", "ratings.csv", "-n", "4", "-o", "questions.csv", "-q"])
    fill("questions.csv", truth_of)
    assert run(["aggregate", "ratings.csv", "-m", "wawa", "--answers", "questions.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["method"] == "wawa" and found["trust"]["selection"] is None and found["n_gold_used"] == 4


def test_without_o_the_questions_go_to_stdout(job, capsys):
    assert run(["ask", "ratings.csv", "-n", "3", "--purpose", "confidence", "-q"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 3 and {row["sampled"] for row in rows} == {"random"}


def test_answers_are_not_overwritten(job, capsys):
    assert run(["ask", "ratings.csv", "-n", "3", "-o", "questions.csv", "-q"]) == 0
    fill("questions.csv", truth_of)
    before = (job / "questions.csv").read_bytes()
    assert run(["ask", "ratings.csv", "-n", "3", "-o", "questions.csv"]) == 2
    assert (job / "questions.csv").read_bytes() == before


def answer_in_terminal(monkeypatch, text, *options):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    return run(["ask", "ratings.csv", "-o", "questions.csv", "--interactive", *options])


def test_the_questionnaire_saves_undoes_skips_and_resumes(job, monkeypatch, capsys):
    assert answer_in_terminal(monkeypatch, "1\nDog\nu\nowl\nnonsense\ns\n", "-n", "4") == 0
    err = capsys.readouterr().err
    assert "2 answers saved in questions.csv, 2 open." in err and "resumes" in err
    assert "'nonsense' is neither a number, nor a class, nor a command" in err
    assert "text: animal" in err
    assert [row["answer"] for row in rows_of("questions.csv")] == ["cat", "owl", "", ""]
    assert answer_in_terminal(monkeypatch, "?\n3\n") == 0
    assert "4 answers saved in questions.csv, 0 open." in capsys.readouterr().err
    assert [row["answer"] for row in rows_of("questions.csv")] == ["cat", "owl", "?", "owl"]
    assert run(["aggregate", "ratings.csv", "--answers", "questions.csv", "-q", "-o", "out"]) == 0


def test_undo_without_an_answer_and_quit(job, monkeypatch, capsys):
    assert answer_in_terminal(monkeypatch, "u\n1\nu\nq\n", "-n", "2") == 0
    assert "nothing to undo" in capsys.readouterr().err
    assert [row["answer"] for row in rows_of("questions.csv")] == ["", ""]


def test_a_killed_questionnaire_resumes(job):
    """Every answer is on disk before the next question."""
    command = [sys.executable, "-m", "manyhands", "ask", "ratings.csv", "-n", "3", "-o", "questions.csv"]
    child = subprocess.Popen([*command, "--interactive"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdin.write("1\n2\n")
    child.stdin.flush()
    seen = ""
    while "2 of 3 answered" not in seen:
        seen += child.stderr.read(1)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    child.stdin.close()
    child.stderr.close()
    assert [row["answer"] for row in rows_of("questions.csv")] == ["cat", "dog", ""]
    done = subprocess.run([*command, "--interactive"], input="3\n", capture_output=True, text=True, check=True)
    assert "3 answers saved" in done.stderr
    assert [row["answer"] for row in rows_of("questions.csv")] == ["cat", "dog", "owl"]


def test_classes_that_look_like_numbers_or_commands(tmp_path, monkeypatch, capsys):
    """A class is typed by its name where it could be a number or a command."""
    monkeypatch.chdir(tmp_path)
    votes = "item,worker,label\n" + "".join(
        f"i{i},w{w},{'q' if (i + w) % 3 else '2'}\n" for i in range(12) for w in range(3 + i % 2)
    )
    (tmp_path / "ratings.csv").write_text(votes)
    options = ("-n", "3", "--purpose", "confidence")
    assert answer_in_terminal(monkeypatch, "2\nq\n1\n:q\n", *options) == 0
    assert "'1' is neither" in capsys.readouterr().err
    assert [row["answer"] for row in rows_of("questions.csv")] == ["2", "q", ""]


@pytest.mark.slow
def test_random_answers_calibrate_and_carry_a_promise(job, capsys):
    """Confidence, accuracy, labels that stand and label sets, in the files and in words."""
    run(["ask", "ratings.csv", "-n", "10", "-o", "contested.csv", "-q"])
    run(["ask", "ratings.csv", "-n", "60", "--purpose", "confidence", "-o", "random.csv", "-q"])
    fill("contested.csv", truth_of)
    fill("random.csv", truth_of)
    both = ["--answers", "contested.csv", "--answers", "random.csv"]
    assert run(["aggregate", "ratings.csv", *both, "-o", "out"]) == 0
    err = capsys.readouterr().err
    assert "Confidence is calibrated on 60 random answers" in err and "of the labels are right (95% interval" in err
    trust = json.loads((job / "out" / "summary.json").read_text())["trust"]
    assert trust["calibration"]["applied"] and trust["accuracy"]["n_answers"] == 60 and trust["guarantee"] is None
    promise = ["--guarantee", "error<=10% at 95%", "--sets", "90%"]
    assert run(["aggregate", "ratings.csv", *both, *promise, "-o", "promised", "-q"]) == 0
    trust = json.loads((job / "promised" / "summary.json").read_text())["trust"]
    rows = {row["item"]: row for row in rows_of("promised/labels.csv")}
    assert sum(row["stands"] == "expert" for row in rows.values()) == trust["guarantee"]["n_to_expert"]
    assert not trust["calibration"]["applied"]
    for row in [*rows_of("contested.csv"), *rows_of("random.csv")]:
        found = rows[row["item"]]
        assert found["label"] == row["answer"] and found["stands"] == "yes" and found["label_set"] == row["answer"]
    assert all(row["label"] in row["label_set"].split("; ") for row in rows.values())


def test_without_answers_the_summary_says_what_would_be_needed(job, capsys):
    assert run(["aggregate", "ratings.csv", "-o", "out"]) == 0
    assert "cannot be known without checking some" in capsys.readouterr().err
    trust = json.loads((job / "out" / "summary.json").read_text())["trust"]
    assert trust["n_answers"] == 0 and trust["accuracy"]["value"] is None and trust["sampled"] == {}
    assert trust["accuracy"]["answers_for_5_points"] < 150


def test_a_promise_needs_random_answers(job, capsys):
    assert run(["aggregate", "ratings.csv", "--guarantee", "error<=5% at 95%"]) == 2
    assert "needs answers about random items" in capsys.readouterr().err
    assert run(["aggregate", "ratings.csv", "--sets", "some", "--answers", "no.csv"]) == 2
    assert "is not of the form" in capsys.readouterr().err
    run(["ask", "ratings.csv", "-n", "3", "-o", "questions.csv", "-q"])
    fill("questions.csv", truth_of)
    assert run(["aggregate", "ratings.csv", "--answers", "questions.csv", "--sets", "90%"]) == 3
    assert "needs answers about random items" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["ask", "ratings.csv", "--interactive"], 2, "name the file with -o"),
        (["ask", "-", "--interactive", "-o", "q.csv"], 2, "give the export as a file"),
        (["ask", "ratings.csv", "-o", "q.json"], 2, "does not end in .csv"),
        (["ask", "ratings.csv", "--purpose", "fun"], 2, "--purpose is 'fun'"),
        (["ask", "ratings.csv", "-n", "0"], 2, "at least one question"),
        (["aggregate", "ratings.csv", "--answers", "no.csv"], 3, "no.csv does not exist"),
        (["aggregate", "ratings.csv", "--answers", "x.csv", "--all-questions", "-o", "out"], 2, "about one question"),
    ],
)
def test_bad_options_are_one_sentence(job, capsys, arguments, code, sentence):
    assert run(arguments) == code
    assert sentence in capsys.readouterr().err


def test_answers_survive_new_labels_and_items(job, capsys):
    """The summary and the labels say about which items the answers speak; labels of new items need an expert."""
    run(["ask", "ratings.csv", "-n", "70", "--purpose", "confidence", "-o", "mon.csv", "-q"])
    fill("mon.csv", truth_of)
    with open("ratings.csv", "a") as file:
        file.write("i0,w99,cat,animal 0\n" + "".join(f"n{k},w{w},cat,new {k}\n" for k in range(9) for w in range(3)))
    options = ["--guarantee", "error<=20% at 90%", "--sets", "80%", "-o", "out"]
    assert run(["aggregate", "ratings.csv", "--answers", "mon.csv", *options]) == 0
    err = capsys.readouterr().err
    assert "70 answers about 150 items (mon.csv); nothing is known from them about 9 new items" in err
    assert "This is about 150 of 159 items" in err and "9 items are not covered" in err
    rows = {row["item"]: row for row in rows_of("out/labels.csv")}
    assert rows["n3"]["stratum"] == "new" and rows["n3"]["stands"] == "expert" and rows["i0"]["stratum"] == "mon.csv"
    assert rows["n3"]["label_set"] == "cat; dog; owl" and any(";" not in row["label_set"] for row in rows.values())
    trust = json.loads((job / "out" / "summary.json").read_text())["trust"]
    assert trust["strata"]["items"] == {"mon.csv": {"n_items": 150, "n_answers": 70}} and trust["strata"]["n_new"] == 9
    assert trust["accuracy"]["n_covered"] == trust["guarantee"]["n_covered"] == trust["sets"]["n_covered"] == 150


def test_answers_about_items_that_lost_their_labels_stay_certain(job, capsys):
    """They cannot show whether labels are right, and are no reason to refuse the others."""
    run(["ask", "ratings.csv", "-n", "60", "--purpose", "confidence", "-o", "mon.csv", "-q"])
    fill("mon.csv", truth_of)
    first = rows_of("mon.csv")[0]["item"]
    text = (job / "ratings.csv").read_text().splitlines()
    emptied = [",".join([*line.split(",")[:2], "", "x"]) if line.startswith(f"{first},") else line for line in text]
    (job / "ratings.csv").write_text("\n".join(emptied) + "\n")
    assert run(["aggregate", "ratings.csv", "--answers", "mon.csv", "-o", "out"]) == 0
    assert "1 random answer about items without labels cannot show" in capsys.readouterr().err
    summary = json.loads((job / "out" / "summary.json").read_text())
    assert summary["trust"]["accuracy"]["n_answers"] == 59
    labels = {row["item"]: row["label"] for row in rows_of("out/labels.csv")}
    assert all(labels[row["item"]] == row["answer"] for row in rows_of("mon.csv"))


def test_changed_classes_are_named_and_answers_stay_usable_as_gold(job, capsys):
    run(["ask", "ratings.csv", "-n", "3", "-o", "questions.csv", "-q"])
    fill("questions.csv", truth_of)
    with open("ratings.csv", "a") as file:
        file.write("i0,w99,emu,animal 0\n")
    assert run(["aggregate", "ratings.csv", "--answers", "questions.csv"]) == 3
    err = capsys.readouterr().err
    assert "The classes changed since questions.csv was drawn: 'emu' is new" in err and "--gold" in err
    assert run(["aggregate", "ratings.csv", "--gold", "questions.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_gold_used"] == 3


def test_the_expert_is_blind_in_the_terminal(job, monkeypatch, capsys):
    """Votes and methods are shown where they are asked for, also of a file that has them."""
    assert answer_in_terminal(monkeypatch, "1\nq\n", "-n", "3") == 0
    err = capsys.readouterr().err
    assert "text: animal" in err and "votes" not in err and "wawa" not in err and "choices" not in err
    assert answer_in_terminal(monkeypatch, "q\n", "--show-votes") == 2
    assert "drawn without votes" in capsys.readouterr().err
    assert answer_in_terminal(monkeypatch, "q\n", "-n", "3", "--show-votes", "--force") == 0
    err = capsys.readouterr().err
    assert "votes: " in err and "wawa" in err
    assert answer_in_terminal(monkeypatch, "q\n") == 0
    assert "wawa" not in capsys.readouterr().err


def test_a_message_stands_below_the_question(job, monkeypatch, capsys):
    """Each question clears the screen, so that a message above it would not be seen."""
    assert answer_in_terminal(monkeypatch, "nonsense\nu\nq\n", "-n", "2") == 0
    screens = capsys.readouterr().err.split("--- 0 of 2 answered ---")[1:]
    assert len(screens) == 3
    assert "nonsense" not in screens[0] and screens[1].index("q quit") < screens[1].index("'nonsense' is neither")
    assert screens[2].index("q quit") < screens[2].index("There is nothing to undo.")


def test_too_many_items_for_the_file_are_noticed(job, monkeypatch, capsys):
    """The answers are then good for this export alone, which is said when they are asked for."""
    monkeypatch.setattr("manyhands.io.questions._LARGEST_CELL", 100)
    monkeypatch.setattr("manyhands.io.questions._CELL", 10)
    assert run(["ask", "ratings.csv", "-n", "2", "--purpose", "confidence", "-o", "mon.csv"]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert "names of the 150 items do not fit beside 2 questions" in err and "raise -n" in err
    fill("mon.csv", truth_of)
    assert run(["aggregate", "ratings.csv", "--answers", "mon.csv", "-q", "-o", "out"]) == 0


def test_gold_and_answers_must_agree(job, capsys):
    run(["ask", "ratings.csv", "-n", "2", "-o", "questions.csv", "-q"])
    fill("questions.csv", truth_of)
    row = rows_of("questions.csv")[0]
    other = next(name for name in ("cat", "dog") if name != row["answer"])
    (job / "gold.csv").write_text(f"item,label\n{row['item']},{other}\n")
    assert run(["aggregate", "ratings.csv", "--answers", "questions.csv", "--gold", "gold.csv"]) == 3
    assert "Correct one of them" in capsys.readouterr().err

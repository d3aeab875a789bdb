"""Answers of an expert on a page and between two pages: one figure for one thing, and reasons of changes."""

import re

import numpy as np
import polars as pl
import pytest

import manyhands as mh
from manyhands.cli.app import run
from manyhands.io.questions import question_frame
from manyhands.jobs.options import ExportOptions
from manyhands.report.changes import compare_runs, read_run
from manyhands.report.html import read_page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of 160 items: without answers, with 60 random ones, with 130, and with 12 contested ones."""
    folder = tmp_path_factory.mktemp("pages")
    rng = np.random.default_rng(0)
    truth = np.arange(160) % 2
    rows = [
        f"i{i},w{w},{'xy'[truth[i] ^ int(rng.random() < (0.45 if i % 4 == 0 else 0.2))]}"
        for i in range(160)
        for w in rng.choice(10, 4, replace=False)
    ]
    ratings = folder / "ratings.csv"
    ratings.write_text("item,worker,label\n" + "\n".join(rows) + "\n")
    votes = ExportOptions().read([str(ratings)]).annotations
    draws = {
        "few": mh.trust.random_items(votes, n=60),
        "many": mh.trust.random_items(votes, n=130),
        "hard": mh.contested(votes, n=12),
    }
    for name, questions in draws.items():
        table = question_frame(questions)
        answers = ["xy"[truth[int(item[1:])]] for item in table["item"]]
        table.with_columns(pl.Series("answer", answers)).write_csv(folder / f"{name}.csv")
    found = {}
    for name in ("none", *draws):
        options = [] if name == "none" else ["--answers", str(folder / f"{name}.csv")]
        assert run(["report", str(ratings), *options, "-o", str(folder / f"{name}.html"), "-q"]) == 0
        found[name] = folder / f"{name}.html"
    options = ["--answers", str(folder / "few.csv"), "--guarantee", "error<=30% at 90%"]
    assert run(["aggregate", str(ratings), *options, "-o", str(folder / "promised"), "--report", "-q"]) == 0
    return found | {"promised": folder / "promised" / "report.html"}


@pytest.mark.parametrize("name", ["few", "many", "promised"])
def test_a_page_has_one_share_of_right_labels(pages, name):
    """The head, the panel of calibration and the panel of the answers say the same, also of a corrected estimate."""
    data = read_page(pages[name])
    text = pages[name].read_text()
    value = data["panels"]["calibration"]["values"]["accuracy"]
    said = set(re.findall(r"(\d+\.\d)\s?% of the labels (?:is|are) right", text))
    assert said == {f"{100 * value:.1f}"}


def test_the_head_says_whether_a_share_is_an_estimate(pages):
    """Of answers it is one, which may be weighted or corrected: no count of right labels among those answered."""
    assert re.search(r"By 60 answers of an expert, \d+\.\d% of the labels are right\.", pages["few"].read_text())
    assert "of known class, " not in pages["few"].read_text()


def test_low_agreement_does_not_say_that_there_are_flagged_workers(pages):
    text = pages["none"].read_text()
    assert "no worker is flagged" in text and "and the labels of flagged workers, if there are any." in text


def test_the_number_of_answers_is_possible_and_the_same_everywhere(pages):
    """160 items: as many answers as the estimate of accuracy says, and never more than there are items."""
    text = pages["none"].read_text()
    needed = mh.trust.answers_for(0.05, 160)
    assert f"{needed} answers of an expert on items drawn at random would tell this to within about 5" in text
    assert f"-n {needed} -o questions.csv" in text and "(of 160 items)" in text
    assert "two hundred" not in text and "Twenty" not in text


def test_a_label_that_an_expert_changed_says_so(pages):
    before, after = read_run(pages["none"]), read_run(pages["hard"])
    report, data = compare_runs(before, after, ("none", "hard"))
    known = {before["labels"]["item"][row] for row in after["labels"]["known"]}
    assert len(known) == 12 and not before["labels"]["known"]
    table = next(panel for panel in report.panels if panel.key == "labels").table[0]
    why = {row[0]: row[-1] for row in table.rows}
    assert known & set(why) and all((item in known) == ("expert's answer" in reason) for item, reason in why.items())
    assert "estimated anew" not in str(data["panels"]["labels"]["values"]["reasons"])
    back, _ = compare_runs(after, before, ("hard", "none"))
    table = next(panel for panel in back.panels if panel.key == "labels").table[0]
    assert {row[-1] for row in table.rows if row[0] in known} == {
        "the class is no longer known: its answer or gold was not given"
    }

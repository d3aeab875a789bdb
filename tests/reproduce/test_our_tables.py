"""The tables that come with manyhands: whole, the papers' own figures and settings, and light to load."""

import os
import re
import subprocess
import sys
import time

import pytest

from manyhands.reproduce import load_table, table_names
from manyhands.reproduce.cells import check_table
from manyhands.reproduce.tables import Published


@pytest.mark.parametrize("name", table_names())
def test_our_tables_are_whole(name):
    """Each table that comes with manyhands has rows to measure, with parameters that exist, and a reason for others."""
    table = load_table(name)
    check_table(table)
    assert table.name == name and table.measured and table.deviations
    assert all(row.why for row in table.rows if row not in table.measured)
    assert not table.validation_truth  # none of them reproduces such a protocol


def test_our_tables_are_those_that_were_promised():
    """No table is lost on the way into the package."""
    assert table_names() == [
        "baselines/crowd-kit",
        "baselines/labelme",
        "baselines/variants",
        "crowding/claim",
        "crowding/ensembles",
        "crowding/figure-2",
        "crowding/figure-3",
        "crowding/figure-4",
        "crowding/figure-5",
        "crowding/figure-6-lambda",
        "crowding/figure-6-t",
        "crowding/search",
        "crowding/table-1",
        "crowding/table-2",
        "difficulty-em/beyond",
        "difficulty-em/claim",
        "difficulty-em/figure-2",
        "difficulty-em/figure-3",
        "difficulty-em/images",
        "difficulty-em/passes",
        "difficulty-em/readings",
        "difficulty-em/real",
        "difficulty-em/table-1",
        "iced/ablations",
        "iced/claim",
        "iced/figure-2",
        "iced/imbalanced",
        "iced/labelme",
        "iced/table-2",
        "iced/table-3",
        "neucrowd/claim",
        "neucrowd/figure-2",
        "neucrowd/table-1",
        "neucrowd/table-2",
        "neucrowd/table-3",
        "self-crowd/claim",
        "self-crowd/decides",
        "self-crowd/figure-1",
        "self-crowd/figure-3",
        "self-crowd/figure-4",
        "self-crowd/imbalanced",
        "self-crowd/simulated",
        "self-crowd/two-classes",
    ]


def test_published_values_are_those_of_the_papers():
    """One figure of each table, typed a second time."""
    crowding, neucrowd = load_table("crowding/table-1"), load_table("neucrowd/table-2")
    assert crowding.row("CrowdInG").published == {"LabelMe": Published(87.03, 0.55), "Music": Published(83.73, 0.62)}
    assert neucrowd.row("Triple+EM").published_also["auc"]["Syn2"] == Published(0.772)
    assert load_table("neucrowd/table-3").row("NeuCrowd-SA, tanh").published["Hotel"] == Published(0.857)
    assert load_table("neucrowd/claim").row("NeuCrowd").published["Hotel"] == Published(0.871)
    assert load_table("difficulty-em/table-1").row("Original EM").published["Gaussian"] == Published(94.0, 0.11)
    assert load_table("difficulty-em/figure-2").row("Adaptive").published["Gaussian"] == Published(0.975)
    assert load_table("self-crowd/claim").row("CrowdLayer (round 0)").published["LabelMe"] == Published(83.9)
    spread = load_table("self-crowd/figure-1").row("LabelMe itself").published_also["crowd.annotated_spread"]
    assert spread["LabelMe"] == Published(2.95)
    iced, warm_up = load_table("iced/table-2").row("ICED"), load_table("iced/table-3").row("Trad-II")
    assert iced.published["GSAD-Syn"] == Published(0.8872) and warm_up.published["USPS-Syn"] == Published(0.7922)
    assert warm_up.published_also["history.warm_up_items"]["Gisette-Syn"] == Published(2043)
    assert load_table("baselines/labelme").row("CoNAL").published["Music"] == Published(84.06, 0.42)
    crowd_kit = load_table("baselines/crowd-kit")
    assert crowd_kit.row("GLAD").published["reports_mozilla"] == Published(0.97)
    assert crowd_kit.row("MV").published_also["balanced_accuracy"]["fact_eval"] == Published(0.648)
    assert "s_rel" not in crowd_kit.row("MACE").published  # crowd-kit was not run there


def test_rows_with_published_values_are_the_papers_methods():
    """What is compared with a published value is the published method; our variants are named as ours."""
    tables = [load_table(name) for name in table_names()]
    published = {(t.name, r.name): r.method for t in tables for r in t.measured if r.published}
    ours = {(t.name, r.name): r.method for t in tables for r in t.measured if (r.method or "").endswith("-plus")}
    assert len(published) > 50 and len(ours) > 10
    assert not published.keys() & ours.keys()
    papers = ("iced", "self-crowd", "crowding", "neucrowd", "difficulty-em")
    assert {method.removesuffix("-plus") for method in ours.values()} == set(papers)
    assert not [row for row, _ in ours.items() if not re.search("our defaults|-plus|Adaptive, floor", row[1])]


def test_published_rows_of_difficulty_em_have_the_papers_model():
    """No floor of the easiness, errors that are equally probable, the print's sources of difficulty and prior."""
    from manyhands.reproduce.cells import make_estimator

    for name in ("difficulty-em/table-1", "difficulty-em/figure-2", "difficulty-em/figure-3", "difficulty-em/claim"):
        for row in load_table(name).measured:
            if row.name in ("Adaptive", "Fixed"):
                estimator = make_estimator(row, 0)
                assert (estimator.floor, estimator.errors) == (0.0, "uniform")
                source = {"Adaptive": "classifier", "Fixed": "votes"}[row.name]
                assert estimator.difficulty == estimator.prior == source


def test_loading_is_quick_and_light():
    """No table takes 50 ms, and none loads torch or scikit-learn."""
    assert max(min(_seconds(name) for _ in range(5)) for name in table_names()) < 0.05
    program = (
        "import sys; from manyhands.reproduce import load_table, table_names;"
        "print(len([load_table(name) for name in table_names()]), *({'torch', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)
    assert run.stdout.split() == [str(len(table_names()))]


def _seconds(name):
    began = time.perf_counter()
    load_table(name)
    return time.perf_counter() - began

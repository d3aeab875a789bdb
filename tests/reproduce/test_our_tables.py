"""The tables that come with manyhands: whole, the papers' own figures and settings, and light to load."""

import os
import subprocess
import sys
import time

import pytest

from manyhands.reproduce import load_table, table_names
from manyhands.reproduce.tables import Published


@pytest.mark.parametrize("name", table_names())
def test_our_tables_are_whole(name):
    """Each table that comes with manyhands has rows to measure, with parameters that exist, and a reason for others."""
    table = load_table(name)
    table.check()
    assert table.name == name and table.measured and table.deviations
    assert all(row.why for row in table.rows if row not in table.measured)
    assert not table.validation_truth  # none of them reproduces such a protocol


def test_our_tables_are_those_that_were_promised():
    """No table is lost on the way into the package."""
    assert table_names() == [
        "baselines/crowd-kit",
        "baselines/labelme",
        "crowding/figure-2",
        "crowding/figure-6-lambda",
        "crowding/figure-6-t",
        "crowding/removal",
        "crowding/table-1",
        "difficulty-em/beyond",
        "difficulty-em/figure-2",
        "difficulty-em/figure-3",
        "difficulty-em/images",
        "difficulty-em/real",
        "difficulty-em/table-1",
        "iced/figure-2",
        "iced/imbalanced",
        "iced/table-2",
        "iced/table-3",
        "neucrowd/few",
        "neucrowd/table-2",
        "neucrowd/table-2-hotel",
        "neucrowd/table-3",
        "self-crowd/figure-3",
        "self-crowd/imbalanced",
        "self-crowd/simulated",
        "self-crowd/sparsity",
    ]


def test_published_values_are_those_of_the_papers():
    """One figure of each table, typed a second time."""
    crowding, neucrowd = load_table("crowding/table-1"), load_table("neucrowd/table-2")
    assert crowding.row("CrowdInG").published == {"LabelMe": Published(87.03, 0.55), "Music": Published(83.73, 0.62)}
    assert neucrowd.row("Triple+EM").published_also["auc"]["Syn2"] == Published(0.772)
    assert load_table("neucrowd/table-3").row("NeuCrowd-SA").published["Hotel"] == Published(0.857)
    assert load_table("neucrowd/table-2-hotel").row("NeuCrowd").published["Hotel"] == Published(0.871)
    assert load_table("difficulty-em/table-1").row("Original EM").published["Gaussian"] == Published(94.0, 0.11)
    assert load_table("difficulty-em/figure-2").row("Adaptive").published["Gaussian"] == Published(0.975)
    assert load_table("self-crowd/figure-3").row("CrowdLayer (t = 0)").published["LabelMe"] == Published(0.839)
    iced, warm_up = load_table("iced/table-2").row("ICED"), load_table("iced/table-3").row("Trad-II")
    assert iced.published["GSAD-Syn"] == Published(0.8872) and warm_up.published["USPS-Syn"] == Published(0.7922)
    assert warm_up.published_also["history.warm_up_items"]["Gisette-Syn"] == Published(2043)
    assert load_table("baselines/labelme").row("CoNAL").published["Music"] == Published(84.06, 0.42)
    crowd_kit = load_table("baselines/crowd-kit")
    assert crowd_kit.row("GLAD").published["reports_mozilla"] == Published(0.97)
    assert crowd_kit.row("MV").published_also["balanced_accuracy"]["fact_eval"] == Published(0.648)
    assert "s_rel" not in crowd_kit.row("MACE").published  # crowd-kit was not run there


# Rows that say by their name what is not the paper's in them.
CHANGED = {
    "NeuCrowd-SA-RA-SN": ["sampler"],
    "RA alone": ["sampler"],
    "SA alone": ["sampler"],
    "SA and RA": ["sampler"],
    "CrowdInG, a discriminator without decay": ["discriminator_decay"],
    "CrowdInG, ten batches an epoch": ["adversarial_batch_size"],
    "a discriminator without decay": ["discriminator_decay"],
    "two steps, a discriminator without decay": ["discriminator_decay"],
}


def _published_otherwise(method):
    """The paper's settings of a method that are not those of our variant."""
    ours = getattr(method, "plus", method)().get_params(deep=False)
    papers = getattr(method, "as_published", method)().get_params(deep=False)
    return {name: value for name, value in papers.items() if value != ours[name]}


def test_rows_of_a_paper_state_its_settings():
    """Where our variant differs from the paper, the paper's rows have explicit parameters: no default changes them."""
    from manyhands import ICED, CrowdInG, NeuCrowd
    from manyhands.reproduce.estimators import make_estimator

    iced, crowding, neucrowd = map(_published_otherwise, (ICED, CrowdInG, NeuCrowd))
    assert iced and crowding and neucrowd
    crowd = {"base": "crowd-layer", "start": "identity", "evidence": "features", "pseudo_weight": 1, "quota": "pool"}
    difficult = {"floor": 0.0, "errors": "uniform"}
    theirs = {"iced": iced, "self-crowd": crowd, "crowding": crowding, "neucrowd": neucrowd}
    theirs |= dict.fromkeys(
        ("adaptive-difficulty-em", "difficulty-em", "fixed-difficulty-em", "difficulty-network"), difficult
    )
    ours_alone = ("self-crowd", "iced", "Adaptive, floor estimated", "our defaults' start")
    found = 0
    for row in (row for name in table_names() for row in load_table(name).measured if row.name not in ours_alone):
        is_ours = row.name.endswith(", our defaults") or row.method.endswith("-plus")
        if is_ours or row.name.partition(", ")[0] == row.method:
            continue
        settings = theirs.get(row.method, {})
        made = make_estimator(row, 0).get_params(deep=False) if settings else {}
        beside = {"max_epochs"} if made.get("max_epochs") == 0 else set()  # a warm-up alone
        beside |= set(CHANGED.get(row.name, ())) | ({"pairs_per_label"} if row.method == "crowding" else set())
        assert {name: made[name] for name in settings if name not in beside} == {
            name: value for name, value in settings.items() if name not in beside
        }, row.name
        assert set(settings) <= set(row.parameters) | beside, f"{row.name} has it by default alone"
        found += bool(settings)
    assert found > 10


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

"""The report: panels of a run, the page, and the command."""

import json
import re

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command
from manyhands.exceptions import AnnotationError, OutputExistsError
from manyhands.report import PANELS, build, make_run, read_page, render_page, run_data
from manyhands.simulate import make_crowd


@pytest.fixture(scope="module")
def crowd():
    """A crowd with workers who answer at random."""
    return make_crowd(120, 12, 3, 4, bad="random", bad_share=0.25, random_state=3)


@pytest.fixture(scope="module")
def model(crowd):
    return mh.PooledDawidSkene().fit(crowd.annotations)


@pytest.fixture(scope="module")
def truth(crowd):
    a = crowd.annotations
    return dict(zip(a.item_ids.tolist(), a.classes[crowd.truth].tolist()))


@pytest.fixture(scope="module")
def table(crowd, tmp_path_factory):
    """The crowd as a file."""
    a = crowd.annotations
    path = tmp_path_factory.mktemp("crowd") / "ratings.csv"
    rows = (f"item-{i},ann-{w}@example.org,c{k}\n" for i, w, k in zip(a.item, a.worker, a.label))
    path.write_text("item,worker,label\n" + "".join(rows) + "item-0,ann-0@example.org,\n", encoding="utf-8")
    return path


def test_numbers_of_the_panels_are_those_of_plain_loops(model, truth):
    """Shares, counts and accuracies, recomputed item by item."""
    report = build(make_run(model, truth=truth))
    values = {panel.key: panel.values for panel in report.panels}
    a, sure, right, votes = model.annotations_, 0, 0, [0] * 3
    for row, item in enumerate(a.item_ids.tolist()):
        sure += max(model.posterior_[row]) >= 0.9
        right += model.labels_[row] == truth[item]
    for label in a.label:
        votes[label] += 1
    assert values["confidence"]["share_above_0.9"] == pytest.approx(sure / 120)
    assert values["calibration"]["accuracy"] == pytest.approx(right / 120) and values["calibration"]["n"] == 120
    assert values["class-balance"]["votes"] == pytest.approx([count / a.n_annotations for count in votes], abs=1e-6)
    assert values["coverage"]["n_components"] == 1
    expected = mh.metrics.krippendorff_alpha(a, n_bootstrap=0).value
    assert values["agreement"]["Krippendorff's alpha"] == pytest.approx(expected)
    below = sum(max(model.posterior_[row]) < 0.9 for row in range(120))
    assert values["hard-items"]["n"] == below


def test_without_known_classes_calibration_says_so(model):
    """No accuracy is claimed; the panel says what twenty answers would tell."""
    panel = PANELS["calibration"](make_run(model))
    assert "not known" in panel.title and not panel.svg and panel.values["n"] == 0
    assert "Twenty answers" in panel.notes[0]


def test_truth_does_not_change_the_labels(model, truth):
    """The truth evaluates; what the page says about labels is the same without it."""
    with_truth, without = (run_data(r, build(r)) for r in (make_run(model, truth=truth), make_run(model)))
    assert with_truth["labels"] == without["labels"] and with_truth["workers"] == without["workers"]


def test_workers_have_pseudonyms_unless_revealed(table, tmp_path, capsys):
    """No worker id is anywhere in the page; with the key of the folder a worker keeps the pseudonym."""
    assert run_command(["report", str(table), "-o", str(tmp_path / "one.html"), "-q"]) == 0
    assert run_command(["report", str(table), "-o", str(tmp_path / "two.html"), "-q"]) == 0
    one, two = ((tmp_path / name).read_text(encoding="utf-8") for name in ("one.html", "two.html"))
    assert "example.org" not in one
    names = [read_page(tmp_path / name)["workers"]["worker"] for name in ("one.html", "two.html")]
    assert names[0] == names[1] and all(re.fullmatch(r"worker-[0-9a-f]{12}", name) for name in names[0])
    assert (tmp_path / "manyhands.key").stat().st_mode & 0o077 == 0
    assert run_command(["report", str(table), "-o", str(tmp_path / "three.html"), "--reveal", "-q"]) == 0
    assert "ann-3@example.org" in (tmp_path / "three.html").read_text(encoding="utf-8")
    assert two.count("<h1") == 1


def test_command_writes_a_page_that_can_be_read_back(table, tmp_path, capsys):
    """The ledger counts the row without a label; the labels in the page are those of aggregate."""
    page = tmp_path / "report.html"
    assert run_command(["report", str(table), "-o", str(page), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["written"] == ["manyhands.key", "report.html"] and "ledger" in said["panels"]
    data = read_page(page)
    assert data["schema"] == 1 and data["panels"]["ledger"]["values"]["excluded"] == {"no_label": 1}
    assert run_command(["aggregate", str(table), "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    expected = [tuple(line.split(",")[:2]) for line in lines]
    labels = [data["classes"][code] for code in data["labels"]["label"]]
    assert list(zip(data["labels"]["item"], labels)) == expected
    assert np.all(np.diff([0, *data["labels"]["confidence"]]) != np.inf)


def test_bad_input_gets_a_sentence(table, tmp_path, capsys):
    """A page that is none, a file that exists, options that contradict each other."""
    with pytest.raises(AnnotationError, match="not a report of manyhands"):
        read_page(table)
    page = tmp_path / "report.html"
    page.write_text("mine")
    assert run_command(["report", str(table), "-o", str(page)]) == 2
    assert page.read_text() == "mine" and not (tmp_path / "manyhands.key").exists()
    assert run_command(["report", str(table), "-o", str(tmp_path / "page.csv")]) == 2
    assert run_command(["report", str(table), "-o", str(tmp_path / "a.html"), "--reveal", "--key", "x"]) == 2
    errors = capsys.readouterr().err
    assert "end it in .html" in errors and "give only one of them" in errors


def test_function_of_the_package(model, tmp_path):
    """`mh.report` writes the page and refuses to replace it."""
    path = mh.report(model, tmp_path / "report.html", title="Birds & <b>")
    assert "Birds &amp; &lt;b&gt;" in path.read_text(encoding="utf-8")
    with pytest.raises(OutputExistsError):
        mh.report(model, path)
    assert mh.plots.workers(model)[0].startswith("<svg")


def test_page_is_the_same_each_time(model):
    """Nothing depends on the order of sets or on the clock but the time that is shown."""
    run = make_run(model)
    assert render_page(build(run), run_data(run, build(run))) == render_page(build(run), run_data(run, build(run)))

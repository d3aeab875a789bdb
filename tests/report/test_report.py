"""The report: panels of a run, the page, and the command."""

import json
import re

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command
from manyhands.exceptions import AlignmentError, AnnotationError, OutputExistsError
from manyhands.io.reading import read_export
from manyhands.report import PANELS, build, make_run, read_page, render_page, run_data
from manyhands.report.changes import compare_runs
from manyhands.report.wording import percent
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


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_given_classes_do_not_count_as_sure(model, truth):
    """Confidence, summary and the comparison of two pages are about the labels that nobody gave."""
    gold = dict(list(truth.items())[:60])
    known = mh.PooledDawidSkene().fit(model.annotations_, gold)
    report = build(make_run(known))
    rest = [max(known.posterior_[row]) for row, item in enumerate(known.item_ids_.tolist()) if item not in gold]
    values = {panel.key: panel.values for panel in report.panels}["confidence"]
    assert values["mean"] == pytest.approx(np.mean(rest))
    assert values["share_above_0.9"] == pytest.approx(np.mean(np.array(rest) >= 0.9))
    assert PANELS["calibration"](make_run(known)).values["claimed"] == pytest.approx(np.mean(rest))
    data = run_data(make_run(known), report)
    change, _ = compare_runs(data, data, ("before", "after"))
    assert change.summary.values["at least 0.9 sure after"] == percent(values["share_above_0.9"])
    every = build(make_run(mh.PooledDawidSkene().fit(model.annotations_, truth)))
    assert "the class of every labelled item was given" in every.summary.title
    assert {panel.key: panel for panel in every.panels}["confidence"].values["share_above_0.9"] == 1.0


def test_without_known_classes_calibration_says_so(model):
    """No accuracy is claimed; the panel says how many answers would tell it."""
    panel = PANELS["calibration"](make_run(model))
    assert "not known" in panel.title and not panel.svg and panel.values["n"] == 0
    assert (
        f"{mh.trust.answers_for(0.05, 120)} answers of an expert" in panel.notes[0]
        and "(of 120 items)" in panel.notes[0]
    )


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
    assert names[0] == names[1] and all(re.fullmatch(r"[a-z]+(-[a-z]+)+", name) for name in names[0])
    assert (tmp_path / "manyhands.key").stat().st_mode & 0o077 == 0
    assert run_command(["report", str(table), "-o", str(tmp_path / "three.html"), "--worker-names", "ids", "-q"]) == 0
    assert "ann-3@example.org" in (tmp_path / "three.html").read_text(encoding="utf-8")
    assert two.count("<h1") == 1


def test_command_writes_a_page_that_can_be_read_back(table, tmp_path, capsys):
    """The ledger counts the row without a label; the labels in the page are those of aggregate."""
    page = tmp_path / "report.html"
    assert run_command(["report", str(table), "-o", str(page), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["written"] == ["manyhands.key", "report.html"] and "ledger" in said["panels"]
    data = read_page(page)
    assert data["schema"] == 2 and data["panels"]["ledger"]["values"]["excluded"] == {"no_label": 1}
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
    assert run_command(["report", str(table), "-o", str(tmp_path / "a.html"), "--worker-names", "idz"]) == 2
    errors = capsys.readouterr().err
    assert "end it in .html" in errors and "--worker-names is 'idz'; it may be ids, pseudonyms or a key file" in errors


def test_function_of_the_package(model, tmp_path):
    """`mh.write_report` writes the page and refuses to replace it."""
    path = mh.write_report(model, tmp_path / "report.html", title="Birds & <b>")
    assert "Birds &amp; &lt;b&gt;" in path.read_text(encoding="utf-8")
    with pytest.raises(OutputExistsError):
        mh.write_report(model, path)
    assert mh.plots.workers(model)[0].startswith("<svg")


def test_page_is_the_same_each_time(model):
    """Nothing depends on the order of sets or on the clock but the time that is shown."""
    run = make_run(model)
    assert render_page(build(run), run_data(run, build(run))) == render_page(build(run), run_data(run, build(run)))


EVERY = [key for key in PANELS if key != "classifier"]  # which no export has; its own test is below


def test_a_crowd_with_every_column_yields_every_panel(tmp_path):
    """Times, texts, groups of workers, answers and a comparison: no panel is missing."""
    crowd = make_crowd(200, 12, 3, 5, bad="random", bad_share=0.2, random_state=1)
    a = crowd.annotations
    names = a.classes[crowd.truth].tolist()
    rows = ["item,worker,label,text,timestamp"]
    for at, (i, w, k) in enumerate(zip(a.item, a.worker, a.label)):
        rows.append(f"{i:03d},w{w},{a.classes[k]},text {i},2026-03-{1 + at % 28:02d}T{at % 24:02d}:{at % 60:02d}:00Z")
    path = tmp_path / "all.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    groups = "worker,region\n" + "".join(f"w{w},{'north' if w % 2 else 'south'}\n" for w in range(12))
    (tmp_path / "groups.csv").write_text(groups)
    answers = "item,answer,sampled\n" + "".join(f"{i:03d},{names[i]},random\n" for i in range(0, 200, 5))
    (tmp_path / "answers.csv").write_text(answers)
    options = ["--compare", "--answers", str(tmp_path / "answers.csv"), "--groups", str(tmp_path / "groups.csv")]
    assert run_command(["report", str(path), *options, "-o", str(tmp_path / "report.html"), "-q"]) == 0
    data = read_page(tmp_path / "report.html")
    assert list(data["panels"]) == EVERY
    assert data["panels"]["time"]["values"]["n"] == a.n_annotations
    assert data["panels"]["calibration"]["values"]["n"] == 40
    assert "text 1" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_times_follow_the_labels(tmp_path):
    """Each label keeps its time, whatever the order of the rows; an unknown time is negative."""
    path = tmp_path / "times.csv"
    path.write_text("item,worker,label,timestamp\nb,x,1,1970-01-01T00:00:03Z\na,y,1,\na,x,0,1970-01-01T00:00:01Z\n")
    reading = read_export(path, times=True)
    a = reading.annotations
    found = {(a.item_ids[i], a.worker_ids[w]): t for i, w, t in zip(a.item, a.worker, reading.times)}
    assert found["b", "x"] == 3_000_000 and found["a", "x"] == 1_000_000 and found["a", "y"] < 0
    assert read_export(path).times is None


def test_change_between_two_reports(table, tmp_path, capsys):
    """Labels that flipped are those that differ; new votes are named as the reason."""
    lines = table.read_text(encoding="utf-8").splitlines(keepends=True)
    early = tmp_path / "early.csv"
    early.write_text("".join(lines[: len(lines) * 3 // 4]), encoding="utf-8")
    pages = [str(tmp_path / name) for name in ("monday.html", "friday.html")]
    for source, page in zip((early, table), pages):
        assert run_command(["report", str(source), "-o", page, "-q"]) == 0
    change = tmp_path / "change.html"
    capsys.readouterr()
    assert run_command(["report", *pages, "-o", str(change), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    old, new = (
        {i: d["classes"][k] for i, k in zip(d["labels"]["item"], d["labels"]["label"])} for d in map(read_page, pages)
    )
    flipped = {item for item in old if item in new and old[item] != new[item]}
    assert set(said["flipped"]) == flipped
    assert said["panels"]["workers"]["values"]["n_shared"] == 12
    assert run_command(["inspect", str(change)]) == 0 and run_command(["inspect", pages[0]]) == 0
    assert "Findings" in capsys.readouterr().err
    assert run_command(["inspect", pages[0], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "manyhands-report"
    assert run_command(["report", pages[0], "-o", str(change), "--force"]) == 2
    assert run_command(["report", str(change), pages[0], "-o", str(tmp_path / "x.html")]) == 3


def test_aggregate_writes_the_page_with_the_other_files(table, tmp_path):
    """The page, the key and the tables appear together; without --report there is no page."""
    assert run_command(["aggregate", str(table), "-o", str(tmp_path / "a"), "--report", "-q"]) == 0
    assert {"report.html", "manyhands.key", "labels.csv"} <= {path.name for path in (tmp_path / "a").iterdir()}
    assert "example.org" not in (tmp_path / "a" / "report.html").read_text(encoding="utf-8")
    assert run_command(["aggregate", str(table), "-o", str(tmp_path / "b"), "-q"]) == 0
    assert not (tmp_path / "b" / "report.html").exists()
    assert run_command(["aggregate", str(table), "--report", "-q"]) == 2


def test_large_crowds_are_capped(tmp_path, model):
    """Beyond the cap the labels are in a file beside the page, from which a change is read."""
    n = 22_000
    rows = "".join(f"a-rather-long-name-of-an-item-{i},w{w},{(i * 7 + w) % 2}\n" for i in range(n) for w in range(2))
    path = tmp_path / "large.csv"
    path.write_text("item,worker,label\n" + rows)
    page = tmp_path / "large.html"
    assert run_command(["report", str(path), "-m", "majority-vote", "-o", str(page), "-q"]) == 0
    data = read_page(page)
    assert data["labels"] is None and data["labels_file"] == "large-labels.csv"
    assert page.stat().st_size < 500_000 and "large-labels.csv" in page.read_text(encoding="utf-8")
    again = tmp_path / "change.html"
    assert run_command(["report", str(page), str(page), "-o", str(again), "-q"]) == 0
    assert read_page(again)["panels"]["labels"]["values"] == {"n_shared": n, "n_flipped": 0, "reasons": {}}
    (tmp_path / "large-labels.csv").unlink()
    assert run_command(["report", str(page), str(page), "-o", str(tmp_path / "b.html"), "-q"]) == 3


@pytest.mark.slow
def test_very_many_workers_stay_within_the_cap(tmp_path):
    """Twenty classes and eight thousand workers: the page is below two megabytes, and says what is left out."""
    rows = "".join(f"i{i % 2000},worker-with-a-name-{i},class {(i * i) % 20}\n" for i in range(8000))
    path = tmp_path / "many.csv"
    path.write_text("item,worker,label\n" + rows)
    page = tmp_path / "many.html"
    command = ["report", str(path), "-m", "majority-vote", "-o", str(page), "-q", "--rare-classes", "keep"]
    assert run_command(command) == 0
    text = page.read_text(encoding="utf-8")
    assert len(text.encode()) < 2_000_000 and "200 of 8,000 rows are shown; all are in many-workers.csv" in text
    assert len(read_page(page)["workers"]["worker"]) == 5000


def test_panel_of_a_classifier(crowd, model, tmp_path):
    """Suspected are the labels that the classifier contradicts with a posterior of 0.9 or more."""
    a = crowd.annotations
    features = np.eye(3)[crowd.truth] + np.random.default_rng(0).normal(0, 0.3, (a.n_items, 3))
    trained = mh.classifiers.Raykar().fit(features, a)
    panel = PANELS["classifier"](make_run(model, classifier=trained))
    contradicted = 0
    for row in range(a.n_items):
        best = int(np.argmax(trained.posterior_[row]))
        contradicted += trained.posterior_[row, best] >= 0.9 and trained.classes_[best] != model.labels_[row]
    assert panel.values["n_suspected"] == contradicted and panel.svg
    assert "classifier" in read_page(mh.write_report(model, tmp_path / "c.html", classifier=trained))["panels"]
    with pytest.raises(AlignmentError, match="trained on 119 items"):
        PANELS["classifier"](make_run(model, classifier=mh.classifiers.Raykar().fit(features[:119], a[range(119)])))

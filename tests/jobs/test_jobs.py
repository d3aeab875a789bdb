"""Complete jobs from Python, without the command line: results are returned, nothing is printed."""

import csv
import inspect
import io
import json
import pkgutil
from importlib import import_module

import numpy as np
import pytest

import manyhands as mh
from manyhands import jobs
from manyhands.cli.printing import show_figures
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.agree import agree
from manyhands.jobs.convert import convert
from manyhands.jobs.convert import inspect as inspect_job
from manyhands.jobs.options import ExportOptions, FeatureOptions
from manyhands.jobs.simulate import demo, simulate
from manyhands.jobs.train import evaluate, predict, train

JOBS = ("aggregate", "report", "report_change", "ask", "agree", "alt_test", "convert", "inspect", "aggregate_questions")
JOBS += ("train", "predict", "evaluate", "simulate", "demo", "doctor")

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")]


@pytest.fixture(autouse=True)
def job(tmp_path, monkeypatch):
    """ratings.csv, X.npz and truth.csv about forty items of two classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth, names = np.arange(40) % 2, np.array(["cat", "dog"])
    ids = [f"i{k}" for k in range(40)]
    labels = np.where(rng.random((40, 3)) < 0.9, truth[:, None], 1 - truth[:, None])
    rows = [f"{ids[i]},w{w},{names[labels[i, w]]}" for i in range(40) for w in range(3)]
    (tmp_path / "ratings.csv").write_text("clip,worker,label\n" + "\n".join(rows) + "\n")
    (tmp_path / "truth.csv").write_text("item,label\n" + "".join(f"{i},{names[t]}\n" for i, t in zip(ids, truth)))
    np.savez("X.npz", X=rng.normal(size=(40, 3)) + 5 * truth[:, None], ids=np.array(ids))
    return tmp_path


def test_aggregate_returns_what_it_writes(job, capsys):
    """Model, tables and summary; the files have the same content."""
    run = aggregate(
        ["ratings.csv"], ExportOptions(item="clip"), method="dawid-skene", gold="truth.csv", compare=True, out="out"
    )
    assert isinstance(run.model, mh.DawidSkene) and run.summary["n_gold_used"] == 40
    assert set(run.tables) == {"labels.csv", "workers.csv", "methods.csv", "differences.csv"}
    assert set(run.written.names) == {path.name for path in (job / "out").iterdir()}
    assert json.loads((job / "out" / "summary.json").read_text())["method"] == "dawid-skene"
    assert (job / "out" / "labels.csv").read_bytes() == run.files["labels.csv"]
    columns = run.tables["methods.csv"].columns
    assert columns[:3] == ["method", "rank", "heldout_log_likelihood"] and columns[-1] == "gold_accuracy"
    assert capsys.readouterr() == ("", "")
    assert run.summary["mean_confidence"] is None and run.confident_share == 1.0  # every class was given
    show_figures(run.summary, run.tables["workers.csv"])
    assert "dawid-skene: the class of every item is known; 0 ties" in capsys.readouterr().err


def test_given_classes_are_left_out_of_confidence(job):
    """Mean confidence and confident share are of the other items, of every method; a gold item is certain."""
    rows = (job / "truth.csv").read_text().splitlines()
    (job / "some.csv").write_text("\n".join(rows[:11]) + "\n")
    run = aggregate(["ratings.csv"], ExportOptions(item="clip"), method="wawa", gold="some.csv", compare=True)
    gold = {row.split(",")[0] for row in rows[1:11]}
    table = run.tables["labels.csv"]
    sure = [c for item, c in zip(table["item"], table["confidence"]) if item not in gold]
    assert len(sure) == 30 and run.summary["mean_confidence"] == pytest.approx(np.mean(sure), abs=1e-6)
    assert run.summary["share_above_0.9"] == pytest.approx(np.mean(np.array(sure) >= 0.9), abs=1e-6)
    assert run.confident_share == pytest.approx(run.summary["share_above_0.9"])
    methods = run.tables["methods.csv"]
    assert methods.filter(methods["method"] == "wawa")["mean_confidence"][0] == pytest.approx(np.mean(sure))


def test_without_a_folder_nothing_is_written(job):
    """The labels are there all the same."""
    before = sorted(path.name for path in job.iterdir())
    run = aggregate(["ratings.csv"], ExportOptions(item="clip"), method="majority-vote")
    rows = list(csv.DictReader(io.StringIO(run.files["labels.csv"].decode())))
    assert len(rows) == 40 and run.written.names == () and 0 <= run.confident_share <= 1
    agreement = agree(["ratings.csv"], ExportOptions(item="clip"), n_bootstrap=20)
    table = convert(["ratings.csv"], ExportOptions(item="clip"), wide=True)
    assert len(agreement.tables["pairs.csv"]) == 3 and len(table.table) == 40
    reading, figures = inspect_job(["ratings.csv"], ExportOptions(item="clip"))
    assert reading.annotations.n_items == figures["n_items"] == 40
    assert sorted(path.name for path in job.iterdir()) == before


def test_train_predict_evaluate(job):
    """A model as a folder, its predictions, and its metrics."""
    methods = {"two-stage": {"aggregator": "majority-vote", "classifier": "logistic-regression"}}
    run = train(["ratings.csv"], "X.npz", "model", ExportOptions(item="clip"), methods=methods)
    assert run.summary["method"] == "two-stage" and hasattr(run.model, "predict_proba")
    found = predict("model", "X.npz")
    assert found.counts == {"cat": 20, "dog": 20} and found.written.names == ()
    figures = evaluate("model", "X.npz", "truth.csv")
    assert figures.metrics["accuracy"] == 1.0 and figures.as_dict()["n_items"] == 40


def test_a_choice_of_methods_is_that_of_compare(job):
    """The ranking of `train` is the ranking of `compare`, on the same data, with gold."""
    methods = {"raykar": {}, "two-stage": {"aggregator": "majority-vote", "classifier": "logistic-regression"}}
    run = train(
        ["ratings.csv"], "X.npz", "model", ExportOptions(item="clip"), methods=methods, gold="truth.csv", random_state=3
    )
    with np.load("X.npz") as arrays:
        X, ids = arrays["X"], arrays["ids"].tolist()
    votes = mh.read_annotations("ratings.csv", item="clip")
    X = X[[ids.index(item) for item in votes.item_ids.tolist()]]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gold = dict(zip(ids, np.array(["cat", "dog"] * 20).tolist()))
    pairs = [
        (name, parameters | ({"random_state": 3} if name == "two-stage" else {}))
        for name, parameters in methods.items()
    ]
    found = mh.compare(pairs, votes, X, gold=gold, random_state=3)
    assert [row["rank"] for row in run.summary["methods"]] == [1, 2]
    scores = {row["method"]: row["heldout_log_likelihood"] for row in run.summary["methods"]}
    np.testing.assert_allclose([scores["raykar"], scores["two-stage"]], found.mean, rtol=1e-6)


def test_simulate_and_demo(job):
    """A simulated crowd with its truth, and all aggregators compared with it."""
    run = simulate(50, 10, 3, out="crowd", random_state=4)
    assert run.summary["n_items"] == 50 and "truth.csv" in run.written.names
    shown = demo("demo")
    assert shown.methods.columns == ["method", "accuracy", "mean_confidence", "calibration_gap"]
    assert shown.methods["accuracy"].is_sorted(descending=True)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: aggregate(["no.csv"], ExportOptions(format="clay")), "There is no format called 'clay'"),
        (lambda: aggregate(["no.csv"], random_state=-1), "`random_state` is -1"),
        (lambda: agree(["no.csv"], n_bootstrap=-1), "`n_bootstrap` is -1"),
        (lambda: train(["no.csv"], "no.npz", "model", methods={"glad": {}}), "glad uses labels alone"),
        (lambda: predict("no", "no.npz", FeatureOptions(None, "ids.txt", True)), "`rows_in_order` matches"),
    ],
)
def test_options_are_checked_before_files(call, sentence):
    """As on the command line."""
    with pytest.raises(ParameterError, match=sentence):
        call()


def test_gold_that_cannot_be_used_is_a_warning_or_an_error():
    """Known answers of classes that no worker used, and an export without any."""
    with pytest.raises(AnnotationError, match="contains no known answers"):
        aggregate(["ratings.csv"], ExportOptions(item="clip"), use_gold=True)
    with open("gold.csv", "w") as file:
        file.write("item,label\ni0,cat\ni1,wolf\n")
    with pytest.warns(CrowdWarning, match="gold_left_out"):
        aggregate(["ratings.csv"], ExportOptions(item="clip"), gold="gold.csv", method="majority-vote")


def test_every_job_is_documented():
    """Each parameter has an entry of its own in the docstring, and no signature hides any."""
    names = [module.name for module in pkgutil.iter_modules(jobs.__path__, "manyhands.jobs.")]
    found = {name: value for module in map(import_module, names) for name, value in vars(module).items()}
    assert set(JOBS) <= found.keys()
    for name in JOBS:
        for parameter in inspect.signature(found[name]).parameters.values():
            assert parameter.kind is not parameter.VAR_KEYWORD
            assert f"    {parameter.name} : " in found[name].__doc__, (name, parameter.name)

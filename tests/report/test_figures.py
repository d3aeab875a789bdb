"""Figures for papers: what matplotlib draws are the numbers of the panels' tables."""

import inspect
import math
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.jobs.report import report
from manyhands.report import PANELS, drawing
from manyhands.report.run import Chips
from manyhands.simulate import make_crowd

matplotlib = pytest.importorskip("matplotlib", reason="figures need the extra plot")
from manyhands.report import matplotlib_figures  # noqa: E402

WITHOUT_PICTURE = {"hard-items", "provenance"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A crowd with every column, answers, a comparison and a classifier."""
    folder = tmp_path_factory.mktemp("every")
    crowd = make_crowd(150, 12, 3, 5, bad="random", bad_share=0.2, random_state=1)
    a = crowd.annotations
    words = ("red", "green", "blue")
    names = [words[k] for k in crowd.truth]
    rows = ["item,worker,label,timestamp"]
    for at, (i, w, k) in enumerate(zip(a.item, a.worker, a.label)):
        rows.append(f"{i:03d},w{w},{words[k]},2026-03-{1 + at % 28:02d}T{at % 24:02d}:{at % 60:02d}:00Z")
    rows += ["001,w1,,", "002,w1,,"]
    (folder / "all.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "groups.csv").write_text("worker,region\n" + "".join(f"w{w},{'ns'[w % 2]}\n" for w in range(12)))
    answers = "".join(f"{i:03d},{names[i]},random\n" for i in range(0, 150, 4))
    (folder / "answers.csv").write_text("item,answer,sampled\n" + answers)
    made = report(
        [str(folder / "all.csv")],
        out=folder / "report.html",
        compare=True,
        answers=[folder / "answers.csv"],
        groups=folder / "groups.csv",
    )
    X = np.eye(3)[crowd.truth] + np.random.default_rng(0).normal(0, 0.3, (150, 3))
    return replace(made.run, classifier=mh.classifiers.Raykar().fit(X, a))


def figure(run, key, **options):
    return getattr(mh.plots, key.replace("-", "_"))(run, figure="matplotlib", **options)


def column(panel, at, name):
    """A column of a table of a panel."""
    table = panel.table[at]
    place = table.columns.index(name)
    return [row[place] for row in table.rows]


def heights(axes):
    """Heights of columns."""
    return [patch.get_height() for patch in axes.patches]


def curve(axes, at=0):
    """Abscissas and ordinates of a line or of the marks of a series."""
    line = [one for one in axes.lines if not one.get_label().startswith("_diagonal")][at]
    return list(line.get_xdata()), list(line.get_ydata())


def cells(axes):
    """The matrix of a heat map, NaN where there is nothing."""
    return np.ma.filled(np.ma.asarray(axes.images[0].get_array(), float), np.nan)


def test_functions_are_those_of_the_panels():
    """Every panel has a function, and no function is without a panel."""
    assert [name.replace("_", "-") for name in mh.plots.__all__] == list(PANELS) and dir(mh.plots) == sorted(
        mh.plots.__all__
    )
    assert all(getattr(mh.plots, name).__name__ == name for name in mh.plots.__all__)
    with pytest.raises(AttributeError, match="it has ledger"):
        mh.plots.nothing  # noqa: B018


@pytest.mark.parametrize("key", PANELS)
def test_every_picture_has_a_figure(run, key):
    """A figure has as many axes as the panel has SVG pictures; panels of tables say that they have none."""
    drawn = getattr(mh.plots, key.replace("-", "_"))(run)
    if key in WITHOUT_PICTURE:
        assert drawn == []
        with pytest.raises(AnnotationError, match=f"no picture for the panel {key}"):
            figure(run, key)
        return
    found = figure(run, key)
    assert len([axes for axes in found.axes if axes.get_label() != "<colorbar>"]) == len(drawn) > 0
    assert all(one.startswith("<svg") for one in drawn)


def test_every_kind_of_picture_can_be_drawn():
    """The functions of figures have the parameters of the SVG pictures of panels, but for those that are stated."""
    kinds = {
        name: draw for name, draw in inspect.getmembers(drawing, inspect.isfunction) if hasattr(draw, "__wrapped__")
    }
    assert set(kinds) == {*matplotlib_figures.DRAW, "figure"}  # that of papers' tables, which panels do not have
    for name, draw in matplotlib_figures.DRAW.items():
        wanted = set(inspect.signature(kinds[name]).parameters) - set(matplotlib_figures.SVG_ONLY)
        assert wanted <= set(inspect.signature(draw).parameters), name


def test_ledger(run):
    panel = PANELS["ledger"](run)
    widths = [patch.get_width() for patch in figure(run, "ledger").axes[0].patches]
    assert widths == column(panel, 0, "rows") == [750, 2]


def test_coverage(run):
    panel, found = PANELS["coverage"](run), figure(run, "coverage")
    assert heights(found.axes[0]) == column(panel, 0, "items")
    assert heights(found.axes[1]) == column(panel, 1, "workers")


def test_class_balance(run):
    panel, axes = PANELS["class-balance"](run), figure(run, "class-balance").axes[0]
    for at, name in enumerate(("votes", "posterior", "answers")):
        assert curve(axes, at)[0] == pytest.approx(column(panel, 0, f"share of {name}"))
        ends = [segment[:, 0].tolist() for segment in axes.collections[at].get_segments()]
        place = panel.table[0].columns.index(f"share of {name}") + 1
        assert [f"{low:.3f} to {high:.3f}" for low, high in ends] == [row[place] for row in panel.table[0].rows]
    shown = [text.get_text() for text in axes.get_yticklabels()]
    assert shown == column(panel, 0, "class")


def test_agreement(run):
    panel, found = PANELS["agreement"](run), figure(run, "agreement")
    assert curve(found.axes[0], 0)[0] == pytest.approx(column(panel, 0, "value"))
    assert curve(found.axes[0], 1)[0] == pytest.approx(column(panel, 1, "alpha"))
    matrix = cells(found.axes[1])
    assert np.array_equal(matrix, matrix.T, equal_nan=True)
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    lowest = column(panel, 2, "agreement")  # the table is cut
    assert len(lowest) > 10 and sorted(pairs[np.isfinite(pairs)])[: len(lowest)] == pytest.approx(sorted(lowest))


def test_confidence(run):
    panel, found = PANELS["confidence"](run), figure(run, "confidence")
    assert sum(heights(found.axes[0])) == run.open.sum() < run.labelled.sum()
    x, y = curve(found.axes[1])
    known = run.confidence[run.open]
    assert y == pytest.approx([sum(value >= t for value in known) / len(known) for t in x])
    share = dict(zip(column(panel, 0, "posterior at least"), column(panel, 0, "share")))
    assert np.interp(1.0, x, y) == pytest.approx((known >= 1).mean()) and min(share.values()) >= y[-1]


def test_calibration(run):
    panel, axes = PANELS["calibration"](run), figure(run, "calibration").axes[0]
    x, y = curve(axes)
    assert x == pytest.approx(column(panel, 0, "mean posterior"))
    assert y == pytest.approx(column(panel, 0, "share right"))


def test_trust(run):
    panel, axes = PANELS["trust"](run), figure(run, "trust").axes[0]
    assert curve(axes)[0] == column(panel, 1, "share right")
    assert [text.get_text() for text in axes.get_yticklabels()] == column(panel, 1, "items labelled")
    block = run.trust["accuracy"]
    assert curve(axes)[0][0] == block["value"] and len(curve(axes)[0]) == 1 + len(block["classes"]) == 4
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    assert ends[0] == [block["low"], block["high"]]
    promised = replace(run, trust=run.trust | {"guarantee": {"error": 0.1, "sentence": "x"}})
    assert [line.get_xdata()[0] for line in figure(promised, "trust").axes[0].lines][-1] == pytest.approx(0.9)
    without = replace(run, trust=run.trust | {"accuracy": run.trust["accuracy"] | {"value": None}})
    assert not PANELS["trust"](without).svg and len(PANELS["trust"](without).table) == 1


def test_workers(run):
    panel, axes = PANELS["workers"](run), figure(run, "workers").axes[0]
    drawn = sorted(pair for line in axes.lines for pair in zip(*(line.get_xdata(), line.get_ydata())))
    expected = sorted(zip(column(panel, 0, "labels"), column(panel, 0, "accuracy")))
    assert np.array(drawn) == pytest.approx(np.array(expected, float))
    flagged = next(line for line in axes.lines if line.get_label().startswith("random"))
    assert len(flagged.get_xdata()) == panel.values["alerts"]["random"] and flagged.get_marker() == "s"
    assert Counter(line.get_marker() for line in axes.lines).most_common(1)[0][1] == 1  # by shape, not by colour alone


def test_worker_cards(run):
    """The confusion matrix of a card has rows that sum to 1, and the name of its worker above."""
    panel, found = PANELS["worker-cards"](run), figure(run, "worker-cards")
    titles = [axes.get_title(loc="left") for axes in found.axes]
    assert titles == [part.title for part in panel.parts for _ in part.svg]
    assert cells(found.axes[0]).sum(axis=1) == pytest.approx(np.ones(3))
    confused = panel.parts[0].table[0].rows[0]
    place = [run.classes.index(name) for name in confused[:2]]
    assert cells(found.axes[0])[tuple(place)] > 0


def test_correlated_workers_and_subgroups(run):
    panel = PANELS["correlated-workers"](run)
    axes = figure(run, "correlated-workers").axes[0]
    assert curve(axes)[0] == pytest.approx(column(panel, 0, "correlation of errors"))
    panel, axes = PANELS["subgroups"](run), figure(run, "subgroups").axes[0]
    assert curve(axes)[0] == pytest.approx(column(panel, 0, "share right"))
    assert [text.get_text() for text in axes.get_yticklabels()] == ["n", "s"]


def test_confusable_classes(run):
    panel, axes = PANELS["confusable-classes"](run), figure(run, "confusable-classes").axes[0]
    matrix = cells(axes)
    names = [text.get_text() for text in axes.get_yticklabels()]
    shares = {(row[0], row[1]): row[3] for row in panel.table[0].rows}
    assert np.isnan(np.diag(matrix)).all() and len(shares) == 6
    for (truth, label), share in shares.items():
        assert matrix[names.index(truth), names.index(label)] == pytest.approx(share)
    written = [text.get_text() for text in axes.texts]
    assert written == [f"{100 * value:.0f}" for value in matrix[np.isfinite(matrix)]]


def test_methods(run):
    panel, found = PANELS["methods"](run), figure(run, "methods")
    expected = np.array(panel.values["agreement"])
    np.fill_diagonal(expected, np.nan)
    assert cells(found.axes[0]) == pytest.approx(expected, abs=1e-6, nan_ok=True)
    assert curve(found.axes[1])[0] == pytest.approx(column(panel, 0, "below the best"))


def test_time(run):
    panel, found = PANELS["time"](run), figure(run, "time")
    assert curve(found.axes[0])[1] == column(panel, 0, "labels")
    assert curve(found.axes[1])[1] == pytest.approx(column(panel, 0, "share right"))


def test_classifier(run):
    history = [entry["objective"] for entry in run.classifier.history_]
    x, y = curve(figure(run, "classifier").axes[0])
    assert y == pytest.approx(history) and x == list(range(1, len(history) + 1))


def test_style_of_a_paper(run, tmp_path):
    """The width of a column, no title unless asked for, text as text, the same bytes each time; one picture alone."""
    found = figure(run, "confidence")
    assert found.get_size_inches()[0] == pytest.approx(6.8) and found.get_suptitle() == ""
    titled = figure(run, "confidence", picture=1, width=3.0, title=True)
    assert titled.get_size_inches()[0] == 3 and len(titled.axes) == 1
    assert titled.get_suptitle().replace("\n", " ") == PANELS["confidence"](run).title
    paths = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in paths:
        figure(run, "confidence").savefig(path)
    text = paths[0].read_text(encoding="utf-8")
    assert ">share of labels</text>" in text and text == paths[1].read_text(encoding="utf-8")
    assert found._repr_png_().startswith(b"\x89PNG") and matplotlib.rcParams["svg.fonttype"] == "path"


def test_names_are_drawn_as_they_are():
    """Dollar signs are no formulas, and a class that begins with an underscore is shown."""
    votes = mh.Annotations.from_triples([1, 1, 2, 2, 3, 3], [1, 2] * 3, ["_a", "_a", "$x$", "_a", "$x$", "$x$"])
    found = mh.plots.class_balance(mh.MajorityVote().fit(votes), figure="matplotlib")
    found._repr_png_()
    names = {text.get_text() for text in found.axes[0].get_yticklabels()}
    assert names == {"_a", "$x$"} and not any(text.get_parse_math() for text in found.axes[0].get_yticklabels())
    assert matplotlib_figures._shown("_loss") == " _loss"


def test_bad_input_gets_a_sentence(run):
    with pytest.raises(ParameterError, match="figure is 'svg' or 'matplotlib'; got 'png'"):
        mh.plots.confidence(run, figure="png")
    with pytest.raises(ParameterError, match="has 2 pictures, counted from 0; got picture=2"):
        mh.plots.confidence(run, picture=2)
    with pytest.raises(ParameterError, match="width"):
        mh.plots.confidence(run, width=math.nan)


def test_without_matplotlib_the_sentence_names_the_extra(monkeypatch, run):
    """A missing library is named with the extra; SVG needs none."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("manyhands.report.matplotlib_figures")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(mh.exceptions.MissingExtraError, match=r"pip install 'manyhands\[plot\]'"):
        figure(run, "confidence")
    assert len(mh.plots.confidence(run)) == 2


def test_matplotlib_is_loaded_for_figures_only():
    program = (
        "import sys, manyhands as mh; m = mh.MajorityVote().fit(mh.Annotations.from_matrix([[0, 1], [1, 1]]));"
        "mh.plots.confidence(m); m._repr_html_(); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_a_picture_is_the_svg_and_its_data(run):
    """A picture is text, with the arguments of the function that drew it."""
    (one,) = PANELS["workers"](run).svg
    assert isinstance(one, str) and one.startswith("<svg") and one.kind == "scatter"
    assert len(one.data["points"]) == 12 and one.data["y_title"] == "accuracy"
    assert str(Chips((("a", 2),))) == "a 2"

"""What a notebook shows of fitted models, scorecards and comparisons: panels of the report."""

import re
import time
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import manyhands as mh
from browser.hostile import PAYLOADS
from manyhands import registry
from manyhands.exceptions import LimitError
from manyhands.report import PANELS, make_run, panels_html
from manyhands.report import run as report_run
from manyhands.report.run import Panel
from manyhands.scorecards import score_workers
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import easy_crowd, feature_crowd

VOID = {"rect", "path", "line", "polyline", "polygon", "circle"}  # written as <rect/>


class Checked(HTMLParser):
    """Well-formed HTML without scripts, handlers, inline styles or addresses; what its style and its texts say."""

    def __init__(self, html):
        super().__init__()
        self.open, self.words, self.style, self.ids, self.labels, self.links = [], [], "", [], [], []
        self.n_rows = self.n_pictures = 0
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert tag not in {"script", "img", "iframe", "link", "object", "base", "form", "i", "button"}
        self.open.append(tag)
        self.n_rows += tag == "tr"
        self.n_pictures += tag == "svg"
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("style", "src")
            self.ids += [value] if name == "id" else []
            self.labels += [value] if name == "aria-labelledby" else []
            self.links += [value] if name == "href" else []

    def handle_startendtag(self, tag, attributes):
        assert tag in VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
        elif data.strip():
            self.words.append(data.strip())


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(200, 14, 3, 5, bad="random", bad_share=0.2, random_state=3).annotations


@pytest.fixture(scope="module")
def model(crowd):
    return mh.PooledDawidSkene().fit(crowd)


def views(votes):
    """Everything that a notebook shows as panels, of one crowd."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mh.DawidSkene().fit(votes)
        yield model._repr_html_()
        yield score_workers(votes, model.posterior_)._repr_html_()
        yield mh.compare(["majority-vote", "wawa"], votes, n_folds=2)._repr_html_()


def test_a_model_shows_the_panels_of_the_page(model):
    """Verdict, class balance, confidence, hard items and workers, with the same findings and pictures."""
    html = model._repr_html_()
    run = make_run(model, reveal=True)
    for key in ("class-balance", "confidence", "hard-items", "workers"):
        panel = PANELS[key](run)
        assert panel.title in Checked(html).words and all(picture in html for picture in panel.svg)
    words = Checked(html).words
    assert "PooledDawidSkene()" in words and "200 items, 14 workers, 5.0 labels per item." in " ".join(words)
    alpha = mh.metrics.krippendorff_alpha(model.annotations_, n_bootstrap=0).value
    assert words[words.index("Krippendorff's alpha") + 1] == f"{alpha:.2f}"


def test_scorecards_show_the_map_and_the_cards(crowd, model):
    """The map and cards are those of the page; flagged workers come first."""
    cards = score_workers(crowd, model.posterior_, confusion=model.confusion_)
    html = cards._repr_html_()
    words = Checked(html).words
    flagged = [f"{card.worker}: {', '.join(card.alerts)}" for card in cards if card.alerts]
    assert flagged and set(flagged) <= set(words)
    page = PANELS["worker-cards"](make_run(model, reveal=True))
    assert page.parts[0].svg[0] in html and page.parts[0].title in flagged
    assert "of 14 rows are shown." in " ".join(words)


def test_scorecards_without_labels_show_the_map(crowd, model):
    """Scorecards that do not hold the labels have no cards to draw."""
    cards = replace(score_workers(crowd, model.posterior_), annotations=None, posterior=None)
    words = Checked(cards._repr_html_()).words
    assert "Workers" in words and "Worker cards" not in words


def test_a_comparison_shows_the_ranking(crowd):
    """One row and one dot per method, the best first; the sentence counts the methods within two standard errors."""
    found = mh.compare(["majority-vote", "wawa", "dawid-skene", "one-coin"], crowd)
    html = found._repr_html_()
    words = Checked(html).words
    ranked = [row["method"] for row in found.table()]
    table = words[words.index("likelihood") + 1 :]
    assert [word for word in table if word in ranked] == ranked
    near = sum(row["difference_to_best"] <= 2 * row["difference_standard_error"] for row in found.table()[1:])
    sentence = next(word for word in words if "predicts held-out labels best" in word)
    assert sentence.startswith(ranked[0]) and (f"{near} other" in sentence if near else "clearly" in sentence)
    assert html.count('<circle class="s0"') == len(ranked)


@pytest.mark.parametrize("name", registry.names("aggregator"))
def test_every_aggregator_has_panels(name):
    votes, _ = easy_crowd(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = registry.create(name).fit(votes)
        found = Checked(fitted._repr_html_())
    assert repr(fitted) in found.words and found.n_pictures >= 3


def test_classifiers_show_confidence_and_the_learning_curve():
    X, votes, _ = feature_crowd(2)
    trained = mh.classifiers.Raykar().fit(X, votes)
    found = Checked(trained._repr_html_())
    assert {"Confidence", "Learning", "features", "Workers, the lowest accuracy first"} <= set(found.words)
    assert f"Training took {len(trained.history_)} steps, epochs or iterations." in found.words


def test_notes_of_a_model_are_shown():
    with pytest.warns(mh.exceptions.CrowdWarning):
        model = mh.MajorityVote().fit(mh.Annotations.from_matrix([[0, -1], [-1, 1]]))
    words = Checked(model._repr_html_()).words
    assert all(note in words for note in model.notes_.values())


def test_texts_of_the_data_are_escaped():
    """Ids and classes of a hostile export stay text."""
    rng = np.random.default_rng(0)
    items = [f"{PAYLOADS[at % len(PAYLOADS)]}{at}" for at in range(30) for _ in range(4)]
    workers = [f"{PAYLOADS[-1 - at % 4]}{at % 4}" for at in range(120)]
    votes = mh.Annotations.from_triples(items, workers, [PAYLOADS[k] for k in rng.integers(3, size=120)])
    for html in views(votes):
        found = Checked(html)
        assert "\u202e" not in html and "\x1b" not in html
        assert all(link.startswith("#mh-") for link in found.links)


def test_style_touches_nothing_else(model):
    """Every selector begins at the panels, or at a page of our own; both themes are there, and no address."""
    found = Checked(model._repr_html_())
    css = re.sub(r"@media[^{]*\{", "", found.style)
    selectors = [one for rule in re.findall(r"([^{}]+)\{[^{}]*\}", css) for one in re.split(r",(?![^()]*\))", rule)]
    assert len(selectors) > 80
    ours = re.compile(r"(html:has\(body\.mh\)|body\.mh|svg\.mh-chart|\.mh-chart|.*\.mh-part|\.mh)(?![\w-])")
    assert [one for one in selectors if not ours.match(one.strip())] == []
    assert "prefers-color-scheme:dark" in found.style and "data-jp-theme-light=false] .mh-part" in found.style
    assert "http" not in found.style and "rem" not in re.findall(r"\d([a-z]+)", found.style)


def test_ids_are_those_of_one_display(crowd, model):
    """Two displays on one page share no id, and every label and link names an id of its own display."""
    views = [Checked(model._repr_html_()), Checked(score_workers(crowd, model.posterior_)._repr_html_())]
    assert not set(views[0].ids) & set(views[1].ids)
    for found in views:
        assert len(found.ids) == len(set(found.ids))
        assert set(found.labels) | {link[1:] for link in found.links} <= set(found.ids)


def test_size_is_bounded():
    """A thousand workers and 40 classes: each display is below 150 kB, with few rows."""
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((300, 1000)) < 0.02, rng.integers(40, size=(300, 1000)), -1)
    for html in views(mh.Annotations.from_matrix(matrix)):
        assert len(html.encode()) < 150_000 and Checked(html).n_rows < 100


def test_ten_thousand_items_are_shown_at_once():
    """A display of 10^5 labels takes 0.2 s of CPU; the limit leaves room for slow machines."""
    model = mh.MajorityVote().fit(make_crowd(10_000, 200, 3, 10, random_state=0).annotations)
    model._repr_html_()
    start = time.process_time()
    html = model._repr_html_()
    assert time.process_time() - start < 1.5 and len(html) < 150_000


def test_errors_of_a_panel_are_not_hidden(model, monkeypatch):
    """A display that fails raises its error, which a notebook prints above the text form of the model."""
    monkeypatch.setitem(PANELS, "confidence", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model._repr_html_()
    assert repr(model) == "PooledDawidSkene()"


def test_scorecards_that_do_not_fit_are_mentioned(model, monkeypatch):
    """Without room for scorecards the head says that the workers are not scored."""

    def refuse(*arguments):
        raise LimitError("too large")

    monkeypatch.setattr(report_run, "worker_cards", refuse)
    words = Checked(model._repr_html_()).words
    assert any("The workers are not scored" in word for word in words) and "Workers" not in words


def test_a_panel_alone_is_shown_as_one(model):
    """A panel of `PANELS` has an HTML form of its own."""
    panel = PANELS["confidence"](make_run(model))
    assert Checked(panel._repr_html_()).words[-1:] and panel._repr_html_() == panels_html([panel])
    empty = Panel("x", "A finding.", "", "1 item")
    assert "A finding." in Checked(empty._repr_html_()).words

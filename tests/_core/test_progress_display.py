"""Progress bars: after the delay, in a terminal or notebook only, and never where `verbose=0` was asked for."""

import io
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import manyhands as mh
from manyhands._core import progress
from manyhands._core.progress import is_heard, listening, notebook_line, report, showing
from manyhands.exceptions import ParameterError
from manyhands.scorecards import score_workers
from manyhands.testing.crowds import easy_crowd, feature_crowd


class Recorded:
    """A display that keeps what it was told."""

    def __init__(self):
        self.updates, self.closed = [], 0
        self.opened = threading.Event()

    def __call__(self):
        self.opened.set()
        return self

    def update(self, *given):
        self.updates.append(given)

    def close(self):
        self.closed += 1


@pytest.fixture
def display(monkeypatch):
    """A display that opens at once."""
    found = Recorded()
    monkeypatch.setattr(progress, "_display", lambda: found)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    return found


def test_reports_are_shown_and_the_bar_is_removed(display):
    with showing():
        assert display.opened.wait(10)
        report(1, 3, "EM")
        report(2, 3, "EM")
    assert display.updates[-1] == (2, 3, "EM") and display.closed == 1
    assert not is_heard()


def test_the_bar_opens_during_a_long_step(display):
    """The last report is shown when the delay is over, though no other report comes."""
    with showing():
        report(0, 2, "reading files")
        assert display.opened.wait(10)
        deadline = time.monotonic() + 10
        while not display.updates and time.monotonic() < deadline:
            time.sleep(0.01)
        assert display.updates == [(0, 2, "reading files")]


def test_nothing_is_shown_before_the_delay(display, monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 60.0)
    with showing():
        report(1, 3, "EM")
    assert not display.updates and not display.opened.is_set()


def test_the_bar_is_removed_after_an_error(display):
    with pytest.raises(KeyError), showing():
        assert display.opened.wait(10)
        raise KeyError
    assert display.closed == 1 and not is_heard()


def test_silence_holds_for_calls_inside(display):
    with showing(0), showing(1):
        report(1, 3, "EM")
    assert not display.opened.is_set()


def test_an_outer_listener_gets_all_reports(display):
    heard = []
    with listening(lambda *given: heard.append(given)), showing(1):
        report(1, 3, "EM")
    assert heard == [(1, 3, "EM")] and not display.opened.is_set()


@pytest.mark.parametrize("verbose", [2, -1, "yes", None])
def test_bad_values_of_verbose(verbose):
    votes, _ = easy_crowd(2)
    with pytest.raises(ParameterError, match="verbose must be 0"):
        mh.MajorityVote().fit(votes, verbose=verbose)


CALLS = {
    "aggregator": lambda **v: mh.DawidSkene().fit(easy_crowd(2)[0], **v),
    "fit_predict": lambda **v: mh.DawidSkene().fit_predict(easy_crowd(2)[0], **v),
    "classifier": lambda **v: mh.classifiers.Raykar().fit(*feature_crowd(2)[:2], **v),
    "compare": lambda **v: mh.compare(["majority-vote", "wawa"], easy_crowd(2)[0], n_folds=2, **v),
    "scorecards": lambda **v: score_workers(easy_crowd(2)[0], np.full((60, 2), 0.5), **v),
    "read": lambda **v: mh.read_annotations("votes.csv", **v),
    "network": lambda **v: mh.classifiers.CrowdLayer(max_epochs=2, random_state=0).fit(*feature_crowd(2)[:2], **v),
    "embedding": lambda **v: mh.representation.Center(max_epochs=2, random_state=0).fit_transform(
        *feature_crowd(2)[:2], **v
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_takes_long_reports_progress(name, monkeypatch, tmp_path):
    """Every long computation reports to the bar with verbose=1, which is the default, and to none with verbose=0."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "votes.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n2,a,y\n2,b,y\n")
    heard = []
    monkeypatch.setattr(progress, "_display", lambda: object)
    monkeypatch.setattr(progress, "_LateBar", lambda make: SimpleBar(heard))
    CALLS[name]()
    assert heard and all(0 <= done <= total for done, total, _ in heard)
    heard.clear()
    CALLS[name](verbose=0)
    assert not heard


class SimpleBar:
    def __init__(self, heard):
        self.heard = heard

    def __call__(self, *given):
        self.heard.append(given)

    def close(self):
        pass


def test_results_do_not_depend_on_verbose():
    votes, _ = easy_crowd(2)
    fits = [mh.DawidSkene().fit(votes, verbose=verbose).posterior_ for verbose in (0, 1)]
    assert np.array_equal(*fits)


class TestWhere:
    """Which display a process has."""

    def test_no_terminal(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        assert progress._display() is None
        monkeypatch.setattr(sys, "stderr", None)
        assert progress._display() is None

    def test_terminal(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
        assert progress._display() is progress.TerminalBar
        found = []
        thread = threading.Thread(target=lambda: found.append(progress._display()))
        thread.start()
        thread.join()
        assert found == [None]

    def test_notebook(self, monkeypatch):
        shell = SimpleNamespace(kernel=object())
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        assert progress._display() is progress.NotebookBar
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        assert progress._display() is None

    def test_worker_processes(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
        worker = SimpleNamespace(name="LokyProcess-1")
        monkeypatch.setattr(progress.multiprocessing, "current_process", lambda: worker)
        assert progress._display() is None


def test_a_notebook_gets_html(monkeypatch):
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html)

    fake = SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or Handle())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=fake))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    bar = progress.NotebookBar()
    bar.update(1, 4, "<b>EM</b>")
    bar.update(2, 4, "<b>EM</b>")  # too soon after the first to be drawn
    bar.update(4, 4, "<b>EM</b>")
    bar.close()
    assert shown[0] == shown[-1] == "" and len(shown) == 4
    assert 'value="4" max="4"' in shown[2] and "&lt;b&gt;EM" in shown[2] and "<b>" not in shown[2]
    assert "12 of at most 3,000" in notebook_line(12, 3000, "EM")


def test_a_script_in_a_pipe_prints_nothing():
    program = (
        "import manyhands as mh; from manyhands._core import progress as p; p.DELAY = 0.0;"
        "mh.DawidSkene().fit(mh.simulate.make_crowd(random_state=0).annotations)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == run.stderr == ""

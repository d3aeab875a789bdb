"""Progress reports and their listeners."""

import threading

import pytest

from manyhands._core.progress import listening, report


def test_without_a_listener_nothing_happens():
    """A report without a listener is no error."""
    report(1, 2, "work")


def test_the_innermost_listener_receives_the_reports():
    """Blocks nest, and an exception ends them too."""
    outer, inner = [], []
    with listening(lambda *r: outer.append(r)):
        with pytest.raises(RuntimeError), listening(lambda *r: inner.append(r)):
            report(1, 2, "inner")
            raise RuntimeError
        report(2, 2, "outer")
    report(3, 3, "nobody")
    assert inner == [(1, 2, "inner")]
    assert outer == [(2, 2, "outer")]


def test_reports_of_another_thread_are_not_received():
    """A listener receives the reports of its own thread only."""
    reports = []
    with listening(lambda *r: reports.append(r)):
        thread = threading.Thread(target=report, args=(1, 1, "elsewhere"))
        thread.start()
        thread.join()
    assert reports == []

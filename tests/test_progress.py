"""Who listens to long work."""

import threading

import pytest

from manyhands.progress import listening, report


def test_nobody_listens_by_default():
    """A report without a listener is no error."""
    report(1, 2, "work")


def test_the_innermost_listener_hears_until_its_block_ends():
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


def test_another_thread_is_not_overheard():
    """A listener hears the work of its own thread only."""
    heard = []
    with listening(lambda *r: heard.append(r)):
        thread = threading.Thread(target=report, args=(1, 1, "elsewhere"))
        thread.start()
        thread.join()
    assert heard == []

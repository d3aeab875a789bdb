"""Working time: medians, and workers far faster than the crowd."""

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.scorecards import ACCUSATIONS, score_workers
from manyhands.scorecards.alerts import summarise_time
from manyhands.simulate import make_crowd


def times(**seconds):
    """The same time for each of twelve labels of a worker."""
    return {worker: [value] * 12 for worker, value in seconds.items()}


def test_medians_and_the_crowd_by_hand():
    """Medians of three workers, and the median of these; a worker without times has none."""
    found = summarise_time({"a": [1, 2, 30], "b": [4.0], "c": [6, 8]}, np.array(["a", "b", "c", "d"]))
    np.testing.assert_allclose(found.median, [2, 4, 7, np.nan])
    assert found.n_timed.tolist() == [3, 1, 2, 0] and found.crowd_median == 4 and not found.is_fast.any()
    nothing = summarise_time(None, np.array(["a"]))
    assert np.isnan(nothing.crowd_median) and np.isnan(nothing.median[0])


@pytest.mark.parametrize(("seconds", "is_fast"), [(1.0, True), (3.2, True), (3.5, False), (9.0, False)])
def test_fast_is_a_third_of_the_crowd(seconds, is_fast):
    """Five workers at 10 seconds: the spread has its least value .2, so a third is the stricter of the two limits."""
    found = summarise_time(times(a=10, b=10, c=10, d=10, e=10, f=seconds), np.array(list("abcdef")))
    assert found.is_fast.tolist() == [False] * 5 + [is_fast]


def test_a_varied_crowd_and_few_labels_protect():
    """In a crowd from 2 to 60 seconds, 2 seconds are not exceptional; nine labels are too few, as are four workers."""
    wide = times(a=2, b=5, c=15, d=30, e=60, f=1.5)
    assert not summarise_time(wide, np.array(list("abcdef"))).is_fast.any()
    short = times(a=10, b=10, c=10, d=10, e=10) | {"f": [0.1] * 9}
    assert not summarise_time(short, np.array(list("abcdef"))).is_fast.any()
    assert not summarise_time(times(a=10, b=10, c=10, f=0.1), np.array(list("abcf"))).is_fast.any()


def test_a_fast_worker_is_flagged_but_not_accused():
    """The alert stands beside the others, and names both medians."""
    crowd = make_crowd(200, 10, 3, 5, accuracy=0.9, random_state=0)
    rng = np.random.default_rng(0)
    seconds = {w: rng.lognormal(2.3, 0.5, 100) for w in range(10)} | {3: rng.lognormal(0, 0.5, 100)}
    cards = score_workers(crowd.annotations, np.full((200, 3), 1 / 3), working_time=seconds)
    assert cards.flagged("fast").tolist() == [w == 3 for w in range(10)]
    assert "fast" not in ACCUSATIONS and cards[3].median_seconds == pytest.approx(np.median(seconds[3]))
    reason = cards[3].reasons[cards[3].alerts.index("fast")]
    assert reason.startswith("a median of ") and reason.endswith(f"the crowd is {cards.crowd_median_seconds:.2g}")


@pytest.mark.parametrize("wrong", [{"a": [-1.0]}, {"a": [np.nan]}, {"a": [[1.0]]}, {"who": [1.0]}])
def test_bad_working_times_are_refused(wrong):
    """One sentence that names the worker."""
    with pytest.raises(ParameterError, match="working_time"):
        summarise_time(wrong, np.array(["a"]))

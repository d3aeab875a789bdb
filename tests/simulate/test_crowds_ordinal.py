"""Simulated crowds with ordered classes."""

import math

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.simulate import make_ordinal_crowd, ordinal_confusion


def normal_below(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def test_confusion_equals_a_loop():
    """The probability that the noisy perception is nearest to a grade."""
    found = ordinal_confusion([0.3, -1.0], [0.5, 2.0], 4)
    for w, (bias, spread) in enumerate([(0.3, 0.5), (-1.0, 2.0)]):
        for t in range(4):
            for k in range(4):
                high = 1.0 if k == 3 else normal_below((k + 0.5 - t - bias) / spread)
                low = 0.0 if k == 0 else normal_below((k - 0.5 - t - bias) / spread)
                assert found[w, t, k] == pytest.approx(high - low, abs=1e-12)


def test_labels_follow_the_confusion_matrices():
    """The same seed gives the same crowd; errors are mostly of one grade."""
    crowd, same = (make_ordinal_crowd(400, 10, random_state=3) for _ in range(2))
    assert np.array_equal(crowd.annotations.label, same.annotations.label)
    error = np.abs(crowd.annotations.label - crowd.truth[crowd.annotations.item])
    assert 0 < np.mean(error == 2) < np.mean(error == 1) < np.mean(error == 0)


def test_invalid_values_are_refused():
    """A spread must be above 0."""
    with pytest.raises(ParameterError, match="`spread` numbers above 0"):
        ordinal_confusion([0.0], [0.0], 3)
    with pytest.raises(ParameterError, match="`spread`"):
        make_ordinal_crowd(spread=0)

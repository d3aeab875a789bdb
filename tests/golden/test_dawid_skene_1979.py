"""Dawid and Skene (1979), section 4: five anaesthetists judge the fitness of 45 patients on a scale of 1 to 4.

The first of them judged every patient three times; all these labels count.
"""

import numpy as np
import pytest

from manyhands import DawidSkene
from reference.slow import slow_dawid_skene
from strategies import triples_of


@pytest.fixture(scope="module")
def fitted(real_annotations):
    """Maximum likelihood: next to no smoothing."""
    return DawidSkene(smoothing=1e-9, max_iter=10_000, tol=1e-12).fit(real_annotations("agg/anesthesia"))


def test_class_frequencies(fitted):
    """The published estimates, to their two decimals: .40 .42 .11 .07."""
    assert fitted.classes_.tolist() == ["1", "2", "3", "4"]
    assert fitted.class_prior_.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]


def test_patients_are_nearly_all_certain(fitted):
    """Most patients are placed with next to no doubt, three of them in the fourth class."""
    assert np.sum(fitted.posterior_.max(axis=1) > 0.99) >= 38
    assert np.sum(fitted.labels_ == "4") == 3


def test_plain_loops_reach_the_same_estimates(fitted, real_annotations):
    """Two hundred plain iterations of the paper's equations (2.3) to (2.5) end where the accelerated EM ends."""
    votes = real_annotations("agg/anesthesia")
    posterior, confusion, prior, history = slow_dawid_skene(triples_of(votes), 45, 5, 4, smoothing=1e-9, n_iter=200)
    np.testing.assert_allclose(fitted.posterior_, posterior, atol=1e-6)
    np.testing.assert_allclose(fitted.confusion_, confusion, atol=1e-6)
    np.testing.assert_allclose(fitted.class_prior_, prior, atol=1e-6)
    assert fitted.history_[-1] == pytest.approx(history[-1], rel=1e-9)


def test_repeated_labels_are_kept(real_annotations):
    """45 patients, 7 labels each."""
    assert real_annotations("agg/anesthesia").n_labels.tolist() == [7] * 45

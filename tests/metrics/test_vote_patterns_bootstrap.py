"""Intervals: one seed, one interval; about as wide as they should be; bounded memory; no global generator."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.metrics import class_agreement, fleiss_kappa, krippendorff_alpha, percent_agreement
from manyhands.metrics import vote_patterns as module


def crowd(seed=0, n_items=80, n_classes=3):
    """Four workers who are right in seven of ten cases."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, (n_items, 1))
    labels = np.where(rng.random((n_items, 4)) < 0.7, truth, rng.integers(0, n_classes, (n_items, 4)))
    return Annotations.from_matrix(labels)


@pytest.mark.parametrize("figure", [percent_agreement, fleiss_kappa, krippendorff_alpha])
def test_one_seed_one_interval(figure):
    """The same seed gives the same bounds, another one others; the figure itself needs no seed."""
    one, again, other = (figure(crowd(), n_bootstrap=100, random_state=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.value == other.value and (one.low, one.high) != (other.low, other.high)
    assert one.low < one.value < one.high


def test_the_global_generator_is_untouched():
    """The global generators are neither used nor changed."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    krippendorff_alpha(crowd())
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_no_resamples_no_bounds():
    """The value is still computed; likewise with a single item, of which all resamples are equal."""
    for found in (krippendorff_alpha(crowd(), n_bootstrap=0), krippendorff_alpha(Annotations.from_matrix([[0, 1]]))):
        assert np.isfinite(found.value) and np.isnan([found.low, found.high]).all() and found.reason is None
    assert np.isnan(class_agreement(crowd(), n_bootstrap=0).low).all()


def test_more_confidence_is_wider():
    """Bounds move outwards."""
    narrow, wide = (krippendorff_alpha(crowd(), confidence=c) for c in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_bounds_are_the_quantiles_of_a_known_distribution():
    """The number of heads in a hundred throws: 40 to 60 in 95 per cent of cases, 42 to 58 in 90."""
    for confidence, expected in ((0.95, (40, 60)), (0.9, (42, 58))):
        resampling = module.Bootstrap(5000, confidence, 0)
        assert resampling.interval(lambda weights: weights[:, 0], np.array([50, 50]), 1) == expected


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_resampled_figures_are_those_of_resampled_items(level, monkeypatch):
    """Bounds from weights on patterns lie where those of real resamples lie."""
    votes, rng = crowd(), np.random.default_rng(5)
    rows = (rng.integers(0, len(votes), len(votes)) for _ in range(300))
    drawn = [krippendorff_alpha(votes[some], level, n_bootstrap=0).value for some in rows]
    for few_patterns in (0, 1000):  # counts of patterns, and items drawn one by one
        monkeypatch.setattr(module, "_DRAW_ITEMS", few_patterns)
        found = krippendorff_alpha(votes, level)
        assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)


@pytest.mark.parametrize("draw_items", [0, 1000])
@pytest.mark.parametrize("figure", [fleiss_kappa, krippendorff_alpha])
def test_chunks_do_not_show(figure, draw_items, monkeypatch):
    """One resample at a time, or all at once."""
    monkeypatch.setattr(module, "_DRAW_ITEMS", draw_items)
    expected = figure(crowd(), n_bootstrap=30)
    monkeypatch.setattr(module, "_CHUNK", 1)
    assert figure(crowd(), n_bootstrap=30) == expected


def test_undefined_resamples_are_left_out():
    """Half of the resamples of two items show one class only; the others set the bounds."""
    found = krippendorff_alpha(Annotations.from_matrix([[0, 0], [1, 1]]), n_bootstrap=50)
    assert (found.value, found.low, found.high) == (1, 1, 1)


def test_intervals_cover_what_they_should():
    """The expected agreement of workers who are right in eight of ten cases is .68; most intervals hold it."""
    rng, held = np.random.default_rng(0), 0
    for seed in range(100):
        votes = Annotations.from_matrix((rng.random((60, 3)) < 0.8).astype(int))
        found = percent_agreement(votes, n_bootstrap=200, random_state=seed)
        held += found.low <= 0.68 <= found.high
    assert 86 <= held <= 99

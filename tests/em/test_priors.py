"""Class priors and gold labels."""

import numpy as np
import pytest

from manyhands.em.priors import EstimatedPrior, FixedPrior, class_prior, gold_codes, gold_offset
from manyhands.exceptions import AnnotationError, ParameterError

pytestmark = pytest.mark.fast


def test_estimated_frequencies_are_smoothed_totals():
    """(total + s) / (sum + K s); the penalty is s times the sum of logs."""
    prior = EstimatedPrior(0.5)
    log_prior = prior.solve(np.array([3.0, 1.0, 0.0]))
    np.testing.assert_allclose(np.exp(log_prior), np.array([3.5, 1.5, 0.5]) / 5.5, rtol=1e-14)
    assert prior.log_penalty(log_prior) == pytest.approx(0.5 * log_prior.sum())


def test_estimated_frequencies_are_the_best_ones():
    """No other frequencies give a higher  totals . log p + penalty."""
    prior, totals = EstimatedPrior(0.3), np.array([5.0, 2.0, 0.1])
    best = prior.solve(totals)

    def objective(log_p):
        return totals @ log_p + prior.log_penalty(log_p)

    rng = np.random.default_rng(0)
    others = np.log(rng.dirichlet(np.ones(3), 200))
    assert all(objective(best) >= objective(other) for other in others)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_frequencies_of_nothing_are_even(smoothing):
    """No items, no smoothing: uniform; a class without items keeps a finite logarithm."""
    np.testing.assert_allclose(np.exp(EstimatedPrior(smoothing).solve(np.zeros(4))), 0.25)
    assert np.isfinite(EstimatedPrior(0.0).solve(np.array([5.0, 0.0]))).all()


def test_priors_by_name():
    """ "estimated", "uniform", or a frequency for each class, normalised; the wrong number of them is refused."""
    assert isinstance(class_prior("estimated", 3, 0.1), EstimatedPrior)
    uniform = class_prior("uniform", 4, 0.1)
    assert isinstance(uniform, FixedPrior)
    np.testing.assert_allclose(np.exp(uniform.solve(np.array([9.0, 0, 0, 0]))), 0.25)
    assert uniform.log_penalty(uniform.log_prior) == 0.0
    np.testing.assert_allclose(np.exp(class_prior([1, 3], 2, 0.1).solve(np.zeros(2))), [0.25, 0.75])
    with pytest.raises(ParameterError, match="`prior` has 3 numbers, but there are 2 classes"):
        class_prior([1, 1, 1], 2, 0.1)


def test_gold_is_coded_for_every_copy_of_an_item():
    """-1 where there is none; an item drawn twice by resampling is gold twice; no gold is None."""
    items, classes = np.array(["a", "b", "a"], object), np.array(["x", "y"], object)
    assert gold_codes({"a": "y"}, items, classes).tolist() == [1, -1, 1]
    assert gold_codes(None, items, classes) is None
    assert gold_codes({}, items, classes) is None


def test_unknown_gold_is_named():
    """Items and classes alike."""
    items, classes = np.array(["a"], object), np.array(["x"], object)
    with pytest.raises(AnnotationError, match="Gold items not known: 'z'"):
        gold_codes({"z": "x"}, items, classes)
    with pytest.raises(AnnotationError, match="Gold classes not known: 'y'"):
        gold_codes({"a": "y"}, items, classes)


@pytest.mark.parametrize("gold", [[1, 2], [], "a", np.array([1]), {"a"}])
def test_gold_is_a_mapping(gold):
    """A list of classes does not name the items; not even an empty one is gold."""
    with pytest.raises(AnnotationError, match="Gold must be a mapping"):
        gold_codes(gold, np.array(["a"], object), np.array(["x"], object))


def test_gold_that_cannot_be_a_class_is_named():
    """A list of one class is not that class."""
    with pytest.raises(AnnotationError, match=r"gold class of item 'a' is \['x'\], which is not hashable"):
        gold_codes({"a": ["x"]}, np.array(["a"], object), np.array(["x"], object))


def test_gold_excludes_all_other_classes():
    """0 for the gold class, finite but negligible for the others, no change for other items."""
    offset = gold_offset(np.array([1, -1], np.int32), 3)
    assert offset[0, 1] == 0.0 and np.exp(offset[0, [0, 2]]).tolist() == [0.0, 0.0]
    assert np.isfinite(offset).all() and offset[1].tolist() == [0.0, 0.0, 0.0]
    assert gold_offset(None, 3) is None

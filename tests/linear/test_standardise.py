"""Standardised rows: turned to their axes or not, dense or sparse, a classifier says the same of raw rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from manyhands.features import as_rows
from manyhands.linear import standardise as standard_rows
from manyhands.linear.standardise import standardised


def raw_rows(n_rows, n_features):
    X = np.random.default_rng(0).normal(3.0, 5.0, (n_rows, n_features)).round().astype(np.float32)
    X[:, 0] = 4.0  # constant
    X[:, -1] = 2 * X[:, 1]
    return X


@pytest.mark.parametrize("axes", [1024, 0])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_scores_are_the_same_for_raw_rows(monkeypatch, shape, form, axes):
    monkeypatch.setattr(standard_rows, "_AXES", axes)
    X = raw_rows(*shape)
    found = standardised(as_rows(form(X)))
    rows = (found.X.toarray() if hasattr(found.X, "toarray") else found.X) - found.shift
    w = np.random.default_rng(1).normal(size=(2, rows.shape[1] + 1))
    raw = found.raw(w)
    np.testing.assert_allclose(rows @ w[:, :-1].T + w[:, -1], X @ raw[:, :-1].T + raw[:, -1], atol=1e-4)
    deviation = (X[:, 1:] - X[:, 1:].mean(axis=0)) / X[:, 1:].std(axis=0)
    np.testing.assert_allclose(rows @ rows.T, deviation @ deviation.T, atol=1e-4)  # lengths and angles are kept


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(("shape", "rank"), [((30, 6), 4), ((6, 30), 5)])
def test_there_are_as_many_axes_as_the_rows_span(shape, rank, form):
    """Neither a constant nor a doubled feature has one of its own, and the columns along axes do not correlate."""
    found = standardised(as_rows(form(raw_rows(*shape))))
    np.testing.assert_allclose(found.axes.T @ found.axes, np.eye(rank), atol=1e-6)
    gram = found.X.T @ found.X
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-6)


def test_rows_that_are_all_alike_have_one_axis_on_which_they_are_zero():
    found = standardised(as_rows(np.full((5, 3), 2.0)))
    np.testing.assert_array_equal(found.X, np.zeros((5, 1)))

"""Rows of X in every accepted form, and the inputs that are refused."""

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csr_matrix

from manyhands.exceptions import AlignmentError
from manyhands.features import as_rows, check_rows, fingerprint

X = np.arange(12.0).reshape(4, 3)


class Getter:
    """A dataset: returns rows by index."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def mapped(tmp_path, array):
    """The array, memory-mapped from a read-only file."""
    np.save(tmp_path / "x.npy", array)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def test_every_kind_of_x_gives_the_same_rows(tmp_path):
    """Lists, arrays of any number type, mapped files, tensors, sparse matrices and datasets, as 32-bit floats."""
    kinds = [X, X.tolist(), X.astype(np.uint8), X.astype(np.float32), mapped(tmp_path, X), torch.tensor(X)]
    kinds += [csr_matrix(X), coo_array(X), Getter(X), Getter([(row, "label") for row in X]), Getter(torch.tensor(X))]
    index = np.array([2, 0, 2])
    for kind in kinds:
        rows = as_rows(kind)
        assert (len(rows), rows.shape) == (4, (3,))
        taken = rows.take(index)
        assert taken.dtype == np.float32 and taken.flags.writeable
        np.testing.assert_array_equal(taken, X[index])
        np.testing.assert_array_equal(
            np.asarray(rows.whole().todense() if hasattr(rows.whole(), "tocsr") else rows.whole()), X
        )


def test_images_keep_their_shape():
    """Rows may have more dimensions than one."""
    images = np.zeros((5, 3, 8, 8), np.uint8)
    assert as_rows(images).shape == (3, 8, 8) and as_rows(images).take(np.array([1])).shape == (1, 3, 8, 8)


@pytest.mark.parametrize(
    "bad, message",
    [
        (np.where(X == 7, np.nan, X), "NaN, infinity .* in row 2"),
        (csr_matrix(np.where(X == 4, np.inf, X)), "in row 1"),
        (np.where(X == 7, 1e200, X), "beyond 32-bit floats in row 2"),
        (X.astype(object), "must hold numbers, but its type is object"),
        ([["a", "b"]], "must hold numbers"),
        ([[1.0], [1.0, 2.0]], "rows of different shapes"),
        (X[:, 0], r"its shape is \(4,\)"),
        (X[:, :0], r"its shape is \(4, 0\)"),
        (csr_matrix((3, 0)), "at least one column"),
        (Getter([]), "no rows"),
        (Getter([1.0, 2.0]), "at least one feature"),
        (Getter([["a"], ["b"]]), "Row 0 of X is not an array of numbers but list"),
    ],
)
def test_bad_rows_are_refused_with_a_message(bad, message):
    """Before anything is fitted, with the number of the first row that is wrong."""
    with pytest.raises(AlignmentError, match=message):
        as_rows(bad)


def test_rows_of_a_dataset_are_checked_when_they_are_read():
    """They are not read before."""
    rows = as_rows(Getter([[1.0, 2.0], [1.0, np.nan], [1.0]]))
    with pytest.raises(AlignmentError, match="in row 1"):
        rows.take(np.array([0, 1]))
    with pytest.raises(AlignmentError, match=r"Row 2 of X has shape \(1,\), but row 0 has \(2,\)"):
        rows.take(np.array([2]))


def test_there_is_one_row_for_each_item():
    with pytest.raises(AlignmentError, match="X has 4 rows, but the annotations have 5 items"):
        check_rows(as_rows(X), 5)


def test_a_fingerprint_changes_with_the_numbers_alone(tmp_path):
    """Equal for an array and its mapped file, and for every sparse format; different after one number changes."""
    same = {fingerprint(as_rows(kind)) for kind in (X, mapped(tmp_path, X), Getter(X))}
    sparse = {fingerprint(as_rows(kind)) for kind in (csr_matrix(X), csr_matrix(X).tocoo(), csr_matrix(X).tocsc())}
    assert len(same) == len(sparse) == 1
    for form in (np.asarray, csr_matrix):
        assert fingerprint(as_rows(form(np.where(X == 5, 0, X)))) not in same | sparse
        assert fingerprint(as_rows(form(X[:3]))) not in same | sparse


def test_a_wide_sparse_matrix_is_never_made_dense():
    """Neither for the check nor for the fingerprint: in dense form this one would take 40 GB."""
    wide = csr_matrix(([1.0, 2.0, np.nan], ([0, 2, 3], [5, 7, 9_999_999])), shape=(1000, 10_000_000))
    with pytest.raises(AlignmentError, match="in row 3"):
        as_rows(wide)
    assert len(fingerprint(as_rows(wide[:3]))) == 32


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_less_common_array_types():
    """Half precision of torch, nullable columns of pandas, a matrix and a masked array without masked entries."""
    import pandas as pd

    for other in (
        torch.tensor(X).bfloat16(),
        pd.DataFrame(X).astype("Int64"),
        np.matrix(X),
        np.ma.masked_array(X),
    ):
        rows = as_rows(other)
        np.testing.assert_array_equal(rows.take(np.arange(len(X))), X.astype(np.float32))
        assert type(rows.whole()) is np.ndarray
    gap = pd.DataFrame(X).astype("Int64")
    gap.iloc[1, 0] = pd.NA
    with pytest.raises(AlignmentError, match=r"NaN.* in row 1"):
        as_rows(gap)
    with pytest.raises(AlignmentError, match="masked entries"):
        as_rows(np.ma.masked_equal(X, 5))
    with pytest.raises(AlignmentError, match="rows of numbers, one for each item; got dict"):
        as_rows({"a": 1})

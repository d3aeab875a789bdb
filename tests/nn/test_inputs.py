"""Rows of X, whatever X is, and what is refused."""

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csr_matrix

from manyhands.exceptions import AlignmentError
from manyhands.nn.inputs import as_rows, check_rows, fingerprint

X = np.arange(12.0).reshape(4, 3)


class Getter:
    """Hands out what it was given, one by one."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def mapped(tmp_path, array):
    """The array, mapped from a file that cannot be written to."""
    np.save(tmp_path / "x.npy", array)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


def test_every_kind_of_x_gives_the_same_rows(tmp_path):
    """Lists, arrays of any number type, mapped files, tensors, sparse matrices and getters, as 32-bit floats."""
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
    "bad, sentence",
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
def test_bad_rows_are_refused_in_a_sentence(bad, sentence):
    """At the door, with the first row that is wrong."""
    with pytest.raises(AlignmentError, match=sentence):
        as_rows(bad)


def test_a_getter_is_checked_as_it_goes():
    """Its rows are seen only when they are taken."""
    rows = as_rows(Getter([[1.0, 2.0], [1.0, np.nan], [1.0]]))
    with pytest.raises(AlignmentError, match="in row 1"):
        rows.take(np.array([0, 1]))
    with pytest.raises(AlignmentError, match=r"Row 2 of X has shape \(1,\), but row 0 has \(2,\)"):
        rows.take(np.array([2]))


def test_rows_must_be_the_items():
    """As many rows as items."""
    with pytest.raises(AlignmentError, match="X has 4 rows, but the annotations have 5 items"):
        check_rows(as_rows(X), 5)


def test_a_fingerprint_changes_with_the_numbers_alone(tmp_path):
    """The same for an array, its map and its sparse form; another for one other number."""
    same = {fingerprint(as_rows(kind)) for kind in (X, mapped(tmp_path, X), csr_matrix(X), Getter(X))}
    assert len(same) == 1
    assert fingerprint(as_rows(np.where(X == 5, 0, X))) not in same
    assert fingerprint(as_rows(X[:3])) not in same

"""Columns of CSV files that are known by name, as NumPy arrays."""

import numpy as np
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.read.known_tables import read_columns
from manyhands.io.read.sources import Source


def read(text, *wanted):
    content = text if isinstance(text, bytes) else text.encode()
    return [column.tolist() for column in read_columns(Source("votes.csv", content=content), wanted)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("task,label\n1,2\n3,4\n", [[1, 3], [2, 4]]),
        ("\ufefftask,label\r\n1,2\r\n\r\n3,4", [[1, 3], [2, 4]]),
        ('other,label,task\n"a, b",2,1\n"c\nd",4,3\n', [[1, 3], [2, 4]]),
        ("task,label\n42_0,1\n42_1,-1\n", [["42_0", "42_1"], [1, -1]]),
        ("task,label\n007,1\n1.5,2\n", [["007", "1.5"], [1, 2]]),
        ("task,label\n99999999999999999999,1\n", [["99999999999999999999"], [1]]),
        ("task,label\na,\n,1\n", [["a", ""], ["", "1"]]),
        ("task,label\n", [[], []]),
    ],
)
def test_columns_are_integers_where_all_cells_are(text, expected):
    assert read(text, "task", "label") == expected


def test_types_of_columns():
    numbers, texts = read_columns(Source("votes.csv", content=b"a,b\n1,x\n2,yy\n"), ("a", "b"))
    assert numbers.dtype == np.int64 and texts.dtype == object


def test_a_column_may_have_one_of_several_names():
    assert read("performer\n5\n", ("worker", "performer")) == [[5]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("task\n1\n", "votes.csv has no column label. It has: task."),
        ("", "votes.csv is empty"),
        ("task,label\na,1\nb\n", "votes.csv, line 3: 1 cell(s) where the header names 2 columns."),
        ("task,label\na,1\nb,2,3\n", "votes.csv, line 3: 3 cells where the header names 2 columns."),
        (b"task,label\n\xff,1\n", "votes.csv, line 2: byte 11 is not UTF-8 text"),
    ],
)
def test_a_damaged_file_is_refused(text, message):
    with pytest.raises(AnnotationError) as caught:
        read(text, "task", "label")
    assert message in str(caught.value)

"""Files without a header: matrices of numbers, and triples of words."""

from pathlib import Path

import pytest

from broken_exports import quiet_read, triples
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.reading import read_export

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture
def words(tmp_path):
    def write(text, name="answers.txt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_matrix_by_number():
    reading = quiet_read(SAMPLES / "rodrigues" / "answers.txt")
    assert reading.format == "matrix"
    assert reading.ledger.as_dict() == {"rows_read": 9, "kept": 4, "excluded": {"no_label": 5}}
    assert triples(reading) == [("0", "0", "0"), ("0", "1", "1"), ("1", "1", "2"), ("1", "2", "2")]
    assert reading.annotations.item_ids.tolist() == ["0", "1", "2"]


def test_triples_with_the_coder_first():
    with pytest.warns(CrowdWarning, match="first word of each line was taken for the worker"):
        reading = read_export(SAMPLES / "nltk" / "triples.txt")
    assert reading.format == "nltk"
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
    assert triples(reading) == [("item-1", "ann", "negative"), ("item-1", "bob", "neutral")]


def test_triples_with_the_item_clearly_first(words):
    lines = "\n".join(f"item-{at // 2} {'ann' if at % 2 else 'bob'} x" for at in range(40))
    with pytest.warns(CrowdWarning, match="second word of each line was taken for the worker"):
        assert read_export(words(lines)).annotations.worker_ids.tolist() == ["ann", "bob"]


@pytest.mark.parametrize("text", ["0 1\n1 1\n", "0. 1.\n1. 1.\n", "0.0 1.0\n"])
def test_a_zero_without_a_minus_one_is_asked_about(words, text):
    with pytest.raises(AnnotationError, match="is 0 a class, or no label"):
        quiet_read(words(text))


def test_a_zero_that_the_user_explains(words):
    assert quiet_read(words("0 1\n2 1\n"), missing="0").ledger.as_dict()["excluded"] == {"no_label": 1}
    assert quiet_read(words("0 1\n2 1\n"), missing="-1").ledger.kept == 4


@pytest.mark.parametrize("nothing", ["nan", "NaN", "NAN", "Nan"])
def test_nan_is_no_label_and_then_zero_is_a_class(words, nothing):
    reading = quiet_read(words(f"0 {nothing} 1\n1 0 {nothing}\n"), format="matrix")
    assert reading.annotations.classes.tolist() == ["0", "1"]
    assert reading.ledger.excluded == {"no_label": 2}


def test_three_numbers_might_be_either(words):
    path = words("1 2 1\n2 2 2\n")
    with pytest.raises(AnnotationError, match="a matrix of three workers, or triples"):
        quiet_read(path)
    assert quiet_read(path, format="matrix").ledger.kept == 6
    assert quiet_read(path, format="nltk").ledger.kept == 2


def test_a_matrix_with_commas(words):
    reading = quiet_read(words("0,-1,1\n1,1,-1\n", "answers.csv"))
    assert (reading.format, reading.ledger.kept) == ("matrix", 4)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        ("0 1 -1\n0 1\n", {}, "line 2: 2 words; the first has 3"),
        ("a b\nc d\n", {"format": "nltk"}, "2 words in a line; triples have three"),
        ("a b c d\n", {}, "no format that manyhands supports"),
        ("word\n", {}, "no format that manyhands supports"),
    ],
)
def test_what_is_refused(words, text, options, said):
    with pytest.raises(AnnotationError, match=said):
        quiet_read(words(text), **options)


def test_words_under_a_header(words):
    """Columns with blanks between them, as some programs write tables."""
    assert quiet_read(words("item worker label\n1 ann cat\n2 ann dog\n")).format == "long"


def test_a_table_is_not_lines_of_words(words):
    with pytest.raises(AnnotationError, match="is not lines of words"):
        quiet_read(words("item,worker,label\n1,ann,cat\n", "x.csv"), format="matrix")

"""The conservation law of rows."""

import pytest

from manyhands.io.read.ledger import Ledger


def test_rows_that_vanish_are_an_error():
    """A ledger that does not add up cannot be made."""
    with pytest.raises(AssertionError, match="2 rows are unaccounted for"):
        Ledger(rows_read=5, kept=2, excluded={"duplicate": 1})


def test_the_sentence_names_every_reason():
    """What a person reads has all the counts."""
    text = str(Ledger(5, 2, {"no_label": 2, "duplicate": 1}))
    assert text == "5 rows read, 2 kept, 2 no label, 1 duplicate"

"""JSON that may be shown on a terminal."""

import json
import sys

import pytest

from manyhands.io.write.json_values import to_json


def test_readable_text_stays_readable():
    assert to_json({"caf\u00e9": "\u732b \U0001f600"}).decode() == '{\n  "caf\u00e9": "\u732b \U0001f600"\n}\n'


@pytest.mark.parametrize(
    "letter", ["\x1b", "\x7f", "\x85", "\x9b", "\u200f", "\u2028", "\u202e", "\u2066", "\ufeff", "\U000e0041", "\udce9"]
)
def test_what_a_terminal_obeys_is_spelled_out(letter):
    """In names and in values, and it is the same value still."""
    told = {f"a{letter}": [f"{letter}b\n", "\u00e9"]}
    text = to_json(told).decode()
    assert text.replace("\n", "").isprintable() and "\u00e9" in text
    assert json.loads(text) == told


def test_characters_of_every_kind_survive():
    """From all over Unicode, halves of surrogate pairs included."""
    told = [chr(at) for at in (*range(0x3000), *range(0x3000, sys.maxunicode + 1, 97))]
    assert json.loads(to_json(told)) == told

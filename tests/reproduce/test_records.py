"""Lines on disk: whole or ignored, and one writer at a time."""

import json

import pytest

from manyhands.exceptions import OutputExistsError
from manyhands.reproduce.records import appending, read_records

ONE = {"key": "a", "metrics": {"accuracy": 0.5}}


def test_the_last_line_of_a_key_counts(tmp_path):
    """What failed and then went well went well."""
    path = tmp_path / "new" / "r.jsonl"
    assert read_records(path).by_key == {}
    with appending(path) as append:
        append({"key": "a", "error": "out of luck"})
        append(ONE)
    assert read_records(path).by_key == {"a": ONE} and len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("cut", range(1, len(json.dumps(ONE))))
def test_a_line_cut_anywhere_is_ignored_and_counted(tmp_path, cut):
    """And does not swallow the next one."""
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(ONE | {"key": "b"}) + "\n" + json.dumps(ONE)[:cut])
    with appending(path) as append:
        append(ONE | {"key": "c"})
    found = read_records(path)
    assert set(found.by_key) == {"b", "c"} and found.n_torn == 1


def test_what_is_no_result_is_ignored(tmp_path):
    """Whatever JSON it is."""
    path = tmp_path / "r.jsonl"
    odd = [ONE | {"metrics": None}, ONE | {"peak_mb": "big"}, ONE | {"metrics": {"accuracy": "high"}}, {"key": "x"}]
    odd += [ONE | {"series": odd_one} for odd_one in ([], {"roc": 1}, {"roc": ["a"]}, {"roc": [[[1]]]}, None)]
    lines = [
        b"3",
        b"[]",
        b'{"key": 3}',
        b"\xff\xfe",
        b"[" * 100_000,
        *(json.dumps(line).encode() for line in [*odd, ONE]),
    ]
    path.write_bytes(b"\n".join(lines) + b"\n\n")
    found = read_records(path)
    assert found.by_key == {"a": ONE} and found.n_torn == 14


def test_two_writers_are_refused(tmp_path):
    """The second gets one sentence, and the first goes on."""
    path = tmp_path / "r.jsonl"
    with appending(path) as append:
        with pytest.raises(OutputExistsError, match="Another run is writing"), appending(path):
            pass
        append(ONE)
    with appending(path):
        pass
    assert read_records(path).by_key == {"a": ONE}


def test_no_line_holds_what_json_does_not_know(tmp_path):
    """NaN is refused rather than written."""
    with appending(tmp_path / "r.jsonl") as append, pytest.raises(ValueError, match="JSON"):
        append(ONE | {"seconds": float("nan")})
    assert (tmp_path / "r.jsonl").read_bytes() == b""


def test_series_are_lists_of_numbers_or_of_lists(tmp_path):
    """Null is a series that the method does not have, or a value that is undefined."""
    path, one = tmp_path / "r.jsonl", ONE | {"series": {"roc": [0, 0.5, None], "rounds.n": [[1, 2], [3]], "no": None}}
    with appending(path) as append:
        append(one)
    assert read_records(path).by_key == {"a": one}

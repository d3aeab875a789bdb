"""Memory of the machine, of limits and of this process."""

import sys

import pytest

from manyhands._core import system
from manyhands._core.system import available_bytes, check_memory, limit_bytes, peak_bytes, physical_bytes
from manyhands.exceptions import LimitError

GROUPS = {  # of a control group with 3 GB, of which 0.6 are used and 0.1 of these can be given back
    "memory.max": {
        "memory.max": "3000000000\n",
        "memory.current": "600000000\n",
        "memory.stat": "anon 500000000\ninactive_file 100000000\n",
    },
    "memory/memory.limit_in_bytes": {
        "memory/memory.limit_in_bytes": "3000000000\n",
        "memory/memory.usage_in_bytes": "600000000\n",
        "memory/memory.stat": "inactive_file 0\ntotal_inactive_file 100000000\n",
    },
}


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A folder in place of that of the control groups, of a process without other limits."""
    monkeypatch.setattr(system, "_GROUPS", tmp_path)
    monkeypatch.setattr(system, "_process_limits", lambda: [])
    return tmp_path


@pytest.mark.parametrize("files", GROUPS.values(), ids=GROUPS)
def test_the_limit_of_a_control_group_and_what_is_left_of_it(groups, files):
    """In both versions; cached pages of files are available."""
    for name, text in files.items():
        (groups / name).parent.mkdir(exist_ok=True)
        (groups / name).write_text(text)
    assert limit_bytes() == 3_000_000_000
    assert available_bytes() == 2_500_000_000
    check_memory(3_000_000_000, "These bytes", "Use fewer.")  # memory in use may be given back before the job needs it
    with pytest.raises(LimitError, match=r"need about 3\.1 GB; there are 3\.0 GB"):
        check_memory(3_100_000_000, "These bytes", "Use fewer.")


@pytest.mark.parametrize("limit", ["max", str(1 << 62), "0"])
def test_a_control_group_without_a_limit(groups, limit):
    """In the words of both versions."""
    (groups / "memory.max").write_text(limit)
    assert limit_bytes() is None


def test_a_limit_whose_use_is_not_stated(groups):
    """It is a limit all the same."""
    (groups / "memory.max").write_text("1000")
    assert limit_bytes() == available_bytes() == 1000


def test_the_rest_of_the_address_space_limits_a_job(groups, monkeypatch):
    monkeypatch.setattr(system, "_process_limits", lambda: [(1_000_000_000, 400_000_000)])
    assert (limit_bytes(), available_bytes()) == (1_000_000_000, 600_000_000)
    with pytest.raises(LimitError):
        check_memory(601_000_000, "These bytes", "Use fewer.")


@pytest.mark.skipif(sys.platform != "linux", reason="the files of Linux")
def test_linux_states_its_memory():
    assert 0 < peak_bytes() < physical_bytes()
    assert 0 < available_bytes() < physical_bytes()

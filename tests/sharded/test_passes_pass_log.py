"""The record of finished passes: a run that was ended continues with the same bits."""

from dataclasses import dataclass

import numpy as np
import pytest

from manyhands import DawidSkene, OneCoin
from manyhands.exceptions import ParameterError
from manyhands.sharded.fit import fit
from manyhands.sharded.labels import InMemoryShards
from manyhands.sharded.passes import PassLog
from manyhands.testing.crowds import hard_crowd


class Aborted(Exception):
    """What ends a run in the middle."""


@dataclass
class Breakable:
    """Shards that fail once a number of passes has been started."""

    shards: InMemoryShards
    passes_left: float = np.inf
    n_passes: int = 0

    def __getattr__(self, name):
        return getattr(self.shards, name)

    def run(self, task, what):
        self.n_passes += 1
        self.passes_left -= 1

        def maybe(shard):
            if self.passes_left < 0 and shard.number == 1:
                raise Aborted
            return task(shard)

        return self.shards.run(maybe, what)


@pytest.fixture(scope="module")
def shards():
    """A crowd on which EM takes many passes."""
    return InMemoryShards.from_annotations(hard_crowd(3), 4)


def bits(found):
    """All results, to the last bit."""
    return found.counts.tobytes(), found.confusion.tobytes(), found.class_totals.tobytes(), tuple(found.history)


@pytest.mark.parametrize("n_before", [0, 1, 4])
def test_a_run_that_was_ended_continues_after_its_last_pass(tmp_path, shards, n_before):
    """The same bits, and only the passes that are missing are computed."""
    method = DawidSkene()
    whole = Breakable(shards)
    expected = fit(method, whole)
    with pytest.raises(Aborted):
        fit(method, Breakable(shards, n_before), log=PassLog.of(tmp_path, method, shards))
    again, log = Breakable(shards), PassLog.of(tmp_path, method, shards)
    found = fit(method, again, log=log)
    assert bits(found) == bits(expected) and found.notes == expected.notes
    assert (log.n_replayed, again.n_passes) == (n_before, whole.n_passes - n_before)
    log.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_broken_record_is_computed_again_and_named(tmp_path, shards):
    """One byte, or the end of the file: from there on everything is computed, with a note."""
    method = DawidSkene(max_iter=6)
    expected = fit(method, shards, log=PassLog.of(tmp_path, method, shards))
    folder = next(tmp_path.iterdir())
    records = sorted(folder.iterdir())
    for change in (lambda data: data[:-9], lambda data: data[:50] + b"\0" + data[51:], lambda data: b""):
        records[3].write_bytes(change(records[3].read_bytes()))
        log = PassLog.of(tmp_path, method, shards)
        found = fit(method, shards, log=log)
        assert bits(found) == bits(expected)
        assert log.n_replayed == 3 and log.n_computed == len(records) - 3
        assert (
            "of pass 4 is broken; this pass and those after it were computed again." in found.notes["unusable_records"]
        )
    log = PassLog.of(tmp_path, method, shards)
    assert bits(fit(method, shards, log=log)) == bits(expected) and log.n_computed == 0


def test_a_record_of_other_parameters_is_not_used(tmp_path, shards):
    """Even under the right name."""
    one, other = DawidSkene(max_iter=4), DawidSkene(max_iter=4, smoothing=3.0)
    fit(one, shards, log=PassLog(tmp_path, "same"))
    found = fit(other, shards, log=PassLog(tmp_path, "same"))
    assert bits(found) == bits(fit(other, shards))
    assert "of other parameters" in found.notes["unusable_records"]


def test_every_fit_has_a_record_of_its_own(tmp_path, shards):
    """Method, parameters, labels and the number of shards are in the name."""
    fewer = InMemoryShards(
        shards.packed, shards.item_ids, shards.worker_ids, shards.classes, shards.first_items[[0, 2, 4]]
    )
    jobs = [(DawidSkene(), shards), (DawidSkene(smoothing=0.1), shards), (OneCoin(), shards), (DawidSkene(), fewer)]
    keys = {PassLog.of(tmp_path, *job).key for job in jobs}
    assert len(keys) == len(jobs)
    assert PassLog.of(tmp_path, DawidSkene(), shards).key in keys


def test_a_folder_that_cannot_be_made_is_named(tmp_path, shards):
    """One sentence."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="for the record of finished passes cannot be created"):
        PassLog.of(tmp_path / "file", DawidSkene(), shards)


def test_a_folder_that_an_earlier_run_removed_is_made_again(tmp_path, shards):
    """Where the same fit ends in another process between the opening of the record and the first pass."""
    log, other = (PassLog.of(tmp_path, DawidSkene(), shards) for _ in range(2))
    other.remove()
    fit(DawidSkene(), shards, log=log)
    assert len(list(log.folder.iterdir())) == log.n_computed > 0

"""Rows through the spill file and the sort, beside plain loops."""

from zlib import crc32

import numpy as np
import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.judgements import code_text
from manyhands.io.stream import ingest
from manyhands.io.stream.ingest import NO_TIME, Numbering, Spill, _by_hash, pack_rows

N_WORKERS, N_LABELS = 7, 4


def random_rows(rng, n, with_time):
    """Rows as (item, worker, label, time); some without a label, some without a worker and a label."""
    rows = []
    for _ in range(n):
        label = int(rng.integers(-1, N_LABELS))
        worker = int(rng.integers(-1 if label < 0 else 0, N_WORKERS))
        item = str(rng.choice(["plumless", "buckeroo", f"i{rng.integers(40)}"]))  # two items share a CRC-32
        rows.append((item, worker, label, int(rng.integers(5)) if with_time else NO_TIME))
    return rows


def spilled(batches, path, bits, with_time):
    """Write rows batch by batch, and read all ranges."""
    with Spill(path, bits, path) as spill:
        for batch in batches:
            item, worker, label, time = (list(column) for column in zip(*batch, strict=True))
            times = np.array(time, np.int64) if with_time(batch) else None
            coded = code_text(pl.Series(item), by_appearance=True)
            spill.add(_by_hash(coded, np.array(worker, np.int32), np.array(label, np.int32), times))
        found = [spill.read(part) for part in range(1 << bits)]
    assert not path.exists()
    return found


def plain(rows, new_worker, dropped):
    """The same by a dictionary: the last label in the order of time and rows counts."""
    order = sorted(range(len(rows)), key=lambda at: rows[at][3])
    last, n_given = {}, 0
    for at in order:
        item, worker, label, _ = rows[at]
        if label >= 0:
            last[item, new_worker[worker]] = label
            n_given += 1
    items = sorted({row[0] for row in rows}, key=lambda text: (crc32(text.encode()), text.encode()))
    kept = {pair: label for pair, label in last.items() if not dropped[label]}
    labels = [
        (item, worker, kept[item, worker]) for item in items for worker in range(N_WORKERS) if (item, worker) in kept
    ]
    return items, labels, n_given - len(last), len(last) - len(kept)


@pytest.mark.parametrize("bits", [0, 3, 8])
@pytest.mark.parametrize("with_time", [False, True])
@pytest.mark.parametrize("long_keys", [False, True])
def test_rows_are_those_of_a_plain_loop(tmp_path, monkeypatch, bits, with_time, long_keys):
    if long_keys:
        monkeypatch.setattr(ingest, "_KEY_BITS", 5)
    rng = np.random.default_rng(bits)
    batches = [random_rows(rng, n, with_time) for n in (200, 1, 57, 300)]
    if with_time:  # a file without times among files with them
        batches.append([(*row[:3], NO_TIME) for row in random_rows(rng, 50, False)])
    parts = spilled(batches, tmp_path / "spill", bits, lambda batch: with_time and len(batch) != 50)
    new_worker = rng.permutation(N_WORKERS)
    dropped = np.array([False, True, False, False])
    packed = [pack_rows(part, Numbering(new_worker, N_WORKERS, dropped)) for part in parts]
    rows = [row for batch in batches for row in batch]
    items, labels, n_repeats, n_dropped = plain(rows, new_worker, dropped)
    ids = [text for part in packed for text in part.ids.decoded()]
    assert ids == items
    found = [
        (part.ids.decoded()[item], worker, label)
        for part in packed
        for item, worker, label in zip(part.item.tolist(), part.worker.tolist(), part.label.tolist(), strict=True)
    ]
    assert found == labels
    assert [n for part in packed for n in part.n_labels] == [sum(row[0] == item for row in labels) for item in items]
    assert (sum(part.n_repeats for part in packed), sum(part.n_dropped for part in packed)) == (n_repeats, n_dropped)


def test_rows_of_a_range_have_the_crc_of_it(tmp_path):
    rng = np.random.default_rng(0)
    parts = spilled([random_rows(rng, 300, False)], tmp_path / "spill", 3, lambda batch: False)
    for number, part in enumerate(parts):
        assert [crc32(text.encode()) >> 29 for text in part.texts.decoded()] == [number] * len(part.hashes)
        assert part.time is None


def test_a_file_cut_off_by_others_is_named(tmp_path):
    coded = code_text(pl.Series(["a", "b"]), by_appearance=True)
    with Spill(tmp_path / "spill", 0, tmp_path) as spill:
        spill.add(_by_hash(coded, np.zeros(2, np.int32), np.zeros(2, np.int32), None))
        (tmp_path / "spill").write_bytes(b"")
        with pytest.raises(AnnotationError, match="was changed"):
            spill.read(0)

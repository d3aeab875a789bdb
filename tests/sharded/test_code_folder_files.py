"""The code folder: what is written comes back, appears whole or not at all, and damage is named."""

import errno
import json
import os
import subprocess
import sys
import zlib
from itertools import pairwise

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.aggregation.dawid_skene import DawidSkene
from manyhands.exceptions import AnnotationError, OutputExistsError
from manyhands.sharded.code_folder import CodeFolder, CodeFolderWriter
from manyhands.sharded.fit import fit
from manyhands.sharded.labels import InMemoryShards
from small_code_folder import write_annotations

WORKERS, CLASSES = ["ann", "bob", "cid"], ["no", "yes"]
BLOCKS = {  # number -> labels of each item, codes, ids
    0: ([2, 1], [0, 3, 2], ["x", "ÿ"]),
    7: ([300, 0], [5] * 300, ["long", "none"]),
    8: ([1], [4], [""]),
    255: ([1, 2, 1], [1, 1, 0, 5], ["a", "b", "c"]),
}


def written(folder, blocks=BLOCKS, **more):
    with CodeFolderWriter(folder, more.pop("workers", WORKERS), more.pop("classes", CLASSES)) as writer:
        for number, parts in blocks.items():
            writer.add_block(number, *parts)
        writer.finish(**more)
    return CodeFolder(folder)


@pytest.mark.parametrize(("first", "last"), [(0, 256), (0, 1), (7, 9), (1, 7), (8, 256), (0, 128)])
def test_any_consecutive_blocks_come_back(tmp_path, first, last):
    folder = written(tmp_path / "codes")
    wanted = [BLOCKS[number] for number in BLOCKS if first <= number < last]
    counts = [n for block in wanted for n in block[0]]
    for _ in range(2):  # with and without the comparison of checksums
        codes, start = folder.read_codes(first, last)
        assert codes.tolist() == [code for block in wanted for code in block[1]]
        assert codes.dtype == np.int32 and start.dtype == np.int64
        assert start.tolist() == [0, *np.cumsum(counts).tolist()]
        assert list(folder.read_item_ids(first, last)) == [value for block in wanted for value in block[2]]


def test_sizes_ids_and_ledger_come_back(tmp_path):
    folder = written(tmp_path / "codes", ledger={"rows_read": 309, "kept": 308, "excluded": {"no_label": 1}})
    assert (folder.n_items, folder.n_labels, folder.n_workers, folder.n_classes) == (8, 308, 3, 2)
    assert folder.worker_ids.tolist() == WORKERS and folder.classes.tolist() == CLASSES
    codes, _ = folder.read_codes(0, 256)
    assert folder.worker_volume.tolist() == [sum(code // 2 == w for code in codes.tolist()) for w in range(3)]
    assert folder.ledger["excluded"] == {"no_label": 1}
    assert folder.n_bytes == sum(
        (tmp_path / "codes" / f"{name}.bin").stat().st_size for name in ("codes", "counts", "items")
    )


@pytest.mark.parametrize(
    "ids",
    [
        [3, -1, 2**62],
        ["3", "x"],
        [3, "3"],
        [2**70, 1],
        [True, False],
        [0.5, 1.0],
        ["", "ab", "\U0001f600" * 90, "é" * 40_000],
    ],
    ids=["integers", "text", "mixed", "large integers", "truth values", "floats", "long text"],
)
def test_ids_keep_their_types(tmp_path, ids):
    folder = written(tmp_path / "codes", {3: ([1] * len(ids), [0] * len(ids), ids)}, workers=ids, classes=ids)
    for found in (folder.read_item_ids(0, 256), folder.worker_ids, folder.classes):
        values = found.tolist() if isinstance(found, np.ndarray) else found
        assert values == ids and [type(value) for value in values] == [type(value) for value in ids]


def test_items_without_ids_are_numbered_over_the_whole_folder(tmp_path):
    folder = written(tmp_path / "codes", {0: ([1, 1], [0, 0]), 9: ([1, 1, 1], [0, 1, 2])})
    assert folder.read_item_ids(0, 256).tolist() == [0, 1, 2, 3, 4]
    assert folder.read_item_ids(5, 256).tolist() == [2, 3, 4]
    assert (tmp_path / "codes" / "items.bin").stat().st_size == 0


def test_an_empty_folder_is_legal(tmp_path):
    folder = written(tmp_path / "codes", {})
    codes, start = folder.read_codes(0, 256)
    assert len(codes) == 0 and start.tolist() == [0] and len(folder.read_item_ids(0, 256)) == 0


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((3, [1], [0, 1], ["x"]), "1 items with 1 labels in all, but 1 ids and 2 codes"),
        ((3, [2], [0, 1], ["x", "y"]), "2 ids"),
        ((3, [1], [6], ["x"]), "codes from 6 to 6"),
        ((3, [1], [-1], ["x"]), "codes from -1"),
        ((1, [1], [0], ["x"]), "in order"),
        ((256, [1], [0], ["x"]), "in order"),
        ((3, [1], [0], [("a", "tuple")]), "tuple"),
    ],
)
def test_blocks_that_do_not_fit_are_refused_and_nothing_stays(tmp_path, parts, said):
    with (
        pytest.raises(AnnotationError, match=said),
        CodeFolderWriter(tmp_path / "codes", WORKERS, CLASSES) as writer,
    ):
        writer.add_block(1, [1], [0], ["first"])
        writer.add_block(*parts)
    assert list(tmp_path.iterdir()) == []


def test_nothing_appears_without_finish(tmp_path):
    with CodeFolderWriter(tmp_path / "codes", WORKERS, CLASSES) as writer:
        writer.add_block(0, [1], [0], ["x"])
        assert not (tmp_path / "codes").exists()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_folder_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(OSError, match=r"No space left on device.*codes"),
        CodeFolderWriter(tmp_path / "codes", WORKERS, CLASSES) as writer,
    ):
        writer.add_block(0, [1], [0], ["x"])
        monkeypatch.setattr(os, "fsync", full)
        writer.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_not_replaced(tmp_path):
    written(tmp_path / "codes")
    with pytest.raises(OutputExistsError, match="exists already"):
        written(tmp_path / "codes", {})
    assert CodeFolder(tmp_path / "codes").n_labels == 308


def test_two_writers_of_one_folder_are_refused(tmp_path):
    with CodeFolderWriter(tmp_path / "codes", WORKERS, CLASSES) as writer:
        with pytest.raises(OutputExistsError, match="Another run is writing"):
            written(tmp_path / "codes", {})
        writer.add_block(0, [1], [0], ["x"])
        writer.finish()
    assert CodeFolder(tmp_path / "codes").n_labels == 1


def test_a_killed_writer_leaves_no_folder_and_locks_nobody_out(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from manyhands.sharded.code_folder import CodeFolderWriter\n"
        "with CodeFolderWriter(sys.argv[1], ['w'], ['a', 'b']) as writer:\n"
        "    writer.add_block(0, [1], [0], ['x'])\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "codes"], check=False)
    assert not (tmp_path / "codes").exists() and (tmp_path / "codes.part").exists()
    written(tmp_path / "codes")
    assert [path.name for path in tmp_path.iterdir()] == ["codes"]


@pytest.mark.parametrize(
    "name", ["codes.bin", "counts.bin", "items.bin", "workers.json", "classes.json", "volume.bin", "ledger.json"]
)
@pytest.mark.parametrize("damage", ["changed", "cut off", "longer", "missing"])
def test_damage_is_named(tmp_path, name, damage):
    written(tmp_path / "codes", ledger={"kept": 308})
    path = tmp_path / "codes" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"changed": bytes(data), "cut off": data[:-1], "longer": data + b"\0"}[damage])
    with pytest.raises(
        AnnotationError, match=rf"{name} cannot be used: .*\. Delete the folder; the next run writes it"
    ) as caught:
        folder = CodeFolder(tmp_path / "codes")
        folder.read_codes(0, 256)
        folder.read_item_ids(0, 256)
    if damage == "changed" and name.endswith("s.bin"):
        assert "block 7 has changed" in str(caught.value) or "block 0" in str(caught.value)


def test_a_file_that_shrinks_after_opening_is_named(tmp_path):
    folder = written(tmp_path / "codes")
    folder.read_codes(0, 256)
    os.truncate(tmp_path / "codes" / "codes.bin", 100)
    with pytest.raises(AnnotationError, match="ends within blocks 7 to 255"):
        folder.read_codes(7, 256)
    (tmp_path / "codes" / "codes.bin").unlink()
    with pytest.raises(AnnotationError, match="missing"):
        folder.read_codes(7, 256)


def edited(folder, **changes):
    path = folder / "header.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 99}, "version 99, and this release reads version 1"),
        ({"format": "x"}, "another program"),
        ({"n_items": 3}, "checksum"),
    ],
)
def test_headers_of_other_kinds_are_refused(tmp_path, changes, said):
    written(tmp_path / "codes")
    edited(tmp_path / "codes", **changes)
    with pytest.raises(AnnotationError, match=said):
        CodeFolder(tmp_path / "codes")


@pytest.mark.parametrize("content", [None, "", "[]", "{", "3"])
def test_foreign_folders_are_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "header.json").write_text(content)
    with pytest.raises(AnnotationError, match="not a code folder" if content is None else "header.json cannot be used"):
        CodeFolder(tmp_path)


def test_annotations_are_written_in_the_order_of_the_layout(tmp_path):
    annotations = random_crowd(200, 35, 900)
    folder = write_annotations(tmp_path / "codes", annotations)
    ids = folder.read_item_ids(0, 256)
    assert ids == sorted(annotations.item_ids.tolist(), key=lambda text: (zlib.crc32(text.encode()), text.encode()))
    codes, start = folder.read_codes(0, 256)
    found = {
        (ids[i], folder.worker_ids[code // 3].item(), folder.classes[code % 3])
        for i in range(len(ids))
        for code in codes[start[i] : start[i + 1]].tolist()
    }
    rows = zip(annotations.item.tolist(), annotations.worker.tolist(), annotations.label.tolist(), strict=True)
    wanted = {(annotations.item_ids[i], annotations.worker_ids[w].item(), annotations.classes[k]) for i, w, k in rows}
    assert found == wanted and len(codes) == annotations.n_annotations
    assert all(np.all(np.diff(codes[first:last]) > 0) for first, last in pairwise(start.tolist()))
    for number in range(256):
        assert all(zlib.crc32(text.encode()) >> 24 == number for text in folder.read_item_ids(number, number + 1))


def random_crowd(n_items, n_workers, n_labels, seed=3):
    rng = np.random.default_rng(seed)
    rows = sorted(
        rng.choice(n_items * n_workers, n_labels, replace=False).tolist()
    )  # each pair of item and worker once
    items, workers = [f"item-{row // n_workers}" for row in rows], [row % n_workers + 5 for row in rows]
    return Annotations.from_triples(items, workers, rng.choice(["a", "b", "c"], n_labels).tolist())


@pytest.mark.parametrize("n_shards", [1, 2, 16, 256])
def test_shards_are_those_in_memory(tmp_path, n_shards):
    annotations = random_crowd(400, 30, 3000)
    folder, memory = (
        write_annotations(tmp_path / "codes", annotations),
        InMemoryShards.from_annotations(annotations, n_shards),
    )
    folder.n_shards = n_shards
    pairs = zip(folder.run(lambda shard: shard, "read"), memory.run(lambda shard: shard, "read"), strict=True)
    for number, (one, other) in enumerate(pairs):
        assert one.number == other.number == number
        assert one.packed.code.tolist() == other.packed.code.tolist()
        assert one.packed.start.tolist() == other.packed.start.tolist()
        assert (one.packed.n_workers, one.packed.n_classes) == (other.packed.n_workers, other.packed.n_classes)
        assert list(one.item_ids()) == other.item_ids().tolist()
    assert folder.worker_volume.tolist() == memory.worker_volume.tolist()


def test_fits_have_the_bits_of_those_in_memory(tmp_path):
    annotations = random_crowd(400, 30, 3000)
    folder, memory = write_annotations(tmp_path / "codes", annotations), InMemoryShards.from_annotations(annotations)
    assert folder.n_shards == memory.n_shards
    one, other = (fit(DawidSkene(), labels) for labels in (folder, memory))
    assert np.array_equal(one.confusion, other.confusion) and np.array_equal(one.class_prior, other.class_prior)


def test_the_fingerprint_changes_with_every_label_and_id(tmp_path):
    changes = [
        {},
        {0: ([2, 1], [0, 3, 3], ["x", "ÿ"])},
        {0: ([2, 1], [0, 3, 2], ["x", "y"])},
        {0: ([1, 2], [0, 3, 2], ["x", "ÿ"])},
    ]
    found = [written(tmp_path / str(at), BLOCKS | change).fingerprint for at, change in enumerate(changes)]
    found += [
        written(tmp_path / "w", workers=["ann", "bob", "dan"]).fingerprint,
        written(tmp_path / "same").fingerprint,
    ]
    assert len(set(found)) == 5 and found[-1] == found[0]

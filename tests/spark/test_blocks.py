"""What runs on executors, against plain loops, without an engine; and how executors without the package get it."""

import json
import pickle
import subprocess
import sys
import zlib

import numpy as np
import pytest
from spark_crowds import crowd_of

from manyhands.exceptions import ManyhandsError
from manyhands.spark import remote
from manyhands.spark.remote import is_absent, local_path, read_bytes, write_bytes
from manyhands.spark.shards import LayoutSettings

pa = pytest.importorskip("pyarrow")


def plain_block(rows, settings):
    """The same as `block_of`, by loops: labels per item, codes, ids, numbers of rows left out."""
    last = {}
    for item, worker, label, *order in rows:
        rank = ((order[0] or 0) if order else 0, settings.classes.index(label))
        if (item, worker) not in last or rank >= last[item, worker][0]:
            last[item, worker] = (rank, label)
    kept = {key: label for key, (_, label) in last.items()}
    identical = sum(kept[item, worker] == label for item, worker, label, *_ in rows) - len(kept)
    items = sorted({item for item, _ in kept}, key=lambda text: (zlib.crc32(text.encode()), text.encode()))
    counts, codes = [], []
    for item in items:
        own = [(w, k) for (i, w), k in kept.items() if i == item]
        own = sorted(settings.workers.index(w) * len(settings.classes) + settings.classes.index(k) for w, k in own)
        counts.append(len(own))
        codes += own
    return items, counts, codes, identical, len(rows) - len(kept) - identical


def block_table(rows, n_columns):
    names = ("item", "worker", "label", "order")[:n_columns]
    columns = dict(zip(names, zip(*rows)))
    return pa.table(
        {"block": pa.array([3] * len(rows), pa.int32())} | {n: pa.array(list(c)) for n, c in columns.items()}
    )


@pytest.mark.parametrize("ordered", [False, True])
def test_a_block_is_what_plain_loops_find(ordered):
    from manyhands.spark.executors import block_of

    rng = np.random.default_rng(int(ordered))
    workers, classes = [f"w{i}" for i in range(6)], ["a", "b", "ß"]
    items = [f"ü{i}" for i in range(40)]
    rows = [
        (items[i], workers[w], classes[k], *([None if t == 0 else int(t)] if ordered else []))
        for i, w, k, t in zip(*(rng.integers(n, size=600).tolist() for n in (40, 6, 3, 4)))
    ]
    settings = LayoutSettings(workers, classes, ordered)
    row = block_of(block_table(rows, 4 if ordered else 3), settings).to_pylist()[0]
    ids, counts, codes, identical, conflicting = plain_block(rows, settings)
    lengths = np.frombuffer(row["id_lengths"], np.uint32)
    ends = np.cumsum(lengths)
    assert [row["id_text"][b - n : b].decode() for n, b in zip(lengths, ends)] == ids
    assert np.frombuffer(row["counts"], np.uint32).tolist() == counts
    assert np.frombuffer(row["codes"], np.int32).tolist() == codes
    assert (row["n_identical"], row["n_conflicting"], row["block"]) == (identical, conflicting, 3)
    assert row["check"] == zlib.crc32(row["counts"] + row["codes"])


def test_blocks_of_a_shard_follow_one_another():
    """Whatever the order in which they arrive; a class that no block has left is renumbered."""
    from manyhands.spark.executors import block_of, merged

    settings = LayoutSettings(["x", "y"], ["a", "b", "c"], False)
    first = block_of(block_table([("i", "x", "a"), ("i", "y", "c")], 3), settings)
    second = block_of(block_table([("j", "y", "a")], 3), settings)
    second = second.set_column(0, "block", pa.array([2], pa.int32()))
    shard = pa.concat_tables([first, second]).append_column("shard", pa.array([1, 1], pa.int32()))
    row = merged(shard, [True, False, True]).to_pylist()[0]
    assert np.frombuffer(row["codes"], np.int32).tolist() == [2, 0, 3]  # j (y, a), i (x, a), i (y, c)
    assert row["id_text"] == b"ji" and row["shard"] == 1 and row["n_labels"] == 3


def test_a_label_that_was_not_listed_is_named():
    from manyhands.exceptions import AnnotationError
    from manyhands.spark.executors import block_of

    with pytest.raises(AnnotationError, match="The label 'z' was not there"):
        block_of(block_table([("i", "x", "z")], 3), LayoutSettings(["x"], ["a"], False))


PROGRAM = """
import pickle, sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("manyhands", "scipy", "sklearn", "polars", "pyspark", "pandas"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Refusing())
namespace = {"__name__": "travelled"}
exec(sys.stdin.read(), namespace)
namespace["ensure_package"]("0", open(sys.argv[1], "rb").read())
namespace["ensure_package"]("0", open(sys.argv[1], "rb").read())
import manyhands
from manyhands.sharded import labels, passes
from manyhands.spark import executors
print(type(manyhands.__loader__).__name__, len([f for f in sys.meta_path if hasattr(f, "manyhands_sources")]))
"""


def test_all_that_tasks_need_is_sent(tmp_path):
    """NumPy and PyArrow are enough to import every task; sources are installed once."""
    (tmp_path / "archive").write_bytes(remote.archive())
    source = remote.package_sources.__file__
    with open(source, encoding="utf-8") as file:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "archive")]
        made = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert made.stdout == "SourceFinder 1\n", made.stderr
    assert len(remote.archive()) < 500_000
    assert "manyhands.cli" not in json.loads(zlib.decompress(remote.archive()))


def test_arguments_go_by_value_or_by_file(tmp_path):
    from manyhands.spark.remote import unpack

    arguments = (np.arange(1000), "text")
    small, large = remote.pack(arguments, str(tmp_path)), remote.pack(arguments, f"file:{tmp_path}", limit=100)
    assert len(small) > 8000 and len(large) < 300
    for packed in (small, large):
        array, text = unpack(packed)
        assert array.tolist() == list(range(1000)) and text == "text"
    assert [pickle.loads(file.read_bytes())[1] for file in (tmp_path / "tasks").iterdir()] == ["text"]


def test_paths_and_addresses(tmp_path):
    assert local_path("dbfs:/Volumes/a/b").as_posix() == "/Volumes/a/b"
    assert local_path("s3a://bucket/a") is None and local_path("hdfs:///a") is None
    assert local_path("file:///tmp/a").as_posix() == "/tmp/a"
    assert is_absent(f"{tmp_path}/a", str(tmp_path)) and not is_absent("s3://b/a", "s3://b")
    assert not is_absent("/user/crowd/checkpoint/a", "/user/crowd/checkpoint")  # perhaps one of the cluster's store
    write_bytes(f"file:{tmp_path}/deep/file", b"1")
    assert read_bytes(f"{tmp_path}/deep/file") == b"1" and len(list((tmp_path / "deep").iterdir())) == 1
    with pytest.raises(ManyhandsError, match="cannot be read from Python"):
        read_bytes("nosuchstore://bucket/a")
    with pytest.raises(ManyhandsError, match="cannot be written from Python"):
        write_bytes("/proc/no/such/folder", b"1")


def test_crowds_of_the_tests_have_no_repeats():
    crowd = crowd_of(50)
    assert len(set(zip(crowd.items, crowd.workers))) == len(crowd.items)

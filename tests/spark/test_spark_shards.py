"""The table of shards: order, repeats, rows left out, skewed crowds, checkpoints that are there already."""

from pathlib import Path

import numpy as np
import pytest
from spark_crowds import Crowd, Everything, crowd_of, frame_of

import manyhands
from manyhands import spark as on_spark
from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ManyhandsError, ParameterError
from manyhands.sharded.fit import fit
from manyhands.sharded.labels import InMemoryShards
from manyhands.spark import remote
from manyhands.spark import shards as spark_shards
from manyhands.spark.shards import SparkShards, distinct_values


def same_as_in_memory(shards, columns, n_shards=None):
    """Every shard has the labels, order and ids of the same shard in memory."""
    local = InMemoryShards.from_annotations(manyhands.Annotations.from_triples(*columns), n_shards)
    assert shards.worker_ids.tolist() == local.worker_ids.tolist()
    assert shards.classes.tolist() == local.classes.tolist()
    assert shards.worker_volume.tolist() == local.worker_volume.tolist()
    assert (shards.n_shards, shards.n_items, shards.n_labels) == (local.n_shards, local.n_items, local.n_labels)
    assert list(shards.run(Everything(), "")) == list(local.run(Everything(), ""))


def test_shards_are_those_in_memory(frame, crowd, shared_checkpoint):
    same_as_in_memory(SparkShards.from_frame(frame, shared_checkpoint), crowd)
    same_as_in_memory(SparkShards.from_frame(frame, shared_checkpoint, n_shards=8), crowd, 8)


def test_integer_ids_are_ordered_as_text(spark, tmp_path):
    crowd = Crowd([10, 9, -3, 10, 2**60], [5, 40, 5, 40, 5], [2, 10, 2, 2, 10])
    frame = frame_of(spark, crowd, "item bigint, worker int, label int")
    same_as_in_memory(SparkShards.from_frame(frame, str(tmp_path), n_shards=2), crowd, 2)


def test_numbers_can_be_ordered_as_text(spark, tmp_path):
    """As the readers of files take them; ids stay numbers."""
    crowd = Crowd([10, 9, -3, 10, 2**60], [5, 40, 5, 40, 5], [2, 10, 2, 2, 10])
    frame = frame_of(spark, crowd, "item bigint, worker int, label int")
    shards = SparkShards.from_frame(frame, str(tmp_path), as_text=True)
    text = InMemoryShards.from_annotations(manyhands.Annotations.from_triples(*([str(v) for v in c] for c in crowd)))
    assert shards.worker_ids.tolist() == [40, 5] and shards.classes.tolist() == [10, 2]
    codes = [shard[1:3] for shard in shards.run(Everything(), "")]
    assert codes == [shard[1:3] for shard in text.run(Everything(), "")]


def test_one_worker_with_half_of_all_rows_and_one_item_with_many(spark, tmp_path):
    """Skewed crowds have the same bits too; shards without an item have no row."""
    rng = np.random.default_rng(3)
    n = 100_000
    items = [f"i{i}" for i in range(30_000)] + ["the item"] * n
    workers = ["busy"] * 30_000 + [f"w{w}" for w in range(n)]
    labels = rng.choice(["a", "b"], len(items), p=[0.7, 0.3]).tolist()
    others = crowd_of(6_000, n_classes=2)
    crowd = Crowd(items + others.items, workers + others.workers, labels + others.labels)
    frame = frame_of(spark, crowd).repartition(7)
    shards = SparkShards.from_frame(frame, str(tmp_path), n_shards=4)
    found, local = (
        fit(manyhands.OneCoin(), shards),
        InMemoryShards.from_annotations(manyhands.Annotations.from_triples(*crowd), 4),
    )
    expected = fit(manyhands.OneCoin(), local)
    assert found.confusion.tobytes() == expected.confusion.tobytes()
    for one, other in zip(shards.run(found.final_task, ""), local.run(expected.final_task, ""), strict=True):
        assert one.posterior.tobytes() == other.posterior.tobytes()


def test_empty_shards_and_empty_partitions(spark, tmp_path):
    crowd = Crowd(["a", "b", "a"], ["x", "x", "y"], ["1", "2", "1"])
    frame = frame_of(spark, crowd).repartition(16)
    shards = SparkShards.from_frame(frame, str(tmp_path), n_shards=64)
    assert len(shards.manifest.present) == 2
    same_as_in_memory(shards, crowd, 64)
    found = fit(manyhands.DawidSkene(), shards)
    local = InMemoryShards.from_annotations(manyhands.Annotations.from_triples(*crowd), 64)
    assert found.confusion.tobytes() == fit(manyhands.DawidSkene(), local).confusion.tobytes()


def test_repeated_labels(spark, tmp_path):
    """Identical rows are one; of others the greatest class counts, or the last by a column."""
    rows = [
        ("a", "x", "no", 5),
        ("a", "x", "yes", 3),
        ("a", "x", "no", 1),
        ("a", "x", "yes", 3),
        ("a", "y", "no", None),
        ("b", "x", "no", 2),
        ("b", "x", "no", 2),
        ("b", "y", "no", 7),
        ("b", "y", "yes", None),
    ]
    frame = spark.createDataFrame(rows, "item string, worker string, label string, at int")
    with pytest.warns(CrowdWarning, match=r"3 rows .* the greatest in the order .* 2 rows repeat"):
        greatest = SparkShards.from_frame(frame, str(tmp_path))
    by_class = sorted(rows, key=lambda row: row[2])
    same_as_in_memory(greatest, list(zip(*by_class))[:3])  # in memory the last row counts
    with pytest.warns(CrowdWarning, match=r"3 rows .* the last by at was kept"):
        last = SparkShards.from_frame(frame, str(tmp_path), order="at")
    by_time = sorted(rows, key=lambda row: row[3] or 0)
    same_as_in_memory(last, list(zip(*by_time))[:3])


def test_rows_without_a_value_are_counted_and_left_out(spark, tmp_path):
    rows = [("a", "x", 1.0), (None, "x", 1.0), ("a", None, None), ("b", "y", float("nan")), ("b", "y", 2.0)]
    frame = spark.createDataFrame(rows, "item string, worker string, label double")
    with pytest.warns(
        CrowdWarning, match=r"3 of 5 rows were left out, 1 without item, 1 without worker, 2 without lab"
    ):
        shards = SparkShards.from_frame(frame, str(tmp_path))
    same_as_in_memory(shards, (["a", "b"], ["x", "y"], [1.0, 2.0]))


@pytest.mark.parametrize(
    ("schema", "row", "sentence"),
    [
        ("item array<string>, worker string, label int", (["a"], "x", 1), "item column 'item' has type array<string>"),
        ("item string, worker struct<a:int>, label int", ("a", (1,), 1), "worker column 'worker' has type struct"),
        (
            "item double, worker string, label int",
            (1.0, "x", 1),
            "item column 'item' has type double; it must be",
        ),
        ("item string, worker string, label binary", ("a", "x", b"1"), "label column 'label' has type binary"),
    ],
)
def test_unsupported_types_are_one_sentence(spark, tmp_path, schema, row, sentence):
    frame = spark.createDataFrame([row], schema)
    with pytest.raises(AnnotationError, match=sentence):
        SparkShards.from_frame(frame, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_columns_that_are_not_there(spark, frame, tmp_path):
    with pytest.raises(ParameterError, match=r"no such column; it has item, worker, label. Did you mean 'worker'"):
        SparkShards.from_frame(frame, str(tmp_path), worker="workr")
    with pytest.raises(ParameterError, match="must be three columns"):
        SparkShards.from_frame(frame, str(tmp_path), worker="item")
    with pytest.raises(AnnotationError, match="has no labels"):
        SparkShards.from_frame(frame.limit(0), str(tmp_path))


def test_names_with_dots_and_spaces(spark, tmp_path):
    frame = spark.createDataFrame([("a", "x", 1), ("a", "y", 2)], "`item id` string, `who.x` string, `a``b` int")
    names = {"item": "item id", "worker": "who.x", "label": "a`b"}
    same_as_in_memory(SparkShards.from_frame(frame, str(tmp_path), **names), (["a", "a"], ["x", "y"], [1, 2]))


def test_tables_that_outgrow_the_driver_are_refused(frame, tmp_path):
    """The size is computed and said, before anything is written."""
    with pytest.raises(LimitError, match=r"more than 13 workers, so that workers x 3 classes x 3 classes x 8 bytes"):
        SparkShards.from_frame(frame, str(tmp_path), max_table_bytes=1000)
    assert not list(tmp_path.iterdir())


def test_a_second_fit_uses_the_same_table(spark, frame, crowd, tmp_path, monkeypatch):
    estimator = on_spark.MajorityVote(checkpointDir=str(tmp_path))
    first = sorted(estimator.fit(frame).items.collect())
    monkeypatch.setattr(spark_shards, "write_shards", None)  # must not be called
    assert sorted(estimator.fit(frame).items.collect()) == first
    monkeypatch.undo()
    other = crowd_of(50, seed=9)
    assert estimator.fit(frame_of(spark, other)).items.count() == 50
    assert len(list(tmp_path.iterdir())) == 2


def test_a_half_written_table_is_written_anew(frame, crowd, tmp_path, monkeypatch):
    def fails(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(spark_shards, "write_manifest", fails)
    with pytest.raises(KeyboardInterrupt):
        SparkShards.from_frame(frame, str(tmp_path))
    monkeypatch.undo()
    same_as_in_memory(SparkShards.from_frame(frame, str(tmp_path)), crowd)


def test_shards_that_are_missing_or_damaged_are_named(spark, frame, tmp_path):
    shards = SparkShards.from_frame(frame, str(tmp_path), n_shards=4)
    table = spark.createDataFrame(shards.table().collect(), shards.table().schema)
    table.union(table).write.mode("overwrite").parquet(f"{shards.folder}/shards")
    assert len(list(shards.run(Everything(), ""))) == 4  # a task that was run twice changes nothing
    kept = table.filter("shard != 2")
    kept.write.mode("overwrite").parquet(f"{shards.folder}/shards")
    with pytest.raises(ManyhandsError, match="Shards 2 of 4 are missing"):
        list(shards.run(Everything(), ""))
    damaged = table.withColumn("check", table["check"] + (table["shard"] == 1).cast("int"))
    damaged.write.mode("overwrite").parquet(f"{shards.folder}/shards")
    with pytest.raises(ManyhandsError, match=r"^Shard 1 of the checkpoint is not what was written"):
        list(shards.run(Everything(), ""))


def test_a_fit_that_was_ended_goes_on_after_its_last_pass(frame, tmp_path, monkeypatch):
    estimator = on_spark.DawidSkene(checkpointDir=str(tmp_path), nShards=4)
    expected = sorted(estimator.fit(frame).items.collect())
    passes, run = [], SparkShards.run

    def ends(self, task, what):
        passes.append(what)
        if len(passes) == 5:
            raise KeyboardInterrupt
        return run(self, task, what)

    monkeypatch.setattr(SparkShards, "run", ends)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(frame)
    first, passes[:] = len(passes), ["", "", "", "", "", ""]
    model = estimator.fit(frame)
    assert sorted(model.items.collect()) == expected
    assert first + len(passes) - 6 <= model.summary["n_iter"] + 4


def test_large_tables_go_by_file(frame, crowd, tmp_path, monkeypatch):
    shards = SparkShards.from_frame(frame, str(tmp_path), n_shards=2)
    expected = fit(manyhands.DawidSkene(max_iter=3), shards)
    monkeypatch.setattr(remote.pack, "__defaults__", (1000,))
    monkeypatch.setattr(spark_shards, "_RESULT_BYTES", 1)  # one action for each shard
    found = fit(manyhands.DawidSkene(max_iter=3), shards)
    assert found.confusion.tobytes() == expected.confusion.tobytes()
    assert list((Path(shards.folder) / "tasks").iterdir())


def test_frames_that_change_are_named(frame, tmp_path, monkeypatch):
    """A label that was not there when labels were listed is an error of an executor, and arrives as one sentence."""

    def without_one(*args, **options):
        return distinct_values(*args, **options)[1:]

    monkeypatch.setattr(spark_shards, "distinct_values", without_one)
    with pytest.raises(AnnotationError, match=r"^The worker 'w0' was not there .* Write it to a table first.$"):
        SparkShards.from_frame(frame, str(tmp_path))

"""`manyhands-spark aggregate`: files in and out, and what it prints."""

import json

import pytest
from spark_crowds import Crowd, frame_of

from manyhands import spark as on_spark
from manyhands.spark.job import main


@pytest.fixture
def labels(spark, frame, tmp_path):
    path = str(tmp_path / "labels.parquet")
    frame.withColumnRenamed("item", "unit").write.parquet(path)
    return path


def test_a_job_writes_what_the_model_writes(spark, frame, labels, shared_checkpoint, tmp_path, capsys):
    out = str(tmp_path / "out")
    command = ["aggregate", "--input", labels, "--output", out, "--method", "one-coin", "--item", "unit"]
    assert main([*command, "--param", "maxIter=3"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(
        "OneCoin on 2,000 labels of 400 items by 20 workers, 3 classes: 3 passes over 1 shard, "
    )
    assert f"Written to {out}" in printed.out
    model = on_spark.OneCoin(itemCol="unit", checkpointDir=shared_checkpoint, maxIter=3)
    expected = model.fit(spark.read.parquet(labels)).items.collect()
    assert sorted(spark.read.parquet(f"{out}/items").collect()) == sorted(expected)

    assert main(command) == 2
    assert "contains a model already" in capsys.readouterr().err
    assert main([*command, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_items"] == 400


def test_bad_input_is_one_sentence(spark, tmp_path, capsys, labels):
    out = str(tmp_path / "out")
    assert main(["aggregate", "--input", labels, "--output", out]) == 2
    assert "itemCol is 'item', but the DataFrame has no such column" in capsys.readouterr().err
    assert main(["aggregate", "--input", labels, "--output", out, "--item", "unit", "--param", "maxIters=3"]) == 2
    assert "Did you mean 'maxIter'?" in capsys.readouterr().err
    assert main(["aggregate", "--input", labels, "--output", out, "--item", "unit", "--param", "maxIter"]) == 2
    assert "--param takes NAME=VALUE" in capsys.readouterr().err
    assert main(["aggregate", "--input", str(tmp_path / "nothing.csv"), "--output", out]) in (2, 3)
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_rows_left_out_are_said(spark, tmp_path, capsys):
    crowd = Crowd(["a", "a", None, "b"], ["x", "x", "y", "y"], ["1", "2", "1", "1"])
    frame_of(spark, crowd).write.parquet(str(tmp_path / "labels"))
    assert main(["aggregate", "--input", str(tmp_path / "labels"), "--output", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().err
    assert "Warning: missing_values: 1 of 4 rows were left out, 1 without item." in said
    assert "Warning: repeated_labels: 1 rows were left out" in said


def test_numbers_are_ordered_as_the_readers_of_files_do(spark, tmp_path, capsys):
    """As text, so that a job has the bits of `manyhands aggregate`; they stay numbers."""
    crowd = Crowd([1, 1, 2, 2], [3, 4, 3, 4], [2, 10, 10, 10])
    frame_of(spark, crowd, "item int, worker int, label int").write.parquet(str(tmp_path / "labels"))
    command = ["aggregate", "--input", str(tmp_path / "labels"), "--output", str(tmp_path / "out"), "--json"]
    assert main([*command, "--method", "majority-vote"]) == 0
    assert json.loads(capsys.readouterr().out)["classes"] == [10, 2]
    found = {row.item: row for row in spark.read.parquet(str(tmp_path / "out" / "items")).collect()}
    assert found[2].label == 10 and found[2].probs == [1.0, 0.0]

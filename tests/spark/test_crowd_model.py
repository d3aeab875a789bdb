"""The model: its tables, transform, saving and loading, and the model for one machine."""

import numpy as np
import pytest
from spark_crowds import Crowd, crowd_of, frame_of

import manyhands
from manyhands import spark as on_spark
from manyhands.exceptions import ManyhandsError, OutputExistsError, ParameterError


@pytest.fixture(scope="module")
def model(frame, shared_checkpoint):
    return on_spark.DawidSkene(checkpointDir=shared_checkpoint, nShards=4).fit(frame)


def test_tables_have_the_stated_columns(model):
    assert [(f.name, f.dataType.simpleString()) for f in model.items.schema.fields] == [
        ("item", "string"),
        ("label", "string"),
        ("confidence", "double"),
        ("probs", "array<double>"),
    ]
    assert model.workers.columns == ["worker", "n_labels", "n_checked", "accuracy"]
    assert model.confusions.columns == ["worker", "truth", "label", "probability"]
    assert model.confusions.count() == 20 * 3 * 3


def test_transform_keeps_rows_and_adds_three_columns(spark, frame, model):
    found = model.transform(frame)
    assert found.columns == [*frame.columns, "prediction", "confidence", "probs"]
    assert found.count() == frame.count()
    asked = spark.createDataFrame([("ïtem 7",), ("no such item",)], "item string")
    rows = {row.item: row for row in model.transform(asked, predictionCol="truth").collect()}
    assert rows["no such item"].truth is None
    expected = {row.item: row.label for row in model.items.collect()}
    assert rows["ïtem 7"].truth == expected["ïtem 7"]
    with pytest.raises(ParameterError, match="has a column 'label' already"):
        model.transform(frame, predictionCol="label")
    with pytest.raises(ParameterError, match="no column 'item'"):
        model.transform(spark.createDataFrame([(1,)], "id int"))


def test_a_saved_model_has_all_results(spark, model, tmp_path):
    path = str(tmp_path / "model")
    model.save(path)
    loaded = on_spark.CrowdModel.load(spark, path)
    for name in ("items", "workers", "confusions"):
        assert sorted(getattr(loaded, name).collect()) == sorted(getattr(model, name).collect())
    assert loaded.summary == model.summary
    assert loaded.local().confusion_.tobytes() == model.local().confusion_.tobytes()
    with pytest.raises(OutputExistsError, match="contains a model already"):
        model.save(path)
    model.save(path, overwrite=True)
    with pytest.raises(ManyhandsError, match="no model that was saved whole"):
        on_spark.CrowdModel.load(spark, str(tmp_path / "nothing"))


def test_the_local_model_predicts_new_labels(crowd, model):
    new = crowd_of(30, seed=5)
    here = manyhands.DawidSkene().fit(manyhands.Annotations.from_triples(*crowd))
    labels = manyhands.Annotations.from_triples(*new)
    np.testing.assert_allclose(model.local().predict_proba(labels), here.predict_proba(labels), atol=1e-6)


@pytest.mark.parametrize(
    ("types", "values"),
    [
        ("int, bigint, boolean", ([1, 2, 300], [7, 2**40], [True, False])),
        ("bigint, smallint, double", ([2**50, -4, 5], [1, 2], [0.5, 2.0])),
        ("string, string, int", (["a", "b", "ä"], ["x", "y"], [3, 10])),
    ],
)
def test_types_of_columns_are_kept(spark, tmp_path, types, values):
    """Ids come back as they were given, in the types of the caller's columns."""
    items, workers, classes = values
    crowd = Crowd(items * 2, [w for w in workers for _ in items], [classes[k % 2] for k in range(2 * len(items))])
    names = ("unit", "who", "answer")
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, types.split(", ")))
    estimator = on_spark.OneCoin(itemCol="unit", workerCol="who", labelCol="answer", checkpointDir=str(tmp_path))
    found = estimator.fit(frame_of(spark, crowd, schema))
    kinds = [field.dataType.simpleString() for field in found.items.schema.fields]
    assert kinds == [types.split(", ")[0], types.split(", ")[2], "double", "array<double>"]
    assert {row.item for row in found.items.collect()} == set(items)
    assert {row.label for row in found.items.collect()} <= set(classes)
    assert {row.worker for row in found.workers.collect()} == set(workers)
    assert found.transform(frame_of(spark, crowd, schema)).filter("prediction is null").count() == 0


def test_parameters_are_those_of_the_method(shared_checkpoint):
    """Every parameter of the method but the random starts, in camel case, with the same default."""
    for name in ("DawidSkene", "OneCoin", "MACE", "PooledDawidSkene", "MajorityVote"):
        estimator, method = getattr(on_spark, name)(), getattr(manyhands, name)()
        assert estimator.aggregator().get_params() == method.get_params()
        own = set(method.get_params()) - {"n_init", "random_state"}
        changed = getattr(on_spark, name)().aggregator().get_params()
        assert own <= set(changed)
    estimator = on_spark.DawidSkene(checkpointDir=shared_checkpoint)
    copied = estimator.copy({"maxIter": 3})
    assert (copied.maxIter, estimator.maxIter, copied.checkpointDir) == (3, 1000, shared_checkpoint)
    assert copied.aggregator().max_iter == 3
    assert repr(copied) == f"DawidSkene(checkpointDir={shared_checkpoint!r}, maxIter=3)"
    with pytest.raises(ParameterError, match="Did you mean 'maxIter'"):
        estimator.setParams(maxIters=4)


def test_a_checkpoint_must_be_named(frame):
    with pytest.raises(ParameterError, match="needs checkpointDir"):
        on_spark.DawidSkene().fit(frame)


def test_parameters_out_of_range_are_refused_before_any_action(frame, tmp_path):
    with pytest.raises(ParameterError, match="smoothing"):
        on_spark.DawidSkene(smoothing=-1.0, checkpointDir=str(tmp_path)).fit(frame)
    assert not list(tmp_path.iterdir())

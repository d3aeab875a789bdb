"""Folders of other schema versions are refused in one sentence that says what to do."""

import json
import shutil
from pathlib import Path

import pytest

from manyhands import load_model
from manyhands.exceptions import ParameterError

OLD = (
    Path(__file__).parent / "persistence" / "old_schema"
)  # saved by the version before the renaming of parameters (schema 1)


@pytest.mark.parametrize("name", ["two_stage", "crowd_layer"])
def test_a_model_of_the_old_schema(name):
    with pytest.raises(ParameterError) as caught:
        load_model(OLD / name)
    assert str(caught.value) == (
        f"{OLD / name} was saved by an older version of manyhands (schema 1; this version reads schema 2): "
        "fit the model again with this version, or load it with the older one."
    )


def test_a_model_of_a_later_schema(tmp_path):
    shutil.copytree(OLD / "two_stage", tmp_path / "model")
    content = json.loads((tmp_path / "model/model.json").read_text())
    (tmp_path / "model/model.json").write_text(json.dumps(content | {"schema": 3}))
    with pytest.raises(
        ParameterError, match=r"newer version of manyhands \(schema 3; .*: upgrade manyhands to load it"
    ):
        load_model(tmp_path / "model")


@pytest.mark.parametrize("schema", [None, "2", 2.5, True, 0, [2]])
def test_a_schema_that_is_no_version(tmp_path, schema):
    shutil.copytree(OLD / "two_stage", tmp_path / "model")
    content = json.loads((tmp_path / "model/model.json").read_text())
    (tmp_path / "model/model.json").write_text(json.dumps(content | {"schema": schema}))
    with pytest.raises(ParameterError, match="is not a model that can be read: its schema is"):
        load_model(tmp_path / "model")

"""What we write for Label Studio is accepted by its own validator; runs in an environment with `label-studio-sdk`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manyhands.io.write.result_files import KINDS
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.options import ExportOptions

pytestmark = [
    pytest.mark.contracts,
    pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning"),
]

EXPORT = Path(__file__).parents[2] / "examples" / "export.json"
CONFIG = """
<View>
  <Text name="text" value="$text"/>
  <Choices name="sentiment" toName="text">
    <Choice value="positive"/><Choice value="neutral"/><Choice value="negative"/>
  </Choices>
  <Choices name="topic" toName="text">
    <Choice value="delivery"/><Choice value="price"/><Choice value="product"/><Choice value="service"/>
  </Choices>
</View>
"""


def written(question, kind, folder):
    """Aggregate the example and return what was written for Label Studio."""
    aggregate([str(EXPORT)], ExportOptions(question=question), method="dawid-skene", out=folder, write=[kind])
    return json.loads((folder / KINDS[kind]).read_text())


@pytest.mark.parametrize("question", ["sentiment", "topic"])
def test_every_prediction_is_valid_and_names_a_task_of_the_export(question, tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    predictions = written(question, "label-studio", tmp_path)
    tasks = {task["id"] for task in json.loads(EXPORT.read_text())}
    assert {prediction["task"] for prediction in predictions} == tasks  # every task has labels
    checker = interface.LabelInterface(CONFIG)
    assert [checker.validate_prediction(one, return_errors=True) for one in predictions] == [[]] * len(tasks)


@pytest.mark.parametrize(
    "harm",
    [{"from_name": "mood"}, {"to_name": "image"}, {"value": {"choices": ["awful"]}}, {"type": "rating"}],
    ids=["control", "object", "choice", "type"],
)
def test_the_validator_would_find_what_is_wrong(harm, tmp_path):
    """Otherwise the test above would prove nothing."""
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    aggregate(
        [str(EXPORT)], ExportOptions(question="topic"), method="dawid-skene", out=tmp_path, write=["label-studio"]
    )
    prediction = json.loads((tmp_path / "label_studio_predictions.json").read_text())[0]
    prediction["result"][0] |= harm
    assert interface.LabelInterface(CONFIG).validate_prediction(prediction, return_errors=True)


def test_new_tasks_are_valid(tmp_path):
    interface = pytest.importorskip("label_studio_sdk.label_interface")
    aggregate(
        [str(EXPORT)], ExportOptions(question="topic"), method="dawid-skene", out=tmp_path, write=["label-studio-tasks"]
    )
    tasks = json.loads((tmp_path / "label_studio_tasks.json").read_text())
    checker = interface.LabelInterface(CONFIG)
    assert len(tasks) == 60 and all("text" in task["data"] for task in tasks)
    assert all(checker.validate_prediction(task["predictions"][0], return_errors=True) == [] for task in tasks)

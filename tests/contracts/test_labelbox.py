"""What we write for Labelbox is accepted by its own models; runs in an environment with `labelbox`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from manyhands.jobs.aggregate import aggregate

pytestmark = [
    pytest.mark.contracts,
    pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning"),
]
EXPORT = Path(__file__).parents[1] / "samples" / "labelbox" / "export.ndjson"


def written(folder):
    aggregate([str(EXPORT)], method="majority-vote", out=folder, write=["labelbox"])
    return [json.loads(line) for line in (folder / "labelbox_predictions.ndjson").read_text().splitlines()]


def test_every_prediction_is_a_radio_answer(tmp_path):
    radio = pytest.importorskip("labelbox.data.serialization.ndjson.classification").NDRadio
    (one,) = written(tmp_path)
    found = radio(**one)
    assert found.data_row.id == "dr1" and found.name == "Sentiment" and found.uuid == one["uuid"]
    assert found.answer.name == "Negative" and found.answer.confidence == 0.5


@pytest.mark.parametrize(
    "harm",
    [{"dataRow": {}}, {"name": None}, {"answer": {}}, {"answer": {"name": "Negative", "confidence": 2}}],
    ids=["row", "question", "answer", "confidence"],
)
def test_the_model_would_find_what_is_wrong(harm, tmp_path):
    """Otherwise the test above would prove nothing."""
    radio = pytest.importorskip("labelbox.data.serialization.ndjson.classification").NDRadio
    (one,) = written(tmp_path)
    with pytest.raises(ValueError, match="validation error"):
        radio(**(one | harm))


def test_the_calls_of_the_documents_exist():
    labelbox = pytest.importorskip("labelbox")
    assert callable(labelbox.MALPredictionImport.create_from_objects)
    assert {"data_row_id", "fields"} <= set(labelbox.DataRowMetadata.model_fields)
    assert {"name", "value"} <= set(labelbox.DataRowMetadataField.model_fields)

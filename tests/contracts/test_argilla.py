"""What we write for Argilla is accepted by its own SDK; runs in an environment with `argilla`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from manyhands.jobs.aggregate import aggregate

pytestmark = [
    pytest.mark.contracts,
    pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning"),
]
SAMPLES = Path(__file__).parents[1] / "samples" / "argilla"


def written(name, folder):
    aggregate([str(SAMPLES / name)], method="majority-vote", out=folder, write=["argilla"])
    return json.loads((folder / "argilla_suggestions.json").read_text())


def test_nested_records_become_what_the_server_gets(tmp_path):
    """The steps of `dataset.records.from_json`, without a server."""
    argilla = pytest.importorskip("argilla")
    (one,) = written("records_nested.json", tmp_path)
    sent = argilla.Record.from_dict(one).api_model().model_dump()
    assert sent["external_id"] == "item-1" and sent["fields"] == {"text": "Arrived broken"}
    assert sent["metadata"] == {"src": "a", "manyhands_priority": 0.5}
    assert not sent["responses"] and len(sent["suggestions"]) == 1
    given = sent["suggestions"][0]
    assert (given["value"], given["score"], given["agent"]) == ("negative", 0.5, "manyhands-majority-vote")


def test_flattened_records_are_mapped_by_their_names(tmp_path):
    """The steps of `dataset.records.log(records, mapping=...)`, with the settings of a data set and no server."""
    mapper = pytest.importorskip("argilla.records._mapping").IngestedRecordMapper
    names = {"fields": ["text"], "questions": ["sentiment"], "metadata": ["src", "manyhands_priority"], "vectors": []}
    parts = {key: [SimpleNamespace(name=name) for name in given] for key, given in names.items()}
    schema = {one.name: one for given in parts.values() for one in given}
    dataset = SimpleNamespace(settings=SimpleNamespace(**parts), schema=schema, questions=schema)
    names = [f"sentiment.suggestion{end}" for end in ("", ".score", ".agent")]
    read = mapper(dataset=dataset, user_id=None, mapping={name: name for name in names})
    (one,) = written("records_flat.jsonl", tmp_path)
    record = read(one)
    assert dict(record.metadata) == {"src": "a", "manyhands_priority": 0.0} and record.id == "item-1"
    (given,) = list(record.suggestions)
    assert (given.value, given.score, given.agent) == ("negative", 1.0, "manyhands-majority-vote")

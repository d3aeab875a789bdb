"""Pseudonyms."""

import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.read.reading import read_export
from manyhands.io.write.pseudonyms import pseudonymise


@pytest.fixture
def reading(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n1,bo@x.org,x\n1,al@x.org,x\n2,bo@x.org,y\n")
    return read_export(path)


def test_the_busiest_worker_is_the_first(reading):
    """Numbers say nothing but volume; labels stay where they were."""
    hidden = pseudonymise(reading)[0].annotations
    assert hidden.worker_ids.tolist() == ["worker-002", "worker-001"]
    assert hidden.label.tolist() == reading.annotations.label.tolist()


def test_a_key_gives_the_same_names_everywhere(reading, tmp_path):
    """The same key and id give the same pseudonym, another key another one, and no id is in it."""
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    names = [pseudonymise(reading, key)[0].annotations.worker_ids.tolist() for _ in range(2)]
    assert names[0] == names[1] and len(set(names[0])) == 2
    key.write_bytes(b"0123456789abcdeF")
    assert not set(names[0]) & set(pseudonymise(reading, key)[0].annotations.worker_ids.tolist())
    assert "x.org" not in str(names)


@pytest.mark.parametrize("content", [None, b"short"])
def test_a_weak_key_is_refused(reading, tmp_path, content):
    """The sentence says how to make a good one."""
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)
    with pytest.raises(AnnotationError, match=r"at least 16 secret bytes\. Make one: python"):
        pseudonymise(reading, key)


def test_sentences_and_file_names_are_hidden_too(tmp_path):
    """A file named after its worker, and notes that quote ids."""
    for name in ("alice@x.org", "bob@x.org"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": 1, "text": "t", "label": ["x"], "Comments": []}\n')
        (tmp_path / f"{name}.csv").write_text("id,text,label,Comments\n1,t,x,\n")
    with pytest.warns(CrowdWarning, match="bob@x.org"):
        reading = read_export(tmp_path)
    hidden, hide = pseudonymise(reading)
    assert "x.org" not in str(hidden.notes) and hidden.notes.keys() == reading.notes.keys()
    assert hide("alice@x.org.jsonl") == "worker-001.jsonl" and hide("malice@x.org") == "malice@x.org"


def test_a_file_named_after_its_worker_is_not_named(tmp_path):
    """Neither as the source of the reading."""
    path = tmp_path / "alice@x.org.jsonl"
    path.write_text('{"id": 1, "text": "t", "label": ["x"], "Comments": []}\n')
    with pytest.warns(CrowdWarning):
        reading = read_export(path)
    assert "alice@x.org" in reading.source and "x.org" not in pseudonymise(reading)[0].source

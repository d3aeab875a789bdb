"""Pseudonyms."""

import re
from itertools import combinations

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.reading import read_export
from manyhands.io.write.pseudonym_words import ADJECTIVES, NOUNS
from manyhands.io.write.pseudonyms import pseudonymise, pseudonyms_of, read_key


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


KEY = b"0123456789abcdef"


def keyed(*ids):
    """The pseudonym of each id."""
    votes = Annotations.from_triples(["i"] * len(ids), ids, ["x"] * len(ids))
    return dict(zip(votes.worker_ids.tolist(), pseudonyms_of(votes, KEY)[0]))


def test_a_key_gives_the_same_names_everywhere(reading):
    """The same key and id give the same two words, another key others, and no id is in them."""
    names = [pseudonymise(reading, KEY)[0].annotations.worker_ids.tolist() for _ in range(2)]
    assert names[0] == names[1] and all(re.fullmatch(r"[a-z]+-[a-z]+", name) for name in names[0])
    assert not set(names[0]) & set(pseudonymise(reading, KEY.upper())[0].annotations.worker_ids.tolist())
    assert keyed("bo@x.org", "cy@x.org")["bo@x.org"] == names[0][1] == "cozy-mirror"  # whoever else is there


def test_workers_who_would_share_a_name_have_a_third_word(monkeypatch):
    """Both of them, so that the short name never is that of another worker; names are distinct in any crowd."""
    monkeypatch.setattr("manyhands.io.write.pseudonyms.ADJECTIVES", ("calm",))
    monkeypatch.setattr("manyhands.io.write.pseudonyms.NOUNS", ("birch", "lake", "stone"))
    alone = {one: keyed(one)[one] for one in "abcdefgh"}
    pair = next(pair for pair in combinations("abcdefgh", 2) if alone[pair[0]] == alone[pair[1]])
    together = keyed(*pair)
    assert all(together[one].startswith(alone[one] + "-") for one in pair) and len(set(together.values())) == 2
    crowd = keyed(*"abcdefgh")
    assert len(set(crowd.values())) == 8 and all(crowd[one].startswith(alone[one]) for one in alone)


def test_the_words_are_readable_and_enough():
    """Several hundred of each, sorted, none twice; of 200 workers, few need a third word."""
    for words in (ADJECTIVES, NOUNS):
        assert list(words) == sorted(set(words)) and all(re.fullmatch("[a-z]{3,12}", word) for word in words)
    assert not set(ADJECTIVES) & set(NOUNS) and len(ADJECTIVES) >= 300 and len(NOUNS) >= 600
    names = keyed(*map(str, range(200))).values()
    assert len(set(names)) == 200 and sum(name.count("-") == 1 for name in names) >= 196
    assert len({name.split("-")[0] for name in names}) > np.sqrt(200)


def test_an_id_that_is_a_word_of_a_pseudonym_changes_no_pseudonym():
    """Ids in a sentence are replaced all at once."""
    first = keyed("bo@x.org")["bo@x.org"]
    word = first.split("-")[1]
    votes = Annotations.from_triples(["i", "i"], ["bo@x.org", word], ["x", "x"])
    names, hide = pseudonyms_of(votes, KEY)
    assert hide(f"bo@x.org and {word}") == f"{first} and {names[votes.worker_ids.tolist().index(word)]}"


@pytest.mark.parametrize("content", [None, b"short"])
def test_a_weak_key_is_refused(tmp_path, content):
    """The sentence says how to make a good one."""
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)
    with pytest.raises(AnnotationError, match=r"at least 16 secret bytes\. Make one: python"):
        read_key(key)


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

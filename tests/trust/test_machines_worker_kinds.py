"""People and machines: read from a column, and grouped by family."""

import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io import read_export
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.trust import WorkerKind, groups_of

ROWS = (
    "a,ann,x,human,,,\na,bob,y,Person,,,\na,g4,x,LLM,gpt,gpt-4,short\na,g5,x,model,gpt,gpt-5,long\na,ge,y,AI,gemini,,\n"
)


@pytest.fixture
def write(tmp_path):
    def written(rows=ROWS, header="item,worker,label,kind,family,model,prompt", name="x.csv"):
        path = tmp_path / name
        path.write_text(f"{header}\n{rows}")
        return path

    return written


def test_a_column_of_kinds(write):
    kinds = read_export(write()).kinds
    assert kinds["ann"] == WorkerKind("human") and kinds["g4"] == WorkerKind("machine", "gpt", "gpt-4", "short")
    groups = groups_of(["ge", "g4", "ann", "g5", "new"], kinds)
    assert groups == {"humans": ["ann", "new"], "gemini": ["ge"], "gpt": ["g4", "g5"]}


def test_kinds_follow_the_names_of_workers(write):
    reading = read_export(write())
    hidden, _ = pseudonymise(reading)
    assert sorted(kind.kind for kind in hidden.kinds.values()) == sorted(kind.kind for kind in reading.kinds.values())
    assert set(hidden.kinds) == set(hidden.annotations.worker_ids)


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_merged_spellings_and_several_files(write):
    one, two = write(), write(ROWS.replace("ann", "ANN").replace("a,", "b,"), name="y.csv")
    reading = read_export([one, two], merge_spellings=True)
    assert set(reading.kinds) == set(reading.annotations.worker_ids)


@pytest.mark.parametrize("header", ["item,worker,label,kind", "item,worker,label,colour"])
def test_a_column_of_something_else_is_left_alone(write, header):
    assert read_export(write("a,ann,x,photo\nb,ann,x,text\n", header)).kinds == {}


def test_a_worker_of_two_kinds_is_refused(write):
    rows = "a,ann,x,human\nb,ann,x,machine\n"
    with pytest.raises(AnnotationError, match="'ann' is a person in some rows and a machine in others"):
        read_export(write(rows, "item,worker,label,kind"))

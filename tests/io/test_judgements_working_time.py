"""Working times: the texts, and the fields of the tools."""

import json

import numpy as np
import polars as pl
import pytest

from manyhands.exceptions import CrowdWarning
from manyhands.io import read_export
from manyhands.io.judgements import divide_by_task, parse_seconds, seconds_between
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.jobs.aggregate import aggregate


def test_texts_of_durations():
    """Numbers, clock times, and what is neither."""
    seconds, notes = parse_seconds(pl.Series(["5", " 2.5 ", "1:05", "1:00:05", "soon", "-1", "", None, "nan", "inf"]))
    assert seconds.to_list() == [5.0, 2.5, 65.0, 3605.0, None, None, None, None, None, None]
    assert notes["unparsed_working_times"].startswith("4 working time(s) could not be read (such as 'soon')")
    assert parse_seconds(pl.Series(["1", None], dtype=pl.String))[1] == {}


def test_times_between_and_shared():
    """From start to end; rows of one task share its time, and a task that ends before it begins has none."""
    begun = pl.Series(["2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z"])
    end = pl.Series(["2024-01-01T00:00:30Z", "2024-01-01T00:00:30Z", "2024-01-01T00:00:30Z"])
    seconds = seconds_between(begun, end)
    assert seconds.to_list() == [30.0, 30.0, None]
    assert divide_by_task(seconds, pl.Series(["t1", "t1", "t2"])).to_list() == [15.0, 15.0, None]
    assert divide_by_task(None, begun) is None and seconds_between(begun[2:], end[2:]) is None


@pytest.mark.parametrize(("name", "factor"), [("seconds", 1), ("Lead Time", 1), ("duration_ms", 1000)])
def test_long_tables(name, factor):
    """A column with a usual name; rows that do not count have no part, and the mapping names the column."""
    table = pl.DataFrame(
        {"item": ["a", "a", "b", "a"], "worker": ["x", "y", "x", "x"], "label": ["1", "2", "", "2"]}
        | {name: [str(factor * s) for s in (3, 4, 50, 6)]}
    )
    reading = read_export(table)
    assert {worker: seconds.tolist() for worker, seconds in reading.working_time.items()} == {"x": [6.0], "y": [4.0]}
    assert reading.columns["working_time"] == name
    assert read_export(table.drop(name)).working_time == {}


def test_a_time_that_cannot_be_read_is_a_note():
    """The label counts, the time does not."""
    table = pl.DataFrame({"item": ["a", "b"], "worker": ["x", "x"], "label": ["1", "2"], "seconds": ["?", "7"]})
    with pytest.warns(CrowdWarning, match="unparsed_working_times: 1 working time"):
        reading = read_export(table)
    assert reading.working_time["x"].tolist() == [7.0] and reading.annotations.n_annotations == 2


def label_studio(tmp_path, lead_times):
    """An export with one annotation for each time; workers take turns."""
    tasks = [
        {
            "id": at,
            "data": {"text": f"text {at}"},
            "annotations": [
                {
                    "id": at,
                    "completed_by": at % 2,
                    "lead_time": lead_time,
                    "was_cancelled": False,
                    "created_at": "2024-01-01T00:00:00Z",
                    "result": [{"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["yes"]}}],
                }
            ],
        }
        for at, lead_time in enumerate(lead_times)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(tasks))
    return path


def test_lead_time_of_label_studio(tmp_path):
    """By annotator; null and missing times are left out."""
    reading = read_export(label_studio(tmp_path, [2.5, 3, None, 5, "6.5", 7]))
    assert {w: s.tolist() for w, s in reading.working_time.items()} == {"0": [2.5, 6.5], "1": [3.0, 5.0, 7.0]}
    assert reading.columns["working_time"] == "lead_time"
    assert read_export(label_studio(tmp_path, [None, None])).working_time == {}


def test_work_time_of_mturk_is_divided_among_the_items_of_a_hit(tmp_path):
    """Forty seconds for two items are twenty each."""
    path = tmp_path / "batch.csv"
    path.write_text(
        "HITId,AssignmentId,WorkerId,WorkTimeInSeconds,Input.text_1,Input.text_2,Answer.mood_1,Answer.mood_2\n"
        "h1,a1,w1,40,one,two,good,bad\nh1,a2,w2,10,one,two,good,good\n"
    )
    reading = read_export(path)
    assert {w: s.tolist() for w, s in reading.working_time.items()} == {"w1": [20.0, 20.0], "w2": [5.0, 5.0]}


def test_assignments_of_toloka_and_pages_of_appen(tmp_path):
    """The time of an assignment or a page is divided among its rows."""
    toloka = tmp_path / "assignments.tsv"
    row = "img{}\t{}\ta1\ttask{}\tw1\tAPPROVED\t2024-01-01T00:00:00.000\t2024-01-01T00:00:30.000\n"
    toloka.write_text(
        "INPUT:image\tOUTPUT:label\tASSIGNMENT:assignment_id\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\t"
        "ASSIGNMENT:status\tASSIGNMENT:started\tASSIGNMENT:submitted\n"
        + row.format(1, "cat", 1) + row.format(2, "dog", 2) + row.format(3, "cat", 3)
    )  # fmt: skip
    assert read_export(toloka).working_time["w1"].tolist() == [10.0] * 3
    appen = tmp_path / "full.csv"
    appen.write_text(
        "_unit_id,_created_at,_golden,_started_at,_tainted,_worker_id,mood\n"
        "1,1/2/2024 10:00:20,false,1/2/2024 10:00:00,false,w1,good\n"
        "2,1/2/2024 10:00:20,false,1/2/2024 10:00:00,false,w1,bad\n"
        "1,1/2/2024 11:00:08,false,1/2/2024 11:00:00,false,w2,bad\n"
    )
    times = read_export(appen).working_time
    np.testing.assert_allclose(times["w1"], [10, 10])
    np.testing.assert_allclose(times["w2"], [8])


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_pseudonyms_keep_the_times(tmp_path):
    """The times of a worker stay with them under another name, in the tables too."""
    reading = read_export(label_studio(tmp_path, [2, 3, 4, 5]))
    hidden, _ = pseudonymise(reading)
    assert set(hidden.working_time) == set(hidden.annotations.worker_ids.tolist()) != set(reading.working_time)
    by_labels = sorted(seconds.tolist() for seconds in hidden.working_time.values())
    assert by_labels == [[2.0, 4.0], [3.0, 5.0]]
    run = aggregate([str(label_studio(tmp_path, [2, 3, 4, 5]))], worker_names="pseudonyms")
    assert sorted(run.tables["workers.csv"]["median_seconds"].to_list()) == [3.0, 4.0]

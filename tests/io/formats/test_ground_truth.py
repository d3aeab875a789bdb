"""SageMaker Ground Truth: a job's folder, its parts alone, and what is wrong with either."""

import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broken_exports import mutated, quiet_read, triples
from manyhands.exceptions import AnnotationError, CrowdWarning, ManyhandsError
from manyhands.io.documents import Folder, Records
from manyhands.io.formats import ground_truth
from manyhands.io.judgements import ColumnOptions
from manyhands.io.reading import read_export
from manyhands.io.sources import Source

JOB = Path(__file__).parents[2] / "samples" / "sagemaker"
MANIFEST = JOB / "manifests" / "output" / "output.manifest"
RESPONSE = next((JOB / "annotations" / "worker-response").rglob("*.json"))
REQUEST = next((JOB / "annotations").rglob("consolidation-request/*/*.json"))
SUB = "00000000-0000-0000-0000-00000000000a"


def answer(worker="w", element="q", value=None, **more):
    return {"workerId": worker, "answerContent": {element: value}, **more}


def job(answers_by_place, manifest=None):
    """A job in memory: answers by `iteration/object`, and the lines of its manifest."""
    members = {
        f"annotations/worker-response/{place}/x.json": json.dumps({"answers": answers}).encode()
        for place, answers in answers_by_place.items()
    }
    if manifest is not None:
        members["manifests/output/output.manifest"] = "\n".join(map(json.dumps, manifest)).encode()
    return Folder("job", {name: Source(f"job/{name}", content=content) for name, content in members.items()})


def judged(answers_by_place, manifest=None, options=None):
    return ground_truth.read(job(answers_by_place, manifest), "ground-truth", options or ColumnOptions())


def test_a_whole_job():
    """Two answers to the first object, and the second, which nobody answered, is known from the manifest."""
    with pytest.warns(
        CrowdWarning, match=r"1 file\(s\) of worker-response, and the names of items from manifests/output"
    ):
        reading = read_export(JOB)
    assert reading.format == "ground-truth"
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 2, "excluded": {"no_label": 1}}
    assert triples(reading) == [
        ("s3://bucket/img/0.jpg", SUB, "cat"),
        ("s3://bucket/img/0.jpg", "public.us-east-1.BBBB2222", "dog"),
    ]
    assert reading.annotations.item_ids.tolist() == ["s3://bucket/img/0.jpg", "s3://bucket/img/1.jpg"]
    assert reading.question == "crowd-image-classifier"
    assert reading.columns["item"] == "source-ref in the manifest"


def test_a_zip_with_the_job_in_a_folder_and_colons_in_its_names(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in JOB.rglob("*.*"):
            if path.is_file():
                archive.writestr(
                    f"my-job/{path.relative_to(JOB).as_posix()}".replace("09-1", "09:1"), path.read_bytes()
                )
    (tmp_path / "job.zip").write_bytes(buffer.getvalue())
    assert quiet_read(tmp_path / "job.zip").ledger.as_dict() == quiet_read(JOB).ledger.as_dict()


@pytest.mark.parametrize("part", ["annotations", "annotations/worker-response"])
def test_a_part_of_the_job_has_numbers_for_items(part):
    reading = quiet_read(JOB / part)
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
    assert reading.annotations.item_ids.tolist() == ["0"]


def test_consolidation_requests_serve_where_there_are_no_responses(tmp_path):
    shutil.copytree(JOB, tmp_path / "job")
    shutil.rmtree(tmp_path / "job" / "annotations" / "worker-response")
    reading = quiet_read(tmp_path / "job")
    assert "of consolidation-request" in reading.notes["files_used"]
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 2, "excluded": {"no_label": 1}}
    assert "private.eu-west-1.aaaa1111" in reading.annotations.worker_ids


def test_single_files():
    for path, worker in ((RESPONSE, SUB), (REQUEST, "private.eu-west-1.aaaa1111")):
        reading = quiet_read(path)
        assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 2, "excluded": {}}
        assert ("0", worker, "cat") in triples(reading)


def test_a_response_outside_of_its_directory(tmp_path):
    shutil.copy(RESPONSE, tmp_path / "answers-of-one.json")
    with pytest.warns(CrowdWarning, match="does not name its item"):
        assert read_export(tmp_path / "answers-of-one.json").annotations.item_ids.tolist() == ["answers-of-one"]


@pytest.mark.parametrize("path", [MANIFEST, JOB / "manifests"])
def test_the_manifest_alone_is_aggregated(path):
    reading = quiet_read(path)
    assert reading.ledger.as_dict() == {"rows_read": 2, "kept": 0, "excluded": {"aggregated": 1, "no_label": 1}}
    assert "not the workers' answers" in reading.refusal


def test_labels_of_machines_and_of_earlier_jobs_in_a_manifest(tmp_path):
    lines = [
        {"source": "a", "x": 0, "x-metadata": {"human-annotated": "no"}},
        {"source": "b", "x": 0, "x-metadata": {"human-annotated": "yes"}, "old": 1, "old-metadata": {"job-name": "j"}},
        {"source": "c", "other-metadata": 7},
    ]
    path = tmp_path / "output.manifest"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert quiet_read(path).ledger.excluded == {"prediction": 1, "aggregated": 2, "no_label": 1}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"label": "cat"}, "cat"),
        ({"label": 3}, "3"),
        ({"labels": ["cat", "dog"]}, ["cat", "dog"]),
        ({"labels": []}, []),
        ("cat", "cat"),
        (4, "4"),
        (True, "true"),
        ({"cat": True, "dog": False}, ["cat"]),
        ({"cat": False, "dog": False}, []),
        (["a", None, 1], ["a", "1"]),
        (None, None),
        ({}, None),
        ({"label": {"x": 1}}, None),
        ({"label": None}, None),
        ({"boundingBoxes": []}, None),
    ],
)
def test_shapes_of_answers(value, expected):
    assert ground_truth.answers_of({"q": value})[0] == ({} if expected is None else {"q": expected})


def test_marks_on_parts_of_an_item_are_regions():
    rows = judged({"iteration-1/0": [answer(value={"boundingBoxes": [{}]}), answer("v", value={"label": "cat"})]})
    assert rows.reason.to_list() == ["region", None]


def test_several_iterations_and_files_of_one_object():
    """The later answer of a worker counts, wherever it is kept."""
    early, late = (
        answer(value="a", submissionTime="2026-01-05T09:00:00Z"),
        answer(value="b", submissionTime="2026-01-06"),
    )
    rows = judged({"iteration-2/0": [early], "iteration-1/0": [late, answer("v", value="c")], "iteration-1/1": []})
    assert rows.item.to_list() == ["0", "0", "0", "1"]
    assert rows.time.to_list()[0] < rows.time.to_list()[1]
    assert rows.worker.to_list() == ["w", "w", "v", None]


def test_workers_without_a_name_and_times_that_cannot_be_read():
    rows = judged({"iteration-1/0": [{"answerContent": {"q": "a"}}, answer(value="a", submissionTime="soon")]})
    assert rows.reason.to_list() == ["no_worker", None]
    assert rows.notes["unparsed_times"].startswith("1 time(s)")


def test_which_name_an_item_has():
    manifest = [{"source": "text", "id": 7}, {"source": "text", "id": 8}]
    asked = {"iteration-1/1": [answer(value="a")]}
    rows = judged(asked, manifest)
    assert rows.item.to_list() == ["1", "0"]
    assert "by their number" in rows.notes["items_by_number"]
    assert judged(asked, manifest, ColumnOptions(item="ID")).item.to_list() == ["8", "7"]
    assert judged(asked, manifest, ColumnOptions(item="index")).item.to_list() == ["1", "0"]
    foreign = judged({"iteration-1/5": [answer(value="a")]}, manifest)
    assert (foreign.item.to_list(), list(foreign.notes)) == (["5"], ["files_used", "manifest_mismatch"])


def test_which_element_is_meant():
    two = {"workerId": "w", "answerContent": {"q": "a", "comment": "b"}}
    assert list(judged({"iteration-1/0": [two]}).answers) == ["q", "comment"]
    assert list(judged({"iteration-1/0": [two]}, options=ColumnOptions(label="q")).answers) == ["q"]


@pytest.mark.parametrize(
    ("answers", "options", "said"),
    [
        ({"iteration-1/0": ["junk"]}, ColumnOptions(), "answer 1: not an object but str"),
        ({"iteration-1/0": [answer(value="a")]}, ColumnOptions(worker="x"), '`worker="x"` has no meaning'),
        ({"iteration-1/0": [answer(value="a")]}, ColumnOptions(label="no"), "no element 'no'. It has: q"),
        ({"iteration-1/0": [answer(value="a")]}, ColumnOptions(item="no"), "no manifest that could name the items"),
    ],
)
def test_what_is_refused(answers, options, said):
    with pytest.raises(AnnotationError, match=said):
        judged(answers, options=options)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"annotations": []}, "object 2: no datasetObjectId"),
        ({"datasetObjectId": "1", "annotations": [1]}, "object 2: `annotations` is not a list"),
        ({"datasetObjectId": "1", "annotations": [{"annotationData": {"content": "{"}}]}, "object 2: .* is not JSON"),
        (7, "object 2: no datasetObjectId"),
    ],
)
def test_broken_requests(entry, said):
    good = {"datasetObjectId": "0", "annotations": []}
    with pytest.raises(AnnotationError, match=said):
        ground_truth.read(Records("x.json", [good, entry]), "ground-truth", ColumnOptions())


def test_several_jobs_are_not_mixed():
    folder = job({"iteration-1/0": [answer(value="a")]})
    members = {f"{name}/{path}": source for name in ("one", "two") for path, source in folder.members.items()}
    with pytest.raises(AnnotationError, match=r"several jobs \(one/annotations, two/annotations\)"):
        ground_truth.read(Folder("jobs", members), "ground-truth", ColumnOptions())


FILES = [json.loads(RESPONSE.read_text()), json.loads(REQUEST.read_text())]
FILES.append([json.loads(line) for line in MANIFEST.read_text().splitlines()])


@given(st.sampled_from(FILES).flatmap(mutated))
def test_nothing_but_sentences_for_a_broken_file(value):
    document = Records("x.json", value)
    found = ground_truth.recognise(document)
    assert found in (None, "ground-truth")
    try:
        found = ground_truth.read(document, "ground-truth", ColumnOptions())
        assert len(found.item) == len(found.worker) == len(found)
    except ManyhandsError as error:
        assert len(str(error)) > 20


@given(mutated(FILES[0]), mutated(FILES[2]))
def test_nothing_but_sentences_for_a_broken_job(response, manifest):
    members = {
        "annotations/worker-response/iteration-1/0/x.json": json.dumps(response).encode(),
        "manifests/output/output.manifest": json.dumps(manifest).encode(),
    }
    folder = Folder("job", {name: Source(name, content=content) for name, content in members.items()})
    try:
        assert ground_truth.read(folder, "ground-truth", ColumnOptions()).format == "ground-truth"
    except ManyhandsError as error:
        assert len(str(error)) > 20

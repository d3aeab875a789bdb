"""In memory, in memory on shards, or out of core: decided by sizes and options before any label is read."""

import warnings

import polars as pl
import pytest

from manyhands.exceptions import CrowdWarning, LimitError, ParameterError
from manyhands.jobs import out_of_core
from manyhands.jobs.aggregate import aggregate
from manyhands.jobs.options import ExportOptions
from manyhands.jobs.out_of_core import choose_route

pytestmark = pytest.mark.fast

NONE = {"gold": False, "report": False}


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """A file that needs 904 MB in memory, most of which is the program."""
    monkeypatch.setattr(out_of_core, "_BYTES_IN_MEMORY", 900_000_000)
    path = tmp_path / "votes.parquet"
    pl.DataFrame({"item": range(10_000), "worker": ["w"] * 10_000, "label": ["x"] * 10_000}).write_parquet(path)
    return str(path)


def route(files, export=None, method="dawid-skene", **given):
    """Of a job that shards can do."""
    options = {"out": "out", "others": NONE} | given
    return choose_route(files, export or ExportOptions(), method, **options)


def test_the_sizes_decide(votes):
    """A limit below the estimate goes out of core, and says why."""
    small, large = route([votes], max_memory="500MB"), route([votes], max_memory="2GB")
    assert (small.kind, large.kind) == ("out of core", "in memory")
    assert small.reason == f"Out of core: {votes} needs about 904 MB in memory, and the limit is 500 MB."
    assert large.reason == f"In memory: {votes} needs about 904 MB in memory, and the limit is 2 GB."
    assert route([votes], max_memory="2GB", shards="hash").kind == "in memory, on shards"
    assert route([votes, votes], max_memory="2GB").reason.startswith("In memory: The export of 2 files needs about")


def test_without_a_limit_the_free_memory_decides(votes, monkeypatch):
    """Where the options have no out of core, a note says so and the job is tried in memory."""
    monkeypatch.setattr(out_of_core, "available_bytes", lambda: 1_000_000_000)
    assert route([votes]).kind == "out of core"
    with pytest.warns(CrowdWarning, match=r"much_memory: .* 800 MB may be used; the job is tried in memory,.*out="):
        assert route([votes], out=None).kind == "in memory"
    monkeypatch.setattr(out_of_core, "available_bytes", lambda: 4_000_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert route([votes], out=None).kind == "in memory"


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"others": NONE | {"report": True}}, "does not support `report`: leave it out."),
        ({"export": ExportOptions(merge_spellings=True)}, "does not support `merge_spellings`: leave it out."),
        ({"export": ExportOptions(label_map="map.csv")}, "does not support `label_map`: leave it out."),
        (
            {"export": ExportOptions(rare_classes="merge:x")},
            "supports `rare_classes` drop, keep, error, and not merge:x: name one of them.",
        ),
        ({"export": ExportOptions(order="a,b")}, "does not support `order`: leave it out."),
        ({"method": "glad"}, "and not glad: name one of them with `method=`."),
        ({"kinds": ["training"]}, "writes labels as jsonl, parquet, and not as training: leave it out."),
        ({"out": None}, "writes files: add `out=FOLDER`."),
    ],
)
def test_what_shards_do_not_have_is_one_sentence(votes, given, part):
    """With `shards` always, with a limit where it is exceeded; no file is opened."""
    with pytest.raises(ParameterError) as refused:
        route(["missing.csv"], shards="hash", **given)
    assert str(refused.value).startswith("`shards=hash` ") and str(refused.value).endswith(part)
    with pytest.raises(LimitError) as exceeded:
        route([votes], max_memory="500MB", **given)
    assert "needs about 904 MB in memory, and the limit is 500 MB; a run out of core " in str(exceeded.value)
    assert str(exceeded.value).endswith(part)
    assert route([votes], max_memory="2GB", **given).kind == "in memory"


def test_other_formats_are_not_read_out_of_core(votes, tmp_path):
    """The sentence names the command that converts them."""
    path = tmp_path / "export.json"
    path.write_bytes(b"[]" + b"\n" * 300_000)
    with pytest.raises(LimitError, match=r"reads long tables .*, and not export\.json: manyhands convert writes"):
        route([str(path)], max_memory="500MB")
    with pytest.raises(LimitError, match="and not toloka: manyhands convert writes such a table"):
        route([votes], ExportOptions(format="toloka"), max_memory="500MB")
    assert route([str(tmp_path / "missing.csv")], max_memory="1kB").kind == "in memory"  # the reader names the problem


@pytest.mark.parametrize(
    ("given", "part"),
    [({"max_memory": "much"}, "`max_memory` is 'much'"), ({"shards": "range"}, "`shards` is 'range'; it may be hash")],
)
def test_a_limit_that_is_none_is_refused_first(given, part):
    """Before the file is looked for."""
    with pytest.raises(ParameterError, match=part):
        aggregate(["missing.csv"], **given)

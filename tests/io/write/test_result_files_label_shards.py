"""Labels of items shard by shard: the lines of the ordinary table, in the order of the shards."""

import warnings

import numpy as np
import polars as pl
import pytest

from manyhands import Annotations, MajorityVote, registry
from manyhands._core.writing import claim
from manyhands.io.write import result_files
from manyhands.io.write.result_files import LabelRows, write_labels
from manyhands.io.write.results import count_components, label_frame, summary, to_csv
from manyhands.io.write.training_table import jsonl, parquet
from manyhands.sharded.fit import fit
from manyhands.sharded.labels import InMemoryShards


@pytest.fixture(params=["text", "numbers"])
def crowd(request):
    """Ties, an item without a label, ids that CSV must quote."""
    rng = np.random.default_rng(1)
    item, worker, label = rng.integers(0, 400, 1500), rng.integers(0, 30, 1500), rng.integers(0, 3, 1500)
    if request.param == "numbers":
        return Annotations.from_triples(item, worker, label)
    ids = [f'a "{value}", b' if value % 3 else f"i{value}" for value in item]
    return Annotations.from_triples(ids, [f"w{value}" for value in worker], np.array(["x", "y,", "=z"])[label])


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
@pytest.mark.parametrize("n_shards", [1, 8, 256])
@pytest.mark.parametrize("at_once", [1, 7, 1 << 17])
def test_the_files_do_not_depend_on_shards_and_pieces(crowd, tmp_path, monkeypatch, n_shards, at_once):
    """They are the ordinary table with its rows in the order of the shards, in all formats."""
    monkeypatch.setattr(result_files, "ITEMS_AT_ONCE", at_once)
    shards = InMemoryShards.from_annotations(crowd, n_shards=n_shards)
    found = fit(MajorityVote(), shards)
    is_text = crowd.classes.dtype.kind != "i"  # as in every file; Parquet for data sets needs it
    rows = LabelRows(found.final_task, found.classes, ("jsonl", "parquet") if is_text else ())
    with claim(tmp_path, ["labels.csv"]) as output, output.stage() as staged:
        figures = write_labels(shards, rows, staged)
        output.write({}, staged)
    model = MajorityVote().fit(crowd)
    row_of = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    expected = label_frame(model)[[row_of[item] for item in shards.item_ids.tolist()]]
    assert (tmp_path / "labels.csv").read_bytes() == to_csv(expected)
    if is_text:
        assert (tmp_path / "labels.jsonl").read_bytes() == jsonl(expected)
        (tmp_path / "whole.parquet").write_bytes(parquet(expected))
        assert pl.read_parquet(tmp_path / "labels.parquet").equals(pl.read_parquet(tmp_path / "whole.parquet"))
        metadata = [pl.read_parquet_metadata(tmp_path / f"{name}.parquet") for name in ("labels", "whole")]
        assert metadata[0]["huggingface"] == metadata[1]["huggingface"]
    same = summary(model, "majority-vote")
    assert (figures.n_items, figures.n_tied, figures.n_unlabelled) == (same["n_items"], same["n_tied"], 0)
    assert round(figures.mean_confidence, 6) == same["mean_confidence"]
    assert dict(zip(map(str, crowd.classes.tolist()), figures.labels.tolist())) == same["labels"]
    assert len(np.unique(figures.groups)) == count_components(crowd)


def test_a_label_that_nobody_gave_is_flagged():
    """As in the ordinary table."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 300)
    wrong = rng.random((300, 2)) < 0.35
    votes = np.where(wrong, rng.integers(0, 3, (300, 2)), truth[:, None])
    votes = np.column_stack([votes, (truth + 1) % 3])  # one worker is always wrong, in the same way
    crowd = Annotations.from_matrix(votes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = registry.create("dawid-skene").fit(crowd)
        shards = InMemoryShards.from_annotations(crowd)
        found = fit(registry.create("dawid-skene"), shards)
    (piece,) = shards.run(LabelRows(found.final_task, found.classes), "labels")
    table = pl.read_csv(b"".join([LabelRows(found.final_task, found.classes).header, *piece.csv]))
    expected = label_frame(model)
    assert table.sort("item")["alerts"].to_list() == expected.sort("item")["alerts"].to_list()
    assert "unvoted" in table["alerts"].to_list()

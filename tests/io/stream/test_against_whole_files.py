"""What is read in parts is what `read_export` reads: the same labels, ids and ledger, whatever the format."""

import gzip
import json
import warnings
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from manyhands.exceptions import CrowdWarning
from manyhands.io import read_export
from manyhands.io.stream import ingest
from manyhands.io.stream.ingest import stream_to_codes
from manyhands.sharded.labels import InMemoryShards

FORMATS = ["csv", "csv.gz", "jsonl", "jsonl.gz", "parquet"]
SMALL = 256 << 20  # bytes


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of some dozen rows, so that small files are read in many of them."""
    monkeypatch.setattr(ingest, "_BYTES_PER_ROW", SMALL // 37)
    monkeypatch.setattr(ingest, "_BYTES_PER_TEXT_BYTE", SMALL // 700)
    monkeypatch.setattr(ingest, "_BYTES_PER_JSON_BYTE", SMALL // 1500)


def write(table, path, kind):
    """Write a table of text in one of the formats."""
    if kind == "parquet":
        table.write_parquet(path)
        return
    if kind.startswith("csv"):
        content = table.write_csv().encode()
    else:
        rows = (json.dumps({k: v for k, v in row.items() if v is not None}) for row in table.iter_rows(named=True))
        content = ("\n".join(rows) + "\n").encode()
    path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)


def quietly(function, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return function(*arguments, **options)


def labels_of(folder):
    """All labels of a code folder as a set, and its items in order."""
    codes, start = folder.read_codes(0, 256)
    ids, n_classes = folder.read_item_ids(0, 256), len(folder.classes)
    workers, classes = folder.worker_ids.tolist(), folder.classes.tolist()
    found = [
        (ids[item], workers[code // n_classes], classes[code % n_classes])
        for item, (first, last) in enumerate(pairwise(start.tolist()))
        for code in codes[first:last].tolist()
    ]
    return found, list(ids)


def check_same(path, tmp_path, **options):
    """Compare a file read in parts with the file read whole."""
    folder = quietly(stream_to_codes, path, cache=tmp_path / "cache", max_memory=SMALL, **options)
    reading = quietly(read_export, path, verbose=0, **options)
    crowd = reading.annotations
    rows = zip(crowd.item.tolist(), crowd.worker.tolist(), crowd.label.tolist(), strict=True)
    wanted = {(crowd.item_ids[i], crowd.worker_ids[w], crowd.classes[k]) for i, w, k in rows}
    found, ids = labels_of(folder)
    assert set(found) == wanted and len(found) == len(wanted) == folder.n_labels
    assert folder.worker_ids.tolist() == crowd.worker_ids.tolist()
    assert folder.classes.tolist() == crowd.classes.tolist()
    assert {name: folder.ledger[name] for name in ("rows_read", "kept", "excluded")} == reading.ledger.as_dict()
    memory = InMemoryShards.from_annotations(crowd)
    codes, start = folder.read_codes(0, 256)
    assert np.array_equal(codes, memory.packed.code) and np.array_equal(start, memory.packed.start)
    assert folder.n_shards == memory.n_shards and ids == memory.item_ids.tolist()
    assert folder.worker_volume.tolist() == np.bincount(crowd.worker, minlength=crowd.n_workers).tolist()
    return folder, reading


def clean(n=900, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.permutation(200 * 40)[:n]
    return pl.DataFrame(
        {
            "item": [f"item-{row // 40:05d}" for row in rows],
            "worker": [f"worker-{row % 40}" for row in rows],
            "label": rng.choice(["yes", "no", "Vielleicht, ähm"], n).tolist(),
        }
    )


def messy(n=900, seed=1):
    """Nulls, blanks, repeats, quotes, line ends in cells, ids with outer space, long and non-Latin ids."""
    rng = np.random.default_rng(seed)
    table = clean(n, seed)
    table = pl.concat([table, table.sample(200, seed=seed).with_columns(label=pl.lit("no"))])
    odd = {
        3: {"label": None},
        40: {"label": ""},
        41: {"label": "  "},
        77: {"worker": None, "label": None},
        78: {"item": "only here", "label": None},
        79: {"worker": "never labels", "label": None},
        100: {"item": 'say "hi"\nand more, or; less', "worker": "line\nend"},
        101: {"item": " item-00001", "worker": "worker-1 "},
        102: {"item": "日本" * 40, "worker": "x" * 300},
        103: {"item": "item-00001", "label": " yes"},
        104: {"item": "NA", "worker": "null", "label": "None"},
    }
    rows = table.to_dicts()
    for at, change in odd.items():
        rows[at] |= change
    rows += [rows[at] for at in rng.integers(0, len(rows), 100)]
    return pl.DataFrame(rows, schema=table.schema)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("table", [clean, messy])
def test_labels_ids_and_ledger_are_the_same(tmp_path, kind, table):
    path = tmp_path / f"labels.{kind}"
    write(table(), path, kind)
    folder, _ = check_same(path, tmp_path)
    if table is messy:
        assert folder.ledger["excluded"].keys() == {"no_label", "duplicate"}
        assert folder.n_items > len({item for item, _, _ in labels_of(folder)[0]})  # items without labels are kept


@pytest.mark.parametrize("kind", FORMATS)
def test_the_last_row_of_a_repeated_pair_counts_across_parts(tmp_path, kind):
    filler = clean(600)
    rows = [{"item": "a", "worker": "w", "label": label} for label in ("first", "second", "last")]
    table = pl.concat(
        [pl.DataFrame(rows[:1]), filler[:300], pl.DataFrame(rows[1:2]), filler[300:], pl.DataFrame(rows[2:])]
    )
    write(table, tmp_path / f"t.{kind}", kind)
    folder, _ = check_same(tmp_path / f"t.{kind}", tmp_path)
    assert ("a", "w", "last") in labels_of(folder)[0]
    assert "first" not in folder.classes.tolist()  # no label that counts names it


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_of_times_decides_which_label_is_the_last(tmp_path, kind):
    table = messy().filter(pl.col("label").is_not_null())
    rng = np.random.default_rng(5)
    times = [f"2024-01-{day:02d}T10:00:00Z" if day else "" for day in rng.integers(0, 29, len(table))]
    write(table.with_columns(timestamp=pl.Series(times)), tmp_path / f"t.{kind}", kind)
    folder, _ = check_same(tmp_path / f"t.{kind}", tmp_path)
    assert folder.ledger["mapping"]["time"] == "timestamp"


def test_times_may_have_fractions(tmp_path):
    table = pl.concat([clean(), clean().sample(300, seed=2).with_columns(label=pl.lit("no"))]).with_row_index("n")
    times = (pl.col("n") % 17 + 1_700_000_000.25).alias("timestamp")
    table.select("item", "worker", "label", times).write_parquet(tmp_path / "t.parquet")
    check_same(tmp_path / "t.parquet", tmp_path)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("rare_classes", ["drop", "keep"])
@pytest.mark.slow
def test_stray_classes_are_treated_the_same(tmp_path, monkeypatch, kind, rare_classes):
    monkeypatch.setattr("manyhands.io.row_filtering._ONE_IN", 50)
    table = clean(6000)
    rows = table.to_dicts()
    rows[700]["label"] = rows[2000]["label"] = "yess"  # typing errors
    rows[701]["label"] = "n0"
    rows += [{"item": "agreed", "worker": worker, "label": "rare"} for worker in ("p", "q")]  # chosen by two
    rows += [{"item": "twice", "worker": "p", "label": label} for label in ("yes", "nno")]
    write(pl.DataFrame(rows), tmp_path / f"t.{kind}", kind)
    folder, reading = check_same(tmp_path / f"t.{kind}", tmp_path, rare_classes=rare_classes)
    assert folder.ledger["notes"]["stray_classes"] == reading.notes["stray_classes"]
    assert ("yess" in folder.classes.tolist()) == (rare_classes == "keep")
    assert "rare" in folder.classes.tolist() and "twice" in labels_of(folder)[1]


@pytest.mark.parametrize("columns", [("task_id", "annotator", "answer"), ("Unit ID", "user", "class")])
@pytest.mark.parametrize("kind", FORMATS)
def test_columns_are_found_by_the_same_rules(tmp_path, kind, columns):
    table = clean().rename(dict(zip(("item", "worker", "label"), columns, strict=True)))
    table = table.select(pl.lit("text").alias("comment"), *reversed(columns), pl.lit("7").alias("page"))
    write(table, tmp_path / f"t.{kind}", kind)
    folder, reading = check_same(tmp_path / f"t.{kind}", tmp_path)
    assert folder.ledger["mapping"] == {role: reading.columns[role] for role in ("item", "worker", "label")}


@pytest.mark.parametrize("kind", FORMATS)
def test_named_columns(tmp_path, kind):
    write(clean().rename({"item": "a", "worker": "b", "label": "c"}), tmp_path / f"t.{kind}", kind)
    check_same(tmp_path / f"t.{kind}", tmp_path, item="a", worker="b", label="c")


def test_numbers_and_truth_values_of_parquet_are_text_as_elsewhere(tmp_path):
    rng = np.random.default_rng(2)
    rows = rng.permutation(300 * 20)[:1000]
    whole = [float(row % 20) if row % 7 else None for row in rows]
    table = pl.DataFrame({"item": rows // 20 - 40, "worker": whole, "label": rng.random(1000) < 0.5})
    table = table.with_columns(label=pl.when(pl.col("worker").is_null()).then(None).otherwise(pl.col("label")))
    table.write_parquet(tmp_path / "t.parquet")
    folder, _ = check_same(tmp_path / "t.parquet", tmp_path)
    assert folder.classes.tolist() == ["false", "true"] and "7" in folder.worker_ids.tolist()


def test_integers_of_parquet_stay_integers_on_request(tmp_path):
    rng = np.random.default_rng(2)
    rows = rng.permutation(300 * 20)[:1000]
    table = pl.DataFrame({"item": rows // 20 - 40, "worker": rows % 20, "label": rng.integers(0, 12, 1000)})
    table.write_parquet(tmp_path / "t.parquet")
    folder = stream_to_codes(tmp_path / "t.parquet", cache=tmp_path / "c", max_memory=SMALL, keep_integers=True)
    crowd = read_export(table, verbose=0).annotations  # a data frame keeps the types of its columns
    assert folder.worker_ids.tolist() == crowd.worker_ids.tolist() == list(range(20))
    assert folder.classes.tolist() == crowd.classes.tolist() == list(range(12))
    assert sorted(folder.read_item_ids(0, 256).tolist()) == sorted(crowd.item_ids.tolist())
    found, _ = labels_of(folder)
    assert set(found) == set(table.rows())


def test_mixed_values_of_json_lines_are_text_and_the_line_is_named(tmp_path):
    rows = [{"item": i // 5, "worker": i % 5, "label": i % 2 == 0} for i in range(300)]
    rows[200] |= {"item": "40"}  # the same item as 40
    rows[210] |= {"worker": 1.5, "label": "maybe"}
    rows[220] |= {"item": 2**70, "label": [1, "a"]}
    (tmp_path / "t.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    folder, _ = check_same(tmp_path / "t.jsonl", tmp_path)
    notes = folder.ledger["notes"]
    assert "holds numbers, and text from line 401 on: '40'" in notes["mixed_types_item"]
    assert "line 421" in notes["mixed_types_label"] and "line 421" in notes["mixed_types_worker"]


def test_a_key_that_occurs_twice_is_noted(tmp_path):
    row = '{"item": "a", "worker": "w", "label": "x", "label": "y"}\n'
    (tmp_path / "t.jsonl").write_text(row.replace(', "label": "y"', "") * 100 + row)
    folder, reading = check_same(tmp_path / "t.jsonl", tmp_path)
    assert folder.ledger["notes"]["repeated_keys"] == reading.notes["repeated_keys"]


CSV_TEXTS = {
    "blank lines": "item,worker,label\n\na,w,x\n,,\nb,w,y\n   ,,\n\n",
    "no final line end": "item,worker,label\na,w,x\nb,v,y",
    "windows": "\ufeffitem,worker,label\r\na,w,x\r\nb,v,y\r\n",
    "semicolons": "item;worker;label\na;w;x\nb;v;y\n",
    "tabs": "item\tworker\tlabel\na\tw\tx\nb\tv\ty\n",
    "announced": "sep=;\nitem;worker;label\na;w;x\nb;v;y\n",
    "title": "Export of Monday\n\nitem,worker,label\na,w,x\nb,v,y\nc,v,y\n",
    "quoted header": '"item","the\nworker","label"\na,w,x\nb,v,y\n',
    "short rows": "item,worker,label,more\na,w,x\nb,v,y,z\n",
    "header again": "item,worker,label\na,w,x\nitem,worker,label\nb,v,y\n",
    "header only": "item,worker,label\na,w,x\n",
    "quotes": 'item,worker,label\n"a ""b""\n\n,c",w,x\n' + "".join(f"i{n},w,x\n" for n in range(150)) + '"d\n",v,y\n',
}


@pytest.mark.parametrize("name", CSV_TEXTS)
def test_text_tables_of_all_kinds(tmp_path, name):
    (tmp_path / "t.csv").write_bytes(CSV_TEXTS[name].encode())
    options = {"worker": "the\nworker"} if name == "quoted header" else {}
    check_same(tmp_path / "t.csv", tmp_path, **options)


def test_a_folder_of_files_is_read_in_the_order_of_their_names(tmp_path):
    table = messy()
    (tmp_path / "parts").mkdir()
    for at, name in enumerate(["c", "a", "b"]):
        table[at * 400 : (at + 1) * 400].write_parquet(tmp_path / "parts" / f"{name}.parquet")
    check_same(tmp_path / "parts", tmp_path)
    paths = [tmp_path / "parts" / f"{name}.parquet" for name in "cab"]
    one = quietly(stream_to_codes, paths, cache=tmp_path / "cache", max_memory=SMALL)
    other = quietly(stream_to_codes, tmp_path / "parts", cache=tmp_path / "cache", max_memory=SMALL)
    assert one.folder != other.folder and one.n_labels == other.n_labels
    check_same(paths, tmp_path)


def test_many_ranges_give_the_same_labels(tmp_path, monkeypatch):
    write(messy(), tmp_path / "t.csv", "csv")
    one, _ = check_same(tmp_path / "t.csv", tmp_path)
    monkeypatch.setattr(ingest, "_BYTES_PER_SORTED_ROW", SMALL)
    other, _ = check_same(tmp_path / "t.csv", tmp_path / "other")
    assert one.fingerprint == other.fingerprint


def test_the_plain_functions_give_the_same_folder(tmp_path, monkeypatch):
    write(messy(), tmp_path / "t.csv", "csv")
    one, _ = check_same(tmp_path / "t.csv", tmp_path)
    for module in ("manyhands.io.stream.batches", "manyhands.io.judgements"):
        monkeypatch.setattr(f"{module}._columns", None)
    other, _ = check_same(tmp_path / "t.csv", tmp_path / "other")
    assert one.fingerprint == other.fingerprint


JSON_ROWS = {
    "integers": '{"item": 7, "worker": -3, "label": 0}',
    "fractions": '{"item": 7.0, "worker": 1e3, "label": 0.50}',
    "long integers": '{"item": 123456789012345678901, "worker": 1, "label": 0}',
    "minus zero": '{"item": -0, "worker": 1, "label": 0}',
    "key twice": '{"item": "a", "worker": "w", "label": "x", "item": "b"}',
    "space before the colon": '{"item" : "a", "worker"\t:"w", "label":   "x"}',
    "same key within": '{"item": "a", "worker": "w", "label": "x", "more": {"item": "b", "label": 3}}',
    "only within": '{"item": "a", "worker": "w", "more": {"label": "x"}}',
    "key in a text": '{"item": "\\"label\\":\\"y\\"", "worker": "\\"label\\":5", "label": "x"}',
    "escapes": '{"item": "\\u00e9\\ud83d\\ude00\\n", "worker": "\\/", "label": "\\\\"}',
    "lists": '{"item": ["a"], "worker": {"b": 1.0}, "label": true}',
    "blank row": '{"item": "", "worker": " ", "label": ""}',
    "blank row with another field": '{"item": "i", "worker": "", "label": "", "more": 1}',
    "null": '{"item": "a", "worker": null, "label": null}',
}


@pytest.mark.parametrize("name", JSON_ROWS)
@pytest.mark.parametrize("others", ["text", "numbers"])
def test_values_of_json_lines(tmp_path, name, others):
    row = (
        '{"item": "i%d", "worker": "w%d", "label": "x"}' if others == "text" else '{"item": %d, "worker":%d, "label":1}'
    )
    rows = [row % (n // 5, n % 5) for n in range(60)]
    (tmp_path / "t.jsonl").write_text("\n".join([*rows, JSON_ROWS[name], *rows]))
    check_same(tmp_path / "t.jsonl", tmp_path)

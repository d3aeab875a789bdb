"""Parquet files that claim more than they hold: refused before polars takes memory for it."""

import io
import random
import struct
import zipfile
from base64 import b64encode
from decimal import Decimal

import polars as pl
import pytest

from manyhands.cli.app import run
from manyhands.exceptions import AnnotationError, LimitError, ManyhandsError
from manyhands.io import parquet_limits
from manyhands.io.features import read_features
from manyhands.io.parquet_limits import ThriftError, ThriftLimitError, check_arrow_schema, check_parquet, read_parquet
from manyhands.io.reading import read_export
from manyhands.io.sources import Source

ROWS = {"item": ["a", "b", "c"] * 20, "worker": list(range(60)), "label": ["x", None, "y"] * 20}
FRAME = pl.DataFrame(ROWS | {"many": [[1, 2], [], None] * 20, "inner": [{"a": ["q"]}] * 60})


def written(frame, **options):
    buffer = io.BytesIO()
    frame.write_parquet(buffer, **options)
    return buffer.getvalue()


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def whole(footer):
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"


def element(name, kind=None, children=None):
    """An optional field of the schema."""
    begin = b"" if kind is None else b"\x15" + varint(2 * kind)
    begin += (b"\x35" if kind is None else b"\x25") + b"\x02" + b"\x18" + varint(len(name)) + name
    return begin + (b"" if children is None else b"\x15" + varint(2 * children)) + b"\0"


def structs(*entries, claimed=None):
    count = len(entries) if claimed is None else claimed
    return (bytes([count << 4 | 12]) if count < 15 else b"\xfc" + varint(count)) + b"".join(entries)


def footer(schema, rows=0, groups=b"\x0c", rest=b""):
    return b"\x15\x02\x19" + schema + b"\x16" + varint(2 * rows) + b"\x19" + groups + rest + b"\0"


SCHEMA = structs(element(b"root", children=1), element(b"a", 6))
TOO_MUCH = {
    "schema": footer(structs(element(b"root", children=1), claimed=2**31 - 1)),
    "fewer": footer(structs(element(b"root", children=1), claimed=2**27)),
    "groups": footer(SCHEMA, groups=structs(claimed=2**31 - 1)),
    "notes": footer(SCHEMA, rest=b"\x19" + structs(claimed=2**31 - 1)),
    "rows": footer(SCHEMA, rows=2**60),
    "deep": footer(structs(element(b"root", children=1), *[element(b"g", children=1)] * 2000, element(b"a", 6))),
    "structures": footer(SCHEMA, rest=b"\x6c" + b"\x1c" * 5000 + b"\0" * 5001),
    "lists": footer(SCHEMA, rest=b"\x69" + b"\x19" * 5000),
    "map": footer(SCHEMA, rest=b"\x6b" + varint(2**40) + b"\x55"),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_footer_that_claims_too_much(what, tmp_path, capsys):
    """Each of them made polars end the process, or might: with a limit on memory, or by the depth of its stack."""
    (tmp_path / "x.parquet").write_bytes(whole(TOO_MUCH[what]))
    with pytest.raises(LimitError, match=r"x\.parquet"):
        read_export(tmp_path / "x.parquet")
    assert run(["inspect", str(tmp_path / "x.parquet")]) == 5
    assert "x.parquet" in capsys.readouterr().err


def test_a_small_file_of_many_rows(tmp_path, monkeypatch):
    """On disk, in a folder, in a zip, on standard input, and as features: never read, whatever it comes as."""
    n_rows = 5_000_000
    constant = pl.select(pl.repeat("i", n_rows).alias("item"), pl.repeat("w", n_rows).alias("worker"))
    content = written(constant.with_columns(label=pl.lit("x")))
    assert len(content) < 100_000
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "x.parquet").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.parquet", content)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    monkeypatch.setattr(pl, "read_parquet", lambda *_, **__: pytest.fail("polars saw it"))
    for path in (folder / "x.parquet", folder, tmp_path / "x.zip", "-"):
        with pytest.raises(LimitError, match="5,000,000 rows, which need about"):
            read_export(path)
    with pytest.raises(LimitError, match="5,000,000 rows"):
        read_features(folder / "x.parquet")


def test_lists_and_wide_values_count_in_full(monkeypatch):
    """A row with a long list is many values, and a value of fixed size may be large."""
    monkeypatch.setattr(parquet_limits, "_RATIO_FROM", 1 << 20)
    lists = pl.DataFrame({"a": [[7] * 5000] * 200})
    with pytest.raises(LimitError, match="200 rows"):
        check_parquet(written(lists), "x")
    check_parquet(written(lists.head(2)), "x")


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed"])
@pytest.mark.parametrize("row_group_size", [None, 7])
def test_whatever_polars_writes_is_read(compression, row_group_size):
    kinds = FRAME.with_columns(
        pl.col("label").cast(pl.Categorical).alias("category"),
        pl.col("label").cast(pl.Enum(["x", "y"])).alias("enum"),
        pl.lit(Decimal("1.5")).alias("decimal"),
        pl.lit(None).alias("null"),
        pl.lit([1.0, 2.0], pl.Array(pl.Float32, 2)).alias("array"),
        pl.col("worker").cast(pl.Int128).alias("long"),
        pl.col("worker").cast(pl.Duration).alias("duration"),
        pl.lit(b"\0a").alias("bytes"),
    )
    for frame in (kinds, kinds.head(0), kinds.select("label"), kinds.head(1)):
        content = written(frame, compression=compression, row_group_size=row_group_size)
        assert read_parquet(Source("x", content=content)).equals(frame)


def test_a_cut_or_changed_file_is_no_parquet():
    content = written(FRAME)
    for wrong in (content[:-1], content[:200], content[:4], b"PAR1" * 3, content[:-8] + b"\xff\xff\xff\x7fPAR1"):
        with pytest.raises(AnnotationError, match="cannot be read as Parquet"):
            read_parquet(Source("x", content=wrong))
    with pytest.raises(AnnotationError, match="number of rows is not that of its row groups"):
        read_parquet(Source("x", content=whole(footer(SCHEMA, rows=5))))


def mutated(rng, content):
    """The content with a few bytes of its footer, or anywhere, replaced, removed, doubled, or a huge number."""
    changed, begin = bytearray(content), len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    low, high = rng.choice([(begin, len(content) - 8), (begin, len(content) - 8), (4, begin)])
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(low, high)
        new = rng.choice([rng.randbytes(1), varint(2 ** rng.randrange(20, 64)), b"", changed[low : low + 9]])
        changed[at : at + rng.randrange(1, 6)] = new
        high = max(low + 1, high + len(changed) - len(content))
        content = changed
    if low == begin:
        changed[-8:-4] = struct.pack("<I", len(changed) - 8 - begin)
    return bytes(changed)


def test_changed_bytes_are_refused_or_read():
    """What polars is shown has at most as many rows and values as the file has room for."""
    rng = random.Random(18)
    files = [written(FRAME.select("item", "worker", "label")), written(FRAME, row_group_size=25, compression="snappy")]
    n_read = n_refused = 0
    for _ in range(400):
        try:
            assert len(read_parquet(Source("x.parquet", content=mutated(rng, rng.choice(files))))) <= 1000
            n_read += 1
        except ManyhandsError as error:
            assert str(error).startswith("x.parquet ") and "\n" not in str(error)
            n_refused += 1
    assert n_read > 5 and n_refused > 100


def arrow_schema(depth, fan):
    """Fields within fields as a FlatBuffer, each with the same one `fan` times below it."""
    fields = struct.pack("<8H", 16, 20, 4, 16, 17, 8, 0, 12)  # where a field keeps its name, type and children
    begin = struct.pack("<I5H2x", 16, 10, 20, 4, 6, 8) + struct.pack("<iHBxI8x", 12, 4, 1, 20)  # the message
    begin += struct.pack("<4HiI", 8, 8, 0, 4, 8, 20) + fields + struct.pack("<II", 1, 4)  # the schema, and its list
    content = bytearray(begin)
    table = begin.index(fields)
    for level in range(depth):
        at, below = len(content), fan if level < depth - 1 else 0
        content += struct.pack("<iIIIBBxxI", at - table, 0, 0, 8, 1, 12, below)
        content += b"".join(struct.pack("<I", 4 * (below - child)) for child in range(below))
    end = len(content)
    content += struct.pack("<I4s", 1, b"x")
    at = len(begin)
    for level in range(depth):  # all have one name
        content[at + 4 : at + 8] = struct.pack("<I", end - at - 4)
        at += 24 + 4 * (fan if level < depth - 1 else 0)
    return b64encode(b"\xff" * 4 + struct.pack("<I", len(content)) + content)


def test_fields_of_arrow_within_fields(monkeypatch):
    """Thirty fields, each of which has the next one twice, are a billion; thousands of levels are more than a stack."""
    monkeypatch.setattr("manyhands.io.parquet_limits._MAX_FIELDS", 5000)
    check_arrow_schema(arrow_schema(20, 1))
    check_arrow_schema(arrow_schema(10, 2))
    for depth, fan in ((32, 2), (5000, 1), (30, 50)):
        with pytest.raises(ThriftLimitError, match="Arrow"):
            check_arrow_schema(arrow_schema(depth, fan))
    rng = random.Random(5)
    for _ in range(500):
        content = bytearray(arrow_schema(4, 2))
        content[rng.randrange(len(content))] = rng.choice(b"Aa/+0_=")
        try:
            check_arrow_schema(bytes(content))
        except ThriftError as error:
            assert "Arrow" in str(error)

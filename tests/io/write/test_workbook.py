"""XLSX: text stays text, numbers stay numbers, and what does not fit is refused."""

import io
import zipfile

import fastexcel
import polars as pl
import pytest

from manyhands.exceptions import LimitError
from manyhands.io.write.workbook import MAX_ROWS, check_workbook, workbook
from manyhands.jobs.aggregate import aggregate

pytest.importorskip("xlsxwriter")
HOSTILE = ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "007", "1-2", "http://x.org", "{=1+1}", "a\tb", "\u202ex", "", "ﾊﾛ"]


def test_text_stays_text_and_numbers_stay_numbers():
    """No formula, no link, no date, no number is made of a text."""
    table = pl.DataFrame({"item": HOSTILE, "=n": [0.1, None, float("nan"), 2, 3, 4, 5, 6, 7, 8, 9, 1e300]})
    content = workbook({"labels": table, "workers": table.head(1)})
    assert content == workbook({"labels": table, "workers": table.head(1)})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet and "hyperlink" not in sheet
    book = fastexcel.read_excel(content)
    assert book.sheet_names == ["labels", "workers"]
    back = book.load_sheet("labels").to_polars()
    assert [text or "" for text in back["item"].to_list()] == HOSTILE
    assert back["=n"].to_list()[:2] == [0.1, None]


def test_what_does_not_fit_is_refused():
    """XlsxWriter would leave such cells and rows out."""
    with pytest.raises(LimitError, match="at most 32,767 letters"):
        workbook({"labels": pl.DataFrame({"item": ["x" * 32_768]})})
    with pytest.raises(LimitError, match="1,048,575 rows, and there are 1,048,576"):
        check_workbook(MAX_ROWS + 1)


def test_a_run_writes_a_workbook(tmp_path):
    (tmp_path / "a.csv").write_text("item,worker,label\n=1+1,a,x\n=1+1,b,x\n2,a,y\n2,b,x\n")
    aggregate([str(tmp_path / "a.csv")], out=str(tmp_path / "out"), write=["xlsx"], method="majority-vote")
    book = fastexcel.read_excel(tmp_path / "out" / "results.xlsx")
    assert book.sheet_names[:2] == ["labels", "workers"]
    assert book.load_sheet("labels").to_polars()["item"].to_list() == ["=1+1", "2"]

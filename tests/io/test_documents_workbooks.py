"""XLSX workbooks: what cells become, and what is refused before a reader of XML or memory meets it."""

import io
import zipfile

import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning, LimitError, ManyhandsError
from manyhands.io import documents, sources
from manyhands.io.documents import read_workbook
from manyhands.io.reading import read_export
from manyhands.io.sources import Source

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
WORKSHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
    f'<Override PartName="/xl/workbook.xml" ContentType="{WORKSHEET}.sheet.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="a" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">'
    '<sheets><sheet name="S" sheetId="1" r:id="b"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="b" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="c" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
    "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
    "</styleSheet>",
}
HEADER = [("A1", "item"), ("B1", "worker"), ("C1", "label")]


def text(place, said):
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{said}</t></is></c>'


def workbook(*rows, before="", parts=None):
    """A workbook of one sheet with these rows, each a number and the XML of its cells."""
    cells = "".join(f'<row r="{number}">{cells}</row>' for number, cells in rows)
    sheet = f'<?xml version="1.0"?>{before}<worksheet xmlns="{MAIN}"><sheetData>{cells}</sheetData></worksheet>'
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**PARTS, "xl/worksheets/sheet1.xml": sheet, **(parts or {})}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def header():
    return 1, "".join(text(place, said) for place, said in HEADER)


def cells_of(content):
    frame, names, _ = read_workbook(Source("x.xlsx", content=content))
    return names, frame.rows()


@pytest.mark.parametrize("kind", ["", ' t="n"', ' s="1"', " t='n' s='1'"])
@pytest.mark.parametrize("number", ["12345678901234567890123", "-9007199254740993", "1" * 400])
def test_numbers_that_a_spreadsheet_does_not_keep(kind, number):
    """Different ids would be read as the same one; no cell of text is meant, and no number that is kept."""
    for value in (f"<v>{number}</v>", f"<f>A1</f><v> {number} </v>"):
        with pytest.raises(AnnotationError, match=r"x\.xlsx: a cell holds the number -?[0-9]+.* keeps 15 digits"):
            cells_of(workbook(header(), (2, f'<c r="A2"{kind}>{value}</c>')))
    kept = text("A2", number) + f'<c r="B2" t="str"><v>{number}</v></c><c r="C2"><v>9007199254740994</v></c>'
    assert cells_of(workbook(header(), (2, kept)))[1] == [(number, number, "9007199254740994")]
    floats = '<c r="A2"><v>0.10000000000000001</v></c><c r="B2"><v>1.2345678901234567E+22</v></c>'
    assert cells_of(workbook(header(), (2, floats + text("C2", "x"))))[1][0][0] == "0.1"


def test_cells_are_text_as_excel_shows_them():
    """007 and a formula that is text stay; 7 has no `.0`; a formula gives its value; dates can be read again."""
    names, rows = cells_of(
        workbook(
            header(),
            (2, text("A2", "007") + '<c r="B2"><v>7</v></c><c r="C2"><v>1.5</v></c>'),
            (3, text("A3", "=1+1") + '<c r="B3"><f>3+4</f><v>7</v></c><c r="C3" t="b"><v>1</v></c>'),
            (5, '<c r="A5" s="1"><v>46000.5</v></c>' + text("B5", " x ") + '<c r="C5" t="e"><v>#N/A</v></c>'),
        )
    )
    assert names == ["item", "worker", "label"]
    assert rows == [
        ("007", "7", "1.5"),
        ("=1+1", "7", "true"),
        (None, None, None),
        ("2025-12-09 12:00:00", " x ", None),
    ]


def test_a_workbook_is_read_like_any_table(tmp_path):
    path = tmp_path / "votes.xlsx"
    path.write_bytes(
        workbook(header(), (2, text("A2", "007") + text("B2", "ann") + text("C2", "cat")), (3, ""), (9, ""))
    )
    reading = read_export(path)
    assert reading.ledger.kept == 1
    assert reading.annotations.item_ids.tolist() == ["007"]


def test_a_sheet_without_cells():
    with pytest.raises(AnnotationError, match="first sheet is empty"):
        cells_of(workbook())
    assert cells_of(workbook(header())) == (["item", "worker", "label"], [])


@pytest.mark.parametrize(
    "before",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>',
        '<!DOCTYPE x SYSTEM "file:///etc/passwd">',
        "<!--" + " " * 5000 + "--><!DOCTYPE x>",  # beyond the first few bytes
        "<!--" + "x" * (2 << 20) + "--><!DOCTYPE x>",  # beyond the first piece
    ],
)
@pytest.mark.parametrize("part", ["xl/worksheets/sheet1.xml", "xl/workbook.xml"])
def test_entities_are_refused(before, part):
    content = (
        workbook(header(), before=before)
        if "sheet1" in part
        else workbook(header(), parts={part: before + PARTS[part]})
    )
    with pytest.raises(AnnotationError, match="declares XML entities"):
        cells_of(content)


def test_what_is_cut_between_two_pieces_is_seen(monkeypatch):
    monkeypatch.setattr(sources, "_PIECE", 7)
    with pytest.raises(AnnotationError, match="declares XML entities"):
        cells_of(workbook(header(), before="<!DOCTYPE x>"))
    with pytest.raises(LimitError, match="1,048,576 rows and 16,384 columns"):
        cells_of(workbook(header(), (1_048_576, text("XFD1048576", "x"))))


def test_entities_in_utf16_are_refused():
    part = '<?xml version="1.0" encoding="utf-16"?><!DOCTYPE x>'.encode("utf-16")
    with pytest.raises(AnnotationError, match="declares XML entities"):
        cells_of(workbook(header(), parts={"xl/sharedStrings.xml": part}))


@pytest.mark.parametrize(
    "far",
    [
        (1_048_576, text("XFD1048576", "x")),
        (4_294_967_295, text("A4294967295", "x")),
        (2, text("ZZZZZZZ2", "x") + text("A9999999", "x")),
        (1_048_576, text("XFD1048576", "x").replace('r="', "r = '").replace('6" t', "6' t")),
    ],
)
def test_two_cells_far_apart_do_not_fill_the_memory(far):
    """All cells between the first and the last are kept; a few hundred bytes would ask for hundreds of gigabytes."""
    with pytest.raises(LimitError, match="cells are read"):
        cells_of(workbook(header(), far))


def test_a_wide_sheet_is_no_trap():
    row = (1, "".join(text(f"{place}1", place) for place in ("A", "Z", "AA", "AZ", "CV")))
    assert len(cells_of(workbook(row))[0]) == 100


def test_columns_are_counted_as_excel_names_them():
    assert [documents._column_number(name) for name in (b"A", b"Z", b"AA", b"xfd")] == [1, 26, 27, 16384]


def test_a_bomb():
    with pytest.raises(LimitError, match="100 times its size"):
        cells_of(workbook(header(), parts={"xl/media/image.bin": bytes(20 << 20)}))


@pytest.mark.parametrize("missing", sorted(PARTS))
def test_a_part_that_is_not_xml(missing):
    """Whatever a reader makes of it, nothing but a sentence comes out."""
    content = workbook(header(), parts={missing: "<<<"})
    try:
        assert cells_of(content)[0] == ["item", "worker", "label"]
    except ManyhandsError as error:
        assert "cannot be read as an XLSX workbook" in str(error)


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.99])
def test_cut_off(keep, tmp_path):
    content = workbook(header())
    path = tmp_path / "votes.xlsx"
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(AnnotationError, match="not a complete zip file"):
        read_export(path)


def test_a_panic_in_the_reader_is_a_sentence(monkeypatch):
    """What Rust throws is no Exception, and would pass every handler."""
    import fastexcel

    class PanicException(BaseException):
        pass

    def panic(content):
        raise PanicException("index out of bounds\nsecond line")

    monkeypatch.setattr(fastexcel, "read_excel", panic)
    with pytest.raises(AnnotationError, match=r"workbook: index out of bounds\. Save it again"):
        cells_of(workbook(header()))


def rows_from(first, *rows):
    """Rows of text cells, the first of them with this number."""
    return [
        (number, "".join(text(f"{letter}{number}", cell) for letter, cell in zip("ABC", row) if cell))
        for number, row in enumerate(rows, start=first)
    ]


def test_a_title_and_a_second_sheet(tmp_path):
    two = PARTS["xl/workbook.xml"].replace("</sheets>", '<sheet name="Notes" sheetId="2" r:id="d"/></sheets>')
    link = f'<Relationship Id="d" Type="{OFFICE}/worksheet" Target="worksheets/sheet2.xml"/></Relationships>'
    links = PARTS["xl/_rels/workbook.xml.rels"].replace("</Relationships>", link)
    sheet = f'<worksheet xmlns="{MAIN}"><sheetData/></worksheet>'
    parts = {"xl/workbook.xml": two, "xl/_rels/workbook.xml.rels": links, "xl/worksheets/sheet2.xml": sheet}
    below = rows_from(3, ("item", "worker", "label"), ("a", "w", "x"), ("a", "v", "x"))
    path = tmp_path / "x.xlsx"
    path.write_bytes(workbook(*rows_from(1, ("Votes of May",)), *below, parts=parts))
    with pytest.warns(CrowdWarning):
        reading = read_export(path)
    assert reading.ledger.kept == 2 and set(reading.notes) == {"header_line", "other_sheets"}
    assert reading.notes["other_sheets"] == "Only the first sheet was read; not read: Notes. Save them as CSV."
    path.write_bytes(workbook(*rows_from(1, ("Votes of May",)), *below, *rows_from(6, ("", "w", "x"))))
    with pytest.raises(AnnotationError, match=r"row 6 of the sheet: the item \(item\) is blank"):
        read_export(path)


def test_formulas_without_results(tmp_path):
    path = tmp_path / "x.xlsx"
    voted = rows_from(2, ("a", "w", "x"))
    formula = (3, text("A3", "a") + text("B3", "v") + '<c r="C3"><f>A1+1</f><v></v></c>')
    path.write_bytes(workbook(header(), *voted, formula))
    with pytest.warns(CrowdWarning, match="formulas_without_results: Some cells are formulas without a result"):
        assert read_export(path).ledger.excluded == {"no_label": 1}
    path.write_bytes(workbook(header(), *voted, (3, formula[1].replace("<v></v>", "<v>7</v>"))))
    assert read_export(path).ledger.kept == 2

"""Several files read as one."""

import zipfile

import pytest

from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.reading import read_export


@pytest.fixture
def files(tmp_path):
    def write(*texts, name="votes{}.csv"):
        paths = [tmp_path / name.format(number) for number in range(len(texts))]
        for path, text in zip(paths, texts):
            path.write_text(text)
        return paths

    return write


def test_numbered_items_are_not_mixed_up(files):
    """The first row of one matrix is not the first row of another."""
    with pytest.raises(AnnotationError, match="have only numbers and no ids"):
        read_export(files("0 1 -1\n", "1 1 -1\n", name="answers{}.txt"))


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
def test_vote_counts_add_up(files):
    """An item that stands in two files has the votes of both."""
    header = '{"id": "x", "a_count": %d, "b_count": %d, "count": %d}\n'
    reading = read_export(files(header % (2, 1, 3), header % (0, 2, 2), name="counts{}.jsonl"))
    assert reading.ledger.as_dict() == {"rows_read": 5, "kept": 5, "excluded": {}}


def test_a_row_is_named_in_its_own_file(files):
    """Not by a number that runs through all of them; a forgotten row is no blank line."""
    good = "task,worker,label,note\n1,a,x,\n2,a,x,\n"
    with pytest.raises(AnnotationError, match=r"votes1\.csv, line 2: the worker"):
        read_export(files(good, "task,worker,label,note\n1,,x,\n"))
    with pytest.raises(AnnotationError, match=r"votes1\.csv, line 3: the item"):
        read_export(files(good, "task,worker,label,note\n1,b,x,\n,,,forgot\n"))


MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELATED = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="a" Type="{RELATED}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook {MAIN} xmlns:r="{RELATED}"><sheets>'
    '<sheet name="S" sheetId="1" r:id="b"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="b" Type="{RELATED}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def test_a_row_is_named_as_in_the_sheet(tmp_path):
    """Blank rows count, also those above the header."""
    lines = {4: "item worker label", 5: "1 ann x", 7: "2 - x"}
    cells = "".join(
        f'<row r="{row}">'
        + "".join(
            f'<c r="{letter}{row}" t="inlineStr"><is><t>{word}</t></is></c>'
            for letter, word in zip("ABC", line.split())
            if word != "-"
        )
        + "</row>"
        for row, line in lines.items()
    )
    sheet = f"<worksheet {MAIN}><sheetData>{cells}</sheetData></worksheet>"
    with zipfile.ZipFile(tmp_path / "votes.xlsx", "w") as archive:
        for name, content in {**SHEET, "xl/worksheets/sheet1.xml": sheet}.items():
            archive.writestr(name, content)
    with pytest.raises(AnnotationError, match=r"votes\.xlsx, row 7 of the sheet: the worker"):
        read_export(tmp_path / "votes.xlsx")


def test_a_cell_of_a_batch_is_named_in_its_own_file(files):
    """Wide tables have several cells in a line, and blank lines none."""
    good = "item,ann,bob\n1,x,y\n\n\n2,y,y\n"
    with pytest.raises(AnnotationError, match=r"votes1\.csv, line 4: the item"):
        read_export(files(good, "item,ann,bob\n3,x,y\n\n,y,y\n"), format="wide")


def test_what_two_files_know(files):
    """Gold that two files give differently is not known; notes on several files say so."""
    header = "task,worker,label,gold,timestamp\n"
    with pytest.warns(CrowdWarning, match="Similar notes on 1 more file"):
        reading = read_export(files(header + "1,a,x,x,soon\n2,a,x,x,\n", header + "1,b,y,y,late\n1,c,y,y,later\n"))
    assert reading.gold == {"2": "x"}


def test_items_from_two_places_are_refused(files):
    """One column of items for all batches."""
    with pytest.raises(AnnotationError, match=r"Items are item in .*, but task in"):
        read_export(files("item,worker,label\n1,a,x\n", "task,worker,label\n1,a,x\n"))


def test_the_rows_of_other_questions_are_told(files):
    """A column that names the question: blank lines are read, the others are counted as another question's."""
    (path,) = files("item,question,worker,label\n1,q1,a,x\n\n1,q2,a,y\n2,q1,b,x\n")
    reading = read_export(path, question="q1")
    assert reading.ledger.as_dict() == {"rows_read": 3, "kept": 2, "excluded": {"blank": 1}}
    assert reading.questions == {"q1": 2, "q2": 1}
    assert read_export(path, question="q1=x").annotations.classes.tolist() == ["yes"]
    with pytest.raises(AnnotationError, match="several questions: q1, q2"):
        read_export(path)
    (path,) = files("item,question,worker,label\n1,q1,a,x\n1,,a,y\n2,q2,b,x\n")
    with pytest.raises(AnnotationError, match=r"line 3: the question \(question\) is blank"):
        read_export(path, question="q1")


def test_blank_lines_of_a_wide_table(files):
    """They do not make it another table, and are counted."""
    (path,) = files("item,ann,bob\n1,x,y\n\n2,x,x\n,,\n")
    reading = read_export(path)
    assert reading.format == "wide"
    assert reading.ledger.as_dict() == {"rows_read": 6, "kept": 4, "excluded": {"blank": 2}}


def test_a_column_called_time_may_hold_durations(files):
    """It does not decide which answer is the later one."""
    (path,) = files("task,worker,label,time\n1,a,x,30\n1,a,y,12\n")
    assert read_export(path).annotations.classes.tolist() == ["y"]

"""Tables as people make them in spreadsheets: titles, two separators, merged cells, formulas, several sheets."""

import pytest

from manyhands.cli.app import run
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io import read_export
from manyhands.io.text_tables import count_title_rows

VOTES = [(f"t{i}", w, "yes" if (i + len(w)) % 2 else "no") for i in range(4) for w in ("ann", "bobo")]


def csv(separator=",", header=("item", "worker", "label"), rows=VOTES):
    return "".join(separator.join(row) + "\n" for row in (header, *rows))


@pytest.fixture
def write(tmp_path):
    def written(text, name="x.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_text(text, encoding=encoding)
        return path

    return written


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Votes of May\n\n" + csv(), 3),
        ("Votes of May;;\ncreated in June;;\n" + csv(";"), 3),
        ("Votes of May\n" + csv("\t"), 2),
    ],
)
def test_a_title_above_the_header(write, text, line):
    with pytest.warns(CrowdWarning, match=rf"header_line: .* from line {line} \(item, worker, label\)"):
        reading = read_export(write(text))
    assert reading.ledger.kept == 8 and reading.columns == {"item": "item", "worker": "worker", "label": "label"}


def test_lines_below_a_title_are_counted_from_the_top(write):
    with pytest.raises(AnnotationError, match=r"x\.csv, line 12: the item \(item\) is blank"):
        read_export(write("Votes of May\n" + csv() + "\n,cy,yes\n"))


def test_ordinary_tables_have_no_title():
    assert count_title_rows([["item", "worker", "label"], ["1", "", ""]]) == 0
    assert count_title_rows([["item"], ["1"]]) == count_title_rows([]) == count_title_rows([["x"], ["a", "b"]]) == 0


@pytest.mark.parametrize(("one", "other"), [(",", ";"), (";", ","), (",", "\t")])
def test_two_separators_in_one_table(write, one, other):
    text = csv(one) + other.join(("t9", "ann", "yes")) + "\n"
    with pytest.raises(AnnotationError) as told:
        read_export(write(text))
    assert f"x.csv, line 10: cells are separated by {other!r}, but by {one!r} in the header; 1 such row(s)" in str(
        told.value
    )


def test_a_cell_may_have_other_separators(write):
    assert read_export(write(csv() + '"t9;x;y",ann,yes\n')).ledger.kept == 9
    assert read_export(write(csv() + '"t9;x",,\n')).ledger.excluded == {"no_label": 1}


def test_merged_cells(write):
    rows = [(item if at % 2 == 0 else "", worker, label) for at, (item, worker, label) in enumerate(VOTES)]
    with pytest.raises(
        AnnotationError, match=r"line 3: the item \(item\) is blank.* 4 such row.* unmerge them and fill"
    ):
        read_export(write(csv(rows=rows)))


@pytest.mark.parametrize(
    ("label", "code"),
    [("=IF(A1>2;1;0)", "class_like_formula"), ("=A1+3", "class_like_formula"), ("#N/A", "class_like_missing")],
)
def test_what_a_spreadsheet_leaves_in_a_cell(write, label, code):
    with pytest.warns(CrowdWarning, match=code):
        assert code in read_export(write(csv(rows=[*VOTES, ("t1", "cy", label)]))).notes


@pytest.mark.parametrize("label", ["=", "=)", "= equal", "#1"])
def test_labels_that_only_begin_like_one(write, label):
    assert not read_export(write(csv(rows=[*VOTES, ("t1", "cy", label)]))).notes


def test_a_decimal_comma(write):
    rows = [(item, worker, number) for (item, worker, _), number in zip(VOTES, ["2,0", "2.0", "1,5", "1,5"] * 2)]
    with pytest.warns(CrowdWarning, match=r"same number in another notation, .*: '2,0' and '2\.0'"):
        read_export(write(csv(";", rows=rows)))


def test_the_column_of_labels_is_suggested_by_its_content(write):
    rows = [(item, worker, f"text of {item}", label) for item, worker, label in VOTES]
    path = write(csv(header=("item", "worker", "Text", "Is it spam?"), rows=rows))
    with pytest.raises(AnnotationError, match=r"Perhaps `label=.Is it spam\?.`\?"):
        read_export(path)
    two = [(*row, row[-1]) for row in rows]
    with pytest.raises(AnnotationError) as told:
        read_export(write(csv(header=("item", "worker", "Text", "Spam", "Again"), rows=two)))
    assert "Perhaps" not in str(told.value), "either may be meant"


def test_long_names_in_notes_keep_their_quotes(write):
    names = ["somebody.with.a.long.name@corporation.example", "SOMEBODY.WITH.A.LONG.NAME@CORPORATION.EXAMPLE"]
    rows = [(item, names[at % 2], label) for at, (item, _, label) in enumerate(VOTES)]
    with pytest.warns(CrowdWarning):
        note = read_export(write(csv(rows=rows))).notes["look_alike_workers"]
    assert note.count("'") == 4


def test_a_note_on_several_questions_is_printed_once(write, capsys, tmp_path):
    rows = [(*vote[:2], q, vote[2]) for vote in VOTES for q in ("one", "two")]
    text = "Votes of May\n" + csv(header=("item", "worker", "question", "label"), rows=rows)
    assert run(["aggregate", str(write(text)), "--all-questions", "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.count("note: header_line") == 1


@pytest.mark.parametrize("separator", [",", ";", "|"])
def test_joined_files_repeat_the_header(write, separator):
    """Otherwise there would be an item called item, with the class label."""
    with pytest.warns(
        CrowdWarning, match=r"1 line repeats the header \(.*x\.csv, line 10\), and counts as a blank line"
    ):
        reading = read_export(write(csv(separator) + csv(separator, rows=[("t9", "ann", "yes")])))
    assert reading.ledger.as_dict() == {"rows_read": 10, "kept": 9, "excluded": {"blank": 1}}
    assert reading.annotations.classes.tolist() == ["no", "yes"]


def test_a_label_that_is_called_label_is_no_header(write):
    assert read_export(write(csv(rows=[*VOTES, ("item", "ann", "label")]))).ledger.kept == 9


def test_a_footer(write):
    with pytest.warns(CrowdWarning, match=r"footer: The last line has one cell only \('Exported by X in May'\)"):
        assert read_export(write(csv() + "Exported by X in May\n")).ledger.excluded == {"no_label": 1}
    assert not read_export(write(csv() + "t9\n")).notes, "an item without a label"


def test_bars_as_separators(write):
    assert read_export(write(csv("|"))).ledger.kept == read_export(write(csv("|"), "x.txt")).ledger.kept == 8


def test_an_extra_separator_at_the_end_of_lines(write):
    text = csv(";").replace("yes\n", "yes;\n").replace("no\n", "no;\n")
    with pytest.raises(
        AnnotationError, match="line 2: ends with an extra ';': 4 cells where the header names 3 columns"
    ):
        read_export(write(text))


def test_names_of_columns_with_invisible_characters(write):
    assert read_export(write(csv(header=("\u200bItem\u00a0", "worker ", "label")))).ledger.kept == 8


@pytest.mark.parametrize("page", ["<!DOCTYPE html><p>Sign in", "\n<html lang='en'>"])
def test_a_web_page_is_no_export(write, page):
    for name in ("x.csv", "x.json"):
        with pytest.raises(AnnotationError, match="is a web page, perhaps one to sign in"):
            read_export(write(page, name))


@pytest.mark.parametrize("label", ["02. Jan", "Jan 02", "1-Mrz", "3 Mai"])
def test_labels_that_became_dates(write, label):
    with pytest.warns(CrowdWarning, match="class_like_date"):
        read_export(write(csv(rows=[*VOTES, ("t1", "cy", label)])))


@pytest.mark.parametrize("label", ["March", "1-2", "sun 1", "january", "mar"])
def test_labels_that_are_no_dates(write, label):
    assert not read_export(write(csv(rows=[*VOTES, ("t1", "cy", label)]))).notes

"""Long tables: what is read, what is left out and counted, and what is refused in one sentence."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyhands.cli.app import run
from manyhands.cli.printing import printable
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.reading import read_export as read_table


@pytest.fixture
def table(tmp_path: Path):
    def write(text: str | bytes, name: str = "votes.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_text_stays_as_it_came(table):
    """Ids and classes that look like numbers, formulas or missing values survive byte for byte."""
    path = table('task,worker,label\n007,=1+1,NA\n"a,b",é,None\n"two\nlines", x ,1.0\n')
    with pytest.warns(CrowdWarning, match="'NA' and 'None' were kept as classes"):
        read_export = read_table(path).annotations
    assert read_export.item_ids.tolist() == ["007", "a,b", "two\nlines"]
    assert read_export.worker_ids.tolist() == [" x ", "=1+1", "é"]
    assert read_export.classes.tolist() == ["1.0", "NA", "None"]


def test_every_row_is_accounted_for(table):
    """rows read = kept + excluded by reason; of the repeated answers of a worker the last counts."""
    path = table("task,worker,label\n1,a,x\n1,a,y\n1,b,\n2,a,  \n3,b,x\n")
    reading = read_table(path)
    assert reading.ledger.as_dict() == {"rows_read": 5, "kept": 2, "excluded": {"no_label": 2, "duplicate": 1}}
    assert reading.annotations.item_ids.tolist() == ["1", "2", "3"]
    assert reading.annotations.classes[reading.annotations.label].tolist() == ["y", "x"]


def test_twenty_repeats_count_once(table):
    """A worker who votes twenty times on one item has one vote."""
    path = table("task,worker,label\n" + "1,spam,x\n" * 20 + "1,a,y\n1,b,y\n")
    assert read_table(path).ledger.excluded == {"duplicate": 19}


@pytest.mark.parametrize(
    ("text", "n_blank"),
    [
        ("task,worker,label\n1,a,x\n\n2,b,y\n", 1),
        ("task,worker,label\n\n\n1,a,x\n2,b,y\n\n", 3),
        ("task,worker,label\r\n1,a,x\r\n\r\n2,b,y\r\n\r\n", 2),
        ("task,worker,label\n1,a,x\n   \n2,b,y\n", 1),
        ('task,worker,label\n1,a,x\n,,\n"","",""\n ,\t, \n2,b,y', 3),
        ("task,worker,label,note\n1,a,x,n\n,,,\n2,b,y,\n", 1),
        ("\n\ntask,worker,label\n1,a,x\n2,b,y\n", 0),  # above the header: no rows
    ],
)
def test_blank_rows_are_left_out_and_counted(table, text, n_blank):
    """An empty line anywhere, in any of its forms, is no judgement and no reason to refuse the file."""
    reading = read_table(table(text))
    excluded = {"blank": n_blank} if n_blank else {}
    assert reading.ledger.as_dict() == {"rows_read": 2 + n_blank, "kept": 2, "excluded": excluded}
    assert reading.annotations.item_ids.tolist() == ["1", "2"]
    assert reading.annotations.worker_ids.tolist() == ["a", "b"]


def test_an_empty_line_inside_quotes_is_text(table):
    """A cell with line breaks stays whole."""
    reading = read_table(table('task,worker,label\n"1\n\n1",a,x\n\n2,b,y\n'))
    assert reading.annotations.item_ids.tolist() == ["1\n\n1", "2"] and reading.ledger.excluded == {"blank": 1}


def test_a_row_that_says_something_is_not_blank(table):
    """A note without item, worker and label is refused: somebody meant something by it."""
    with pytest.raises(AnnotationError, match="line 3: the item"):
        read_table(table("task,worker,label,note\n1,a,x,\n,,,hello\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task,worker,label\n\n1,a,x\n\n2,,y\n", "line 5: the worker .* 1 such row"),
        ("task,worker,label\n\n  \n1,a\n1,a,x,z\n", "line 5: 4 cells where the header names 3 columns"),
        ('\ntask,worker,label\n"1\n1",a,x\n"2\n2",a,x,z\n', "line 5: 4 cells"),
    ],
)
def test_blank_rows_do_not_move_the_numbers(table, text, words):
    """Rows and lines in sentences are those a person counts in the file."""
    with pytest.raises(AnnotationError, match=words):
        read_table(table(text))


@pytest.mark.parametrize(
    "header",
    [
        "task,worker,label",
        "Item,Annotator,Answer",
        "item_id,rater,response",
        "Item ID,worker-id, Label ",
        "TaskId,WorkerID,LABEL",
    ],
)
def test_common_column_names_are_found(table, header):
    """The usual names are found, whatever their case, spaces and hyphens."""
    assert read_table(table(f"{header}\n1,a,x\n")).annotations.n_annotations == 1


def test_columns_can_be_named(table):
    """Unusual names are given by the caller, even where a usual one exists too."""
    read_export = read_table(table("clip,who,said,label\n1,a,x,zzz\n"), item="clip", worker="who", label="said")
    assert read_export.annotations.classes.tolist() == ["x"]


def test_a_named_column_may_lack_its_spaces(table):
    """Who names a column need not know of the space behind it."""
    assert read_table(table("clip ,worker,label\n1,a,x\n"), item="Clip").columns["item"] == "clip "


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.tsv", "votes.txt", "VOTES.CSV"])
def test_the_header_shows_the_separator(table, separator, name):
    """What the ending promises is tried first; spreadsheets of some countries write .csv with semicolons."""
    rows = [("task", "worker", "label"), ("1", '"a,;\tb"', "x")]
    reading = read_table(table("\n".join(map(separator.join, rows)), name))
    assert reading.annotations.worker_ids.tolist() == ["a,;\tb"]


def test_semicolons_within_a_comma_table_are_text(table):
    """A separator is looked for in the header alone, and only where the usual one is not there."""
    reading = read_table(table("task,worker,label;yes\n1;2,a,x;y\n"), label="label;yes")
    assert reading.annotations.classes.tolist() == ["x;y"]


def test_columns_of_one_name(table):
    """A name that stands twice is no trouble, unless it is the one that is needed."""
    assert read_table(table("task,worker,label,note,note\n1,a,x,y,z\n")).annotations.classes.tolist() == ["x"]
    for more in ("label\n1,a,x,y\n", "label,label_duplicated_0\n1,a,x,y,z\n", "Label\n1,a,x,y\n"):
        with pytest.raises(AnnotationError, match=r"columns .*called '?(L|l)abel") as error:
            read_table(table("task,worker,label," + more))
        assert "\n" not in str(error.value)
    with pytest.raises(AnnotationError, match=r"2 columns for the label, called 'label'\. Rename all but one"):
        read_table(table("task,worker,label,label\n1,a,x,y\n"), label="label")
    assert read_table(table("task,worker,label,Label\n1,a,x,y\n"), label="Label").annotations.classes.tolist() == ["y"]


@pytest.mark.parametrize("header", [",".join(f"c{i}" for i in range(20_000)), "x" * 200_000 + ",y"])
@pytest.mark.slow
def test_a_huge_header_gets_a_short_sentence(table, header):
    """The columns that were found are named, but not all of twenty thousand, and not all of a name."""
    with pytest.raises(
        AnnotationError, match=r"for the item .*It has: (c0, c1, .* and 19990 more|x+\.\.\., y)\."
    ) as error:
        read_table(table(f"{header}\n1,2\n"))
    assert len(str(error.value)) < 500


@pytest.mark.slow
def test_a_huge_table_is_read(table):
    """Twenty thousand columns, of which three matter; ids of ten thousand letters that differ at the end."""
    header = "task,worker,label," + ",".join(f"c{i}" for i in range(20_000))
    assert read_table(table(f"{header}\n1,a,x\n\n")).ledger.excluded == {"blank": 1}
    ids = ["x" * 10_000, "x" * 10_000 + "!", "y ", "y"]
    reading = read_table(table("task,worker,label\n" + "".join(f"{i},w,k\n" for i in ids)))
    assert reading.annotations.item_ids.tolist() == ids


@pytest.mark.parametrize("text", ["task,worker,label", "task,worker,label\n", "task,worker,label\n\n\n"])
def test_a_header_without_rows_is_an_empty_table(table, text):
    """Nothing was read, and nothing is made up."""
    assert read_table(table(text)).annotations.n_annotations == 0


def test_ids_that_look_alike_stay_apart_and_are_named(table):
    """Two spellings of one letter are two ids to us and one to the eye."""
    rows = ["caf\u00e9,\u212a,x", "cafe\u0301,K,x", "plain,\u00fc,x"]
    with pytest.warns(CrowdWarning) as caught:
        reading = read_table(table("task,worker,label\n" + "\n".join(rows)))
    assert len(caught) == 2 and list(reading.notes) == ["look_alike_workers", "look_alike_ids"]
    assert r"'cafe\u0301' and 'caf\xe9'" in reading.notes["look_alike_ids"]
    assert r"'K' and '\u212a'" in reading.notes["look_alike_workers"]
    assert reading.annotations.n_items == 3 and reading.annotations.n_workers == 3


def test_at_most_three_look_alikes_are_named(table):
    """Many pairs make one short sentence that says how many there are."""
    rows = [f"{n}{letter},w,x" for n in range(9) for letter in ("\u00e9", "e\u0301")]
    with pytest.warns(CrowdWarning, match="9 pair") as caught:
        read_table(table("task,worker,label\n" + "\n".join(rows)))
    assert str(caught[0].message).count(" and '") == 3


@pytest.mark.parametrize("name", ["votes (1) [2].csv", "votes*.csv", "v?tes.csv"])
def test_a_file_name_is_no_pattern(table, name):
    """What a browser adds to a name, and what a shell would expand, is the name of one file."""
    table("task,worker,label\n2,a,z\n", "votes 2.csv")
    table("task,worker,label\n2,a,z\n", "votes.csv")
    assert read_table(table("task,worker,label\n1,a,x\n", name)).annotations.classes.tolist() == ["x"]


@pytest.mark.parametrize("column", ["*", "^.*$", 'say ""hi""'])
def test_a_column_name_is_no_pattern(table, column):
    """A column is found by its name, whatever the name would mean elsewhere."""
    reading = read_table(table(f'"{column}",task,worker\nx,1,a\n'), label=column.replace('""', '"'))
    assert reading.annotations.classes.tolist() == ["x"]


def test_tsv_and_byte_order_mark(table):
    """A TSV file with a byte order mark reads like any other."""
    assert read_table(table(b"\xef\xbb\xbftask\tworker\tlabel\n1\ta\tx\n", "votes.tsv")).columns["item"] == "task"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a,b,c\n1,2,3\n", "for the item and the worker and the label are not in"),
        ("task,worker,label\n1,a,x\n2,,y\n", "line 3: the worker"),
        ("task,worker,label\n,a,x\n", "line 2: the item"),
        ("task,worker,label\n1,a,x,extra\n", "line 2: 4 cells"),
        ('task,worker,label\n1,"a,x\n', "Check the quotes"),
        ('task,worker,label\n1,"a,\nb",x\n2,a,6" nail\n3,a,x\n', "line 4: a double quote within a cell"),
        ('task,worker,label\n1,a,6"\n2,a,5"\n', "line 2: a double quote within a cell"),
        (b"task,worker,label\n1,a,caf\xe9\n", "line 2: byte 25 is not UTF-8 text .*reads '1,a,café'"),
        (b"task,worker,label\n" + b"1,a,x\n" * 10_000 + b"1,a,caf\xe9\n", "line 10002: byte 60025 is not UTF-8 text"),
        (b"t\xe4sk,worker,label\n1,a,x\n", "not UTF-8"),
        (b"\xef\xbb\xbf", "is empty"),
        ("\n\n\n", "is empty"),
        (b"\0" * 100, "line 1: a NUL byte"),
        ("task worker label\n1 a x\n", "It has: task worker label."),
    ],
)
def test_bad_files_are_refused_in_one_sentence(table, text, words):
    """What is wrong, where, and what to do."""
    path = table(text)
    with pytest.raises(AnnotationError, match=words) as error:
        read_table(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["missing.csv", "votes.exe", "."])
def test_what_is_no_table_is_refused(tmp_path, name):
    """A path that is missing, a folder, or of another kind."""
    (tmp_path / "votes.exe").write_bytes(b"MZ")
    with pytest.raises(AnnotationError, match=r"\.csv, \.tsv|Give the path of an export"):
        read_table(tmp_path / name)


PIECES = [
    ",",
    ";",
    "\t",
    '"',
    "\n",
    "\r\n",
    "\r",
    " ",
    "\0",
    "\u00e9",
    "e\u0301",
    "\ufeff",
    "=",
    "1",
    "a",
    "x",
    "1,a,x\n",
]


@pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
@given(
    header=st.sampled_from(["", "task,worker,label\n", "\ntask;worker;label\r\n", "task\tworker\tlabel,task\n"]),
    files=st.lists(st.sampled_from(PIECES), max_size=30),
    ending=st.sampled_from([".csv", ".tsv", ".txt"]),
)
def test_any_text_is_read_or_refused_in_one_sentence(tmp_path_factory, header, files, ending):
    """Whatever stands in a file, every row is accounted for, or an error of ours says why not."""
    path = tmp_path_factory.mktemp("any") / f"votes{ending}"
    path.write_bytes((header + "".join(files)).encode())
    try:
        reading = read_table(path)
    except AnnotationError as error:
        assert len(printable(str(error))) < 500
    else:
        assert reading.ledger.kept == reading.annotations.n_annotations


def test_a_folder_of_results_is_refused_in_one_sentence(tmp_path):
    """What `aggregate` wrote is no export: the sentence says so, instead of naming a column that labels.csv lacks."""
    (tmp_path / "in.csv").write_text("item,worker,label\na,u,x\na,v,x\nb,u,y\nb,v,y\n", encoding="utf-8")
    assert run(["aggregate", str(tmp_path / "in.csv"), "-o", str(tmp_path / "out"), "-q"]) == 0
    with pytest.raises(AnnotationError, match="out has the results of manyhands aggregate, not the labels of workers"):
        read_table(tmp_path / "out")

"""Tables in TOML: what they say is what one gets, and every mistake is one sentence that names its place."""

import pickle

import pytest

from manyhands.cli.app import run
from manyhands.exceptions import ParameterError
from manyhands.reproduce import load_table
from manyhands.reproduce.cells import check_table
from manyhands.reproduce.parsing import parse_table
from manyhands.reproduce.tables import METRICS, SHIFTED, DataSet, Published, Row, Table

SMALL = """
title = "A small table"
paper = "Nobody, Nothing, 2020"
number = "Table 9"
seeds = 3
metrics = ["accuracy", "macro_f1"]
points = true
deviations = ["Everything differs."]

[[datasets]]
name = "scenes"
load = "labelme"
arguments = { features = "efficientnet" }
features = "standardised"
remove = 0.25
keep_one = false

[[datasets]]
name = "blobs"
make = "make_blobs"
arguments = { n_items = 60, accuracy = 0.9 }
items = 40
drawn = true
quick = { items = 20 }

[[rows]]
name = "DL-MV"
method = "two-stage"
parameters = { aggregator = "majority-vote" }
choose = [{}, { learning_rate = 0.003 }]
published = { scenes = 77.2, blobs = [62.5, 1.1] }
published_also = { macro_f1 = { blobs = 60 } }

[[rows]]
name = "Triplet"
method = "triplet"
then = "logistic-regression"

[[rows]]
name = "Ours"
why = "comes with its own system"
published = { scenes = 80 }
"""


def refusal(text):
    """The sentence with which a table is refused: one line that begins with where and ends with a stop."""
    with pytest.raises(ParameterError) as caught:
        parse_table(text, "small/table-9")
    message = str(caught.value)
    assert "small/table-9" in message and message.endswith(".") and "\n" not in message
    return message


def test_a_table_holds_what_its_text_says():
    """Keys become fields, and what is left out has its default."""
    table = parse_table(SMALL, "small/table-9")
    assert (table.name, table.number, table.points, table.validation_truth) == ("small/table-9", "Table 9", True, False)
    assert table.metrics == ("accuracy", "macro_f1") and table.deviations == ("Everything differs.",)
    assert list(table.seed_list) == [1000, 1001, 1002] and table.figure is None
    assert table.datasets == (
        DataSet(
            "scenes",
            "labelme",
            None,
            {"features": "efficientnet"},
            (),
            "standardised",
            None,
            None,
            0.25,
            False,
            80,
        ),
        DataSet("blobs", None, "make_blobs", {"n_items": 60, "accuracy": 0.9}, items=40, quick_items=20, drawn=True),
    )
    assert table.rows[0] == Row(
        "DL-MV",
        "two-stage",
        "",
        {"aggregator": "majority-vote"},
        ({}, {"learning_rate": 0.003}),
        None,
        {"scenes": Published(77.2), "blobs": Published(62.5, 1.1)},
        {"macro_f1": {"blobs": Published(60.0)}},
    )
    assert [row.name for row in table.measured] == ["DL-MV", "Triplet"]
    assert table.row("Ours").why == "comes with its own system" and table.row("Triplet").then == "logistic-regression"
    check_table(table)


MISTAKES = {
    "an unknown key of the table": ("seeds = 3", "seed = 3", "no key 'seed'; the nearest is 'seeds'"),
    "an unknown key of a data set": ("remove = 0.25", "removed = 0.25", "data set 'scenes': there is no key 'removed'"),
    "an unknown key of a row": ("then =", "than =", "row 'Triplet'"),
    "an unknown key of quick": ("{ items = 20 }", "{ item = 20 }", "'blobs', quick: there is no key 'item'"),
    "an unknown method": (
        '"two-stage"',
        '"two-stag"',
        "row 'DL-MV': there is no method 'two-stag'; the nearest is 'two-",
    ),
    "an unknown set": (
        '"labelme"',
        '"labelmee"',
        "there is no data set 'labelmee' for MANYHANDS_DATA; the nearest is 'labelme'",
    ),
    "an unknown choice of features": ('"efficientnet"', '"vgg61"', "no choice of features of labelme called 'vgg61'"),
    "an unknown argument of load": ("{ features =", "{ feature =", "no argument of load called 'feature'"),
    "an unknown maker": ('"make_blobs"', '"make_blob"', "no function to make a crowd called 'make_blob'"),
    "an unknown argument of a maker": ("accuracy = 0.9 }", "acuracy = 0.9 }", "no argument of make_blobs called 'acur"),
    "an unknown metric": ('["accuracy", "macro_f1"]', '["acuracy"]', "no metric 'acuracy'; the nearest is 'accuracy'"),
    "an unknown set in published": (
        "scenes = 77.2",
        "scene = 77.2",
        "'scene', which is no data set of this table; the nearest is 'scenes'",
    ),
    "a further metric that is not measured": ("{ macro_f1 =", "{ ece =", "no metric in this table called 'ece'"),
    "further metrics without sets": (
        "{ macro_f1 = { blobs = 60 } }",
        "{ macro_f1 = 60 }",
        "macro_f1 must be keys with",
    ),
    "the first metric among the further ones": ("{ macro_f1 = {", "{ accuracy = {", "goes to published"),
    "a metric twice": ('["accuracy", "macro_f1"]', '["accuracy", "accuracy"]', "metrics has accuracy twice"),
    "a number for a choice of features": ('"efficientnet"', "3", "no choice of features of labelme called 3"),
    "no kind of metric": ('["accuracy", "macro_f1"]', '["round.a b"]', "there is no metric 'round.a b'"),
    "one that is not one": ("keep_one = false", "keep_one = 0", "keep_one must be "),
    "items drawn, but not how many": (
        "items = 40\n",
        "",
        "data set 'blobs': drawn is without items; give items, how many are drawn",
    ),
    "neither drawn nor not": ("drawn = true", "drawn = 1", "drawn must be "),
    "no seed": ("seeds = 3", "seeds = 0", "seeds must be a whole number at least 1, not 0"),
    "half a seed": ("seeds = 3", "seeds = 2.5", "seeds must be a whole number at least 1, not 2.5"),
    "a seed that is true": ("seeds = 3", "seeds = true", "seeds must be a whole number at least 1, not True"),
    "no title": ('title = "A small table"', "", "title is missing; it must be text on one line"),
    "a title of two lines": ('"A small table"', '"A\\nB"', "title must be text on one line"),
    "no data sets": (SMALL[SMALL.index("[[datasets]]") : SMALL.index("[[rows]]")], "", "datasets is missing"),
    "both load and make": ('load = "labelme"', 'load = "labelme"\nmake = "make_iris"', "give either load"),
    "neither load nor make": ('make = "make_blobs"', "", "data set 'blobs': give either load"),
    "what make_structural needs": (
        '"make_blobs"\narguments = { n_items = 60, accuracy = 0.9 }',
        '"make_structural"',
        "truth",
    ),
    "a seed given twice": ("{ n_items = 60,", "{ random_state = 1,", "random_state gets the seed of the run"),
    "a maker without random_state": (
        '"make_blobs"\narguments = { n_items = 60, accuracy = 0.9 }',
        '"make_difficulty_gaussians"',
        "no argument of make_difficulty_gaussians called 'random_state'; there are: data_seed, label_seed",
    ),
    "seeds for what is loaded": ("remove = 0.25", 'seeded = ["random_state"]', "there is no key 'seeded'"),
    "all annotations removed": ("remove = 0.25", "remove = 1.0", "remove must be a number at least 0 and at most 0.99"),
    "one fold": ("remove = 0.25", "folds = 1", "folds must be a whole number at least 2, not 1"),
    "unknown features": ('"standardised"', '"scaled"', "features must be one of 'raw', 'standardised'"),
    "neither method nor why": ('method = "two-stage"', "", "row 'DL-MV': give either method"),
    "both method and why": ("then =", 'why = "no reason"\nthen =', "row 'Triplet': give either method"),
    "parameters without a method": ("published = { scenes = 80 }", "parameters = { a = 1 }", "belong to a method"),
    "one setting to choose from": ("[{}, { learning_rate = 0.003 }]", "[{}]", "choose must be a list of 2 or more"),
    "an embedding that nothing follows": ('then = "logistic-regression"', "", "triplet predicts no classes"),
    "then behind a classifier": ('method = "two-stage"', 'method = "raykar"\nthen = "network"', "raykar is none"),
    "a share in per cent of a table of shares": ("points = true", "", "77.2 for 'scenes' is no share"),
    "a share above 100 per cent": ("scenes = 77.2", "scenes = 772", "772 for 'scenes' is no share"),
    "three figures": ("[62.5, 1.1]", "[62.5, 1.1, 3]", "must be a number, or a pair [value, standard deviation]"),
    "a negative deviation": ("[62.5, 1.1]", "[62.5, -1.1]", "must be a number, or a pair"),
    "text for a figure": ("scenes = 77.2", 'scenes = "77.2"', "what is published for 'scenes' must be a number"),
    "two sets of one name": ('name = "blobs"', 'name = "scenes"', "another data set has this name"),
    "two rows of one name": ('name = "Triplet"', 'name = "DL-MV"', "another row has this name"),
    "a figure over nothing": (
        "seeds = 3",
        'figure = { x = "n_items" }',
        "figure: there is no number that all data sets",
    ),
    "no TOML": ("seeds = 3", "seeds 3", "The table small/table-9 is not TOML: "),
}


DEEP = {
    "lists": "x = " + "[" * 100_000 + "]" * 100_000,
    "lists that are cut off": "x = " + "[" * 100_000,
    "tables": "x = " + "{a=" * 50_000 + "1" + "}" * 50_000,
    "keys": "x" + ".a" * 20_000 + " = 1",
    "a header": "[" + "a." * 20_000 + "a]\nx = 1",
    "headers of lists": "\n".join("[[" + ".".join("a" * level) + "]]" for level in range(1, 400)),
    "keys within a table": "x = { y" + ".a" * 20_000 + " = 1 }",
    "a few keys": "x" + ".a" * 30 + " = 1",
    "a little": "x = " + "[" * 25 + "]" * 25,
}


@pytest.mark.parametrize("what", DEEP)
def test_what_is_nested_too_deep_is_one_sentence(what, tmp_path, capsys):
    """Deeper than Python's stack, or deep enough for what looks at it later."""
    with pytest.raises(ParameterError, match=r"table own/deep is nested too deep\. Use at most") as found:
        parse_table(f"{SMALL}\n[more]\n{DEEP[what]}", "own/deep")
    assert "\n" not in str(found.value)
    (tmp_path / "deep.toml").write_text(DEEP[what])
    assert run(["reproduce", str(tmp_path / "deep.toml")]) == 2
    assert capsys.readouterr().err.count("nested too deep") == 1


def test_numbers_and_files_that_are_too_long():
    with pytest.raises(ParameterError, match="has a number with too many digits"):
        parse_table("seeds = " + "1" * 5000, "own/long")
    with pytest.raises(ParameterError, match="at most 1,048,576 are read"):
        parse_table("#" * 2_000_000, "own/long")
    with pytest.raises(ParameterError, match="seeds must be") as found:
        parse_table(SMALL.replace("seeds = 3", f"seeds = {list(range(10_000))}"), "own/long")
    assert len(str(found.value)) < 3000


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake):
    """Whatever is wrong, the sentence says which table, which key, and what would be right."""
    right, wrong, message = MISTAKES[mistake]
    assert SMALL.count(right) >= 1
    assert message in refusal(SMALL.replace(right, wrong, 1))


def test_odd_values_are_refused_or_read():
    """Whatever stands behind a key, there is a table or one sentence, and never another error."""
    refused = 0
    for line in [line for line in SMALL.splitlines() if " = " in line]:
        key = line.partition(" = ")[0]
        for odd in ("3", "-1", "nan", "true", '""', '"x"', "[]", "[[]]", "{}", "{ a = { b = [1] } }", "2020-01-01"):
            try:
                parse_table(SMALL.replace(line, f"{key} = {odd}", 1), "small/table-9")
            except ParameterError as error:
                refused += 1
                assert "\n" not in str(error)
    assert refused > 150


def test_unknown_parameters_are_found_before_a_run():
    """`check` asks the classes themselves, for parameters and for the settings to choose from."""
    for wrong in (
        SMALL.replace("{ aggregator =", "{ agregator =", 1),
        SMALL.replace("{ learning_rate =", "{ lerning_rate =", 1),
    ):
        table = parse_table(wrong, "small/table-9")
        with pytest.raises(
            ParameterError, match=r"small/table-9, row 'DL-MV': there is no parameter of two-stage called"
        ):
            check_table(table)
    seeded = parse_table(SMALL.replace("{ learning_rate = 0.003", "{ random_state = 3", 1), "small/table-9")
    with pytest.raises(ParameterError, match="random_state is the seed of the run; leave it out"):
        check_table(seeded)


def test_parts_are_found_by_name():
    """A name that is none is refused with the nearest one."""
    table = parse_table(SMALL, "small/table-9")
    assert table.dataset("blobs") is table.datasets[1] and table.row("Ours") is table.rows[2]
    with pytest.raises(ParameterError, match="no data set 'blob'; the nearest is 'blobs'"):
        table.dataset("blob")
    with pytest.raises(ParameterError, match="no row 'X'; there are: DL-MV, Triplet, Ours"):
        table.row("X")


def test_a_figure_may_run_over_what_all_sets_have():
    """Fields and shared arguments are numbers to draw over."""
    made = SMALL.replace(
        'load = "labelme"\narguments = { features = "efficientnet" }',
        'make = "make_blobs"\narguments = { n_items = 9 }',
    )
    for x in ("remove", "items", "n_items"):
        assert parse_table(f'figure = {{ x = "{x}" }}\n{made}', "t/t").figure == {"x": x}


def test_tables_can_be_sent_to_other_processes():
    """A table comes back from pickle as it was."""
    table = parse_table(SMALL, "small/table-9")
    assert pickle.loads(pickle.dumps(table)) == table


def test_a_table_that_there_is_not():
    """The nearest name is given, and a name never leads out of the folder of tables."""
    with pytest.raises(
        ParameterError, match=r"^There is no table 'crowding/table1'; the nearest is 'crowding/table-1'\.$"
    ):
        load_table("crowding/table1")
    with pytest.raises(ParameterError, match=r"There is no table '../tables/crowding/table-1'"):
        load_table("../tables/crowding/table-1")


def test_a_table_of_ones_own(tmp_path):
    """A path to a TOML file works as a name does; what is no text is refused."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "table-9.toml").write_text(SMALL, encoding="utf-8")
    assert load_table(folder / "table-9.toml") == load_table(str(folder / "table-9.toml"))
    assert load_table(folder / "table-9.toml").name == "own/table-9"  # a folder may be a person's name
    with pytest.raises(ParameterError, match="There is no file"):
        load_table(folder / "table-8.toml")
    (folder / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ParameterError, match=r"bytes.toml cannot be read"):
        load_table(folder / "bytes.toml")


def test_metrics_are_those_that_cells_give():
    """A metric that a table may name is one that a cell measures."""
    from manyhands.reproduce.cells import Cell, run_cell

    dataset = DataSet("blobs", make="make_blobs", arguments={"n_items": 40, "n_classes": 2})
    row = Row("MV+LR", "two-stage", parameters={"aggregator": "majority-vote", "classifier": "logistic-regression"})
    outcome = run_cell(Cell(Table("t/t", "", "", "", (dataset,), (row,)), dataset, row, 1000, quick=True))
    assert set(outcome.metrics) == set(METRICS + SHIFTED)

"""Pages from templates and stored rows: by hand, and those of the repository again."""

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from manyhands.exceptions import ParameterError
from manyhands.reproduce import table_names
from manyhands.reproduce.cells import cells_of
from manyhands.reproduce.plots import file_names
from manyhands.reproduce.records import Records
from manyhands.reproduce.tables import Published, Row
from measuring import BLOBS, CROWD, LINEAR, SKENE, UNKNOWN, VOTE, made_up, small_table

pytest.importorskip("jinja2")

SOURCES = Path(__file__).resolve().parents[2]
RESULTS = SOURCES / "docs" / "results"
if not (SOURCES / "benchmarks").is_dir():
    pytest.skip("the tests run apart from their source tree", allow_module_level=True)
sys.path.insert(0, str(SOURCES / "benchmarks"))  # scripts, no package
from page_templates import (  # noqa: E402
    REPRODUCED,
    TEMPLATES,
    Measured,
    render_documents,
    render_template,
    stored_results,
    table_list,
)

TABLE = small_table([VOTE, SKENE, UNKNOWN], seeds=3, deviations=("Everything is made up.",))
VALUES = {("crowd", "vote"): [0.84, 0.85, 0.86], ("crowd", "D&S"): [0.94, 0.96, 0.95]}
SWEPT = small_table(
    [Row("D&S", "dawid-skene", parameters={"max_iter": n}, at={"max_iter": n}) for n in (1, 20)] + [VOTE],
    seeds=3,
    figure={"x": "max_iter", "sweeps": True},
)


def load(table=TABLE, values=VALUES, **others):
    return lambda name: Measured(table, made_up(table, values, **others))


def filled(text, *loaded, **others):
    return render_template(text, load(*loaded, **others))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('value("t", "vote", "crowd")', "85.0 ± 1.0"),
        ('value("t", "vote", "crowd", metric="accuracy")', "85.0 ± 1.0"),
        ('mean("t", "D&S", "crowd")', "95.0"),
        ('sd("t", "D&S", "crowd")', "1.0"),
        ('published("t", "D&S", "crowd")', "95.0 ± 1.0"),
        ('published("t", "oracle", "crowd")', "99.0"),
        ('verdict("t", "D&S", "crowd")', "within"),
        ('verdict("t", "vote", "crowd")', "below"),
        # differences 10, 11 and 9: deviation 1, and 4.3027 / sqrt(3) of it
        ('difference("t", "D&S", "vote", "crowd")', "+10.0 points (95% interval +7.5 to +12.5)"),
        ('order("t", "D&S", "vote", "crowd")', "above"),
        ('order("t", "vote", "D&S", "crowd")', "below"),
        ('wins("t", "D&S", "vote", "crowd")', "3 of 3"),
        ('wins("t", "vote", "D&S", "crowd")', "0 of 3"),
        ('best("t", "crowd")', "D&S"),
        ('best("t", "crowd", rows=["vote"])', "vote"),
        ('command("t")', "manyhands reproduce own/small"),
        ('cells("t")', "6"),
        ('seeds("t")', "3"),
        ('measured("t")', "yes"),
        ('minutes("t")', "0.1"),
        ('commit("t")', "c0ffeec0ffee"),
        ('deviations("t")', "- Everything is made up."),
        ('unmeasured("t")', "- oracle: it sees the truth"),
        ('picture("t")', "![A small table: accuracy](reproduced/own-small.svg)"),
    ],
)
def test_what_a_template_may_say(call, text):
    """By hand, from three seeds each."""
    assert filled("a {{ " + call + " }}\n") == f"a {text}\n"


def test_a_section_waits_for_its_table():
    """One seed of six is not measured yet."""
    fewer = VALUES | {("crowd", "vote"): [0.84, 0.85]}
    section = "a{% if measured('t') %} section{% endif %}."
    assert filled(section, TABLE, fewer) == "a." and filled(section) == "a section."


def test_a_grid_of_methods():
    """Published values with their verdicts beside the measured ones, of some rows if asked."""
    lines = [
        "| method | accuracy | published |",
        "| --- | --- | --- |",
        "| vote | 85.0 ± 1.0 | 90.0 (below) |",
        "| D&S | 95.0 ± 1.0 | 95.0 ± 1.0 (within) |",
        "| oracle | – | 99.0 |",
    ]
    assert filled('{{ table("t") }}').splitlines() == lines
    assert filled('{{ table("t", rows=["D&S", "vote"]) }}').splitlines()[2:] == [lines[3], lines[2]]
    several = small_table([LINEAR], [BLOBS, CROWD], metrics=("accuracy", "ece"), seeds=1)
    both = filled(
        '{{ table("t", ["accuracy", "ece"]) }}', several, {("blobs", "linear"): [0.5], ("crowd", "linear"): ["no"]}
    )
    assert both.splitlines()[0] == "| method | blobs, accuracy | blobs, ECE | crowd, accuracy | crowd, ECE |"
    assert both.splitlines()[2] == "| linear | 50.0 | – | failed | failed |"


def test_a_grid_over_an_axis():
    """A line for each point; a value names its point."""
    values = {("crowd", "D&S"): [0.94, 0.96, 0.95], ("crowd", "vote"): [0.84, 0.85, 0.86]}
    text = filled('{{ table("t") }}', SWEPT, values)
    assert "| crowd | 20 | 95.0 ± 1.0 |" in text
    assert filled('{{ value("t", "D&S", "crowd", at=20) }}', SWEPT, values) == "95.0 ± 1.0"
    assert filled('{{ difference("t", "D&S", "vote", "crowd", at=1) }}', SWEPT, values).startswith("+10.0 points")
    for call in ('value("t", "D&S", "crowd")', 'value("t", "D&S", "crowd", at=3)'):
        with pytest.raises(ParameterError, match="does not measure D&S"):
            filled("{{ " + call + " }}", SWEPT, values)


def test_a_row_without_random_numbers_has_its_value_with_every_seed():
    """On data that are the same for all seeds."""
    fixed = replace(BLOBS, seeded=())
    network = Row("network", "two-stage")
    table = small_table([LINEAR, network], [fixed], seeds=3)
    assert [cell.row.name for cell in cells_of(table)] == ["linear", *["network"] * 3]
    values = {("blobs", "linear"): [0.8], ("blobs", "network"): [0.9, 0.9, 0.7]}
    assert filled('{{ wins("t", "network", "linear", "blobs") }}', table, values) == "2 of 3"
    assert filled('{{ difference("t", "network", "linear", "blobs") }}', table, values).startswith("+3.3 points (95%")
    assert filled('{{ order("t", "network", "linear", "blobs") }}', table, values) == "not distinguishable"


def test_differences_that_cannot_be_tested_say_why():
    """Two seeds, or a difference that is the same with each."""
    two = small_table(seeds=2)
    values = {("crowd", "vote"): [0.8, 0.9], ("crowd", "D&S"): [0.9, 0.9]}
    assert filled('{{ difference("t", "D&S", "vote", "crowd") }}', two, values) == "+5.0 points (2 seeds)"
    same = {("crowd", "vote"): [0.5, 0.75, 0.5], ("crowd", "D&S"): [0.75, 1.0, 0.75]}
    assert filled('{{ difference("t", "D&S", "vote", "crowd") }}', TABLE, same) == "+25.0 points (with every seed)"
    assert filled('{{ order("t", "D&S", "vote", "crowd") }}', TABLE, same) == "above"


def test_numbers_of_a_series_and_settings_that_were_chosen():
    """Mean and deviation over seeds; a count for each setting."""
    table = replace(TABLE, series=("roc", "rounds.n"))
    series = {"series": {"roc": [0.0, 0.5], "rounds.n": [[1.0, 2.0], [3.0, 4.0]]}, "chosen": {"C": 0.1}}
    assert filled('{{ point("t", "vote", "crowd", "roc", -1, digits=1) }}', table, **series) == "0.5 ± 0.0"
    assert filled('{{ point("t", "vote", "crowd", "rounds.n", 1, 0) }}', table, **series) == "3.000 ± 0.000"
    assert filled('{{ chosen("t", "vote", "crowd") }}', table, **series) == "`C = 0.1` (3 of 3)"
    assert filled('{{ chosen("t", "vote", "crowd") }}', table, chosen={}) == "as given (3 of 3)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '{{ value("t", "D&S", "crowd") }}',
            "own/small has 2 of 3 seeds of D&S on crowd; run: manyhands reproduce own/small",
        ),
        ('{{ table("t") }}', "own/small has no result of D&S on crowd, seed 1002 (1 of 6 cells are missing)"),
        ('{{ picture("t") }}', "1 of 6 cells are missing"),
        ('{{ minutes("t") }}', "1 of 6 cells are missing"),
        ('{{ value("t", "vote", "nowhere") }}', "there is no data set 'nowhere'"),
        ('{{ value("t", "GLAD", "crowd") }}', "there is no row 'GLAD'"),
        ('{{ value("t", "vote", "crowd", "ece") }}', "has no metric 'ece'"),
        ('{{ value("t", "oracle", "crowd") }}', "does not measure oracle on crowd"),
        ('{{ point("t", "vote", "crowd", "roc", 0) }}', "has no series roc of vote on crowd"),
        ('{{ chosen("t", "vote", "crowd") }}', "no choice of settings"),
        ('{{ published("t", "vote", "nowhere") }}', "no published accuracy"),
        ('{{ mood("t") }}', "cannot be read: 'mood' is undefined"),
        ("{{ value( }}", "cannot be read at line 1"),
        ("{{ value() }}", "calls a function in a wrong way"),
    ],
)
def test_a_page_has_no_holes(text, problem):
    """What was not measured, or does not exist, is refused in one sentence that names it."""
    values = VALUES | {("crowd", "D&S"): [0.94, 0.96]}
    with pytest.raises(ParameterError) as caught:
        filled(text, TABLE, values)
    assert problem in str(caught.value) and "\n" not in str(caught.value)


def test_a_figure_that_a_table_does_not_have():
    """The message lists those that it has."""
    with pytest.raises(ParameterError, match=r"no figure 'roc'; there are: own-small.svg"):
        filled('{{ picture("t", "roc") }}')


def test_a_verdict_needs_a_published_value():
    """Where there is none, the page must not name one."""
    table = small_table([replace(VOTE, published={"crowd": Published(90.0)}), replace(SKENE, published={})], seeds=3)
    with pytest.raises(ParameterError, match="no verdict on D&S on crowd: not published"):
        filled('{{ verdict("t", "D&S", "crowd") }}', table)


def test_all_tables_with_their_time():
    """Those without rows have none, and no page to link to."""
    listed = table_list(lambda name: Measured(replace(TABLE, name=name), Records()))
    assert len(listed.splitlines()) == len(table_names()) + 5 and "](" not in listed
    assert "| baselines/labelme | Table 9 | 3 | 0 of 6 | 0.0 |" in listed and "| leaderboard/learners |" in listed


@cache
def committed():
    return render_documents(RESULTS, draw=False)


def test_every_page_of_the_repository_is_rendered_again():
    """Byte by byte; every template gives a page. `make pages` writes them."""
    found = committed()
    assert [problem for problem in found.problems if ".j2:" in problem] == []
    assert {path.name.removesuffix(".j2") for path in (RESULTS / TEMPLATES).iterdir()} <= set(found.files)
    assert [name for name, content in found.files.items() if (RESULTS / name).read_bytes() != content] == []


def test_every_figure_of_the_repository_names_the_methods_of_its_table():
    """Text, not bytes: where letters end depends on the fonts."""
    load = stored_results(RESULTS / "rows")
    for measured in map(load, table_names()):
        for file, picture in file_names(measured.table).items() if measured.n_found else ():
            drawn = (RESULTS / REPRODUCED / file).read_bytes()
            text = "".join("".join(ElementTree.fromstring(drawn).itertext()).split())
            there = dict.fromkeys(e.row for e in measured.entries if e.metric == picture.metric and e.values)
            wanted = [row for row in there if picture.kind == "dots" and picture.rows in ((), (row,))]
            assert [row for row in wanted if "".join(row.split()) not in text] == []

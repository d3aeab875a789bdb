"""Groups of workers: from a column of the export, from a table, and what the panel makes of them."""

import json
import re
import warnings

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run as run_command
from manyhands.exceptions import AnnotationError
from manyhands.io import read_export
from manyhands.report import PANELS, make_run, read_page
from manyhands.report.panels import workers
from manyhands.simulate import make_crowd

LANDS = ("de", "fr", "it")


@pytest.fixture(scope="module")
def crowd():
    """A crowd whose first workers, those of one land, answer at random."""
    return make_crowd(150, 12, 3, 5, bad="random", bad_share=0.25, random_state=1)


@pytest.fixture(scope="module")
def lands(crowd):
    """The land of each worker; the random ones are from one land."""
    others = iter(("de", "fr") * 12)
    return ["it" if bad else next(others) for bad in crowd.is_bad]


def rows_of(crowd, lands):
    a, words = crowd.annotations, ("red", "green", "blue")
    return [
        {"item": f"i{i}", "worker": f"w{w}", "label": words[k], "land": lands[w], "note": f"n{at}"}
        for at, (i, w, k) in enumerate(zip(a.item, a.worker, a.label))
    ]


@pytest.fixture(scope="module")
def table(crowd, lands, tmp_path_factory):
    rows = rows_of(crowd, lands)
    path = tmp_path_factory.mktemp("crowd") / "ratings.csv"
    path.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")
    return path


def groups_in(page):
    return read_page(page)["panels"]["subgroups"]["values"]


def test_a_column_of_the_export_gives_the_groups(table, crowd, lands, tmp_path, capsys):
    """The panel compares the lands; their means are those of a plain loop; no id of a worker is in the page."""
    page = tmp_path / "report.html"
    assert run_command(["report", str(table), "--group-column", "Land", "-o", str(page), "-q"]) == 0
    found = groups_in(page)
    assert list(found["groups"]) == sorted(LANDS) and found["apart"] == ["it"]
    assert not re.search(r"\bw1\b", page.read_text(encoding="utf-8"))
    model = mh.PooledDawidSkene().fit(mh.read_annotations(table))
    a, shares = model.annotations_, {land: [] for land in LANDS}
    for w, worker in enumerate(a.worker_ids):
        mine = [at for at in range(a.n_annotations) if a.worker[at] == w]
        right = [model.posterior_[a.item[at], a.label[at]] for at in mine]
        shares[lands[int(worker[1:])]].append(sum(right) / len(right))
    for land in LANDS:
        assert found["groups"][land] == pytest.approx(sum(shares[land]) / len(shares[land]), abs=1e-6)
    groups = {f"w{w}": land for w, land in enumerate(lands)}
    panel = PANELS["subgroups"](make_run(model, groups=groups, reveal=True))
    for land, n_workers, n_labels, mean, _, gap, *_ in panel.table[0].rows:
        others = [share for other in LANDS if other != land for share in shares[other]]
        assert n_workers == len(shares[land]) and gap == pytest.approx(mean - sum(others) / len(others))
        assert n_labels == sum(lands[int(a.worker_ids[w][1:])] == land for w in a.worker)


def test_the_same_groups_from_a_table_and_in_python(table, crowd, lands, tmp_path):
    """A table of workers and `mh.write_report(..., groups=...)` give the same panel."""
    (tmp_path / "groups.csv").write_text("worker,land\n" + "".join(f"w{w},{lands[w]}\n" for w in range(12)))
    pages = [tmp_path / name for name in ("column.html", "table.html", "python.html")]
    options = (["--group-column", "land"], ["--groups", str(tmp_path / "groups.csv")])
    for page, more in zip(pages, options):
        assert run_command(["report", str(table), *more, "-o", str(page), "-q"]) == 0
    model = mh.PooledDawidSkene().fit(mh.read_annotations(table))
    mh.write_report(model, pages[2], groups={f"w{w}": land for w, land in enumerate(lands)})
    assert groups_in(pages[0]) == groups_in(pages[1]) == groups_in(pages[2])


def test_columns_of_other_formats(crowd, lands, tmp_path):
    """JSON lines, Parquet, data frames, MTurk, Appen and Toloka have columns; Label Studio has fields of its users."""
    pl = pytest.importorskip("polars")
    rows = rows_of(crowd, lands)
    expected = {f"w{w}": land for w, land in enumerate(lands)}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pl.DataFrame(rows).write_parquet(tmp_path / "rows.parquet")
    sources = [tmp_path / "rows.jsonl", tmp_path / "rows.parquet", pl.DataFrame(rows)]
    for source in sources:
        assert read_export(source, group_column="land").groups == expected
    mturk = [
        {"HITId": r["item"], "WorkerId": r["worker"], "AssignmentStatus": "Approved", "Input.text": r["item"]}
        | {"Answer.colour": r["label"], "Country": r["land"]}
        for r in rows
    ]
    pl.DataFrame(mturk).write_csv(tmp_path / "batch.csv")
    reading = read_export(tmp_path / "batch.csv", group_column="country")
    assert reading.format == "mturk" and reading.groups == expected
    appen = [
        {"_unit_id": r["item"], "_worker_id": r["worker"], "_country": r["land"], "_tainted": "false", "_trust": "1"}
        | {"colour": r["label"]}
        for r in rows
    ]
    pl.DataFrame(appen).write_csv(tmp_path / "full.csv")
    with pytest.warns(mh.exceptions.CrowdWarning):
        reading = read_export(tmp_path / "full.csv", group_column="_country")
    assert reading.format == "appen" and reading.groups == expected
    names = ("INPUT:text", "OUTPUT:colour", "ASSIGNMENT:worker_id", "ASSIGNMENT:status", "WORKER:country")
    toloka = [dict(zip(names, (r["item"], r["label"], r["worker"], "APPROVED", r["land"]))) for r in rows]
    pl.DataFrame(toloka).write_csv(tmp_path / "pool.tsv", separator="\t")
    reading = read_export(tmp_path / "pool.tsv", group_column="worker:country")
    assert reading.format == "toloka" and reading.groups == expected
    tasks = {}
    for row in rows:
        user = {"id": int(row["worker"][1:]), "email": f"{row['worker']}@example.org", "team": row["land"]}
        value = {"from_name": "colour", "type": "choices", "value": {"choices": [row["label"]]}}
        tasks.setdefault(row["item"], []).append({"id": len(tasks), "completed_by": user, "result": [value]})
    export = [
        {"id": at, "data": {"text": item}, "annotations": found} for at, (item, found) in enumerate(tasks.items())
    ]
    (tmp_path / "export.json").write_text(json.dumps(export))
    reading = read_export(tmp_path / "export.json", group_column="team")
    assert reading.format == "label-studio"
    assert reading.groups == {f"{worker}@example.org": land for worker, land in expected.items()}
    with pytest.raises(AnnotationError, match="have no field 'land'; they have: id, email, team"):
        read_export(tmp_path / "export.json", group_column="land")


def test_a_worker_with_several_values_is_said(tmp_path):
    """The most frequent value counts and a note says so; merged spellings of a worker are one; batches are added."""
    rows = [("a", "x", "de"), ("b", "x", "de"), ("c", "x", "fr"), ("a", "y", "de"), ("a", "z", "it"), ("b", "Z", "")]
    for name in ("one.csv", "two.csv"):
        text = "".join(
            f"{name[0]}{item},{worker},{'pq'[at % 2]},{land}\n" for at, (item, worker, land) in enumerate(rows)
        )
        (tmp_path / name).write_text("item,worker,label,land\n" + text)
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        without = read_export(tmp_path / "one.csv")
        reading = read_export(
            [tmp_path / "one.csv", tmp_path / "two.csv"], group_column="land", merge_spellings=True, rare_classes="keep"
        )
    assert reading.groups == {"x": "de", "y": "de", "Z": "it"}
    note = reading.notes["varying_groups"]
    assert any(str(one.message) == f"varying_groups: {note}" for one in issued)
    assert note.startswith("1 of 3 workers has several values in the column 'land', such as 'x': 'de' in 4 rows")
    assert without.groups == {}


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("nothing", "ratings.csv. It has: item, worker, label, land, note. Name the right one with --group-column"),
        ("note", "12 of 12 workers have several values in the column 'note'"),
        ("label", "holds items or labels, not groups"),
    ],
)
def test_bad_columns_get_a_sentence(table, tmp_path, capsys, column, sentence):
    page = tmp_path / "report.html"
    assert run_command(["report", str(table), "--group-column", column, "-o", str(page), "-q"]) == 3
    error = capsys.readouterr().err
    assert sentence in error and len(error.strip().splitlines()) == 1 and not page.exists()


def test_what_cannot_be_grouped_gets_a_sentence(table, tmp_path, capsys):
    """Two ways at once, a table whose workers are columns, an empty column."""
    (tmp_path / "wide.csv").write_text("item,ann,bob,eve\n1,x,y,x\n2,y,y,y\n3,x,x,y\n")
    (tmp_path / "empty.csv").write_text("item,worker,label,land\n1,a,x,\n1,b,y,\n2,a,y,\n")
    out = ["-o", str(tmp_path / "r.html"), "-q"]
    assert run_command(["report", str(table), "--group-column", "land", "--groups", "g.csv", *out]) == 2
    assert run_command(["report", str(tmp_path / "wide.csv"), "--group-column", "ann", *out]) == 3
    assert run_command(["report", str(tmp_path / "empty.csv"), "--group-column", "land", *out]) == 3
    both, wide, empty = capsys.readouterr().err.strip().splitlines()
    assert "give only one of them" in both and "(--groups" in wide and "is empty" in empty


def test_one_group_is_said(table, tmp_path, capsys):
    """Groups that cannot be compared are no panel, but a note on the page and in the terminal."""
    page = tmp_path / "report.html"
    assert run_command(["report", str(table), "--group-column", "worker", "-o", str(page)]) == 0
    assert "a comparison needs two groups of two workers or more" in capsys.readouterr().err
    text = page.read_text(encoding="utf-8")
    assert "a comparison needs two groups" in text and "subgroups" not in read_page(page)["panels"]
    assert "w1" not in re.findall(r"\w+", text)


def test_welch_test_and_interval_against_plain_loops():
    """The statistic and its degrees of freedom, recomputed; the p-value by integrating Student's density."""
    rng = np.random.default_rng(0)
    one, other = rng.normal(0.8, 0.1, 4), rng.normal(0.6, 0.2, 7)

    def variance(values):
        mean = sum(values) / len(values)
        return sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values)

    a, b = variance(one), variance(other)
    gap = sum(one) / 4 - sum(other) / 7
    degrees = (a + b) ** 2 / (a**2 / 3 + b**2 / 6)
    t = np.linspace(-abs(gap) / (a + b) ** 0.5, abs(gap) / (a + b) ** 0.5, 20_001)
    density = (1 + t**2 / degrees) ** (-(degrees + 1) / 2)
    wide = np.linspace(-2000, 2000, 4_000_001)
    total = np.trapezoid((1 + wide**2 / degrees) ** (-(degrees + 1) / 2), wide)
    found = workers._welch(one, other)
    assert found[0] == pytest.approx(gap) and found[1] == pytest.approx(1 - np.trapezoid(density, t) / total, abs=1e-4)
    assert workers._welch(np.ones(3), np.zeros(3)) == (1.0, 1.0)
    mean, half = workers._interval(one)
    assert mean == pytest.approx(sum(one) / 4) and half == pytest.approx(3.182446 * a**0.5, rel=1e-6)


def test_groups_by_chance_rarely_differ():
    """Workers who are all alike, in groups of two to four at random: with the correction, groups rarely differ."""
    alarms = 0
    for seed in range(20):
        votes = make_crowd(60, 12, 2, 5, random_state=seed).annotations
        groups = {worker: f"g{w % 4}" for w, worker in enumerate(votes.worker_ids.tolist())}
        run = make_run(mh.MajorityVote().fit(votes), groups=groups, reveal=True)
        alarms += bool(PANELS["subgroups"](run).values["apart"])
    assert alarms <= 3


def test_many_groups_are_cut_and_said():
    """Sixty groups: the picture shows the largest, the table all, and groups of one worker are counted."""
    votes = make_crowd(200, 130, 2, 8, random_state=0).annotations
    groups = {worker: f"g{w // 2}" for w, worker in enumerate(votes.worker_ids.tolist()[:121])}
    panel = PANELS["subgroups"](make_run(mh.MajorityVote().fit(votes), groups=groups, reveal=True))
    assert len(panel.svg[0].data["rows"]) == 24 and len(panel.table[0].rows) == 60
    assert "1 group of one worker is left out." in panel.notes and "24 largest of 60" in panel.notes[-1]

"""Reports that are read back: damaged ones are refused in a sentence, keys match workers, tables beside are read."""

import json
import re

import pytest

from manyhands.cli.app import run as run_command
from manyhands.exceptions import AnnotationError
from manyhands.report import read_page
from manyhands.simulate import make_crowd

_DATA = re.compile(r'(?s)(<script type="application/json"[^>]*>)(.*?)(</script>)')


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two exports of one crowd, the second with more labels, and the report of the first."""
    place = tmp_path_factory.mktemp("reports")
    a = make_crowd(60, 8, 3, 4, random_state=2).annotations
    rows = [f"item-{i},w{w},c{k}\n" for i, w, k in zip(a.item, a.worker, a.label)]
    for name, n in (("monday", len(rows) // 2), ("friday", len(rows))):
        (place / f"{name}.csv").write_text("item,worker,label\n" + "".join(rows[:n]))
    assert run_command(["report", str(place / "monday.csv"), "-o", str(place / "monday.html"), "-q"]) == 0
    return place


def _edited(text, change):
    data = json.loads(_DATA.search(text)[2])
    change(data)
    return _DATA.sub(lambda found: found[1] + json.dumps(data) + found[3], text)


DAMAGES = {
    "cut-off": (lambda text: text[: len(text) // 2], "its end is missing"),
    "cut-off-in-the-data": (lambda text: text[: _DATA.search(text).start(2) + 400], "is damaged"),
    "no-JSON": (lambda text: _DATA.sub(r'\1{"kind":\3', text), "end early, or were edited"),
    "deep-JSON": (lambda text: _DATA.sub(lambda m: m[1] + "[" * 99_999 + m[3], text), "end early, or were edited"),
    "other-JSON": (lambda text: _DATA.sub(r"\1[1, 2]\3", text), "not those of a run"),
    "later-schema": (lambda text: _edited(text, lambda d: d.update(schema=3)), "has schema 3"),
    "no-labels": (lambda text: _edited(text, lambda d: d.pop("labels")), "'labels' is missing"),
    "unequal-columns": (lambda text: _edited(text, lambda d: d["labels"]["label"].pop()), "'labels' is missing"),
    "unknown-class": (lambda text: _edited(text, lambda d: d["labels"]["label"].__setitem__(0, 9)), "'labels'"),
    "text-for-a-number": (
        lambda text: _edited(text, lambda d: d["labels"]["n_labels"].__setitem__(0, "x")),
        "'labels'",
    ),
    "no-accuracy": (lambda text: _edited(text, lambda d: d["workers"].pop("accuracy")), "'workers' is missing"),
    "panels-as-a-list": (lambda text: _edited(text, lambda d: d.update(panels=[1])), "'panels' is missing"),
    "a-file-of-labels-that-is-no-name": (lambda t: _edited(t, lambda d: d.update(labels_file=[1])), "'labels_file'"),
    "another-page": (lambda text: "<!DOCTYPE html><title>x</title><p>x", "is not a report of manyhands"),
    "nothing": (lambda text: "", "is not a report of manyhands"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_page_gets_one_sentence(name, folder, tmp_path, capsys):
    """Inspected or compared, in either place, it is refused with the reason; nothing is written."""
    damage, reason = DAMAGES[name]
    page, whole = tmp_path / "page.html", str(folder / "monday.html")
    page.write_text(damage((folder / "monday.html").read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(AnnotationError, match=re.escape(reason)):
        read_page(page)
    for command in (["inspect", str(page)], ["report", str(page), whole], ["report", whole, str(page)]):
        out = ["-o", str(tmp_path / "change.html")] if command[0] == "report" else []
        assert run_command([*command, *out]) == 3
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and reason in said
    assert not (tmp_path / "change.html").exists()


def test_labels_are_read_from_beside_the_page_only(folder, tmp_path, capsys):
    """A page cannot name a file elsewhere; without a file, or with another one, a sentence says so."""
    (tmp_path / "secret.csv").write_text("item,label,confidence,n_labels\na,c0,1,1\n")
    (tmp_path / "in").mkdir()
    page, text = tmp_path / "in" / "page.html", (folder / "monday.html").read_text(encoding="utf-8")
    command = ["report", str(page), str(folder / "monday.html"), "-o", str(tmp_path / "change.html")]
    for file, reason in (
        ("../secret.csv", "secret.csv is not beside it"),
        (None, "was written without a file of labels"),
        ("other.csv", "is not the table of labels"),
    ):
        (tmp_path / "in" / "other.csv").write_text("a,b\n1,2\n")
        page.write_text(_edited(text, lambda d, file=file: d.update(labels=None, labels_file=file)), encoding="utf-8")
        assert run_command(command) == 3
        assert reason in capsys.readouterr().err


def test_a_key_matches_the_workers_of_two_reports(folder, tmp_path, capsys):
    """With the key of the first report all workers are shared; with another key none is, and the page says why."""
    friday = str(folder / "friday.csv")
    (tmp_path / "other.key").write_text("x" * 64)
    for key, n_shared in ((folder / "manyhands.key", 8), (tmp_path / "other.key", 0)):
        page = tmp_path / f"{key.stem}.html"
        assert run_command(["report", friday, "--worker-names", str(key), "-o", str(page), "-q"]) == 0
        change = tmp_path / f"{key.stem}-change.html"
        assert run_command(["report", str(folder / "monday.html"), str(page), "-o", str(change)]) == 0
        said = capsys.readouterr().err
        assert read_page(change)["panels"]["workers"]["values"]["n_shared"] == n_shared
        assert ("same key file" in said) == (n_shared == 0)
    assert not list(tmp_path.glob("manyhands.key"))


def test_reports_without_a_common_item_say_so(folder, tmp_path, capsys):
    """Nothing is counted as unchanged where nothing can be compared."""
    (tmp_path / "other.csv").write_text("item,worker,label\n" + "".join(f"x{i},w{i % 3},{i % 2}\n" for i in range(9)))
    other = tmp_path / "other.html"
    assert run_command(["report", str(tmp_path / "other.csv"), "-o", str(other), "-q", "-m", "majority-vote"]) == 0
    assert run_command(["report", str(folder / "monday.html"), str(other), "-o", str(tmp_path / "c.html")]) == 0
    assert "no item in common" in capsys.readouterr().err


def test_tables_of_aggregate_are_read_with_or_without_quotes(tmp_path):
    """labels.csv of aggregate --report, protected for spreadsheets or not, gives the items that were read."""
    rows = "".join(f"'=item{i:05d}{'x' * 20},w{w},{i % 2}\n" for i in range(9000) for w in range(2))
    (tmp_path / "in.csv").write_text("item,worker,label\n" + rows)
    pages = []
    for name, more in (("plain", []), ("safe", ["--spreadsheet-safe"])):
        out = ["-m", "majority-vote", "--report", "-q", "-o", str(tmp_path / name)]
        assert run_command(["aggregate", str(tmp_path / "in.csv"), *out, *more]) == 0
        pages.append(str(tmp_path / name / "report.html"))
        assert read_page(pages[-1])["labels"] is None
    assert run_command(["report", *pages, "-o", str(tmp_path / "change.html"), "-q"]) == 0
    found = read_page(tmp_path / "change.html")["panels"]["labels"]["values"]
    assert found["n_shared"] == 9000 and found["n_flipped"] == 0

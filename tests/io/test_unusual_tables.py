"""Tables as people keep them: unusual names of columns, remarks, answers that are none, other notations of numbers."""

import json

import pytest

from manyhands.cli.app import run
from manyhands.exceptions import AnnotationError, UnknownColumnsError
from manyhands.io import read_export
from manyhands.io.row_filtering import may_mean_missing

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")
LABELS = ["good", "bad", "good", "bad", "good", "good", "bad", "bad"]


def wide(header, remarks):
    """Eight items of three workers, and a column of remarks."""
    rows = [
        f"t{at},{label},{label},{LABELS[at - 1]},{remark}" for at, (label, remark) in enumerate(zip(LABELS, remarks))
    ]
    return "\n".join([header, *rows]) + "\n"


@pytest.mark.parametrize(
    ("name", "remarks"),
    [
        ("Bemerkung", ["ok", "", "", "", "", "", "", "good"]),
        ("Sonstiges", ["", "", "siehe oben", "", "Satz fehlt", "", "", ""]),
        ("poznámka", ["pěkné", "divné", "pěkné", "divné", "jiné", "", "jiné", "divné"]),
        ("x", ["good", "Satz fehlt hier", "sehr unklar", "", "ganz anders", "", "", ""]),
    ],
)
def test_remarks_in_any_language_are_no_worker(name, remarks, tmp_path):
    (tmp_path / "a.csv").write_text(wide(f"Aufgabe,ann,bob,cy,{name}", remarks))
    reading = read_export(tmp_path / "a.csv")
    assert reading.annotations.worker_ids.tolist() == ["ann", "bob", "cy"]
    assert reading.annotations.classes.tolist() == ["bad", "good"]
    assert name in reading.notes["columns_left_out"] and "Aufgabe" in reading.notes["first_column_is_items"]


def test_a_worker_who_alone_uses_a_class_is_kept(tmp_path):
    """One or two classes of their own, beside shared ones or not."""
    (tmp_path / "a.csv").write_text(wide("item,ann,bob,cy,dee", ["odd", "good", "odd", "bad", "odd", "good", "", ""]))
    assert read_export(tmp_path / "a.csv").annotations.n_workers == 4


def test_a_table_of_anything_else_is_not_taken_for_a_wide_one(tmp_path):
    """Numbers that are no classes, and a first column that repeats."""
    (tmp_path / "a.csv").write_text("person,age,height\n" + "".join(f"p{i},{20 + i},{150 + i}\n" for i in range(30)))
    with pytest.raises(UnknownColumnsError):
        read_export(tmp_path / "a.csv")


def test_judgements_of_language_models(tmp_path):
    rows = [f"{model},p{i},{'safe' if i % 3 else 'unsafe'}" for i in range(6) for model in ("a", "b", "c")]
    rows[4] = "b,p1,ERROR: rate limit"
    rows[5] = "c,p1,I cannot decide"
    (tmp_path / "a.csv").write_text("model,prompt_id,verdict\n" + "\n".join(rows) + "\n")
    reading = read_export(tmp_path / "a.csv")
    assert reading.columns["item"] == "prompt_id" and reading.columns["worker"] == "model"
    assert '`missing=["ERROR: rate limit", "I cannot decide"]`' in reading.notes["class_like_missing"]
    (tmp_path / "b.csv").write_text("item,worker,label,model,prompt_id,verdict\nx,w,1,a,b,c\n")
    assert read_export(tmp_path / "b.csv").columns["label"] == "label"  # the usual names come first


@pytest.mark.parametrize(
    "text", ["weiß nicht", "Weiss ich nicht.", "k. A.", "Don’t know", "HTTP 429: rate limit", "no sé"]
)
def test_answers_that_are_none(text):
    assert may_mean_missing(text)


@pytest.mark.parametrize("text", ["no", "error", "unsure", "other", "not spam", "unknown", "nothing", "request error"])
def test_classes_that_are_some(text):
    assert not may_mean_missing(text)


def test_numbers_and_times_as_in_german(tmp_path):
    """The later answer counts by a date with the day first; seconds have decimal commas."""
    rows = ["item;worker;label;seconds;timestamp", "a;w;new;6,5;02.04.2025 09:02 Uhr", "a;w;old;5,4;12.03.2025 09:02"]
    (tmp_path / "a.csv").write_text("\n".join([*rows, "b;w;new;1.234,5;3.4.2025", "b;v;old;7;03.04.2025, 10:00:01"]))
    reading = read_export(tmp_path / "a.csv")
    assert not {"unparsed_times", "unparsed_working_times"} & reading.notes.keys()
    assert reading.annotations.classes[reading.annotations.label[0]] == "new"
    assert sorted(reading.working_time["w"].tolist()) == [6.5, 1234.5]


def test_columns_that_are_not_known_are_guessed_in_a_complete_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"x{i},{who},{'yes' if i % 2 else 'no'},free text {i}{who}" for i in range(6) for who in ("k1", "k2")]
    (tmp_path / "odd.csv").write_text("Fall,wer hat,Antwort?,mehr\n" + "\n".join(rows) + "\n")
    assert run(["inspect", "odd.csv"]) == 3
    told = capsys.readouterr().err
    assert "Try: manyhands inspect odd.csv --item Fall --worker 'wer hat' --label 'Antwort?'" in told
    assert run(["inspect", "odd.csv", "--item", "Fall", "--worker", "wer hat", "--label", "Antwort?"]) == 0


def test_the_one_column_of_dates_is_part_of_the_command(tmp_path, capsys, monkeypatch):
    """Otherwise the last answer in the file would count, and not the latest one."""
    monkeypatch.chdir(tmp_path)
    rows = [f"x{i},p{k},{'ja' if i % 2 else 'nein'},04.03.2025 09:{i:02d},{i},3,5" for i in range(6) for k in (1, 2)]
    (tmp_path / "odd.csv").write_text("Fall,wer hat,Antwort?,am,Nr,Dauer,Note\n" + "\n".join(rows) + "\n")
    assert run(["inspect", "odd.csv"]) == 3
    assert "--label 'Antwort?' --time am\n" in capsys.readouterr().err
    dated = [f"{row},05.03.2025" for row in rows]  # which of two columns is meant is not known
    (tmp_path / "odd.csv").write_text("Fall,wer hat,Antwort?,am,Nr,Dauer,Note,bis\n" + "\n".join(dated) + "\n")
    assert run(["inspect", "odd.csv"]) == 3
    assert "--label 'Antwort?'\n" in capsys.readouterr().err


def test_columns_with_names_that_cannot_be_typed_are_not_guessed(tmp_path):
    """A broken quotation mark makes half a file one name."""
    path, long = tmp_path / "odd.csv", "Fall " + "x" * 300
    lines = [f"{k // 4},ann{k % 4},{'ja' if k % 3 else 'nein'}" for k in range(48)]
    path.write_text("\n".join([f"{long},wer hat,Antwort?", *lines]), encoding="utf-8")
    with pytest.raises(UnknownColumnsError) as refused:
        read_export(path)
    assert long not in str(refused.value) and not refused.value.columns


def test_times_and_seconds_under_other_names(tmp_path):
    rows = ["item;worker;label;Dauer (s);abgegeben", "a;w;new;6,5;02.04.2025 09:02", "a;w;old;5,4;12.03.2025 09:02"]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    reading = read_export(tmp_path / "a.csv", time="abgegeben", seconds="Dauer (s)")
    assert reading.annotations.classes[reading.annotations.label[0]] == "new"
    assert reading.working_time["w"].tolist() == [6.5]
    assert reading.columns["time"] == "abgegeben" and reading.columns["working_time"] == "Dauer (s)"
    with pytest.raises(AnnotationError, match="has no numbers of seconds"):
        read_export(tmp_path / "a.csv", seconds="label")
    with pytest.raises(AnnotationError, match="Column 'when' is not in"):
        read_export(tmp_path / "a.csv", time="when")
    (tmp_path / "w.csv").write_text("item,ann,bob\n1,x,x\n2,y,y\n")
    with pytest.raises(AnnotationError, match=r"was read as wide, .* `time` is for tables"):
        read_export(tmp_path / "w.csv", time="ann")


def test_texts_of_items_in_another_file(tmp_path, monkeypatch, capsys):
    """For new tasks and training sets; a file of other items is refused, and one that lacks some is told."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("item,worker,label,lang\n1,a,x,de\n1,b,x,de\n2,a,y,en\n2,b,x,en\n")
    (tmp_path / "texts.csv").write_text("id,text\n1,red\n2,blue\n3,green\n")
    written = ["--write", "training", "--write", "label-studio-tasks"]
    assert run(["aggregate", "a.csv", "--items", "texts.csv", "-o", "out", *written]) == 0
    assert (tmp_path / "out" / "training.csv").read_text().splitlines()[1].startswith("1,de,red,x,")
    assert json.loads((tmp_path / "out" / "label_studio_tasks.json").read_text())[1]["data"]["text"] == "blue"
    capsys.readouterr()
    assert run(["aggregate", "a.csv", "--items", "texts.csv", "-o", "plain"]) == 0
    assert "items_unused: --items has no effect here" in capsys.readouterr().err
    (tmp_path / "texts.csv").write_text("id,text\n1,red\n")
    assert run(["aggregate", "a.csv", "--items", "texts.csv", "-o", "out", "--force", *written]) == 0
    assert "items_incomplete: texts.csv has nothing on 1 item, such as '2'." in capsys.readouterr().err
    (tmp_path / "texts.csv").write_text("id,text\nx,red\n")
    assert run(["aggregate", "a.csv", "--items", "texts.csv", "-o", "out", "--force", *written]) == 3
    assert "fields of other items: its first id is 'x', and that of a.csv is '1'." in capsys.readouterr().err

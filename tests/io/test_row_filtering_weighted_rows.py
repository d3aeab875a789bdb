"""Reading of weights: a column of weights, columns of probabilities, repeated answers that share a vote."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import manyhands as mh
from manyhands.cli.app import app
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io import read_export

PROBABILITIES = """task,worker,p_no,p_yes,note
a,gpt,0.3,0.7,x
b,gpt,0.9,0.1,x
a,claude,0,1,y
b,claude,0.6,0.4,y
"""
WEIGHTS = """task,worker,label,confidence
a,gpt,yes,0.7
b,gpt,no,0.9
a,ann,yes,1
b,ann,no,1
c,ann,,
"""
RUNS = """task,worker,label
a,gpt,yes
a,gpt,no
a,gpt,yes
a,ann,yes
b,ann,no
"""


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="votes.csv"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


def rows(annotations):
    weight = np.ones(annotations.n_annotations) if annotations.weight is None else annotations.weight
    values = annotations.item_ids[annotations.item], annotations.worker_ids[annotations.worker]
    columns = [*(v.tolist() for v in values), annotations.classes[annotations.label].tolist(), weight.round(6).tolist()]
    return sorted(zip(*columns, strict=True))


def test_a_column_of_weights(write):
    reading = read_export(write(WEIGHTS), weight="confidence")
    assert rows(reading.annotations) == [
        ("a", "ann", "yes", 1.0),
        ("a", "gpt", "yes", 0.7),
        ("b", "ann", "no", 1.0),
        ("b", "gpt", "no", 0.9),
    ]
    assert reading.columns["weight"] == "confidence"
    assert reading.annotations.item_ids.tolist() == ["a", "b", "c"]


def test_columns_of_probabilities(write):
    read = mh.read_annotations(write(PROBABILITIES), label_probs="p_no, p_yes")
    assert rows(read) == [
        ("a", "claude", "yes", 1.0),
        ("a", "gpt", "no", 0.3),
        ("a", "gpt", "yes", 0.7),
        ("b", "claude", "no", 0.6),
        ("b", "claude", "yes", 0.4),
        ("b", "gpt", "no", 0.9),
        ("b", "gpt", "yes", 0.1),
    ]
    frame = pl.DataFrame({"task": [1, 2], "worker": ["x", "x"], "no": [0.25, 1.0], "yes": [0.75, 0.0]})
    made = mh.read_annotations(frame, label_probs="no,yes")
    assert rows(made) == [(1, "x", "no", 0.25), (1, "x", "yes", 0.75), (2, "x", "no", 1.0)]


def test_repeated_answers_share_a_vote(write):
    read = mh.read_annotations(write(RUNS), duplicates="share")
    assert rows(read) == [
        ("a", "ann", "yes", 1.0),
        ("a", "gpt", "no", 0.333333),
        ("a", "gpt", "yes", 0.666667),
        ("b", "ann", "no", 1.0),
    ]


def test_several_files_keep_their_weights(write):
    first, second = write(WEIGHTS, "one.csv"), write(WEIGHTS.replace("\na,", "\nd,").replace("\nb,", "\ne,"), "two.csv")
    read = mh.read_annotations([first, second], weight="confidence")
    assert read.n_annotations == 8 and np.isclose(read.weight.sum(), 2 * 3.6)


@pytest.mark.parametrize(
    ("text", "options", "error", "words"),
    [
        (WEIGHTS.replace("0.9", "high"), {"weight": "confidence"}, AnnotationError, r"line 3: the weight .* is 'high'"),
        (WEIGHTS.replace("0.9", "-1"), {"weight": "confidence"}, AnnotationError, "line 3: the weight"),
        (WEIGHTS.replace("0.9", ""), {"weight": "confidence"}, AnnotationError, "is blank"),
        (WEIGHTS, {"weight": "trust"}, AnnotationError, "Column 'trust' is not in"),
        (PROBABILITIES, {"label_probs": "p_no"}, ParameterError, "two or more columns"),
        (PROBABILITIES, {"label_probs": "p_no,p_maybe"}, AnnotationError, "Column 'p_maybe' is not in"),
        (PROBABILITIES, {"label_probs": "p_no,p_yes", "label": "note"}, ParameterError, "leave out `label`"),
        (PROBABILITIES.replace("0.9", "x"), {"label_probs": "p_no,p_yes"}, AnnotationError, "line 3: the weight"),
        ("item,ann,bob\na,yes,no\nb,no,no\n", {"weight": "ann"}, AnnotationError, "no weights of labels"),
    ],
)
def test_bad_input_is_answered(write, text, options, error, words):
    more = {"worker": "ann,bob"} if text.startswith("item,ann") else {}
    with pytest.raises(error, match=words):
        mh.read_annotations(write(text), **options, **more)


def test_the_command_line_takes_them(write, tmp_path):
    for text, options in (
        (PROBABILITIES, ["--label-probs", "p_no,p_yes"]),
        (WEIGHTS, ["--weight", "confidence"]),
        (RUNS, ["--duplicates", "share"]),
    ):
        out = tmp_path / options[0].strip("-")
        done = CliRunner().invoke(
            app, ["aggregate", write(text), *options, "-o", str(out), "--method", "majority-vote"]
        )
        assert done.exit_code == 0, done.output
        labels = pl.read_csv(out / "labels.csv")
        assert labels.filter(pl.col("item") == "a")["label"].item() == "yes"
        assert labels.filter(pl.col("item") == "a")["n_labels"].item() == 2
        assert json.loads((out / "summary.json").read_text())
    refused = CliRunner().invoke(app, ["aggregate", write(RUNS), "--duplicates", "share", "--method", "glad"])
    assert refused.exit_code != 0 and "GLAD does not take labels with weights" in str(refused.exception)


def test_converted_tables_keep_weights(write, tmp_path):
    out = tmp_path / "long.csv"
    done = CliRunner().invoke(app, ["convert", write(WEIGHTS), "--weight", "confidence", "-o", str(out)])
    assert done.exit_code == 0, done.output
    again = mh.read_annotations(str(out), weight="weight")
    assert rows(again) == rows(mh.read_annotations(write(WEIGHTS), weight="confidence"))


def panel_rows():
    """Three people who are right but for one item in ten each, and two machines that err together on every fifth."""
    for i in range(40):
        for k, who in enumerate(("ann", "bob", "cat")):
            yield f"i{i},{who},{'no' if i % 10 == k else 'yes'},human"
        for who, more in (("gpt-1", 7), ("gpt-2", 9)):
            yield f"i{i},{who},{'no' if i % 5 == 4 or i == more else 'yes'},machine"


PANEL = "\n".join(["task,worker,label,kind", *panel_rows()]) + "\n"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_machines_are_down_weighted_on_the_command_line(write, tmp_path):
    copies = PANEL + "".join(
        line.replace("gpt-1", "gpt-1-copy") + "\n" for line in PANEL.splitlines() if ",gpt-1," in line
    )
    labels = []
    for at, text in enumerate((PANEL, copies)):
        out = tmp_path / f"out{at}"
        command = ["aggregate", write(text), "--down-weight", "-o", str(out), "--report", "--compare"]
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, (done.output, done.exception)
        assert "down_weighted" in json.loads((out / "summary.json").read_text())["notes"]
        assert sorted(pl.read_csv(out / "methods.csv")["method"]) == sorted(
            ["majority-vote", "one-coin", "dawid-skene", "pooled-dawid-skene"]
        )
        labels.append(pl.read_csv(out / "labels.csv").drop("n_labels"))
    assert labels[0].equals(labels[1])  # a copy of a machine changes nothing


def test_machines_must_be_known_to_be_down_weighted(write):
    refused = CliRunner().invoke(app, ["aggregate", write(RUNS), "--down-weight"])
    assert refused.exit_code != 0 and "no worker is known to be one" in str(refused.exception)
    refused = CliRunner().invoke(app, ["aggregate", write(RUNS), "--machines", "gpt"])
    assert refused.exit_code != 0 and "--down-weight" in str(refused.exception)

"""The alternative annotator test: beside plain loops over its definition, and what it says of clear cases."""

import csv
import io
import json
import math

import numpy as np
import pytest
from scipy import stats

import manyhands as mh
from manyhands.cli.app import run
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust.machines import benjamini_yekutieli


def panel(seed=0, n_items=90, n_people=4, n_classes=3, error=0.3, machine_error=0.2, missing=0.2):
    """Labels of people with gaps, and of a machine on most items."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    rows = []
    for who, rate in [(f"h{j}", error) for j in range(n_people)] + [("model", machine_error)]:
        wrong = (truth + rng.integers(1, n_classes, size=n_items)) % n_classes
        label = np.where(rng.random(n_items) < rate, wrong, truth)
        rows += [(i, who, int(label[i])) for i in range(n_items) if rng.random() > missing]
    return rows


def closeness(answer, others, numbers):
    if numbers is None:
        return sum(answer == other for other in others) / len(others)
    return -math.sqrt(sum((numbers[answer] - numbers[other]) ** 2 for other in others) / len(others))


def plain_test(rows, epsilon, numbers=None, level=0.05, min_items=30):
    """Loops over the definition, with SciPy's t-test."""
    label = {(i, w): k for i, w, k in rows}
    people = sorted({w for _, w, _ in rows} - {"model"})
    shares, p_values = [], []
    for j in people:
        as_good, leads = [], []
        for i in sorted({i for i, _, _ in rows}):
            others = [label[i, w] for w in people if w != j and (i, w) in label]
            if (i, j) not in label or (i, "model") not in label or not others:
                continue
            mine, theirs = closeness(label[i, "model"], others, numbers), closeness(label[i, j], others, numbers)
            near = math.isclose(mine, theirs, abs_tol=1e-12)
            as_good.append(mine > theirs or near)
            leads.append(int(theirs > mine or near) - int(mine > theirs or near))
        if len(leads) < min_items:
            continue
        shares.append(sum(as_good) / len(as_good))
        p_values.append(stats.ttest_1samp(leads, epsilon, alternative="less").pvalue)
    m, order = len(p_values), np.argsort(p_values)
    harmonic = sum(1 / r for r in range(1, m + 1))
    largest = max([r for r in range(1, m + 1) if p_values[order[r - 1]] <= r * level / (m * harmonic)], default=0)
    return shares, p_values, largest / m


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("level", "numbers"), [("nominal", None), ("interval", [0, 1, 2]), ("ordinal", [0, 1, 2])])
def test_it_follows_the_definition(seed, level, numbers):
    rows = panel(seed)
    (found,) = mh.trust.alt_test(mh.Annotations.from_triples(*zip(*rows)), ["model"], epsilon=0.15, level=level)
    shares, p_values, rate = plain_test(rows, 0.15, numbers)
    np.testing.assert_allclose([test.machine_share for test in found.annotators], shares, rtol=1e-12)
    np.testing.assert_allclose([test.p_value for test in found.annotators], p_values, rtol=1e-7, atol=1e-12)
    assert found.winning_rate == rate and found.passes == (rate >= 0.5)
    assert found.advantage_probability == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("seed", range(5))
def test_false_discoveries_by_benjamini_and_yekutieli(seed):
    p_values = np.random.default_rng(seed).random(12) ** 4
    adjusted = stats.false_discovery_control(p_values, method="by")
    assert benjamini_yekutieli(p_values, 0.05).tolist() == (adjusted <= 0.05).tolist()
    assert benjamini_yekutieli([]).tolist() == []


def votes(rows):
    return mh.Annotations.from_triples(*zip(*rows))


def test_a_good_model_passes_and_a_random_one_does_not():
    good = mh.trust.alt_test(votes(panel(1, 200, machine_error=0.05, missing=0)), ["model"])[0]
    bad = mh.trust.alt_test(votes(panel(1, 200, error=0.1, machine_error=0.66, missing=0)), ["model"])[0]
    assert good.passes and good.winning_rate == 1 and not bad.passes and bad.winning_rate == 0
    assert str(good).startswith(
        "model may replace the annotators: compared with each annotator in turn, it is as close"
    )
    assert "4 of 4 are; 2 are needed, and it may be 10 points worse" in str(good)
    assert str(bad).startswith("model should not replace the annotators")


def test_a_model_that_equals_an_annotator():
    """Where both always give the same label, the lead is 0 on every item: below epsilon, so the model wins."""
    rows = [(i, w, i % 2) for i in range(40) for w in ("a", "b", "model")]
    (found,) = mh.trust.alt_test(votes(rows), ["model"])
    assert [test.p_value for test in found.annotators] == [0, 0] and found.passes
    (never,) = mh.trust.alt_test(votes(rows), ["model"], epsilon=0)
    assert never.winning_rate == 0, "without a margin it must be better, not equal"


def test_annotators_with_few_items_are_left_out():
    rows = panel(2, missing=0) + [(i, "rare", 0) for i in range(5)]
    (found,) = mh.trust.alt_test(votes(rows), ["model"])
    assert found.left_out == ("rare",) and len(found.annotators) == 4
    (all_of_them,) = mh.trust.alt_test(votes(rows), ["model"], min_items=3)
    assert all_of_them.left_out == ()


def test_patterns_name_several_machines():
    rows = panel(0) + [(i, "gpt-2", k) for i, w, k in panel(5) if w == "model"]
    assert [found.machine for found in mh.trust.alt_test(votes(rows), ["gpt-*", "model"])] == ["gpt-2", "model"]


def test_a_scale_compares_by_distance():
    """A model one grade off is as good as a person who is three grades off."""
    rows = [(i, w, 1) for i in range(40) for w in ("a", "b")]
    rows += [(i, "c", 4) for i in range(40)] + [(i, "model", 2) for i in range(40)]
    crowd = votes(rows)
    (nominal,), (interval,) = (mh.trust.alt_test(crowd, ["model"], level=level) for level in ("nominal", "interval"))
    wins = [{test.worker: test.machine_share for test in found.annotators} for found in (nominal, interval)]
    assert (
        wins[0]["c"] == wins[1]["c"] == 1 and {test.worker: test.worker_share for test in interval.annotators}["c"] == 0
    )
    assert {test.worker: test.worker_share for test in nominal.annotators}["c"] == 1, "both differ from a and b"
    words = mh.Annotations.from_triples(*zip(*[(i, w, ["", "low", "mid", "", "top"][k]) for i, w, k in rows]))
    (ordinal,) = mh.trust.alt_test(words, ["model"], level="ordinal", values=["low", "mid", "top"])
    assert {test.worker: test.worker_share for test in ordinal.annotators}["c"] == 0


@pytest.mark.parametrize(
    ("machines", "options", "error", "sentence"),
    [
        (["modle"], {}, ParameterError, "No worker is called 'modle'. Did you mean 'model'?"),
        ([], {}, ParameterError, "at least one machine"),
        (["h0", "h1", "h2", "model"], {}, AnnotationError, "needs at least two of them"),
        (["model"], {"epsilon": -1}, ParameterError, "epsilon"),
        (["model"], {"level": "ratio"}, ParameterError, "level"),
        (["model"], {"min_items": 500}, AnnotationError, "No annotator shares 500 items with 'model'"),
    ],
)
def test_bad_input_gets_one_sentence(machines, options, error, sentence):
    with pytest.raises(error) as told:
        mh.trust.alt_test(votes(panel()), machines, **options)
    assert sentence in str(told.value)


@pytest.fixture
def table(tmp_path):
    """A table of people and a machine, with or without a column of kinds."""

    def write(kind=True, rows=None):
        path = tmp_path / "panel.csv"
        lines = ["item,worker,label" + (",kind" if kind else "")]
        words = {"model": "LLM"}
        lines += [f"i{i},{w},c{k}" + (f",{words.get(w, 'Human')}" if kind else "") for i, w, k in rows or panel()]
        path.write_text("\n".join(lines) + "\n")
        return str(path)

    return write


def test_the_command_line(table, tmp_path, capsys):
    assert run(["alt-test", table(), "-o", str(tmp_path / "out"), "--epsilon", "0.2"]) == 0
    told = capsys.readouterr().err
    assert "model may replace the annotators" in told or "model should not replace the annotators" in told
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "alt_test.csv").read_text())))
    assert [row["machine"] for row in rows] == ["model"] and rows[0]["epsilon"] == "0.200000"
    summary = json.loads((tmp_path / "out" / "alt_test.json").read_text())
    assert summary["kinds"] == {"human": 4, "machine": 1} and summary["machines"][0]["sentence"] in told
    assert len((tmp_path / "out" / "annotators.csv").read_text().splitlines()) == 5


def test_ordered_classes_on_the_command_line(table, capsys):
    assert run(["alt-test", table(), "-q", "--order", "c0,c1,c2"]) == 0
    ordered = capsys.readouterr().out
    assert run(["alt-test", table(), "-q"]) == 0
    assert ordered != capsys.readouterr().out


def test_machines_by_option_table_and_under_pseudonyms(table, tmp_path, capsys):
    path = table(kind=False)
    assert run(["alt-test", path]) == 3
    assert "does not say which workers are machines. Name them with --machines" in capsys.readouterr().err
    kinds = tmp_path / "kinds.csv"
    kinds.write_text("worker,kind,family\nmodel,machine,gpt\nh0,human,\n")
    figures = []
    for options in (
        ["--machines", "mod*"],
        ["--kinds", str(kinds)],
        ["--machines", "model", "--worker-names", "pseudonyms"],
    ):
        assert run(["alt-test", path, "-q", *options]) == 0
        figures.append(capsys.readouterr().out.splitlines()[1].split(",")[1:])
    assert figures[0] == figures[1] == figures[2]
    assert run(["alt-test", path, "--machines", "model", "--kinds", str(kinds)]) == 2
    kinds.write_text("worker,kind\nmodel,robot\n")
    assert run(["alt-test", path, "--kinds", str(kinds)]) == 3
    assert "kinds.csv, line 2: the kind is 'robot'; it must be human or machine." in capsys.readouterr().err
    kinds.write_text("worker,kind\nnobody,machine\n")
    assert run(["alt-test", path, "--kinds", str(kinds)]) == 3
    assert "names no worker of" in capsys.readouterr().err

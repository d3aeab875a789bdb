"""Effective votes: beside plain loops, on simulated panels whose correlation is known, and on the command line."""

import csv
import io
import itertools
import math

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust.machines import fit_reference


def panel(seed, share=0.0, n_items=500, n_classes=3, n_machines=5, error=0.25, n_people=4, person_error=0.15):
    """Machines whose errors have the correlation `share`, and independent people."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_items)
    common = rng.random(n_items) < error
    rows = []
    for j in range(n_machines):
        errs = np.where(rng.random(n_items) < math.sqrt(share), common, rng.random(n_items) < error)
        rows += labels(rng, truth, errs, n_classes, f"m{j}")
    for j in range(n_people):
        rows += labels(rng, truth, rng.random(n_items) < person_error, n_classes, f"h{j}")
    groups = {"machines": [f"m{j}" for j in range(n_machines)], "humans": [f"h{j}" for j in range(n_people)]}
    return rows, groups, dict(enumerate(truth.tolist()))


def labels(rng, truth, errs, n_classes, worker):
    wrong = (truth + rng.integers(1, n_classes, size=len(truth))) % n_classes
    return [(i, worker, int(k)) for i, k in enumerate(np.where(errs, wrong, truth))]


def votes(rows):
    return mh.Annotations.from_triples(*zip(*rows))


def plain_correlation(crowd, members, truth):
    """Loops over pairs of labels with known answers."""
    label = {(i, w): k for i, w, k in zip(crowd.item.tolist(), crowd.worker.tolist(), crowd.label.tolist())}
    codes = [crowd.worker_ids.tolist().index(worker) for worker in members]
    seen = {w: [] for w in codes}
    pairs = []
    for i, (u, v) in itertools.product(range(crowd.n_items), itertools.combinations(codes, 2)):
        if (i, u) in label and (i, v) in label:
            errs = [label[i, w] != truth[i] for w in (u, v)]
            pairs.append((u, v, *errs))
            seen[u].append(errs[0])
            seen[v].append(errs[1])
    p = {w: sum(e) / len(e) for w, e in seen.items() if e}
    above = sum((eu - p[u]) * (ev - p[v]) for u, v, eu, ev in pairs)
    return above / sum(math.sqrt(p[u] * (1 - p[u]) * p[v] * (1 - p[v])) for u, v, _, _ in pairs)


@pytest.mark.parametrize("seed", range(3))
def test_with_known_answers_it_is_the_mean_correlation_of_errors(seed):
    rows, groups, truth = panel(seed, 0.3, n_items=60)
    rows = [row for at, row in enumerate(rows) if (at * 7 + seed) % 11]  # with gaps
    crowd = votes(rows)
    machines, _ = mh.trust.effective_votes(crowd, groups, answers=truth, n_bootstrap=0)
    expected = plain_correlation(crowd, groups["machines"], [truth[item] for item in crowd.item_ids.tolist()])
    assert machines.correlation == pytest.approx(expected, rel=1e-12) and machines.reference == "known answers"
    size = np.bincount([i for i, w, _ in rows if w.startswith("m")], minlength=60)
    worth = np.mean([k / (1 + (k - 1) * max(expected, 0)) for k in size if k])
    assert machines.effective_votes == pytest.approx(worth, rel=1e-12)
    assert machines.votes == pytest.approx(size[size > 0].mean()) and math.isnan(machines.low)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_without_answers_the_noise_of_the_reference_is_taken_out(share, n_classes):
    """People who err in 15 % of their labels would make independent machines seem to err together."""
    found = [mh.trust.effective_votes(votes(rows), groups)[0] for rows, groups, _ in _panels(share, n_classes)]
    assert np.mean([group.correlation for group in found]) == pytest.approx(share, abs=0.04)
    assert sum(group.correlation_low <= share <= group.correlation_high for group in found) >= 4
    worth = 5 / (1 + 4 * share)
    assert np.mean([group.effective_votes for group in found]) == pytest.approx(worth, rel=0.12)


def _panels(share, n_classes):
    return [panel(seed, share, n_classes=n_classes) for seed in range(5)]


def test_people_are_compared_with_other_people():
    rows, groups, _ = panel(7, 0.8, n_people=6)
    _, people = mh.trust.effective_votes(votes(rows), groups)
    assert people.reference == "the same group" and people.correlation == pytest.approx(0, abs=0.05)
    assert people.effective_votes == pytest.approx(6, rel=0.25)


def test_a_judge_that_is_copied_has_one_vote():
    rows, groups, _ = panel(3, n_machines=1)
    copies = [(i, f"copy{c}", k) for i, w, k in rows if w == "m0" for c in range(9)]
    groups["machines"] += [f"copy{c}" for c in range(9)]
    machines, _ = mh.trust.effective_votes(votes(rows + copies), groups)
    assert machines.votes == 10 and machines.effective_votes == pytest.approx(1, abs=0.1)
    assert str(machines).startswith("machines: 10 votes per item are worth 1 independent ones (95% interval 1 to 1")


@pytest.mark.parametrize("n_copies", [1, 2])
def test_copies_among_independent_workers_count_as_one(n_copies):
    """What a copy takes from the crowd is their own vote: the figure is that of the crowd without them."""
    rng = np.random.default_rng(n_copies)
    rows, _, _ = panel(11, n_machines=0, n_people=10, person_error=0.25)
    copied = [(i, f"copy{c}", k) for i, w, k in rows if w == "h0" for c in range(n_copies) if rng.random() < 0.97]
    (alone,), (found,) = (mh.trust.effective_votes(votes(each), n_bootstrap=0) for each in (rows, rows + copied))
    assert (alone.n_copying, found.n_copying) == (0, 1 + n_copies)
    assert found.votes == pytest.approx(10 + 0.97 * n_copies, abs=0.1)
    assert found.effective_votes == pytest.approx(alone.effective_votes, rel=0.02)
    assert found.correlation == pytest.approx(alone.correlation, abs=0.01)
    people, *_ = mh.trust.effective_votes(votes(rows + copied), {"one": ["h0", "copy0"]}, n_bootstrap=0)
    assert people.n_copying == 2 and people.effective_votes == pytest.approx(1, abs=0.1)  # nobody else is in the group


def test_the_reference_leaves_out_the_pair():
    """Scores of the reference without two labels are those of a crowd without them."""
    rows, _, _ = panel(5, n_items=30)
    crowd = votes(rows)
    reference = fit_reference(crowd, np.ones(crowd.n_annotations, bool))
    a, b = np.array([0, 12]), np.array([3, 14])
    label, wrong = reference.of_pairs(crowd, a, b)
    for at in range(2):
        item = crowd.item[a[at]]
        scores = reference.scores[item].copy()
        for place in (a[at], b[at]):
            scores[crowd.label[place]] -= reference.weight[place]
        posterior = np.exp(scores) / np.exp(scores).sum()
        assert label[at] == posterior.argmax() and wrong[at] == pytest.approx(1 - posterior.max())


def test_two_workers_cannot_be_compared():
    found = mh.trust.effective_votes(votes([(i, w, i % 2) for i in range(9) for w in "ab"]))
    assert len(found) == 1 and found[0].group == "all workers" and math.isnan(found[0].correlation)
    assert "no two workers can be compared with a third" in str(found[0])


def test_order_and_names_do_not_matter():
    rows, groups, _ = panel(4, 0.2, n_items=80)
    one = mh.trust.effective_votes(votes(rows), groups)
    other = mh.trust.effective_votes(votes(rows[::-1]), groups)
    assert [group.correlation for group in one] == pytest.approx([group.correlation for group in other], rel=1e-9)


def test_answers_to_unknown_items_are_refused():
    with pytest.raises(AnnotationError, match=r"Items of answers are not known: 'x'\. Name items of the annotations\."):
        mh.trust.effective_votes(votes(panel(0, n_items=20)[0]), answers={"x": 1})


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        ({"machines": ["m0", "x"]}, "The group 'machines' names 'x', who is not a worker"),
        ({"one": ["m0"], "two": ["m0"]}, "The worker 'm0' is in two groups"),
    ],
)
def test_groups_that_cannot_be(groups, sentence):
    with pytest.raises(ParameterError, match=sentence):
        mh.trust.effective_votes(votes(panel(0, n_items=20)[0]), groups)


def test_the_command_line(tmp_path, capsys):
    rows, _, truth = panel(1, 0.5, n_items=120)
    path, kinds, gold = (tmp_path / name for name in ("x.csv", "kinds.csv", "gold.csv"))
    path.write_text("item,worker,label\n" + "".join(f"i{i},{w},c{k}\n" for i, w, k in rows))
    assert run(["agree", str(path), "--effective", "--machines", "m*", "-o", str(tmp_path / "out")]) == 0
    assert "machines: 5 votes per item are worth" in capsys.readouterr().err
    table = list(csv.DictReader(io.StringIO((tmp_path / "out" / "effective_votes.csv").read_text())))
    assert [row["group"] for row in table] == ["humans", "machines", "all workers"]
    kinds.write_text("worker,kind,family\n" + "".join(f"m{j},machine,{'ab'[j % 2]}\n" for j in range(5)))
    assert run(["agree", str(path), "--effective", "--kinds", str(kinds), "-o", str(tmp_path / "two")]) == 0
    table = list(csv.DictReader(io.StringIO((tmp_path / "two" / "effective_votes.csv").read_text())))
    assert [row["group"] for row in table] == ["humans", "a", "b", "all machines", "all workers"]
    gold.write_text("item,label\n" + "".join(f"i{i},c{k}\n" for i, k in truth.items()))
    assert run(["agree", str(path), "--effective", "--machines", "m*", "--gold", str(gold)]) == 0
    assert "errors against: known answers" in capsys.readouterr().err
    assert run(["agree", str(path), "--machines", "m*"]) == 2
    assert "--machines, --kinds and --gold are for --effective: add it." in capsys.readouterr().err


def test_all_workers_together_are_not_worth_more_than_the_groups_added_up():
    """Machines that err together decide nothing about themselves: with one reference, the figures fit each other."""
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    shared = np.where(rng.random(400) < 0.3, rng.integers(3, size=400), truth)  # what all machines say, mostly
    rows = [(i, f"m{w}", shared[i] if rng.random() < 0.7 else rng.integers(3)) for i in range(400) for w in range(6)]
    rows += [(i, f"h{w}", truth[i] if rng.random() < 0.8 else rng.integers(3)) for i in range(400) for w in range(4)]
    crowd = mh.Annotations.from_triples(*zip(*rows))
    groups = {"humans": [f"h{w}" for w in range(4)], "machines": [f"m{w}" for w in range(6)]}
    people, machines, together = mh.trust.effective_votes(crowd, groups, together=True, n_bootstrap=0)
    assert (together.group, together.votes, together.reference) == ("all workers", 10.0, "humans")
    assert together.effective_votes <= people.effective_votes + machines.effective_votes
    alone = mh.trust.effective_votes(crowd, n_bootstrap=0)[0]
    assert together.n_copying == 0 and together.effective_votes < alone.effective_votes

"""What an expert's answers buy, on real crowds: the tables and the picture of docs/trust.md.

    MANYHANDS_DATA=data python benchmarks/trust.py [--cache FOLDER] [--write] [--draws N]

Answers are drawn from the truth of each crowd; every figure is measured on the items that were not answered, and truth
enters nothing else. Posteriors of all methods are kept in the folder of --cache. --write replaces the tables between
the marks of docs/trust.md and the picture docs/trust.svg; otherwise the tables are printed.
"""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path

import numpy as np
from accuracy import REAL as CROWDS
from selecting import earlier, followed, replay
from shared_errors import PANELS
from trust_crowds import Fitted, load

import manyhands as mh
from manyhands.aggregation.tempering import CROWD_POWER
from manyhands.trust.calibration import choose_map, expected_accuracy, finite_interval
from manyhands.trust.guarantees import pac_threshold, random_audit, release
from manyhands.trust.selection import DEFAULT, Consensus, tempered

DOCUMENT = Path(__file__).parents[1] / "docs" / "trust.md"


def main() -> None:
    parser = argparse.ArgumentParser(description="What an expert's answers buy.")
    parser.add_argument("--cache", type=Path, default=None)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--draws", type=int, default=10)
    given = parser.parse_args()
    crowds = [load(name, given.cache) for name in CROWDS]
    panels = [load(f"panels/{name}", given.cache) for name in PANELS]
    tables = {
        "method": method_table(crowds, panels, given.draws),
        "confidence": confidence_table(crowds, panels, given.draws),
        "panels": panel_table(panels),
        "guarantee": guarantee_table(crowds, panels),
    }
    if given.write:
        write(tables)
        draw(crowds + panels, given.draws)
    else:
        for name, table in tables.items():
            print(f"## {name}\n{table}\n")


# Which method: contested items


def method_table(crowds: list[Fitted], panels: list[Fitted], draws: int) -> str:
    lines = ["| answers | accuracy, crowds / panels | regret to the best method, points | worst set against the vote |"]
    lines.append("|---|---|---|---|")
    default = [[float(np.mean(c.labels[DEFAULT] == c.truth)) for c in group] for group in (crowds, panels)]
    lines.append(_method_row("none: the default", (crowds, panels), default))
    for n, kind in [(20, "random"), (10, "contested"), (20, "contested"), (40, "contested")]:
        for rule, named in ((earlier, ", the rule before"), (followed, "")):
            if rule is followed or (n, kind) == (20, "contested"):
                means = [
                    [replay(crowd, n, kind, 10 * draws, rule).mean() for crowd in group] for group in (crowds, panels)
                ]
                lines.append(_method_row(f"{n} {kind}{named}", (crowds, panels), means))
    return "\n".join(lines)


def _method_row(name: str, groups: tuple[list[Fitted], ...], means: list[list[float]]) -> str:
    accuracy, regret, worst = [], [], []
    for crowds, values in zip(groups, means):
        best = [max(np.mean(code == crowd.truth) for code in crowd.labels.values()) for crowd in crowds]
        accuracy.append(f"{np.mean(values):.4f}")
        regret.append(f"{100 * np.mean(np.array(best) - values):.1f}")
        worst.append(f"{100 * np.min(np.array(values) - [crowd.vote for crowd in crowds]):+.1f}")
    return f"| {name} | {' / '.join(accuracy)} | {' / '.join(regret)} | {' / '.join(worst)} |"


# What the confidence is worth: random items


def figures(q: np.ndarray, truth: np.ndarray) -> list[float]:
    classes = np.arange(q.shape[1])
    q = q / q.sum(axis=1, keepdims=True)
    measures = mh.metrics
    return [
        float(np.mean(q.argmax(axis=1) == truth)),
        measures.ece(truth, q, classes),
        measures.log_loss(truth, q, classes),
        measures.brier(truth, q, classes),
    ]


def calibrated(crowd: Fitted, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Rows that were not answered, their calibrated posterior, and whether two intervals contain the accuracy."""
    consensus = Consensus.of(crowd.posterior, crowd.share)
    rows = np.random.default_rng(seed).permutation(len(crowd.truth))
    seen, rest = rows[: min(n, len(rows) // 2)], rows[min(n, len(rows) // 2) :]
    prior = CROWD_POWER / crowd.power
    if not n:
        return rest, tempered(crowd.posterior.shape[1], prior).apply(consensus[rest]), [math.nan] * 4
    fitted, heldout, _ = choose_map(consensus[seen], crowd.truth[seen], np.ones(len(seen)), prior)
    q = fitted.apply(consensus[rest])
    gap = (heldout.argmax(axis=1) == crowd.truth[seen]) - heldout.max(axis=1)
    _, low, high = expected_accuracy(q.max(axis=1), gap, 0.9)
    right = np.mean(q.argmax(axis=1) == crowd.truth[rest])
    before = crowd.posterior.argmax(axis=1) == crowd.truth
    exact = finite_interval(int(before[seen].sum()), len(seen), len(before), 0.9)
    inside = exact[0] - 1e-9 <= before.mean() <= exact[1] + 1e-9
    return rest, q, [low <= right <= high, high - low, inside, exact[1] - exact[0]]


def confidence_table(crowds: list[Fitted], panels: list[Fitted], draws: int) -> str:
    lines = [
        "| random answers | accuracy, crowds / panels | ECE | log loss | Brier | 90% interval by the calibration: "
        "width, coverage | exact 90% interval of the default's accuracy: width, coverage |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in (0, 10, 20, 50, 100):
        means, inside = [], []
        for group in (crowds, panels):
            rows = []
            for crowd in group:
                each = []
                for seed in range(draws if n else 1):
                    rest, q, interval = calibrated(crowd, n, seed)
                    each.append([*figures(q, crowd.truth[rest]), *interval])
                rows.append(np.mean(each, axis=0))
            means.append(np.mean(rows, axis=0)[:4])
            inside.extend(row[4:] for row in rows)
        cells = [" / ".join(f"{group[k]:.{4 if k == 0 else 3}f}" for group in means) for k in range(4)]
        cover, width, exact, exact_width = np.mean(inside, axis=0)
        last = ["-", "-"] if not n else [
            f"{100 * width:.0f} points, {cover:.2f}", f"{100 * exact_width:.0f} points, {exact:.2f}"
        ]  # fmt: skip
        lines.append(f"| {n} | {' | '.join(cells + last)} |")
    return "\n".join(lines)


def panel_table(panels: list[Fitted], draws: int = 20, n: int = 50) -> str:
    lines = ["| panel | vote | default | with 50 answers | gain over the vote, points | ECE before | ECE after |"]
    lines.append("|---|---|---|---|---|---|---|")
    rows = []
    for panel in panels:
        each = []
        for seed in range(draws):
            rest, q, _ = calibrated(panel, n, seed)
            before = figures(panel.posterior[rest], panel.truth[rest])
            each.append(
                [panel.vote, before[0], figures(q, panel.truth[rest])[0], before[1], figures(q, panel.truth[rest])[1]]
            )
        rows.append([panel.name.removeprefix("panels/"), *np.mean(each, axis=0)])
    rows.append(["mean", *np.mean([row[1:] for row in rows], axis=0)])
    for name, vote, default, after, ece_before, ece_after in rows:
        gain = f"{100 * (after - vote):+.1f}"
        lines.append(
            f"| {name} | {vote:.3f} | {default:.3f} | {after:.3f} | {gain} | {ece_before:.3f} | {ece_after:.3f} |"
        )
    return "\n".join(lines)


# Promises


def promised(crowd: Fitted, n: int, error: float, draws: int = 200, alpha: float = 0.05) -> list[float]:
    """Share of draws that keep the promise, items for the expert, for a random audit; kept and size of label sets."""
    confidence, label = crowd.posterior.max(axis=1), crowd.posterior.argmax(axis=1)
    wrong, size = label != crowd.truth, len(label)
    score = np.where(wrong, crowd.posterior[np.arange(size), crowd.truth], 1.0)
    allowed, missed = math.floor(error * size + 1e-9), math.floor(0.1 * size + 1e-9)
    each = []
    for seed in range(draws):
        rows = np.random.default_rng(seed).permutation(size)[: min(n, size)]
        open_ = np.ones(size, bool)
        open_[rows] = False
        threshold, _ = release(confidence, confidence[rows], wrong[rows], allowed, alpha)
        stands = confidence >= threshold
        audit = random_audit(int(wrong[rows].sum()), len(rows), size, allowed, alpha)
        least = pac_threshold(score[rows], size, missed, alpha)
        members = (crowd.posterior >= least).sum(axis=1) + (confidence < least)
        each.append(
            [
                np.sum(wrong & stands & open_) <= allowed,
                np.sum(open_ & ~stands) / size,
                audit / size,
                np.sum((score < least) & open_) <= missed,
                members.mean(),
            ]
        )
    return np.mean(each, axis=0).tolist()


def guarantee_table(crowds: list[Fitted], panels: list[Fitted]) -> str:
    settings = [(50, 0.05), (50, 0.1), (100, 0.05), (100, 0.1)]
    lines = ["| set | items | wrong | " + " | ".join(f"{n} answers, error <= {e:.0%}" for n, e in settings)
             + " | sets of 90%, 50 answers | sets of 90%, 100 answers |"]  # fmt: skip
    lines.append("|---" * (len(settings) + 5) + "|")
    every = []
    for crowd in crowds + panels:
        found = [promised(crowd, n, error) for n, error in settings]
        every.append(found)
        wrong = np.mean(crowd.posterior.argmax(axis=1) != crowd.truth)
        cells = [f"{one[0]:.2f}: {one[1]:.0%} / {one[2]:.0%}" for one in found]
        sets = [f"{one[3]:.2f}: {one[4]:.2f}" for one in (found[0], found[2])]
        lines.append(f"| {crowd.name} | {len(crowd.truth)} | {wrong:.1%} | {' | '.join(cells + sets)} |")
    mean, lowest = np.mean(every, axis=0), np.min(every, axis=0)
    cells = [f"{one[0]:.3f} (lowest {low[0]:.2f}): {one[1]:.0%} / {one[2]:.0%}" for one, low in zip(mean, lowest)]
    sets = [f"{mean[k][3]:.3f} (lowest {lowest[k][3]:.2f}): {mean[k][4]:.2f}" for k in (0, 2)]
    lines.append(f"| all | | | {' | '.join(cells + sets)} |")
    return "\n".join(lines)


# The document and its picture


def write(tables: dict[str, str]) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, table in tables.items():
        mark = rf"(<!-- {name} -->\n).*?(<!-- end {name} -->)"
        before, after = re.split(mark, text, flags=re.DOTALL)[::3]
        text = f"{before}<!-- {name} -->\n{table}\n<!-- end {name} -->{after}"
    DOCUMENT.write_text(text, encoding="utf-8")


def draw(crowds: list[Fitted], draws: int) -> None:
    """Reliability before and after 50 random answers; accuracy by the number of contested answers."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "trust", "font.size": 9})
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8.4, 3.6))
    left.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    found = [(crowd, *calibrated(crowd, 50, seed)[:2]) for crowd in crowds for seed in range(draws)]
    for name, after, marker in [("default without answers", False, "o"), ("after 50 random answers", True, "s")]:
        points = []
        for crowd, rest, mapped in found:
            q = mapped if after else crowd.posterior[rest]
            weight = np.full(len(rest), 1 / len(rest))
            points.append(np.stack([q.max(axis=1), q.argmax(axis=1) == crowd.truth[rest], weight]))
        x, y = _reliability(np.concatenate(points, axis=1))
        left.plot(x, y, marker=marker, markersize=4, label=name)
    left.set(
        title="Confidence and share of right labels",
        xlabel="confidence",
        ylabel="share of right labels",
        xlim=(0.2, 1.01),
        ylim=(0.2, 1.01),
    )
    left.legend(frameon=False)
    numbers = [0, 5, 10, 20, 40]
    for kind, marker in [("contested", "o"), ("random", "s")]:
        values = [_mean_accuracy(crowds, n, kind, 20) for n in numbers]
        right.plot(numbers, values, marker=marker, markersize=4, label=f"{kind} answers")
    right.axhline(np.mean([crowd.vote for crowd in crowds]), color="0.5", linewidth=1, linestyle="--", label="vote")
    right.set(title="Accuracy of the method that is followed", xlabel="number of answers", ylabel="mean accuracy")
    right.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(DOCUMENT.with_suffix(".svg"), metadata={"Date": None})


def _mean_accuracy(crowds: list[Fitted], n: int, kind: str, draws: int) -> float:
    if not n:
        return float(np.mean([np.mean(crowd.labels[DEFAULT] == crowd.truth) for crowd in crowds]))
    return float(np.mean([replay(crowd, n, kind, draws, followed).mean() for crowd in crowds]))


def _reliability(points: np.ndarray) -> tuple[list[float], list[float]]:
    """Mean confidence and accuracy in ten bins of width .1; every set counts the same."""
    confidence, right, weight = points
    x, y = [], []
    for low in np.arange(0.2, 1.0, 0.1):
        inside = (confidence >= low) & (confidence < low + 0.1 + (low > 0.85))
        if inside.sum() >= 50:
            x.append(float(np.average(confidence[inside], weights=weight[inside])))
            y.append(float(np.average(right[inside], weights=weight[inside])))
    return x, y


if __name__ == "__main__":
    main()

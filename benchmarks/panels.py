"""Panels of language models: may one replace the annotators, and what are the votes of six models worth?

    MANYHANDS_DATA=FOLDER python benchmarks/panels.py [--write]

Prints docs/results/panels.md, or writes it. People and models of the five sets in FOLDER/panels are in one table each;
its column kind tells them apart.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

from mixed_panels import mixture_table

import manyhands as mh
from manyhands.io import read_export
from manyhands.trust.machines import MACHINE, groups_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results" / "panels.md"
SETS = ("cebab_stars", "10k_prompts", "framing", "lgbteen", "wax")
ORDERED = ("cebab_stars", "10k_prompts")
EPSILONS = (0.1, 0.15, 0.2)
HEAD = """# Panels of language models

Five sets in which people (with ids) and six language models labelled the same items, by `benchmarks/panels.py`.
What the figures mean: [machines.md](../machines.md).

## May a model replace the annotators?

The alternative annotator test (`manyhands alt-test`): winning rate for three values of epsilon, and the advantage
probability; **bold** where the model passes (at least half of the annotators). Grades of cebab_stars and 10k_prompts
are compared by distance in the rows marked "interval".
"""
WORTH = """
## What six votes are worth

`manyhands agree --effective`: mean correlation of errors, and the number of independent votes, with 95% intervals over
items. Models are compared with what people say, people with the other people.
"""

MIXED = """
## People and models in one crowd

One person after the other is left out, and the labels of that person are compared with the labels inferred from the
other people, from the six models, and from both (share of equal labels; `benchmarks/mixed_panels.py`). In the column
"both, weighted" the models have the weights of `mh.trust.down_weight_families` (`manyhands aggregate --down-weight`).

"""
AFTER = """
Without weights, six models outvote two or three people: with the default method, both together are at least as good
as the better of the two on two sets of five. With weights they are on three (cebab_stars, 10k_prompts, framing), and by
the vote on four. On lgbteen and wax, where the models agree with people much less than people with one another, people
alone are better with the default, by 0.9 and 4.0 points; with `overrule="always"` for all crowds by 0.8 and 0.1 points.
Three of five is less than the aim of four.
"""


def main() -> None:
    """Print or write the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture = mixture_table()
    lines = [HEAD, *alt_tests(), WORTH, *effective(), MIXED.rstrip("\n") + "\n", *mixture, AFTER.rstrip("\n")]
    text = "\n".join(lines) + "\n"
    if "--write" in sys.argv[1:]:
        PAGE.write_text(text)
    else:
        print(text, end="")


def alt_tests() -> list[str]:
    """Return one row per set, way of comparison and model."""
    rows = [["data", "compared", "annotators", "model", *(f"epsilon {e:g}" for e in EPSILONS), "advantage probability"]]
    for name in SETS:
        reading = read(name)
        machines = [worker for worker, known in reading.kinds.items() if known.kind == MACHINE]
        for level in ("nominal", "interval") if name in ORDERED else ("nominal",):
            options: dict[str, Any] = {"level": level}
            by_epsilon = [mh.trust.alt_test(reading.annotations, machines, epsilon=e, **options) for e in EPSILONS]
            for tests in zip(*by_epsilon):
                rates = [f"**{t.winning_rate:.2f}**" if t.passes else f"{t.winning_rate:.2f}" for t in tests]
                one = tests[0]
                advantage = f"{one.advantage_probability:.2f}"
                rows.append([name, level, str(len(one.annotators)), str(one.machine), *rates, advantage])
    return table(rows)


def effective() -> list[str]:
    """Return one row per set and group of workers."""
    rows = [["data", "group", "workers", "votes per item", "correlation of errors", "independent votes"]]
    for name in SETS:
        reading = read(name)
        groups = groups_of(reading.annotations.worker_ids.tolist(), reading.kinds)
        for group in mh.trust.effective_votes(reading.annotations, groups):
            r = f"{group.correlation:.2f} ({group.correlation_low:.2f} to {group.correlation_high:.2f})"
            worth = f"{group.effective_votes:.1f} ({group.low:.1f} to {group.high:.1f})"
            rows.append([name, group.group, str(group.n_workers), f"{group.votes:.1f}", r, worth])
    return table(rows)


def read(name: str) -> Any:
    """Read one set, in which 'n/a' is a class of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_export(Path(os.environ["MANYHANDS_DATA"]) / "panels" / name / "annotations.csv")


def table(rows: list[list[str]]) -> list[str]:
    """Return rows as a Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


if __name__ == "__main__":
    main()

"""Answers of several days on the export of the last one: do intervals, guarantees and label sets hold what they say?

    python benchmarks/answers_over_time.py

Items arrive on three days. Random items are answered on the first day, on the second, or on both; everything is
evaluated with the labels of the third day. Items of later days are harder (the share of wrong labels is that of the
table). Shown are means over draws of the answers: share of 95% intervals that contain the share of right labels of the
items they are about, and their mean width; share of draws in which the guarantee "error <= 10% at 95%" holds for the
covered items, and that for label sets of 90%; share of labels that stand.
"""

from __future__ import annotations

import argparse

import numpy as np

from manyhands import Annotations, MajorityVote, guarantee
from manyhands.trust import Answers, Drawing, combine_answers, estimate_accuracy, label_sets

SCENARIOS = (  # items of each day, answers drawn on the first and on the second, share of wrong votes of each day
    ((500, 0, 0), (60, 0), (0.4, 0.4, 0.4)),
    ((500, 0, 100), (60, 0), (0.4, 0.4, 0.6)),
    ((500, 100, 50), (60, 30), (0.3, 0.6, 0.6)),
    ((300, 300, 50), (60, 60), (0.2, 0.6, 0.6)),
    ((300, 300, 50), (120, 160), (0.2, 0.5, 0.6)),
    ((1000, 10, 5), (100, 40), (0.4, 0.6, 0.6)),
    ((200, 200, 0), (20, 20), (0.1, 0.2, 0.1)),
)


def crowd(sizes: tuple[int, ...], noise: tuple[float, ...], rng: np.random.Generator) -> tuple[Annotations, np.ndarray]:
    """Three votes on each item, of three classes; items of a day share their share of wrong votes."""
    truth = rng.integers(0, 3, sum(sizes))
    wrong = np.repeat(noise, sizes) * rng.choice([0.4, 1.6], sum(sizes))  # easy and hard items
    votes = np.where(rng.random((len(truth), 3)) < wrong[:, None], rng.integers(0, 3, (len(truth), 3)), truth[:, None])
    return Annotations.from_matrix(votes, classes=[0, 1, 2]), truth


def draw(items: int, n: int, truth: np.ndarray, name: str, rng: np.random.Generator) -> Answers:
    """Answers to n random ones of the first items."""
    drawn = rng.choice(items, n, replace=False).tolist()
    drawing = Drawing(frozenset(range(items)), name=name)
    return Answers({item: int(truth[item]) for item in drawn}, "random", drawings=(drawing,))


def measure(sizes: tuple[int, ...], n: tuple[int, ...], noise: tuple[float, ...], draws: int) -> list[float]:
    """Return the means of one scenario; the crowd is another one every 20 draws."""
    rng = np.random.default_rng(0)
    found = []
    for number in range(draws):
        if number % 20 == 0:
            votes, truth = crowd(sizes, noise, rng)
            model = MajorityVote().fit(votes)
            labels = dict(enumerate(model.labels_.tolist()))
            right = model.labels_ == truth
        parts = [draw(sizes[0], n[0], truth, "first", rng)]
        if n[1]:
            parts.append(draw(sizes[0] + sizes[1], n[1], truth, "second", rng))
        answers = combine_answers(parts)
        names, stratum = answers.strata_of(range(sum(sizes)))
        accuracy = estimate_accuracy(labels, answers)
        about = np.isin(np.array([*names, "new"])[stratum], list(accuracy.strata))
        share = right[about].mean()
        promised = guarantee(model, answers, error=0.1)
        covered = np.isin(np.array([*names, "new"])[stratum], list(promised.strata))
        wrong = ~right & promised.stands & ~np.isin(np.arange(len(right)), list(answers.values))
        sets = label_sets(model, answers, coverage=0.9)
        within = np.isin(np.array([*names, "new"])[stratum], list(sets.strata))
        holds = sets.members[np.arange(len(truth)), truth]
        found.append(
            [
                accuracy.low <= share <= accuracy.high,
                accuracy.high - accuracy.low,
                accuracy.value - share,
                wrong.sum() <= 0.1 * covered.sum() and not wrong[~covered].any(),
                promised.stands.mean(),
                holds[within].mean() >= 0.9 - 1e-9,
                sets.mean_size,
                holds[~within].mean() if np.any(~within) else 1.0,
            ]
        )
    return np.mean(found, axis=0).tolist()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    print(
        "| items of each day | answers | wrong votes | interval: coverage | width | bias | guarantee kept | stand "
        "| sets kept | size | truth in sets not covered |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for sizes, n, noise in SCENARIOS:
        row = measure(sizes, n, noise, draws)
        cells = [" + ".join(map(str, sizes)), " + ".join(map(str, n)), ", ".join(map(str, noise))]
        print("| " + " | ".join(cells + [f"{value:.3f}" for value in row]) + " |", flush=True)


if __name__ == "__main__":
    main()

"""Scorecards put to the test: do the intervals hold, are bad workers found, are honest ones left alone?

    MANYHANDS_DATA=DIR python benchmarks/scorecards.py [coverage] [alerts] [enough] [alarms] [real] [speed] [--tuning]

Prints Markdown. Constants were chosen on the seeds of `--tuning`; without it, seeds that were never looked at before.
The posterior is that of the default method.
"""

from __future__ import annotations

import csv
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import manyhands as mh
from manyhands import registry
from manyhands.scorecards import ACCUSATIONS, Scorecards, score_workers
from manyhands.simulate import Crowd, glad_accuracy, make_crowd
from manyhands.simulate.workers import accuracy_to_ability, draw_accuracy

SEEDS = range(0, 10) if "--tuning" in sys.argv else range(5000, 5010)

# name: (items, workers, classes, labels per item, further settings)
CROWDS: dict[str, tuple[int, int, int, int, dict[str, Any]]] = {
    "everyone labels all": (100, 20, 2, 20, {}),
    "50 labels each": (400, 40, 2, 5, {}),
    "50 labels each, 4 classes": (400, 40, 4, 5, {}),
    "15 labels each": (300, 100, 2, 5, {}),
    "15 labels each, 4 classes": (300, 100, 4, 5, {}),
    "10 labels each, 3 per item": (200, 60, 2, 3, {}),
    "6 labels each, 2 per item": (300, 100, 3, 2, {}),
    "5 workers, 30 items": (30, 5, 2, 3, {}),
    "unequal activity": (400, 60, 3, 5, {"activity": "zipf"}),
    "classes 95:5": (400, 40, 2, 5, {"class_shares": [0.95, 0.05]}),
    "own confusion matrices": (400, 40, 4, 5, {"kind": "confusion"}),
    "hard and easy items": (400, 40, 2, 5, {"kind": "glad"}),
    "20% guess": (400, 40, 2, 5, {"bad": "random", "bad_share": 0.2}),
    "40% guess": (400, 40, 2, 5, {"bad": "random", "bad_share": 0.4}),
    "40% guess, 15 labels each": (300, 100, 4, 5, {"bad": "random", "bad_share": 0.4}),
    "40% one class": (400, 40, 2, 5, {"bad": "constant", "bad_share": 0.4}),
    "20% inverted": (400, 40, 2, 5, {"bad": "inverted", "bad_share": 0.2}),
    "20% inverted, 4 classes": (400, 40, 4, 5, {"bad": "inverted", "bad_share": 0.2}),
    "30% colluding": (400, 40, 4, 5, {"bad": "colluding", "bad_share": 0.3}),
}
ATTACKS = {"random": "random", "constant": "one-class", "inverted": "inverted", "colluding": "copying"}
ATTACKS |= {"copycat": "copying", "family": "copying", "careless": "weak"}
REAL = ["agg/bluebirds", "agg/dogs", "agg/web", "agg/s_face", "agg/zencrowd_in", "agg/zencrowd_all"]
REAL += ["snow2008/rte", "snow2008/temp", "snow2008/wsd", "labelme", "music", "leaves", "weather_text", "cifar10s"]


def coverage() -> None:
    """How often the 95% interval holds the worker's true accuracy, and how wide it is. Honest accuracy .55 to .95."""
    _title("Coverage", coverage.__doc__)
    _row("crowd", "honest: held", "too high", "too low", "width", "mean error", "bad: held", "width")
    _row(*["---"] * 8)
    for name, setting in CROWDS.items():
        rows = np.concatenate([_misses(*setting, seed) for seed in SEEDS])
        honest, bad = rows[rows[:, 0] == 0], rows[rows[:, 0] == 1]
        held, above, below, width, error = honest[:, 1:].mean(axis=0)
        spoilt = (_percent(bad[:, 1].mean()), f"{bad[:, 4].mean():.2f}") if len(bad) else ("", "")
        _row(name, _percent(held), _percent(above), _percent(below), f"{width:.2f}", f"{error:+.3f}", *spoilt)


def _misses(n_items: int, n_workers: int, n_classes: int, n_each: int, more: dict[str, Any], seed: int) -> np.ndarray:
    """(n_workers, 6): bad, interval holds, lies above, lies below, width, estimate minus truth."""
    right = draw_accuracy(n_workers, (0.55, 0.95), random_state=seed)
    crowd = make_crowd(n_items, n_workers, n_classes, n_each, accuracy=right, random_state=seed, **more)
    if crowd.confusion is None:
        assert crowd.difficulty is not None
        ability = accuracy_to_ability(right) / 4
        truth = np.array([glad_accuracy(a, 1 / crowd.difficulty).mean() for a in ability])
    else:
        shares = np.bincount(crowd.truth, minlength=n_classes) / n_items
        truth = np.einsum("wkk,k->w", crowd.confusion, shares)
    cards = _score(crowd.annotations)
    above, below = cards.accuracy_low > truth, cards.accuracy_high < truth
    width = cards.accuracy_high - cards.accuracy_low
    return np.stack([crowd.is_bad, ~above & ~below, above, below, width, cards.accuracy - truth], axis=1)


def alerts() -> None:
    """Honest accuracy .6 to .95, five labels per item, the first five seeds. Cells: recall of the attack's own alert /
    bad workers with any accusation / bad workers of whom it cannot be told / precision of all accusations. The worker
    whom copycats copy counts as one of them: who copies whom cannot be seen."""
    _title("Bad workers found", alerts.__doc__)
    setups = [(k, n) for k in (2, 4) for n in (50, 15)]
    _row("attack", "share", *(f"{k} classes, {n} labels each" for k, n in setups))
    _row(*["---"] * 6)
    for attack, alert in ATTACKS.items():
        for share in (0.2, 0.4):
            _row(attack, f"{share:.0%}", *(_found(attack, alert, share, k, n) for k, n in setups))


def _found(attack: str, alert: str, share: float, n_classes: int, n_labels: int) -> str:
    own, accused, unknown, is_bad = [], [], [], []
    for seed in SEEDS[:5]:
        crowd = _crowd(attack, share, n_classes, n_labels, seed)
        cards = _score(crowd.annotations)
        own.append(cards.flagged(alert))
        accused.append(_accused(cards))
        unknown.append(_unknown(cards))
        bad = crowd.is_bad.copy()
        bad[np.argmin(bad)] |= attack == "copycat"
        is_bad.append(bad)
    o, a, u, b = map(np.concatenate, (own, accused, unknown, is_bad))
    precision = _percent(b[a].mean()) if a.any() else "-"
    return f"{_percent(o[b].mean())} / {_percent(a[b].mean())} / {_percent(u[b].mean())} / {precision}"


def enough() -> None:
    """Guessers (a fifth of 40 workers) among honest workers of accuracy .6 to .95, two classes, the first five seeds:
    how many are told. Cells: accused / cannot be told / honest workers accused."""
    _title("How many labels it takes to tell a guesser", enough.__doc__)
    _row("labels each", "5 labels per item", "20 labels per item")
    _row(*["---"] * 3)
    for n_labels in (50, 200, 400):
        _row(n_labels, *(_told(n_labels, n_each) for n_each in (5, 20)))


def _told(n_labels: int, n_each: int) -> str:
    rows = []
    for seed in SEEDS[:5]:
        settings = {"accuracy": (0.6, 0.95), "bad": "random", "bad_share": 0.2, "random_state": seed}
        crowd = make_crowd(40 * n_labels // n_each, 40, 2, n_each, **settings)
        cards = _score(crowd.annotations)
        rows.append(np.stack([crowd.is_bad, _accused(cards), _unknown(cards)]))
    bad, guesses, unknown = np.concatenate(rows, axis=1)
    return " / ".join(_percent(share) for share in (guesses[bad].mean(), unknown[bad].mean(), guesses[~bad].mean()))


def _crowd(attack: str, share: float, n_classes: int, n_labels: int, seed: int) -> Crowd:
    n_workers = 40 if n_labels == 50 else 100
    return make_crowd(
        n_workers * n_labels // 5, n_workers, n_classes, 5,
        accuracy=(0.6, 0.95), bad=attack, bad_share=share, random_state=seed,
    )  # fmt: skip


def alarms() -> None:
    """Crowds of honest workers only: the share with each alert. 95:5 are class shares; .6 is everybody's accuracy.
    The first five seeds."""
    _title("False alarms", alarms.__doc__)
    names = ["random", "weak", "one-class", "inverted", "copying", "undecided", "too-few-labels"]
    _row("crowd", "workers", *names, "bias stated")
    _row(*["---"] * 10)
    settings: dict[str, dict[str, Any]] = {}
    for k in (2, 4):
        for n_labels, n_workers in ((50, 40), (15, 100), (200, 40)):
            base = {"n_items": n_workers * n_labels // 5, "n_workers": n_workers, "n_classes": k}
            settings[f"{k} classes, {n_labels} labels each, .6 to .95"] = base | {"accuracy": (0.6, 0.95)}
            settings[f"{k} classes, {n_labels} labels each, .6"] = base | {"accuracy": 0.6}
    base = {"n_items": 2000, "n_workers": 50, "class_shares": [0.95, 0.05]}
    settings["95:5, 200 labels each, .6"] = base | {"accuracy": 0.6}
    settings["95:5, 200 labels each, .9"] = base | {"accuracy": 0.9}
    settings["hard and easy items, 50 each"] = {"kind": "glad", "accuracy": (0.7, 0.95)}
    settings["own confusion matrices, 50 each"] = {"kind": "confusion", "n_classes": 4, "accuracy": (0.6, 0.95)}
    settings["everyone labels 100"] = {"n_items": 100, "n_workers": 30, "labels_per_item": 30, "accuracy": (0.6, 0.95)}
    settings["everyone labels 100, hard and easy"] = settings["everyone labels 100"] | {"kind": "glad"}
    for name, setting in settings.items():
        cards = [_score(make_crowd(**setting, random_state=seed).annotations) for seed in SEEDS[:5]]
        shares = [np.concatenate([c.flagged(alert) for c in cards]) for alert in names]
        biased = np.concatenate([c.bias_class >= 0 for c in cards])
        _row(name, len(biased), *(_percent(s.mean()) for s in shares), _percent(biased.mean()))


def real() -> None:
    """Workers with at least ten labels on items with truth are `known`; `held`: the share of them whose accuracy by
    truth lies in the interval. Flagged workers: number, and their accuracy by truth, smallest to largest. `chance` is
    the accuracy by truth of a worker's labels in random order, mean over the flagged."""
    _title("Real crowds", real.__doc__)
    _row("data", "workers", "known", "held", "mean error", "random", "chance", "weak", "one-class", "inverted",
         "copying", "unknown")  # fmt: skip
    _row(*["---"] * 12)
    for name in REAL:
        votes, truth = _read(name)
        cards = _score(votes)
        accuracy, chance = _by_truth(votes, truth)
        known = np.isfinite(accuracy)
        held = (accuracy >= cards.accuracy_low) & (accuracy <= cards.accuracy_high)
        shown = [_range(accuracy[cards.flagged(f)]) for f in ("random", "weak", "one-class", "inverted", "copying")]
        guess = chance[cards.flagged("random") & known]
        shown.insert(1, f"{guess.mean():.2f}" if len(guess) else "")
        few = _percent(_unknown(cards).mean())
        error = f"{(cards.accuracy - accuracy)[known].mean():+.3f}"
        _row(name, len(cards), known.sum(), _percent(held[known].mean()), error, *shown, few)


def _by_truth(votes: mh.Annotations, truth: dict[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Each worker's share of right labels, and the same in random order; NaN with fewer than ten to look at.

    Half a label is added to the right and to the wrong ones: an interval for what a worker is like never holds 1.0."""
    code = {value: k for k, value in enumerate(votes.classes.tolist())}
    right = np.array([code.get(truth.get(item, ""), -1) for item in votes.item_ids.tolist()])[votes.item]
    accuracy, chance = np.full(votes.n_workers, np.nan), np.full(votes.n_workers, np.nan)
    for w in range(votes.n_workers):
        mine = (votes.worker == w) & (right >= 0)
        if mine.sum() >= 10:
            n_right = np.sum(votes.label[mine] == right[mine])
            accuracy[w] = (n_right + 0.5) / (mine.sum() + 1)
            shares = [np.bincount(x[mine], minlength=votes.n_classes) / mine.sum() for x in (votes.label, right)]
            chance[w] = shares[0] @ shares[1]
    return accuracy, chance


def speed() -> None:
    """A million labels by ten thousand workers, five per item; for the cards alone, one run."""
    _title("Speed", speed.__doc__)
    for n_classes in (2, 8):
        crowd = make_crowd(200_000, 10_000, n_classes, 5, bad="random", bad_share=0.1, random_state=0)
        posterior = registry.create("majority-vote").fit(crowd.annotations).posterior_
        start = time.perf_counter(), time.process_time()
        score_workers(crowd.annotations, posterior, confusion=crowd.confusion)
        wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
        print(f"- {n_classes} classes: {wall:.1f} s on the clock, {cpu:.1f} s of CPU")


def _score(votes: mh.Annotations) -> Scorecards:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
        model = registry.create("pooled-dawid-skene").fit(votes)
    settings = {
        "confusion": model.confusion_,
        "tempering_exponent": model.tempering_exponent_,
        "collusion_group": model.collusion_group_,
    }
    return score_workers(votes, model.posterior_, **settings)


def _accused(cards: Scorecards) -> np.ndarray:
    return np.array([bool(set(alerts) & set(ACCUSATIONS)) for alerts in cards.alerts])


def _unknown(cards: Scorecards) -> np.ndarray:
    return np.asarray(cards.flagged("too-few-labels") | cards.flagged("undecided"))


def _read(name: str) -> tuple[mh.Annotations, dict[str, str]]:
    """Labels, last row kept where a worker repeats an item, and the truth by item."""
    folder = Path(os.environ["MANYHANDS_DATA"]) / name
    with open(folder / "annotations.csv", newline="") as file:
        last = {(row[0], row[1]): row[2] for row in list(csv.reader(file))[1:]}
    with open(folder / "truth.csv", newline="") as file:
        truth = {row[0]: row[1] for row in list(csv.reader(file))[1:]}
    items, workers = zip(*last)
    return mh.Annotations.from_triples(items, workers, list(last.values())), truth


def _range(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return f"{len(values)}: {known.min():.2f}-{known.max():.2f}" if len(known) else f"{len(values)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _title(name: str, text: str | None) -> None:
    seeds = f"Seeds {SEEDS.start} to {SEEDS.stop - 1}"
    print(f"\n## {name}\n\n{text}\n{seeds}; figures in per cent where not said otherwise.\n")


def _row(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    chosen = [a for a in sys.argv[1:] if not a.startswith("--")] or [
        "coverage",
        "alerts",
        "enough",
        "alarms",
        "real",
        "speed",
    ]
    for part in chosen:
        globals()[part]()

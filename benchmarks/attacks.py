"""Every attack of the simulator against the vote, the default and Dawid-Skene: accuracy, calibration and alerts.

    python benchmarks/attacks.py [SEED ...] [--attack NAME ...] [--classes K ...] [--share S ...]

Seeds are 0 to 5 unless given. A crowd has 400 items, 40 workers, five labels per item and honest accuracy 0.8. A
share is that of the workers who are bad, and so about that of the bad labels; Sybils hide behind ids of three labels
each. Prints Markdown: mean accuracy of the seeds in per cent, the default minus the vote in points, ECE (ten bins of
equal mass) in per cent, bad and honest workers with an alert of `scorecards.ACCUSATIONS` in per cent, and in how
many crowds the default raised a note or the scorecards flagged a bad worker.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

import manyhands as mh
from manyhands.scorecards import ACCUSATIONS, score_workers
from manyhands.simulate import ATTACKS, Crowd, make_crowd

METHODS = ("majority-vote", "pooled-dawid-skene", "dawid-skene")
BINS = 10


@dataclass(frozen=True)
class Outcome:
    """What came of one crowd, in numbers that can be averaged over seeds."""

    accuracy: list[float]
    ece: list[float]
    flagged_bad: float
    flagged_honest: float
    alert: float


def main() -> None:
    wished = _parse()
    print("| attack | classes | bad | vote | default | D&S | default - vote | ECE vote | ECE default | ECE D&S "
          "| bad flagged | honest flagged | alerts |")  # fmt: skip
    print("| --- " * 13 + "|")
    lowest, lowest_run = np.inf, np.inf
    for attack in wished.attack:
        for n_classes in wished.classes:
            for share in wished.share:
                if share == 0 and attack != wished.attack[0]:
                    continue  # a crowd without bad workers is the same for all attacks
                crowds = [_crowd(attack, n_classes, share, seed) for seed in wished.seeds]
                outcomes = [_outcome(crowd) for crowd in crowds]
                lowest = min(lowest, _row(attack if share else "none", n_classes, share, outcomes))
                lowest_run = min([lowest_run, *(100 * (o.accuracy[1] - o.accuracy[0]) for o in outcomes)])
    print(f"\nLowest difference of the default from the vote: {lowest:+.1f} points; of one run: {lowest_run:+.1f}.")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The default against every attack of the simulator.")
    parser.add_argument("seeds", nargs="*", type=int, default=[])
    parser.add_argument("--attack", nargs="+", default=list(ATTACKS), choices=list(ATTACKS))
    parser.add_argument("--classes", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--share", nargs="+", type=float, default=[0.0, 0.2, 0.3, 0.4, 0.45])
    wished = parser.parse_args()
    wished.seeds = wished.seeds or list(range(6))
    return wished


def _crowd(attack: str, n_classes: int, share: float, seed: int) -> Crowd:
    return make_crowd(n_classes=n_classes, bad=attack, bad_share=share, random_state=seed)


def _outcome(crowd: Crowd) -> Outcome:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
        models = [mh.registry.create(name).fit(crowd.annotations) for name in METHODS]
    right = [model.labels_ == crowd.truth for model in models]
    default = models[METHODS.index("pooled-dawid-skene")]
    flagged = _flagged(crowd, default)
    bad, honest = flagged[crowd.is_bad], flagged[~crowd.is_bad]
    return Outcome(
        [float(r.mean()) for r in right],
        [_calibration_error(m.posterior_.max(axis=1), r) for m, r in zip(models, right)],
        float(bad.mean()) if len(bad) else 0.0,
        float(honest.mean()) if len(honest) else 0.0,
        float(bool(default.notes_) or bool(bad.any())),
    )


def _flagged(crowd: Crowd, model: Any) -> np.ndarray:
    cards = score_workers(
        crowd.annotations,
        model.posterior_,
        confusion=model.confusion_,
        tempering_exponent=model.tempering_exponent_,
        collusion_group=model.collusion_group_,
    )
    return np.array([bool(set(alerts) & set(ACCUSATIONS)) for alerts in cards.alerts], bool)


def _calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    order = np.argsort(confidence, kind="stable")
    gaps = [abs(confidence[part].mean() - right[part].mean()) * len(part) for part in np.array_split(order, BINS)]
    return float(sum(gaps) / len(order))


def _row(attack: str, n_classes: int, share: float, outcomes: list[Outcome]) -> float:
    accuracy, ece = (np.mean([getattr(o, name) for o in outcomes], axis=0) for name in ("accuracy", "ece"))
    flagged = [np.mean([getattr(o, name) for o in outcomes]) for name in ("flagged_bad", "flagged_honest")]
    behind = 100 * (accuracy[1] - accuracy[0])
    cells = [attack, n_classes, f"{share:.0%}", *(f"{100 * v:.1f}" for v in accuracy), f"{behind:+.1f}"]
    cells += [f"{100 * v:.1f}" for v in ece] + [f"{100 * v:.0f}" for v in flagged]
    cells.append(f"{sum(o.alert for o in outcomes):.0f} of {len(outcomes)}")
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    return float(behind)


if __name__ == "__main__":
    main()

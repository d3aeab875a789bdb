"""Labelling functions: settings of the firing model on simulated sets, and the methods on the sets of MANYHANDS_DATA.

    MANYHANDS_DATA=FOLDER python benchmarks/functions.py [--sets 300]

Settings are chosen by the first table alone, on simulated sets: the mean gain over the vote among those with few sets
more than a point behind it. The others show how often the recognition is right, how good the estimates of precision
are, and the accuracy on the real sets. Accuracy is that of the items with labels; a tie counts by the share of the tied
classes that are right.
"""

from __future__ import annotations

import argparse
import csv
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

import manyhands as mh
from manyhands.em.firing import (
    MAX_SEVERAL_CLASSES_SHARE,
    MIN_ONE_CLASS_SHARE,
    SMOOTHING,
    VOTE_FLOOR,
    VOTE_POWER,
    is_one_class_crowd,
)
from manyhands.simulate import make_crowd

REAL = ("youtube", "sms", "trec")


class Setting(NamedTuple):
    """A variant of the model."""

    narrowness: float = 0.5  # power of the number of labels by which a label of the vote is divided
    vote_power: float = VOTE_POWER
    smoothing: float = SMOOTHING
    silence: float = 1.0  # power of the likelihood of silence
    labels: float = 1.0  # power of the likelihood of labels
    steps: int = 1


SETTINGS = [
    Setting(),
    *(Setting(narrowness=value) for value in (0.0, 0.15, 0.3)),
    *(Setting(vote_power=value) for value in (0.0, 1.0, 2.0)),
    *(Setting(narrowness=0.0, vote_power=value) for value in (0.0, 1.0)),
    *(Setting(smoothing=value) for value in (3.0, 30.0)),
    *(Setting(silence=value) for value in (0.0, 0.3, 0.6)),
    *(Setting(labels=value) for value in (0.7, 1.5)),
    *(Setting(steps=value) for value in (2, 3, 5)),
]

# ----------------------------------------------------------------------------------------------------
# Simulated sets of functions.


def simulate(seed: int) -> tuple[mh.Annotations, np.ndarray]:
    """A set of functions and the truth of its items; items without labels are left out.

    Two to ten classes, balanced or not; 6 to 90 functions of various coverage and precision, whose firings are
    independent, share latent factors, or overlap as patterns on one keyword do. Some sets have functions that label a
    third of the items or more, in whose items narrow ones lie, and functions that nearly copy others.
    """
    rng = np.random.default_rng(seed)
    n_classes, n_items = int(rng.choice([2, 2, 2, 3, 4, 6, 10])), int(rng.choice([600, 2000, 5000]))
    n_functions = int(np.exp(rng.uniform(np.log(max(6, n_classes + 2)), np.log(90))))
    prior = rng.dirichlet(np.full(n_classes, rng.choice([1.5, 5.0, 50.0]))) + 0.02
    prior /= prior.sum()
    truth = rng.choice(n_classes, n_items, p=prior)
    more = rng.choice(n_classes, n_functions - n_classes, p=rng.dirichlet(np.full(n_classes, 3.0)))
    own = rng.permutation(np.concatenate([np.arange(n_classes), more]))
    fires = _copies(rng, _nested(rng, _fire(rng, truth, prior, own)), own)
    item, worker = np.nonzero(fires[covered := fires.any(axis=1)])
    ids = {"item_ids": range(int(covered.sum())), "worker_ids": range(n_functions), "classes": range(n_classes)}
    return mh.Annotations(item, worker, own[worker], **ids), truth[covered]


def _fire(rng: np.random.Generator, truth: np.ndarray, prior: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Whether each function labels each item, (n_items, n_functions)."""
    n_items, n_functions = len(truth), len(own)
    low, high = (0.001, 0.15) if rng.random() < 0.5 else (0.02, 0.35)
    coverage = np.exp(rng.uniform(np.log(low), np.log(high), n_functions))
    mean, strength = rng.uniform(0.6, 0.95), rng.choice([2.0, 5.0, 15.0])
    precision = rng.beta(mean * strength, (1 - mean) * strength, n_functions)
    broad = rng.choice(n_functions, rng.choice([0, 0, 1, 2]), replace=False)
    coverage[broad] = rng.uniform(0.3, 0.7, len(broad))
    gain = rng.uniform(-0.1, 0.35, len(broad)) * (1 - prior[own[broad]])
    precision[broad] = np.clip(prior[own[broad]] + gain, 0.02, 0.98)
    rate = np.outer(coverage * (1 - precision) / (1 - prior[own]), np.ones(len(prior)))
    uneven = rng.random(n_functions) < 0.5
    rate[uneven] *= rng.gamma(2, 0.5, (int(uneven.sum()), len(prior)))
    rate[np.arange(n_functions), own] = coverage * precision / prior[own]
    chance = np.minimum(rate, 0.92)[:, truth].T
    kind = rng.choice(["independent", "factors", "keywords"])
    if kind == "factors":
        n_factors, load = int(rng.integers(1, 5)), rng.uniform(0.3, 0.9)
        which = np.where(rng.random(n_functions) < 0.7, own % n_factors, rng.integers(0, n_factors, n_functions))
        latent = load * rng.standard_normal((n_items, n_factors))[:, which]
        return ndtr(latent + np.sqrt(1 - load**2) * rng.standard_normal(chance.shape)) < chance
    fires = rng.random(chance.shape) < chance
    if kind == "keywords":  # half of the functions label items of another one of their class, and half of their own
        alone = fires.copy()
        for j in np.flatnonzero(rng.random(n_functions) < 0.5).tolist():
            same = np.flatnonzero((own == own[j]) & (np.arange(n_functions) != j))
            if len(same):
                other = alone[:, rng.choice(same)] & (rng.random(n_items) < rng.uniform(0.3, 1.0))
                fires[:, j] = (alone[:, j] & (rng.random(n_items) < 0.5)) | other
    return fires


def _nested(rng: np.random.Generator, fires: np.ndarray) -> np.ndarray:
    """Where there is a broad function, it labels nearly all items of some narrow ones in most sets."""
    broad = np.flatnonzero(fires.mean(axis=0) > 0.28)
    if len(broad) and rng.random() < 0.6:
        inside = rng.random(fires.shape[1]) < rng.uniform(0.3, 0.9)
        inside[broad] = False
        fires[:, broad[0]] |= fires[:, inside].any(axis=1) & (rng.random(len(fires)) < 0.95)
    return fires


def _copies(rng: np.random.Generator, fires: np.ndarray, own: np.ndarray) -> np.ndarray:
    """In half of the sets, some functions label most items of another one of their class."""
    share = rng.choice([0.0, 0.0, 0.15, 0.4])
    for j in np.flatnonzero(rng.random(len(own)) < share).tolist():
        same = np.flatnonzero((own == own[j]) & (np.arange(len(own)) != j))
        if len(same):
            fires[:, j] = fires[:, rng.choice(same)] & (rng.random(len(fires)) < rng.choice([1.0, 0.95, 0.8]))
    return fires


# ----------------------------------------------------------------------------------------------------
# The model with any setting, on dense arrays.


def posterior_with(votes: mh.Annotations, setting: Setting) -> np.ndarray:
    """The posterior of the items; with the setting of the package it is that of `FiringNaiveBayes`."""
    fires = np.zeros((votes.n_items, votes.n_workers), bool)
    fires[votes.item, votes.worker] = True
    own = np.zeros(votes.n_workers, int)
    own[votes.worker] = votes.label
    weight = np.maximum(fires.sum(axis=0), 1.0) ** -setting.narrowness
    vote = np.zeros((votes.n_items, votes.n_classes))
    np.add.at(vote.T, own, (fires * weight).T)
    vote /= vote.sum(axis=1, keepdims=True)
    posterior = vote
    for _ in range(setting.steps):
        total, mean = posterior.sum(axis=0), fires.mean(axis=0)[:, None]
        rate = (fires.T.astype(float) @ posterior + setting.smoothing * mean) / (total + setting.smoothing)
        rate = np.clip(rate, 1e-6, 1 - 1e-6)
        score = setting.vote_power * np.log(vote + VOTE_FLOOR)
        score += setting.labels * (fires @ np.log(rate)) + setting.silence * (~fires @ np.log1p(-rate))
        posterior = np.exp(score - score.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def share_right(posterior: np.ndarray, truth: np.ndarray) -> float:
    """Accuracy in which a tie counts by the share of right classes; truth -1 is a class that nobody named."""
    best = posterior >= posterior.max(axis=1, keepdims=True) - 1e-9
    right = best[np.arange(len(truth)), np.maximum(truth, 0)] & (truth >= 0)
    return float(np.mean(right / best.sum(axis=1)))


def fit(name: str, votes: mh.Annotations) -> mh.Aggregator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
        return mh.registry.create(name).fit(votes, verbose=0)


# ----------------------------------------------------------------------------------------------------
# The tables.


def compare_settings(sets: list[tuple[mh.Annotations, np.ndarray]]) -> None:
    """Gain over the vote of every setting."""
    vote = np.array([share_right(fit("majority-vote", votes).posterior_, truth) for votes, truth in sets])
    rows = {"MACE": [share_right(fit("mace", votes).posterior_, truth) for votes, truth in sets]}
    rows |= {
        str(setting): [share_right(posterior_with(votes, setting), truth) for votes, truth in sets]
        for setting in SETTINGS
    }
    print(f"\n{len(sets)} simulated sets, vote {vote.mean():.3f}; gain over the vote in points")
    print("  mean   5%  worst  more than 1 behind")
    for name, right in sorted(rows.items(), key=lambda row: -np.mean(row[1])):
        gain = 100 * (np.array(right) - vote)
        behind = f"{np.mean(gain < -1):.1%}"
        print(f"{gain.mean():6.2f} {np.quantile(gain, 0.05):5.1f} {gain.min():6.1f} {behind:>7}  {name}")


def simulate_beside_classifiers(seed: int, n_classes: int, share: float) -> tuple[mh.Annotations, np.ndarray]:
    """Functions of which a share are classifiers: they give several classes, to a part of the items."""
    rng = np.random.default_rng([seed, n_classes, round(100 * share)])
    n_items, n_functions = 1500, (8, 12, 20, 40)[seed % 4]
    prior = rng.dirichlet(np.full(n_classes, 10.0))
    truth = rng.choice(n_classes, n_items, p=prior)
    own = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_functions - n_classes)])
    is_classifier = rng.random(n_functions) < share
    topics, votes = rng.standard_normal((n_items, 3)), np.full((n_items, n_functions), -1)
    for j in range(n_functions):
        coverage, precision = np.exp(rng.uniform(np.log(0.03), np.log(0.5))), rng.uniform(0.55, 0.92)
        load = rng.uniform(0, 0.8)
        latent = load * topics[:, rng.integers(3)] + np.sqrt(1 - load**2) * rng.standard_normal(n_items)
        rate = np.full(n_classes, coverage * (1 - precision) / (1 - prior[own[j]]))
        rate[own[j]] = min(coverage * precision / prior[own[j]], 0.95)
        wrong = (truth + rng.integers(1, n_classes, n_items)) % n_classes
        labels = np.where(rng.random(n_items) < precision, truth, wrong) if is_classifier[j] else own[j]
        fires = ndtr(latent) < (coverage if is_classifier[j] else np.minimum(rate, 0.97)[truth])
        votes[:, j] = np.where(fires, labels, -1)
    covered = (votes >= 0).any(axis=1)
    return mh.Annotations.from_matrix(votes[covered], classes=range(n_classes)), truth[covered]


def compare_beside_classifiers(n_sets: int) -> None:
    """Methods on sets with classifiers among the functions, by the share of classifiers."""
    names = ("majority-vote", "mace", "dawid-skene", "firing-naive-bayes", mh.registry.DEFAULT)
    print(
        f"\n{'classes, classifiers':24}{'recognised':>11}"
        + "".join(f"{name:>20}" for name in names)
        + "  worst default"
    )
    for n_classes in (2, 5):
        for share in (0.15, 0.3, 0.5, 0.75, 1.0):
            sets = [simulate_beside_classifiers(seed, n_classes, share) for seed in range(n_sets)]
            right = np.array(
                [[share_right(fit(name, votes).posterior_, truth) for name in names] for votes, truth in sets]
            )
            found = np.mean([is_one_class_crowd(votes) for votes, _ in sets])
            worst = 100 * (right[:, -1] - right[:, 0]).min()
            row = "".join(f"{value:>20.3f}" for value in right.mean(axis=0))
            print(f"{n_classes}, {share:<21.0%}{found:>11.2f}{row}{worst:>15.1f}")


def count_recognised(sets: list[tuple[mh.Annotations, np.ndarray]]) -> None:
    """How often sets of functions and ordinary crowds with constant spammers are taken for sets of functions."""
    print(f"\nrecognised as one-class workers: {np.mean([is_one_class_crowd(votes) for votes, _ in sets]):.3f} of sets")
    print(f"  limits: {MIN_ONE_CLASS_SHARE} of labels from them, {MAX_SEVERAL_CLASSES_SHARE} from others")
    rng = np.random.default_rng(0)
    for bad_share in (0.0, 0.1, 0.3, 0.5, 0.7):
        found = [is_one_class_crowd(_ordinary(rng, bad_share)) for _ in range(80)]
        print(f"  ordinary crowds with {bad_share:.0%} constant spammers: {np.mean(found):.3f}")
        found = [is_one_class_crowd(_spammers_of_all_classes(rng, bad_share)) for _ in range(80)]
        print(f"    spammers of each class, in batches and not: {np.mean(found):.3f}")


def _ordinary(rng: np.random.Generator, bad_share: float) -> mh.Annotations:
    n_classes, largest = int(rng.choice([2, 3, 5])), rng.choice([0.0, 0.8, 0.95])
    shares = None if largest == 0 else [largest] + [(1 - largest) / (n_classes - 1)] * (n_classes - 1)
    n_items, n_workers, per_item = (int(rng.choice(sizes)) for sizes in ((100, 300, 1000), (5, 20, 100), (2, 3, 5)))
    sizes = n_items, n_workers, n_classes, per_item
    seed = int(rng.integers(1 << 30))
    crowd = make_crowd(*sizes, class_shares=shares, bad="constant", bad_share=bad_share, random_state=seed)
    return crowd.annotations


def _spammers_of_all_classes(rng: np.random.Generator, bad_share: float) -> mh.Annotations:
    """Honest workers and spammers who always give a class of their own; batches of ten items or single ones."""
    n_classes, n_workers, n_items = (int(rng.choice(sizes)) for sizes in ((2, 3, 5), (8, 15, 30, 60), (60, 150, 400)))
    per_item, batch = int(rng.choice((3, 5, 8))), int(rng.choice((1, 10)))
    truth, accuracy = rng.integers(0, n_classes, n_items), np.clip(rng.normal(0.75, 0.12, n_workers), 0.3, 0.98)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_items, n_workers))) % n_classes
    votes = np.where(rng.random(wrong.shape) < accuracy, truth[:, None], wrong)
    is_bad = rng.random(n_workers) < bad_share
    votes[:, is_bad] = rng.integers(0, n_classes, n_workers)[is_bad]
    order = np.argsort(rng.random((-(-n_items // batch), n_workers)), axis=1)[np.arange(n_items) // batch]
    return mh.Annotations.from_matrix(np.where(order < per_item, votes, -1), classes=range(n_classes))


def check_precision(sets: list[tuple[mh.Annotations, np.ndarray]]) -> None:
    """Error and coverage of the intervals of the estimated precision of functions with at least 20 labels."""
    errors, inside = [], []
    for votes, truth in (pair for pair in sets if is_one_class_crowd(pair[0])):
        cards = mh.score_workers(fit(mh.registry.DEFAULT, votes), verbose=0)
        n_labels = np.bincount(votes.worker, minlength=votes.n_workers)
        right = np.bincount(votes.worker, truth[votes.item] == votes.label, votes.n_workers)
        known = n_labels >= 20
        if known.any():
            precision = (right / np.maximum(n_labels, 1))[known]
            errors.append(np.abs(cards.accuracy[known] - precision).mean())
            inside.append(np.mean((cards.accuracy_low[known] <= precision) & (precision <= cards.accuracy_high[known])))
    print(f"\nprecision: mean error {np.mean(errors):.3f}, {np.mean(inside):.0%} within the 95% interval")


def real_sets() -> Iterator[tuple[str, mh.Annotations, np.ndarray, np.ndarray]]:
    """Name, labels, truth as class codes, and which items are of the split `test`."""
    folder = os.environ.get("MANYHANDS_DATA")
    for name in REAL if folder else ():
        votes = mh.read_annotations(Path(folder) / "functions" / name / "annotations.csv", verbose=0)
        with (Path(folder) / "functions" / name / "truth.csv").open(newline="", encoding="utf-8") as lines:
            known = {row["task"]: row for row in csv.DictReader(lines)}
        code = {value: k for k, value in enumerate(votes.classes.tolist())}
        items = [known[item] for item in votes.item_ids.tolist()]
        truth = np.array([code.get(row["label"], -1) for row in items])
        yield name, votes, truth, np.array([row["split"] == "test" for row in items])


def score_real_sets() -> None:
    """Accuracy of the methods on the test items of the real sets, and on all items."""
    names = ("majority-vote", "mace", "dawid-skene", "firing-naive-bayes", mh.registry.DEFAULT)
    print(f"\n{'test items (all items)':24}" + "".join(f"{name:>20}" for name in names))
    total = []
    for name, votes, truth, is_test in real_sets():
        found = [fit(method, votes).posterior_ for method in names]
        test = [share_right(posterior[is_test], truth[is_test]) for posterior in found]
        every = [share_right(posterior, truth) for posterior in found]
        total.append(test)
        print(f"{name:24}" + "".join(f"{one:>11.3f} ({other:.3f}) " for one, other in zip(test, every)))
    if total:
        print(f"{'mean':24}" + "".join(f"{value:>11.3f}         " for value in np.mean(total, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=300, help="number of simulated sets")
    made = [simulate(seed) for seed in range(parser.parse_args().sets)]
    sets = [(votes, truth) for votes, truth in made if votes.n_items >= 50]
    votes = sets[0][0]
    assert np.allclose(posterior_with(votes, Setting()), fit("firing-naive-bayes", votes).posterior_, atol=1e-6)
    compare_settings(sets)
    compare_beside_classifiers(len(sets) // 10)
    count_recognised(sets)
    check_precision(sets)
    score_real_sets()


if __name__ == "__main__":
    main()

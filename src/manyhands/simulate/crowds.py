"""Make a crowd: planted truth, workers who err in a known way, a sparse assignment, and the labels that follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate.assignment import assign
from manyhands.simulate.attacks import ATTACKS, SYBIL_LABELS, Attack, Scene
from manyhands.simulate.workers import (
    Accuracy,
    accuracy_to_ability,
    difficulty_accuracy,
    draw_accuracy,
    draw_labels,
    draw_right_or_wrong,
    one_coin,
    random_confusion,
)
from manyhands.sorting import Codes
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

Array = npt.NDArray[np.float64]
Answer = Callable[[Codes, Codes], Codes]  # (item, worker) -> label

KINDS = ("honest", "confusion", "glad", "difficulty")


@dataclass(frozen=True, eq=False)
class Crowd:
    """Crowd labels of which everything is known.

    Attributes
    ----------
    annotations : Annotations
    truth : (n_items,) int32, the class of each item
    confusion : (n_workers, n_classes, n_classes) or None where a label depends on the item beyond its truth
    is_bad : (n_workers,) bool, the workers who were planted to do harm
    difficulty : (n_items,) or None; larger is harder
    expertise : (n_workers, n_classes) or None; how often labels are right on the easiest items
    """

    annotations: Annotations
    truth: Codes
    confusion: Array | None
    is_bad: npt.NDArray[np.bool_]
    difficulty: Array | None = None
    expertise: Array | None = None


def make_crowd(
    n_items: int = 400,
    n_workers: int = 40,
    n_classes: int = 2,
    labels_per_item: float | npt.NDArray[np.integer] = 5,
    *,
    class_shares: npt.ArrayLike | None = None,
    kind: str = "honest",
    accuracy: Accuracy = 0.8,
    spread: float = 0.0,
    bad: str = "random",
    bad_share: float = 0.0,
    target: int | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> Crowd:
    """Simulate a crowd of honest and bad workers.

    Parameters
    ----------
    n_items, n_workers, n_classes : int
    labels_per_item : a number, or one whole number for each item
    class_shares : one number for each class, or None for equal shares
    kind : how honest workers err
        "honest": one coin per worker, wrong labels spread evenly. "confusion": a random confusion matrix per worker
        around that. "glad": right with sigma(ability * easiness), `accuracy` being that on an item of easiness 1,
        the log of easiness standard normal. "difficulty": right with sigma(ability * (p - 1/2)^2), p uniform,
        `accuracy` being that on the easiest items.
    accuracy : a number, a pair (low, high) for a uniform draw, or one number for each worker
    spread : standard deviation of the workers around one given accuracy
    bad : what the bad workers do
        "random", "constant" (all say `target`), "inverted" (two classes swapped, more shifted by one), "colluding" (one
        random answer sheet for all), "sleeper" (honest in the first half of their work, then guessing), "copycat" (all
        repeat one honest worker), "sybil" (colluders, each hiding behind many ids of three labels, so that the
        crowd has more than `n_workers`), "targeted" (honest but for the class `target`, which they never admit),
        "gold-only" (right on the first tenth of the items, then guessing), "family" (good, but erring
        together), "careless" (a good answer in one of four cases, else a guess).
    bad_share : the share of the workers who are bad, drawn at random
    target : the class for "constant" (else the commonest) and "targeted" (else the rarest)
    activity : {"uniform", "zipf", "dirichlet"} or one positive weight for each worker
    random_state : int, Generator or None

    Examples
    --------
    >>> crowd = make_crowd(100, 10, labels_per_item=3, bad="constant", bad_share=0.3, target=1, random_state=0)
    >>> crowd.annotations
    Annotations(300 labels on 100 items by 10 workers, 2 classes)
    >>> crowd.confusion[crowd.is_bad][0].tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    constraints: dict[str, Constraint] = {
        "n_classes": Number(whole=True, least=2),
        "kind": OneOf(KINDS),
        "bad": OneOf(tuple(ATTACKS)),
        "bad_share": Number(least=0, most=1),
        "random_state": RandomState(),
    }
    checked = [n_classes, kind, bad, bad_share, random_state]
    check_parameters("make_crowd", dict(zip(constraints, checked)), constraints)
    rng = make_generator(random_state)
    if class_shares is not None and np.size(class_shares) != n_classes:
        raise ParameterError(
            f"There are {np.size(class_shares)} class shares for {n_classes} classes; give one for each."
        )
    truth = make_truth(n_items, n_classes if class_shares is None else class_shares, rng)
    item, worker = assign(n_items, n_workers, labels_per_item, activity, rng)
    right = draw_accuracy(n_workers, accuracy, spread, rng)
    answer, confusion, difficulty = _honest(kind, right, truth, n_classes, rng)
    annotations = make_annotations(item, worker, answer(item, worker), n_items, n_workers, n_classes)
    is_bad = np.zeros(n_workers, bool)
    is_bad[rng.permutation(n_workers)[: round(bad_share * n_workers)]] = True
    crowd = Crowd(annotations, truth, confusion, is_bad, difficulty)
    if not is_bad.any():
        return crowd
    crowd = _spoil(crowd, answer, ATTACKS[bad], _target(target, bad, truth, n_classes), rng)
    return _split_identities(crowd) if bad == "sybil" else crowd


def make_truth(n_items: int, classes: int | npt.ArrayLike, random_state: Seed = None) -> Codes:
    """Draw the truth of every item; `classes` is their number, or one share for each of them.

    >>> make_truth(5, 2, random_state=0).tolist()
    [1, 1, 1, 0, 0]
    >>> np.bincount(make_truth(1000, [10, 1], random_state=0)).tolist()
    [908, 92]
    """
    constraints: dict[str, Constraint] = {"n_items": Number(whole=True, least=1), "random_state": RandomState()}
    check_parameters("make_truth", {"n_items": n_items, "random_state": random_state}, constraints)
    rng = make_generator(random_state)
    if np.ndim(classes) == 0:
        check_parameters("make_truth", {"classes": classes}, {"classes": Number(whole=True, least=1)})
        return rng.integers(int(np.asarray(classes)), size=n_items).astype(np.int32)
    share = np.asarray(classes, float)
    if share.ndim != 1 or not np.all(share >= 0) or not 0 < share.sum() < np.inf:
        raise ParameterError(
            f"Class shares must be numbers at least 0, one for each class and not all 0. Got {classes!r}."
        )
    return rng.choice(len(share), n_items, p=share / share.sum()).astype(np.int32)


def label_items(
    truth: npt.ArrayLike,
    confusion: Array,
    labels_per_item: float | npt.NDArray[np.integer] | None = None,
    activity: str | Array = "uniform",
    random_state: Seed = None,
) -> Crowd:
    """Let workers with known confusion matrices label items of known truth; everybody labels everything by default.

    Examples
    --------
    >>> from manyhands.simulate import one_coin
    >>> crowd = label_items([0, 1, 1], one_coin([1.0, 1.0, 0.9], 2), labels_per_item=2, random_state=0)
    >>> crowd.annotations
    Annotations(6 labels on 3 items by 3 workers, 2 classes)
    """
    check_parameters("label_items", {"random_state": random_state}, {"random_state": RandomState()})
    rng = make_generator(random_state)
    n_workers, n_classes = confusion.shape[:2]
    codes = check_truth(truth, n_classes)
    n_each = n_workers if labels_per_item is None else labels_per_item
    item, worker = assign(len(codes), n_workers, n_each, activity, rng)
    label = draw_labels(confusion, worker, codes[item], rng)
    annotations = make_annotations(item, worker, label, len(codes), n_workers, n_classes)
    return Crowd(annotations, codes, confusion, np.zeros(n_workers, bool))


def check_truth(truth: npt.ArrayLike, n_classes: int) -> Codes:
    """The truth as int32 codes; refuse what is no class."""
    codes = np.asarray(truth)
    is_fine = codes.ndim == 1 and codes.size > 0 and codes.dtype.kind in "iu"
    if not is_fine or codes.min() < 0 or codes.max() >= n_classes:
        raise ParameterError(
            f"truth must be one class code from 0 to {n_classes - 1} for each item, and at least one item."
        )
    return codes.astype(np.int32)


def make_annotations(
    item: Codes, worker: Codes, label: Codes, n_items: int, n_workers: int, n_classes: int
) -> Annotations:
    """Annotations whose ids are their codes."""
    ids = {"item_ids": np.arange(n_items), "worker_ids": np.arange(n_workers), "classes": np.arange(n_classes)}
    return Annotations(item, worker, label, **ids)


def _honest(
    kind: str, right: Array, truth: Codes, n_classes: int, rng: np.random.Generator
) -> tuple[Answer, Array | None, Array | None]:
    """How an honest worker answers an item, with the confusion matrices or the difficulty behind it."""
    if kind in ("honest", "confusion"):
        confusion = one_coin(right, n_classes) if kind == "honest" else random_confusion(right, n_classes, 10.0, rng)
        return (lambda item, worker: draw_labels(confusion, worker, truth[item], rng)), confusion, None
    if kind == "glad":
        ability, easiness = accuracy_to_ability(right) / 4, np.exp(rng.normal(size=len(truth)))
        difficulty, n_guesses = 1 / easiness, 2  # whatever the number of classes, GLAD's least able are right by half
    else:
        ability, easiness = accuracy_to_ability(right, n_classes), (rng.random(len(truth)) - 0.5) ** 2
        difficulty, n_guesses = 1 - 4 * easiness, n_classes

    def answer(item: Codes, worker: Codes) -> Codes:
        chance = difficulty_accuracy(ability[worker], easiness[item], n_guesses)
        return draw_right_or_wrong(chance, truth[item], n_classes, rng)

    return answer, None, difficulty


def _target(target: int | None, bad: str, truth: Codes, n_classes: int) -> int:
    if target is not None:
        check_parameters("make_crowd", {"target": target}, {"target": Number(whole=True, least=0, most=n_classes - 1)})
        return target
    n_of_class = np.bincount(truth, minlength=n_classes)
    return int(n_of_class.argmin() if bad == "targeted" else n_of_class.argmax())


def _spoil(crowd: Crowd, answer: Answer, attack: Attack, target: int, rng: np.random.Generator) -> Crowd:
    """Write the bad workers' labels over their honest ones."""
    old, is_bad = crowd.annotations, crowd.is_bad
    model = int(np.argmax(is_bad) if attack.model_is_bad else np.argmin(is_bad))  # the first worker of that sort
    sheet = answer(np.arange(len(old), dtype=np.int32), np.full(len(old), model, np.int32))
    sheet[old.item[old.worker == model]] = old.label[old.worker == model]
    theirs = np.flatnonzero(is_bad[old.worker])
    scene = Scene(old.item[theirs], old.worker[theirs], old.label[theirs], crowd.truth, old.n_classes, target, sheet)
    label = old.label.copy()
    label[theirs] = attack.labels(scene, rng)
    annotations = make_annotations(old.item, old.worker, label, len(old), old.n_workers, old.n_classes)
    return replace(crowd, annotations=annotations, confusion=_spoilt(crowd.confusion, is_bad, model, attack, target))


def _spoilt(
    confusion: Array | None, is_bad: npt.NDArray[np.bool_], model: int, attack: Attack, target: int
) -> Array | None:
    if confusion is None:
        return None
    spoilt = confusion.copy()
    spoilt[is_bad] = [attack.confusion(one, confusion[model], target) for one in confusion[is_bad]]
    return spoilt


def _split_identities(crowd: Crowd) -> Crowd:
    """Hide every bad worker behind many ids with a few labels each; the honest workers come first."""
    old = crowd.annotations
    start, order = old.by_worker
    n_ids = np.where(crowd.is_bad, np.maximum(1, -(-np.diff(start) // SYBIL_LABELS)), 1)  # (n_workers,)
    rank = np.argsort(crowd.is_bad, kind="stable")
    first = np.empty_like(n_ids)
    first[rank] = np.cumsum(n_ids[rank]) - n_ids[rank]
    owner = np.repeat(rank, n_ids[rank])  # (n_ids,)
    nth = np.empty(old.n_annotations, np.int64)
    nth[order] = np.arange(old.n_annotations) - np.repeat(start[:-1], np.diff(start))
    worker = first[old.worker] + crowd.is_bad[old.worker] * (nth // SYBIL_LABELS)
    annotations = make_annotations(old.item, worker.astype(np.int32), old.label, len(old), len(owner), old.n_classes)
    confusion = None if crowd.confusion is None else crowd.confusion[owner]
    return replace(crowd, annotations=annotations, confusion=confusion, is_bad=crowd.is_bad[owner])

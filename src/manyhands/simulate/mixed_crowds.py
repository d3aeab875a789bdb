"""`make_crowd`: a simulated crowd of honest and bad workers.

The steps are: draw the truth, assign workers to items, draw honest labels, and replace those of the bad workers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError
from manyhands.randomness import Seed, make_generator
from manyhands.simulate.assignment import assign
from manyhands.simulate.attacks import ATTACKS, SYBIL_LABELS, Attack, AttackContext
from manyhands.simulate.crowds import Crowd, make_annotations, make_truth
from manyhands.simulate.label_draws import draw_labels, draw_right_or_wrong
from manyhands.simulate.workers import (
    Accuracy,
    accuracy_to_ability,
    difficulty_accuracy,
    draw_accuracy,
    one_coin,
    random_confusion,
)
from manyhands.sorting import Codes
from manyhands.validation import Constraint, Number, OneOf, RandomState, check_parameters

Array = npt.NDArray[np.float64]
LabelFunction = Callable[[Codes, Codes], Codes]  # (item, worker) -> label

KINDS = ("honest", "confusion", "glad", "difficulty")


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
    n_items : int, default=400
        Number of items.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=2
        Number of classes.
    labels_per_item : float or ndarray of int of shape (n_items,), default=5
        Number of labels of every item, or of each item, as in :func:`assign`.
    class_shares : array-like of shape (n_classes,), default=None
        Share of each class; equal shares if None.
    kind : {"honest", "confusion", "glad", "difficulty"}, default="honest"
        Label noise of honest workers.

        - ``"honest"``: one-coin model.
        - ``"confusion"``: a random confusion matrix for each worker around the one-coin model.
        - ``"glad"``: right with probability sigma(ability * easiness), where log easiness is standard normal and
          `accuracy` is that on an item of easiness 1.
        - ``"difficulty"``: right with probability sigma(ability * (p - 1/2)^2), where p is uniform and `accuracy` is
          that on the easiest items.
    accuracy : float, tuple of (low, high) or array-like of shape (n_workers,), default=0.8
        Accuracy of honest workers: one for all, the range of a uniform distribution, or one for each worker.
    spread : float, default=0.0
        Standard deviation of the workers' accuracies around a single `accuracy`.
    bad : str, default="random"
        Behaviour of bad workers, a key of :data:`ATTACKS`.

        - ``"random"``: spammers, uniform labels.
        - ``"constant"``: one-class spammers, always `target`.
        - ``"inverted"``: adversarial, the class after the honest label (two classes are swapped).
        - ``"colluding"``: one list of random labels for all bad workers.
        - ``"sleeper"``: honest in the first half of their labels, random in the second.
        - ``"copycat"``: all copy one honest worker.
        - ``"sybil"``: colluding workers, each split into many ids of three labels, so that the crowd has more than
          `n_workers` workers.
        - ``"targeted"``: honest, except that items of class `target` always get another label.
        - ``"gold-only"``: right on the first tenth of the items, random on the rest.
        - ``"family"``: accurate workers who make their errors together.
        - ``"careless"``: an honest label on a random quarter of the items, random labels on the rest.
    bad_share : float, default=0.0
        Share of workers who are bad; drawn at random.
    target : int, default=None
        Class code for ``"constant"`` (the most frequent class if None) and ``"targeted"`` (the rarest if None).
    activity : {"uniform", "zipf", "dirichlet"} or ndarray of shape (n_workers,), default="uniform"
        How labels are distributed over workers, as in :func:`assign`.
    random_state : int, Generator or None, default=None
        Seed or generator of all random draws.

    Returns
    -------
    Crowd
        The labels with truth, confusion matrices or difficulties, and the mask of bad workers.

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
    draw_honest, confusion, difficulty = _honest_labels(kind, right, truth, n_classes, rng)
    annotations = make_annotations(item, worker, draw_honest(item, worker), n_items, n_workers, n_classes)
    is_bad = np.zeros(n_workers, bool)
    is_bad[rng.permutation(n_workers)[: round(bad_share * n_workers)]] = True
    crowd = Crowd(annotations, truth, confusion, is_bad, difficulty)
    if not is_bad.any():
        return crowd
    crowd = _apply_attack(crowd, draw_honest, ATTACKS[bad], _target(target, bad, truth, n_classes), rng)
    return _split_identities(crowd) if bad == "sybil" else crowd


def _honest_labels(
    kind: str, right: Array, truth: Codes, n_classes: int, rng: np.random.Generator
) -> tuple[LabelFunction, Array | None, Array | None]:
    """Function that draws honest labels, with the confusion matrices or the item difficulties behind it."""
    if kind in ("honest", "confusion"):
        confusion = one_coin(right, n_classes) if kind == "honest" else random_confusion(right, n_classes, 10.0, rng)
        return (lambda item, worker: draw_labels(confusion, worker, truth[item], rng)), confusion, None
    if kind == "glad":
        ability, easiness = accuracy_to_ability(right) / 4, np.exp(rng.normal(size=len(truth)))
        difficulty, n_random = 1 / easiness, 2  # in GLAD, ability 0 means accuracy 1/2 for any number of classes
    else:
        ability, easiness = accuracy_to_ability(right, n_classes), (rng.random(len(truth)) - 0.5) ** 2
        difficulty, n_random = 1 - 4 * easiness, n_classes

    def draw(item: Codes, worker: Codes) -> Codes:
        p_right = difficulty_accuracy(ability[worker], easiness[item], n_random)
        return draw_right_or_wrong(p_right, truth[item], n_classes, rng)

    return draw, None, difficulty


def _target(target: int | None, bad: str, truth: Codes, n_classes: int) -> int:
    """The given target class; otherwise the rarest for a targeted attack and the most frequent for the others."""
    if target is not None:
        check_parameters("make_crowd", {"target": target}, {"target": Number(whole=True, least=0, most=n_classes - 1)})
        return target
    n_of_class = np.bincount(truth, minlength=n_classes)
    return int(n_of_class.argmin() if bad == "targeted" else n_of_class.argmax())


def _apply_attack(
    crowd: Crowd, draw_honest: LabelFunction, attack: Attack, target: int, rng: np.random.Generator
) -> Crowd:
    """Replace the honest labels of bad workers by those of the attack."""
    old, is_bad = crowd.annotations, crowd.is_bad
    model = int(np.argmax(is_bad) if attack.model_is_bad else np.argmin(is_bad))  # the first worker of this kind
    model_labels = draw_honest(np.arange(len(old), dtype=np.int32), np.full(len(old), model, np.int32))
    model_labels[old.item[old.worker == model]] = old.label[old.worker == model]
    theirs = np.flatnonzero(is_bad[old.worker])
    context = AttackContext(
        old.item[theirs], old.worker[theirs], old.label[theirs], crowd.truth, old.n_classes, target, model_labels
    )
    label = old.label.copy()
    label[theirs] = attack.labels(context, rng)
    annotations = make_annotations(old.item, old.worker, label, len(old), old.n_workers, old.n_classes)
    confusion = _attacked_confusion(crowd.confusion, is_bad, model, attack, target)
    return replace(crowd, annotations=annotations, confusion=confusion)


def _attacked_confusion(
    confusion: Array | None, is_bad: npt.NDArray[np.bool_], model: int, attack: Attack, target: int
) -> Array | None:
    """Confusion matrices with those of the bad workers replaced by their averages under the attack."""
    if confusion is None:
        return None
    attacked = confusion.copy()
    attacked[is_bad] = [attack.confusion(one, confusion[model], target) for one in confusion[is_bad]]
    return attacked


def _split_identities(crowd: Crowd) -> Crowd:
    """Split every bad worker into identities with a few labels each; the honest workers come first."""
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

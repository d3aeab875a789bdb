"""How bad workers answer: what they say in place of an honest label, and the confusion matrix that this amounts to.

Most attacks are no table of (worker, truth, label): colluders, copycats and families err *together*, sleepers change
with time. Their confusion matrix is what one of them shows on average; it hides exactly what makes them dangerous.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.sorting import Codes

Array = npt.NDArray[np.float64]

GOLD_SHARE = 0.1  # the first tenth of the items serves as gold for those who are good on gold only
FAMILY_LOYALTY = 0.9  # how often a member of a family gives the family's answer
CARE = 0.25  # how often a careless worker takes the trouble to look
SYBIL_LABELS = 3  # labels behind each false identity


@dataclass(frozen=True, eq=False)
class Scene:
    """What the bad workers have before them: their annotations, and what an honest worker would have said.

    `item`, `worker` and `honest` have one entry for each annotation of a bad worker, by item. `sheet` holds the
    answers of one worker, the model, to every item; `target` is the class that an attack is about.
    """

    item: Codes
    worker: Codes
    honest: Codes
    truth: Codes  # (n_items,)
    n_classes: int
    target: int
    sheet: Codes  # (n_items,)

    def guess(self, rng: np.random.Generator, n: int | None = None) -> Codes:
        return rng.integers(self.n_classes, size=len(self.item) if n is None else n, dtype=np.int32)


@dataclass(frozen=True)
class Attack:
    """What bad workers do.

    `labels(scene, rng)` stand in place of the honest ones; `confusion(honest, model, target)` is what comes of it on
    average for a worker whose honest matrix is `honest` and whose model's is `model`. Members of a family model
    themselves on one of their own, copycats on an honest worker.
    """

    labels: Callable[[Scene, np.random.Generator], Codes]
    confusion: Callable[[Array, Array, int], Array]
    model_is_bad: bool = False


def _random(scene: Scene, rng: np.random.Generator) -> Codes:
    return scene.guess(rng)


def _guessing(honest: Array, model: Array, target: int) -> Array:
    return np.full_like(honest, 1 / len(honest))


def _constant(scene: Scene, rng: np.random.Generator) -> Codes:
    return np.full(len(scene.item), scene.target, np.int32)


def _always_target(honest: Array, model: Array, target: int) -> Array:
    return np.tile(np.eye(len(honest))[target], (len(honest), 1))


def _inverted(scene: Scene, rng: np.random.Generator) -> Codes:
    return (scene.honest + 1) % scene.n_classes


def _shifted(honest: Array, model: Array, target: int) -> Array:
    return np.roll(honest, 1, axis=1)


def _colluding(scene: Scene, rng: np.random.Generator) -> Codes:
    return scene.guess(rng, len(scene.truth))[scene.item]


def _sleeper(scene: Scene, rng: np.random.Generator) -> Codes:
    """Honest in the first half of their work, which goes through the items in order; guessing from then on."""
    order = np.argsort(scene.worker, kind="stable")
    n_done = np.bincount(scene.worker)
    start = np.cumsum(n_done) - n_done
    nth = np.empty(len(order), np.int64)
    nth[order] = np.arange(len(order)) - start[scene.worker[order]]
    return np.where(2 * nth < n_done[scene.worker], scene.honest, scene.guess(rng))


def _half_guessing(honest: Array, model: Array, target: int) -> Array:
    return honest / 2 + _guessing(honest, model, target) / 2


def _copycat(scene: Scene, rng: np.random.Generator) -> Codes:
    return scene.sheet[scene.item]


def _like_model(honest: Array, model: Array, target: int) -> Array:
    return model


def _targeted(scene: Scene, rng: np.random.Generator) -> Codes:
    is_target = scene.truth[scene.item] == scene.target
    return np.where(is_target, (scene.target + 1) % scene.n_classes, scene.honest)


def _target_denied(honest: Array, model: Array, target: int) -> Array:
    denied = honest.copy()
    denied[target] = np.eye(len(honest))[(target + 1) % len(honest)]
    return denied


def _gold_only(scene: Scene, rng: np.random.Generator) -> Codes:
    is_gold = scene.item < GOLD_SHARE * len(scene.truth)
    return np.where(is_gold, scene.truth[scene.item], scene.guess(rng))


def _right_on_gold(honest: Array, model: Array, target: int) -> Array:
    return GOLD_SHARE * np.eye(len(honest)) + (1 - GOLD_SHARE) * _guessing(honest, model, target)


def _family(scene: Scene, rng: np.random.Generator) -> Codes:
    """Nearly always the answer of the head of the family, as good as an honest one: right or wrong together."""
    is_loyal = rng.random(len(scene.item)) < FAMILY_LOYALTY
    return np.where(is_loyal, scene.sheet[scene.item], scene.honest)


def _loyal(honest: Array, model: Array, target: int) -> Array:
    return FAMILY_LOYALTY * model + (1 - FAMILY_LOYALTY) * honest


def _careless(scene: Scene, rng: np.random.Generator) -> Codes:
    return np.where(rng.random(len(scene.item)) < CARE, scene.honest, scene.guess(rng))


def _seldom_looking(honest: Array, model: Array, target: int) -> Array:
    return CARE * honest + (1 - CARE) * _guessing(honest, model, target)


ATTACKS = {
    "random": Attack(_random, _guessing),
    "constant": Attack(_constant, _always_target),
    "inverted": Attack(_inverted, _shifted),
    "colluding": Attack(_colluding, _guessing),
    "sleeper": Attack(_sleeper, _half_guessing),
    "copycat": Attack(_copycat, _like_model),
    "sybil": Attack(_colluding, _guessing),  # one attacker with one answer sheet; crowds.py gives out the identities
    "targeted": Attack(_targeted, _target_denied),
    "gold-only": Attack(_gold_only, _right_on_gold),
    "family": Attack(_family, _loyal, model_is_bad=True),
    "careless": Attack(_careless, _seldom_looking),
}

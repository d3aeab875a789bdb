"""The alternative annotator test, which says whether a model may replace the annotators.

Each annotator in turn is compared with the model: which of the two is closer to the other annotators? On item i,
annotator j has S(h_j) = mean over the others k of 1[h_k = h_j] (or minus the root mean square distance, for ordered
classes), and the model S(f) likewise. The model is as good where S(f) >= S(h_j), the annotator where S(h_j) >= S(f).
The model wins against j if its share of such items is significantly larger than the annotator's minus epsilon (paired
t-test, false discovery rate over annotators by Benjamini and Yekutieli), and passes if it wins against at least half
of the annotators.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.metrics.scales import Scale, on_scale
from manyhands.trust.false_discovery import benjamini_yekutieli
from manyhands.trust.worker_kinds import find_machines
from manyhands.validation import Constraint, Number, OneOf, check_annotations, check_parameters

PASSING = 0.5  # winning rate from which on the model may replace the annotators
_CONSTRAINTS: dict[str, Constraint] = {
    "epsilon": Number(least=0, most=1),
    "level": OneOf(("nominal", "ordinal", "interval")),
    "alpha": Number(above=0, most=1),
    "min_items": Number(whole=True, least=2),
}
Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
Answer = tuple[Codes, Codes]  # items, and the label of each


@dataclass(frozen=True)
class AnnotatorTest:
    """The model against one annotator.

    Attributes
    ----------
    worker : object
        The annotator.
    n_items : int
        Items that this annotator, the model and another annotator labelled.
    machine_share : float
        Share of them on which the model is at least as close to the other annotators as this annotator.
    worker_share : float
        Share of them on which this annotator is at least as close as the model.
    p_value : float
        Of the hypothesis that the model's share is at most the annotator's minus epsilon.
    wins : bool
        Whether the hypothesis is rejected for this annotator.
    """

    worker: Any
    n_items: int
    machine_share: float
    worker_share: float
    p_value: float
    wins: bool


@dataclass(frozen=True)
class MachineTest:
    """Whether one model may replace the annotators.

    Attributes
    ----------
    machine : object
        The model.
    winning_rate : float
        Share of the annotators against whom the model wins.
    advantage_probability : float
        Mean over annotators of `AnnotatorTest.machine_share`: how often an answer of the model is at least as close to
        the others' as a person's.
    passes : bool
        Whether the winning rate is at least 0.5.
    epsilon : float
        How much worse the model's share may be.
    annotators : tuple of AnnotatorTest
        The comparison with each annotator.
    left_out : tuple, default=()
        Annotators with fewer common items than required.
    """

    machine: Any
    winning_rate: float
    advantage_probability: float
    passes: bool
    epsilon: float
    annotators: tuple[AnnotatorTest, ...]
    left_out: tuple[Any, ...] = ()

    def __str__(self) -> str:
        n_wins = sum(test.wins for test in self.annotators)
        verdict = "may replace the annotators" if self.passes else "should not replace the annotators"
        n, least = len(self.annotators), (len(self.annotators) + 1) // 2
        return (
            f"{self.machine} {verdict}: compared with each annotator in turn, it is as close to the others as {n_wins} "
            f"of {n} are; {least} are needed, and it may be {100 * self.epsilon:g} points worse because it costs less. "
            f"Its answer is at least as close as a person's in {self.advantage_probability:.0%} of the comparisons."
        )


def alt_test(
    annotations: Annotations,
    machines: Iterable[Any],
    *,
    epsilon: float = 0.1,
    level: str = "nominal",
    values: Scale | None = None,
    alpha: float = 0.05,
    min_items: int = 30,
) -> list[MachineTest]:
    """Test for each machine whether it may replace the annotators (Calderon, Reichart and Dror, 2025).

    Parameters
    ----------
    annotations : Annotations
        Labels of people and machines on the same items.
    machines : iterable of worker ids
        The workers that are machines; all others are annotators. Patterns such as ``"gpt-*"`` are allowed.
    epsilon : float, default=0.1
        By how much the model's share may be smaller because it costs less. The authors suggest 0.2 where annotators are
        experts, 0.15 where they are trained, and 0.1 for a crowd.
    level : {"nominal", "ordinal", "interval"}, default="nominal"
        How answers are compared: equal or not, or by their distance. Ordinal classes have the distance of their ranks.
    values : array-like, dict or None, default=None
        Position of each class on the scale, as in `manyhands.metrics.krippendorff_alpha`; None reads classes as
        numbers.
    alpha : float, default=0.05
        False discovery rate.
    min_items : int, default=30
        Items that an annotator must share with the model and another annotator; others are left out, because the
        t-test needs them.

    Returns
    -------
    list of MachineTest
        One per machine, in the order of the worker ids.

    Raises
    ------
    ParameterError
        If a machine is not a worker, or a parameter is not allowed.
    AnnotationError
        If there are fewer than two annotators, or none of them shares enough items with a machine.

    References
    ----------
    N. Calderon, R. Reichart and R. Dror. The alternative annotator test for LLM-as-a-judge: how to statistically
    justify replacing human annotators with LLMs. ACL 2025.

    Examples
    --------
    >>> import manyhands as mh
    >>> rows = [(i, w, (i + ((i + 7 * j) % 10 == 0)) % 2) for i in range(60) for j, w in enumerate("abc")]
    >>> rows += [(i, "model", i % 2) for i in range(60)]
    >>> result, = alt_test(mh.Annotations.from_triples(*zip(*rows)), ["model"])
    >>> result.passes, result.winning_rate
    (True, 1.0)
    """
    annotations = check_annotations(annotations)
    given = {"epsilon": epsilon, "level": level, "alpha": alpha, "min_items": min_items}
    check_parameters("alt_test", given, _CONSTRAINTS)
    workers = annotations.worker_ids.tolist()
    tested = find_machines(workers, machines)
    if not tested:
        raise ParameterError("alt_test needs at least one machine: name them in machines.")
    if len(workers) - len(tested) < 2:
        raise AnnotationError("The test compares a model with annotators, and needs at least two of them.")
    crowd = annotations if level == "nominal" else on_scale(annotations, level, values)
    numbers = None if level == "nominal" else _positions(crowd, level)
    answers = _answers(crowd)
    codes = {worker: code for code, worker in enumerate(workers)}
    names = [worker for worker in workers if worker not in set(tested)]
    counts = np.zeros((crowd.n_items, crowd.n_classes), np.int64)  # labels of people
    for name in names:
        items, labels = answers[codes[name]]
        counts[items, labels] += 1
    people = {name: answers[codes[name]] for name in names}
    return [_test_machine(name, answers[codes[name]], people, counts, numbers, given) for name in tested]


def _positions(crowd: Annotations, level: str) -> Array:
    """Return the number of each class: its rank for an ordinal scale."""
    return np.arange(crowd.n_classes, dtype=float) if level == "ordinal" else crowd.classes.astype(float)


def _answers(crowd: Annotations) -> list[Answer]:
    """Return the items of each worker, and the label of each; of several labels for one item, the last."""
    last = np.append((np.diff(crowd.item) != 0) | (np.diff(crowd.worker) != 0), True)  # sorted by item, then worker
    item, worker, label = crowd.item[last], crowd.worker[last], crowd.label[last]
    order = np.argsort(worker, kind="stable")
    bounds = np.searchsorted(worker[order], np.arange(1, crowd.n_workers))
    return list(zip(np.split(item[order], bounds), np.split(label[order], bounds)))


def _test_machine(
    machine: Any,
    answer: Answer,
    people: dict[Any, Answer],
    counts: npt.NDArray[np.int64],
    numbers: Array | None,
    given: dict[str, Any],
) -> MachineTest:
    """Compare one machine with every annotator."""
    found, left_out = [], []
    label_of = np.full(len(counts), -1)
    label_of[answer[0]] = answer[1]
    several = counts.sum(axis=1) > 1
    for worker, (items, own) in people.items():
        shared = (label_of[items] >= 0) & several[items]
        items, own = items[shared], own[shared]
        if len(items) < given["min_items"]:
            left_out.append(worker)
            continue
        others = counts[items].copy()
        others[np.arange(len(items)), own] -= 1
        found.append((worker, *_shares(label_of[items], own, others, numbers)))
    if not found:
        raise AnnotationError(
            f"No annotator shares {given['min_items']} items with {machine!r} and another annotator. Label more items "
            f"with both, or lower min_items (--min-items)."
        )
    p_values = [_p_value(machine_wins, worker_wins, given["epsilon"]) for _, machine_wins, worker_wins in found]
    wins = benjamini_yekutieli(p_values, given["alpha"])
    tests = tuple(
        AnnotatorTest(worker, len(mine), float(mine.mean()), float(theirs.mean()), p, bool(win))
        for (worker, mine, theirs), p, win in zip(found, p_values, wins)
    )
    rate = float(wins.mean())
    advantage = float(np.mean([test.machine_share for test in tests]))
    return MachineTest(machine, rate, advantage, rate >= PASSING, given["epsilon"], tests, tuple(left_out))


def _shares(
    machine: Codes, own: Codes, others: npt.NDArray[np.int64], numbers: Array | None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return on which items the machine, and on which the annotator, is at least as close to the others."""
    row = np.arange(len(own))
    if numbers is None:
        closeness = others[row, machine], others[row, own]
        return closeness[0] >= closeness[1], closeness[1] >= closeness[0]
    n, total = others.sum(axis=1), others @ numbers
    # The mean square distance to the others, without the sum of their squares, which both have in common.
    distance = [n * numbers[codes] ** 2 - 2 * numbers[codes] * total for codes in (machine, own)]
    tolerance = 1e-9 * (1 + np.abs(distance[0]))  # rounding must not decide a tie
    return distance[0] <= distance[1] + tolerance, distance[1] <= distance[0] + tolerance


def _p_value(machine: npt.NDArray[np.bool_], worker: npt.NDArray[np.bool_], epsilon: float) -> float:
    """Return the p-value of the one-sided paired t-test that the annotator's lead is at least epsilon."""
    from scipy.special import stdtr

    lead = worker.astype(float) - machine.astype(float)
    deviation, n = float(lead.std(ddof=1)), len(lead)
    if deviation == 0:
        return 0.0 if lead[0] < epsilon else 1.0
    return float(stdtr(n - 1, (lead.mean() - epsilon) / (deviation / np.sqrt(n))))

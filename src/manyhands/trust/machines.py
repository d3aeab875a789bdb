"""Machines among the workers: families of judges, the alternative annotator test, and how many votes they are worth.

The alternative annotator test (`alt_test`) says whether a model may replace the annotators. Judges that err together
count as many votes as they are worth (`effective_votes`, `down_weight_families`).

Copies of one judge are one vote: of workers of a family with the same labels on the same items, the first is kept. The
k other votes of a family on an item get the weight 1 / (1 + (k - 1) r) each, with r the mean correlation of their
errors, so that together they count as Kish's effective number of votes (`effective_votes`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.spelling import did_you_mean
from manyhands.annotations import Annotations
from manyhands.em.collusion import counted_worker
from manyhands.em.copies import Copies, find_group_and_copies, no_copies
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.metrics.vote_patterns import Bootstrap, Scale, on_scale
from manyhands.validation import Constraint, Number, OneOf, check_annotations, check_known, check_parameters

# ----------------------------------------------------------------------------------------------------
# False discovery rate of several tests that may depend on each other.


def benjamini_yekutieli(p_values: npt.ArrayLike, level: float = 0.05) -> npt.NDArray[np.bool_]:
    """Return which hypotheses are rejected, at a false discovery rate that holds under any dependence.

    With the p-values in ascending order, all up to the largest k with p_(k) <= k * level / (m * (1 + 1/2 + ... + 1/m))
    are rejected.

    References
    ----------
    Y. Benjamini and D. Yekutieli. The control of the false discovery rate in multiple testing under dependency. Annals
    of Statistics 29(4), 2001.

    Examples
    --------
    >>> benjamini_yekutieli([0.001, 0.2, 0.01]).tolist()
    [True, False, True]

    Shapes: p_values (m,); returns (m,).
    """
    p = np.asarray(p_values, float)
    m = len(p)
    if not m:
        return np.zeros(0, bool)
    order = np.argsort(p, kind="stable")
    bounds = np.arange(1, m + 1) * level / (m * (1 / np.arange(1, m + 1)).sum())
    below = np.flatnonzero(p[order] <= bounds)
    rejected = np.zeros(m, bool)
    rejected[order[: below[-1] + 1 if len(below) else 0]] = True
    return rejected


# ----------------------------------------------------------------------------------------------------
# Which workers are people and which are machines, and which machines belong to one family.

HUMAN, MACHINE = "human", "machine"
_WORDS = {
    HUMAN: "human humans person people h crowd expert annotator worker",
    MACHINE: "machine machines model models llm ai bot m judge",
}
_KIND_OF = {word: kind for kind, words in _WORDS.items() for word in words.split()}


class WorkerKind(NamedTuple):
    """What is known of a worker.

    Attributes
    ----------
    kind : {"human", "machine"}
        A person or a machine.
    family : str, default=""
        Machines of one family, such as versions of one model, form a group; all machines by default.
    model : str, default=""
        Name of the model.
    prompt : str, default=""
        Name of the prompt.
    run : str, default=""
        Name of the run.
    """

    kind: str
    family: str = ""
    model: str = ""
    prompt: str = ""
    run: str = ""


def kind_from_word(word: str) -> str | None:
    """Return the kind that a word of a table means.

    Examples
    --------
    >>> kind_from_word("LLM"), kind_from_word("Human "), kind_from_word("blue")
    ('machine', 'human', None)
    """
    return _KIND_OF.get(word.strip().casefold())


def find_machines(workers: Sequence[Any], names: Iterable[Any]) -> list[Any]:
    """Return the workers that are named, or match a pattern such as ``"gpt-*"``."""
    machines: set[int] = set()
    for name in [names] if isinstance(names, str) else names:
        matching = {at for at, worker in enumerate(workers) if worker == name or _matches(worker, name)}
        if not matching:
            hint = did_you_mean(name, [str(worker) for worker in workers])
            raise ParameterError(f"No worker is called {str(name)!r}.{hint}")
        machines |= matching
    return [workers[at] for at in sorted(machines)]


def groups_of(workers: Sequence[Any], kinds: Mapping[Any, WorkerKind]) -> dict[str, list[Any]]:
    """Return the workers of each group: people, and the machines of each family.

    Parameters
    ----------
    workers : sequence
        Ids of all workers.
    kinds : mapping of worker to WorkerKind
        What is known of them; workers that it does not name are people.

    Returns
    -------
    dict of str to list
        ``"humans"`` first, then ``"machines"``, or one group per family of machines that is named.
    """
    groups: dict[str, list[Any]] = {}
    for worker in workers:
        description = kinds.get(worker)
        if description is None or description.kind == HUMAN:
            groups.setdefault("humans", []).append(worker)
        else:
            groups.setdefault(description.family or "machines", []).append(worker)
    return dict(sorted(groups.items(), key=lambda group: group[0] != "humans"))


def _matches(worker: Any, pattern: Any) -> bool:
    """Whether a worker's id matches a pattern."""
    return isinstance(worker, str) and isinstance(pattern, str) and fnmatchcase(worker, pattern)


# ----------------------------------------------------------------------------------------------------
# The alternative annotator test, which says whether a model may replace the annotators.
#
# Each annotator in turn is compared with the model: which of the two is closer to the other annotators? On item i,
# annotator j has S(h_j) = mean over the others k of 1[h_k = h_j] (or minus the root mean square distance, for ordered
# classes), and the model S(f) likewise. The model is as good where S(f) >= S(h_j), the annotator where S(h_j) >= S(f).
# The model wins against j if its share of such items is significantly larger than the annotator's minus epsilon (paired
# t-test, false discovery rate over annotators by Benjamini and Yekutieli), and passes if it wins against at least half
# of the annotators.

PASSING = 0.5  # winning rate from which on the model may replace the annotators
_CONSTRAINTS: dict[str, Constraint] = {
    "epsilon": Number(least=0, most=1),
    "level": OneOf(("nominal", "ordinal", "interval")),
    "alpha": Number(above=0, most=1),
    "min_items": Number(whole=True, least=2),
}
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
        raise ParameterError("alt_test needs at least one machine: name them in `machines`.")
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
    rates, left_out = [], []
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
        rates.append((worker, *_shares(label_of[items], own, others, numbers)))
    if not rates:
        raise AnnotationError(
            f"No annotator shares {given['min_items']} items with {machine!r} and another annotator. Label more items "
            f"with both, or lower `min_items`."
        )
    p_values = [_p_value(machine_wins, worker_wins, given["epsilon"]) for _, machine_wins, worker_wins in rates]
    wins = benjamini_yekutieli(p_values, given["alpha"])
    tests = tuple(
        AnnotatorTest(worker, len(mine), float(mine.mean()), float(theirs.mean()), p, bool(win))
        for (worker, mine, theirs), p, win in zip(rates, p_values, wins)
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


# ----------------------------------------------------------------------------------------------------
# Reference labels with the probability that they are wrong, to which the labels of other workers are compared.

_MOST_PAIRS = 2_000_000  # pairs of labels on common items; with more, evenly spaced items are used
_CHUNK = 1 << 16  # pairs whose reference is computed at a time


@dataclass(frozen=True)
class Reference:
    """Log-odds of the classes of each item, by a one-coin model of the workers that decide the reference."""

    # (n_items, n_classes); logarithm of the posterior up to a constant: class prior, and the weight of each label
    scores: Array
    weight: Array  # (n_annotations,); weight of each label; 0 for those that do not decide the reference
    voted: Codes  # (n_items,); number of labels that decide it

    def of_pairs(self, annotations: Annotations, a: Codes, b: Codes) -> tuple[Codes, Array]:
        """Return the reference of each pair of labels, which neither of the two decides.

        Shapes: a (n_pairs,); b (n_pairs,); returns label (n_pairs,); returns wrong (n_pairs,).
        """
        label, wrong = np.empty(len(a), np.int64), np.empty(len(a))
        for start in range(0, len(a), _CHUNK):
            part = slice(start, start + _CHUNK)
            item = annotations.item[a[part]]
            scores, row, left = self.scores[item].copy(), np.arange(len(item)), self.voted[item].copy()
            for at in (a[part], b[part]):
                weight = self.weight[at]
                scores[row, annotations.label[at]] -= weight
                left -= weight != 0
            scores -= scores.max(axis=1, keepdims=True)
            odds = np.exp(scores)
            label[part] = np.where(left > 0, scores.argmax(axis=1), -1)
            wrong[part] = 1 - 1 / odds.sum(axis=1)
        return label, wrong


def fit_reference(annotations: Annotations, voters: npt.NDArray[np.bool_]) -> Reference:
    """Fit a one-coin model to the labels that decide the reference.

    Shapes: voters (n_annotations,).
    """
    from manyhands.aggregation.one_coin import OneCoin

    codes = [column[voters] for column in (annotations.item, annotations.worker, annotations.label)]
    ids = {"item_ids": np.arange(annotations.n_items), "worker_ids": np.arange(annotations.n_workers)}
    chosen = Annotations(*codes, **ids, classes=np.arange(annotations.n_classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # notes on a fit that only serves to compare
        model: Any = OneCoin().fit(chosen)
    k = annotations.n_classes
    right = np.clip(model.accuracy_, 1e-3, 1 - 1e-3)
    weight = np.where(voters, np.log(right * max(k - 1, 1) / (1 - right))[annotations.worker], 0.0)
    scores = np.tile(np.log(np.maximum(model.class_prior_, 1e-12)), (annotations.n_items, 1))
    np.add.at(scores, (codes[0], codes[2]), weight[voters])
    return Reference(scores, weight, np.bincount(codes[0], minlength=annotations.n_items))


def label_pairs(annotations: Annotations, inside: npt.NDArray[np.bool_]) -> tuple[Codes, Codes]:
    """Return the places of both labels of every pair of different workers on one item.

    Shapes: inside (n_annotations,); returns a (n_pairs,); returns b (n_pairs,).
    """
    rows = np.flatnonzero(inside)
    item = annotations.item[rows]
    size = np.bincount(item, minlength=annotations.n_items)
    n_pairs = int((size * (size - 1) // 2).sum())
    if n_pairs > _MOST_PAIRS:
        rows = rows[item % -(-n_pairs // _MOST_PAIRS) == 0]
        item = annotations.item[rows]
        size = np.bincount(item, minlength=annotations.n_items)
    later = np.cumsum(size)[item] - np.arange(len(rows)) - 1  # labels of the item after this one: rows are sorted
    first = np.repeat(np.arange(len(rows)), later)
    second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    a, b = rows[first], rows[second]
    different = annotations.worker[a] != annotations.worker[b]
    return a[different], b[different]


# ----------------------------------------------------------------------------------------------------
# Effective number of votes: how many independent votes the correlated votes of a group are worth.
#
# Kish's formula: k votes whose errors have the mean correlation r are worth k / (1 + (k - 1) r) independent ones. An
# error is a label that differs from the reference: a known answer, else the class that a one-coin model gives to the
# item from the labels of the reference workers, without the two labels that are compared. That reference is wrong
# with a probability q, which would make independent workers seem to err together. So rates are corrected, with errors
# spread over the other K - 1 classes: a label with error rate p differs from the reference with probability (1 - q) p
# + q (1 - p / (K - 1)), and two labels that are both wrong with probability c both differ from it with probability (1
# - q) c + q (1 - (p + p' - c) / (K - 1)).
#
# Workers who copy one another (`em.copies`) count as one vote. Kish's formula has one r for all pairs; one pair of
# copies among independent workers would take more than their second vote from the crowd, and decide the reference.

ALL = "all workers"
HUMANS = "humans"
_FEWEST = 3  # workers that can decide a reference
_WORST = 0.3  # probability of being wrong from which on a reference is not used
_DEVIATION = 0.02  # least standard deviation of a worker's errors; those of perfect workers cannot be correlated


@dataclass(frozen=True)
class EffectiveVotes:
    """What the votes of one group of workers are worth.

    Attributes
    ----------
    group : str
        Name of the group.
    n_workers : int
        Workers of the group that have labels.
    n_items : int
        Items with at least one label of the group.
    votes : float
        Mean number of labels of the group per item.
    correlation : float
        Mean correlation of errors; NaN if no two workers can be compared.
    correlation_low : float
        Lower end of its 95% interval, over items.
    correlation_high : float
        Upper end.
    effective_votes : float
        Mean over items of k / (1 + (k - 1) r), with r = 0 where the correlation is negative.
    low : float
        Lower end of its 95% interval.
    high : float
        Upper end.
    reference : str
        What labels were compared with.
    n_pairs : int
        Pairs of labels that were compared.
    n_copying : int, default=0
        Workers of the group who copy one another. On each item one of them counts, in the effective votes and in the
        correlation, unless the group consists of copies only.
    """

    group: str
    n_workers: int
    n_items: int
    votes: float
    correlation: float
    correlation_low: float
    correlation_high: float
    effective_votes: float
    low: float
    high: float
    reference: str
    n_pairs: int
    n_copying: int = 0

    def __str__(self) -> str:
        if np.isnan(self.correlation):
            return f"{self.group}: no two workers can be compared with a third, so the worth of their votes is unknown."
        return (
            f"{self.group}: {self.votes:.3g} votes per item are worth {self.effective_votes:.2g} independent ones "
            f"(95% interval {self.low:.2g} to {self.high:.2g})."
        )


def effective_votes(
    annotations: Annotations,
    groups: Mapping[str, Iterable[Any]] | None = None,
    *,
    reference: str | None = HUMANS,
    answers: Mapping[Any, Any] | None = None,
    together: bool = False,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> list[EffectiveVotes]:
    """Compute how many independent votes the votes of each group of workers are worth.

    Workers who copy one another, as the default method finds them, count as one vote. Without answers, errors that the
    compared workers share with the reference cannot be seen. The figure is then an upper bound, in particular where the
    reference is the group itself.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    groups : mapping of str to iterable of worker ids, or None, default=None
        Workers whose errors may be correlated, such as the people and each family of machines; None puts all workers
        into one group.
    reference : str or None, default="humans"
        Group that decides the reference of the other groups. Its own workers, and those of all groups if there is no
        such group, are compared with the rest of their group; if fewer than three workers would decide, all do.
    answers : mapping of item to class or None, default=None
        Known answers; they replace the reference, and only their items are used.
    together : bool, default=False
        Add all workers of the groups as one group, with the same reference. Compared with themselves, as in a call
        without groups, workers who err together would partly decide that they are right, and all votes could seem to
        be worth more than those of the groups added up.
    n_bootstrap : int, default=1000
        Resamples of the items for the intervals; 0 for none.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    list of EffectiveVotes
        One per group, and that of all workers last, if asked for.

    Raises
    ------
    ParameterError
        If a group names an unknown worker, or a worker is in two groups.

    References
    ----------
    L. Kish. Survey Sampling. Wiley, 1965.

    Examples
    --------
    >>> import manyhands as mh
    >>> rows = [(i, w, int(i % 5 == 0)) for i in range(40) for w in ("model", "copy")]
    >>> rows += [(i, w, int(i % 10 == 3 + j)) for i in range(40) for j, w in enumerate("abc")]
    >>> votes = mh.Annotations.from_triples(*zip(*rows))
    >>> machines, humans = effective_votes(votes, {"machines": ["model", "copy"], "humans": "abc"})
    >>> machines.votes, round(machines.effective_votes, 1), machines.reference
    (2.0, 1.0, 'humans')
    """
    annotations = check_annotations(annotations)
    bootstrap = Bootstrap(n_bootstrap, 0.95, random_state)
    bootstrap.check("effective_votes")
    copies = find_group_and_copies(annotations)[1]
    return _worth_of_groups(annotations, groups, reference, answers, together, bootstrap, copies)


def _worth_of_groups(
    annotations: Annotations,
    groups: Mapping[str, Iterable[Any]] | None,
    reference: str | None,
    answers: Mapping[Any, Any] | None,
    together: bool,
    bootstrap: Bootstrap,
    copies: Copies,
) -> list[EffectiveVotes]:
    """Return what `effective_votes` does, with these copies counted as one vote."""
    group_of, names = _numbered(annotations, groups)
    truth = None if answers is None else _known(annotations, answers)
    labelled = np.bincount(annotations.worker, minlength=annotations.n_workers) > 0
    members = {name: group_of == at for at, name in enumerate(names)}
    if together:
        members |= {ALL: group_of >= 0}
    votes = []
    for name, is_member in members.items():
        decides, told = members[reference if reference in names else name], reference
        if (decides & labelled).sum() < _FEWEST:  # the accuracies of two workers cannot be estimated from their labels
            decides, told = labelled, ALL
        elif decides[is_member].all():
            told = "the same group"
        told = str(told) if truth is None else "known answers"
        inside = is_member[annotations.worker]
        counts = _counted(annotations, is_member, copies)
        if len(np.unique(annotations.worker[counts])) < 2:  # copies of one worker: their errors say that it is one vote
            counts = inside
        pairs = _compare(annotations, counts, _counted(annotations, decides, copies), truth)
        votes.append(_measure(annotations, name, inside, counts, pairs, told, bootstrap, _n_copying(is_member, copies)))
    return votes


def _counted(annotations: Annotations, is_member: npt.NDArray[np.bool_], copies: Copies) -> npt.NDArray[np.bool_]:
    """Return the labels of members, of copies among them one on each item; shape (n_annotations,)."""
    group = np.where(is_member, copies.group, -1)
    return is_member[annotations.worker] & (counted_worker(annotations, group, copies.rank) == annotations.worker)


def _n_copying(is_member: npt.NDArray[np.bool_], copies: Copies) -> int:
    """Return how many members copy another member."""
    size = np.bincount(copies.group[is_member & copies.members])
    return int(size[size > 1].sum())


def _numbered(
    annotations: Annotations, groups: Mapping[str, Iterable[Any]] | None
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Return the number of each worker's group, -1 for none, and the names of the groups."""
    workers = annotations.worker_ids.tolist()
    if groups is None:
        return np.zeros(len(workers), np.int64), [ALL]
    code = {worker: at for at, worker in enumerate(workers)}
    group_of = np.full(len(workers), -1)
    for number, (name, members) in enumerate(groups.items()):
        chosen = list(members)
        unknown = next((worker for worker in chosen if worker not in code), None)
        if unknown is not None:
            raise ParameterError(f"The group {name!r} names {unknown!r}, who is not a worker of these annotations.")
        at = [code[worker] for worker in chosen]
        twice = next((worker for worker, c in zip(chosen, at) if group_of[c] not in (-1, number)), None)
        if twice is not None:
            raise ParameterError(f"The worker {twice!r} is in two groups.")
        group_of[at] = number
    return group_of, list(groups)


def _known(annotations: Annotations, answers: Mapping[Any, Any]) -> npt.NDArray[np.int64]:
    """Return the code of the known class of each item, -1 where it is not known."""
    check_known(answers, annotations.item_ids.tolist(), "Items of answers are", "Name items of the annotations.")
    class_of = {name: code for code, name in enumerate(annotations.classes.tolist())}
    # A known class that nobody chose is a reference that every label differs from.
    codes = [class_of.get(answers[i], len(class_of)) if i in answers else -1 for i in annotations.item_ids.tolist()]
    return np.array(codes, np.int64)


@dataclass(frozen=True)
class _Pairs:
    """Pairs of labels on one item, compared with a reference that is wrong with probability q."""

    item: Codes
    workers: tuple[Codes, Codes]
    differs: tuple[Array, Array]
    q: Array


def _compare(
    annotations: Annotations,
    counts: npt.NDArray[np.bool_],
    decides: npt.NDArray[np.bool_],
    truth: npt.NDArray[np.int64] | None,
) -> _Pairs:
    """Compare every two labels of a group on one item with the reference of the item.

    Shapes: counts (n_annotations,); decides (n_annotations,).
    """
    a, b = label_pairs(annotations, counts)
    label: Codes
    if truth is not None:
        label, q = truth[annotations.item[a]], np.zeros(len(a))
    else:
        label, q = fit_reference(annotations, decides).of_pairs(annotations, a, b)
    keep = (label >= 0) & (q <= _WORST)
    a, b, label, q = a[keep], b[keep], label[keep], q[keep]
    differs = ((annotations.label[a] != label).astype(float), (annotations.label[b] != label).astype(float))
    return _Pairs(annotations.item[a], (annotations.worker[a], annotations.worker[b]), differs, q)


def _measure(
    annotations: Annotations,
    name: str,
    inside: npt.NDArray[np.bool_],
    counts: npt.NDArray[np.bool_],
    pairs: _Pairs,
    reference: str,
    bootstrap: Bootstrap,
    n_copying: int,
) -> EffectiveVotes:
    """Measure one group.

    Shapes: inside (n_annotations,); counts (n_annotations,).
    """
    given = np.bincount(annotations.item[inside], minlength=annotations.n_items)
    size = np.bincount(annotations.item[counts], minlength=annotations.n_items)
    used = size > 0
    product, scale = (sums[used] for sums in _by_item(pairs, annotations))

    def statistics(weights: Array) -> Array:
        """Return correlation and effective votes of each resample of the items."""
        with np.errstate(invalid="ignore", divide="ignore"):
            r = (weights @ product) / (weights @ scale)
        r = np.where(np.isfinite(r), np.minimum(r, 1), np.nan)
        return np.stack([r, _worth(size[used], weights, r)], axis=1)

    count = np.ones(int(used.sum()), np.int64)
    r, worth = statistics(count[None].astype(float))[0].tolist() if len(count) else (math.nan, math.nan)
    low, high = bootstrap.interval(statistics, count, 4) if len(count) else (np.full(2, np.nan), np.full(2, np.nan))
    return EffectiveVotes(
        name,
        n_workers=len(np.unique(annotations.worker[inside])),
        n_items=len(count),
        votes=float(given[used].mean()) if len(count) else 0.0,
        correlation=r,
        correlation_low=float(low[0]),
        correlation_high=float(high[0]),
        effective_votes=worth,
        low=float(low[1]),
        high=float(high[1]),
        reference=reference,
        n_pairs=len(pairs.item),
        n_copying=n_copying,
    )


def _by_item(pairs: _Pairs, annotations: Annotations) -> tuple[Array, ...]:
    """Return, for each item, the sum over pairs of the covariance of errors, and of their standard deviations."""
    others = max(annotations.n_classes - 1, 1)
    above, below = np.zeros(annotations.n_workers), np.zeros(annotations.n_workers)
    for worker, differs in zip(pairs.workers, pairs.differs):
        above += np.bincount(worker, differs - pairs.q, annotations.n_workers)
        below += np.bincount(worker, 1 - pairs.q - pairs.q / others, annotations.n_workers)
    rate = np.clip(np.divide(above, below, out=np.zeros_like(above), where=below > 0), 0, 1)
    p, p_other = rate[pairs.workers[0]], rate[pairs.workers[1]]
    kept = 1 - pairs.q - pairs.q / others
    errs, other_errs = ((differs - pairs.q) / kept for differs in pairs.differs)
    both = pairs.differs[0] * pairs.differs[1] - pairs.q * (1 - (p + p_other) / others)
    both = both / (1 - pairs.q + pairs.q / others)
    covariance = both - p * other_errs - p_other * errs + p * p_other  # (e - p)(e' - p') if the reference is right
    deviation = np.maximum(np.sqrt(rate * (1 - rate)), _DEVIATION)
    scale = deviation[pairs.workers[0]] * deviation[pairs.workers[1]]
    return tuple(np.bincount(pairs.item, values, annotations.n_items).astype(float) for values in (covariance, scale))


def _worth(size: npt.NDArray[np.int64], weights: Array, correlation: Array) -> Array:
    """Return the mean over items of k / (1 + (k - 1) r) for each resample, by the sizes that occur."""
    sizes, at = np.unique(size, return_inverse=True)
    share = np.stack([weights[:, at == code].sum(axis=1) for code in range(len(sizes))], axis=1)
    r = np.maximum(correlation, 0)[:, None]
    worth = sizes / (1 + (sizes - 1) * r)
    return np.asarray((share * worth).sum(axis=1) / share.sum(axis=1))


# ----------------------------------------------------------------------------------------------------
# Families as many votes as they are worth.


def down_weight_families(
    annotations: Annotations,
    families: Mapping[str, Iterable[Any]],
    *,
    reference: str | None = HUMANS,
    answers: Mapping[Any, Any] | None = None,
) -> Annotations:
    """Give the labels of each family the weights that their errors allow; copies of a judge count once.

    Methods that take weights then count six language models as the two or three independent votes that they are worth,
    and a judge that is copied k times as one.

    Parameters
    ----------
    annotations : Annotations
        The labels of all workers.
    families : mapping of str to iterable of worker ids
        Workers whose errors may be correlated, such as the versions of one model. Others keep their weights.
    reference : str or None, default="humans"
        Group that decides how often judges err (`effective_votes`); its own weights stay.
    answers : mapping of item to class or None, default=None
        Known answers, which then decide it.

    Returns
    -------
    Annotations
        With weights; copies have no labels. All items, workers and classes stay.

    Raises
    ------
    ParameterError
        If a family names an unknown worker, or a worker is in two families.

    Warns
    -----
    CrowdWarning
        ``unknown_correlation`` for a family whose errors cannot be compared; its weights stay.

    Examples
    --------
    >>> import manyhands as mh
    >>> rows = [(i, w, int(i % 5 == 0)) for i in range(40) for w in ("gpt", "copy")]
    >>> rows += [(i, w, int(i % 10 == 3 + j)) for i in range(40) for j, w in enumerate("abc")]
    >>> votes = mh.Annotations.from_triples(*zip(*rows))
    >>> down_weight_families(votes, {"machines": ["gpt", "copy"], "humans": "abc"})
    Annotations(160 labels on 40 items by 5 workers, 2 classes)
    """
    annotations = check_annotations(annotations, takes_weights=True)
    members = {name: list(workers) for name, workers in families.items()}
    kept = annotations.keep(~_is_copy(annotations, members, reference)[annotations.worker])
    weight = np.ones(kept.n_annotations) if kept.weight is None else kept.weight.copy()
    # A near copy gets a weight like the others of its family, from the correlation of all of them.
    everybody, no_intervals = no_copies(kept.n_workers), Bootstrap(0, 0.95, 0)
    worth = _worth_of_groups(kept.strongest_labels(), members, reference, answers, False, no_intervals, everybody)
    code = {worker: at for at, worker in enumerate(kept.worker_ids.tolist())}
    for group in worth:
        if group.group == reference or group.n_workers < 2:
            continue
        if np.isnan(group.correlation):
            note = f"The errors of the family {group.group!r} cannot be compared; its votes keep their weights."
            warnings.warn(f"unknown_correlation: {note}", CrowdWarning, stacklevel=2)
            continue
        inside = np.isin(kept.worker, [code[worker] for worker in members[group.group]])
        n_votes = kept.keep(inside).n_voters[kept.item[inside]]
        weight[inside] /= 1.0 + (n_votes - 1) * min(max(group.correlation, 0.0), 1.0)
    return kept._with(kept.item, kept.worker, kept.label, weight=weight)


def _is_copy(
    annotations: Annotations, members: Mapping[str, list[Any]], reference: str | None
) -> npt.NDArray[np.bool_]:
    """Whether each worker has exactly the labels of a worker before them in the same family."""
    code = {worker: at for at, worker in enumerate(annotations.worker_ids.tolist())}
    groups = annotations.by_worker
    weight = np.ones(annotations.n_annotations) if annotations.weight is None else annotations.weight
    is_copy = np.zeros(annotations.n_workers, bool)
    for name, workers in members.items():
        seen: set[bytes] = set()
        for worker in [] if name == reference else workers:
            if worker not in code:
                continue  # `effective_votes` names it
            rows = groups.order[groups.start[code[worker]] : groups.start[code[worker] + 1]]
            labels = b"".join(column[rows].tobytes() for column in (annotations.item, annotations.label, weight))
            is_copy[code[worker]] = len(rows) > 0 and labels in seen
            seen.add(labels)
    return is_copy

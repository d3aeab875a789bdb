"""Copies: workers who repeat the labels of another worker, and how a group of them counts as one vote.

Independent workers agree because both are right, and on hard items they make the same errors. A copier agrees with
their source beyond that, which shows most where the source is wrong or in the minority. For workers x and y let

    p_i = p(y gives the label of x to item i | the labels of all others on i, and that of x)

if they are independent given the truth. If y copies with probability c and labels independently otherwise, the labels
are equal with probability c + (1 - c) p_i, and the log-likelihood ratio of "y copies" is

    L(c) = sum over common items of   log(c / p_i + 1 - c)  if equal,   log(1 - c)  otherwise

`find_copies` has four steps.

1. Equal labels are counted for every two workers who met. A simple p_i, the share of the other labels of the item that
   equal the label, leaves few candidates; most crowds have none, and nothing else is computed.
2. Candidates count as one vote in a fit by EM. The truth of an item follows from it without the two workers of a pair,
   the confusion matrix of each worker from that truth, and p_i from both.
3. p_i is raised to what the other pairs of this crowd show, because hard items and shared confusions make all workers
   agree; and L is lowered by what is gained if the two workers are better than their agreement with the others says.
4. Pairs whose L passes the thresholds are copies. Groups are the connected components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from manyhands._core import elementary
from manyhands._core.arrays import Array, Codes, Mask
from manyhands.annotations import Annotations
from manyhands.em.collusion import (
    MIN_LABELS,
    CollusionGroups,
    LabelPairs,
    counted_worker,
    find_colluding_groups,
    label_pairs,
    without_copies,
)
from manyhands.em.confusion_em import fit_confusion_em
from manyhands.em.kernels import are_small_tables, sums_by
from manyhands.em.pooled_noise import PooledNoise
from manyhands.em.priors import EstimatedPrior

# ----------------------------------------------------------------------------------------------------
# Groups of copies, and the labels that count.


@dataclass(frozen=True, eq=False)
class Copies:
    """Groups of workers of whom only one counts on each item."""

    group: Codes  # (n_workers,); number of the group of each worker, -1 for workers in none
    # (n_workers,); within a group, the label of the worker with the lowest rank counts: the one whose labels equal most
    # labels of others
    rank: Codes
    x: Codes  # (n_pairs,); code of the first worker of each pair found
    y: Codes  # (n_pairs,); code of the second worker
    n_common: Codes  # (n_pairs,); number of common items that were compared
    n_equal: Codes  # (n_pairs,); number of these on which their labels are equal
    n_expected: Array  # (n_pairs,); the number expected of independent workers

    def __bool__(self) -> bool:
        return bool(self.members.any())

    @cached_property
    def members(self) -> Mask:
        """Workers who belong to a group, shape (n_workers,)."""
        return np.asarray(self.group >= 0)

    def groups(self) -> list[list[int]]:
        """Worker codes of each group, the one whose labels count first."""
        codes = np.flatnonzero(self.members)
        codes = codes[np.lexsort((self.rank[codes], self.group[codes]))]
        cuts = np.flatnonzero(np.diff(self.group[codes])) + 1
        return [part.tolist() for part in np.split(codes, cuts) if len(part)]

    def without(self, annotations: Annotations) -> Annotations:
        """The labels that count: on each item, those of one worker of each group."""
        return without_copies(annotations, self.group, self.rank)

    def counted_worker(self, annotations: Annotations) -> Codes:
        """The worker whose labels count for the group of each label on its item, shape (n_annotations,)."""
        return counted_worker(annotations, self.group, self.rank)

    def lead(self) -> Codes:
        """The worker whose labels count first in the group of each worker; the worker in no group. (n_workers,)."""
        first = np.arange(len(self.group))
        for codes in self.groups():
            first[codes] = codes[0]
        return first


def no_copies(n_workers: int) -> Copies:
    """No groups."""
    none = np.zeros(0, np.int64)
    return Copies(np.full(n_workers, -1), np.zeros(n_workers, np.int64), none, none, none, none, np.zeros(0))


# ----------------------------------------------------------------------------------------------------
# Candidates: pairs of workers whose agreement the other labels of the items do not explain.

MIN_WORKERS = 5  # two copies and three others: with fewer there is nothing to compare with
MIN_COMMON = 10  # items that both labelled; fewer equal labels are no evidence, and do little harm
MIN_AGREEMENT = 0.8  # on common items; who copies 80 % agrees on more than that
_MAX_PAIRS = 500_000  # pairs of labels used at most: a twentieth of the time of a fit of a million labels
_MAX_CELLS = 4_000_000  # pairs of workers that are counted in a table; more are sorted
_SCREEN = 2.0  # log-likelihood ratio of a candidate; below the thresholds, because its p_i is rough
_SCREEN_SHARE = 0.5  # of the threshold of a crowd with many pairs
_SCREEN_RATES = (0.6, 0.7, 0.8, 0.9, 0.97)  # values of c: a coarse grid of `_RATES`, as a screen needs no better one
_LEAST = 0.01  # p_i is at least this, and 1 - p_i: bounds the evidence of one item


class Couples(NamedTuple):
    """Pairs of workers, and the pairs of labels that they gave to common items."""

    x: Codes  # (n_couples,); first worker, coded as in the `LabelPairs`
    y: Codes  # (n_couples,); second worker
    n_common: Codes  # (n_couples,)
    n_equal: Codes  # (n_couples,)
    row: Codes  # (n_rows,); position of each pair of labels in the `LabelPairs`
    which: Codes  # (n_rows,); the couple that it belongs to

    def part(self, chosen: Codes) -> Couples:
        """Some of the couples.

        Shapes: chosen (n_chosen,).
        """
        code = np.full(len(self.x), -1)
        code[chosen] = np.arange(len(chosen))
        inside = code[self.which] >= 0
        x, y, n_common, n_equal = (column[chosen] for column in (self.x, self.y, self.n_common, self.n_equal))
        return Couples(x, y, n_common, n_equal, self.row[inside], code[self.which[inside]])


def agreeing_couples(pairs: LabelPairs) -> Couples:
    """Pairs of workers with enough common items, and equal labels on most of them; no table of all pairs is made."""
    n_workers = len(pairs.workers)
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    key = np.minimum(x, y) * n_workers + np.maximum(x, y)
    if n_workers**2 <= _MAX_CELLS:
        couple = np.flatnonzero(np.bincount(key, minlength=n_workers**2) >= MIN_COMMON)
    else:
        ordered = np.sort(key)
        couple = np.unique(ordered[MIN_COMMON - 1 :][ordered[MIN_COMMON - 1 :] == ordered[: 1 - MIN_COMMON]])
    if len(couple) == 0:
        none = np.zeros(0, np.int64)
        return Couples(none, none, none, none, none, none)
    which = np.minimum(np.searchsorted(couple, key), len(couple) - 1)
    row = np.flatnonzero(couple[which] == key)
    which = which[row]
    n_common = np.bincount(which, minlength=len(couple))
    n_equal = np.bincount(which[pairs.equal[row]], minlength=len(couple))
    couples = Couples(couple // n_workers, couple % n_workers, n_common, n_equal, row, which)
    return couples.part(np.flatnonzero(n_equal >= MIN_AGREEMENT * n_common))


def log_ratios(p: Array, equal: Mask, which: Codes, n_couples: int, rates: Sequence[float]) -> Array:
    """L(c) of each couple, for several c.

    Shapes: p (n_rows,); equal (n_rows,); which (n_rows,); returns (n_rates, n_couples).
    """
    p, inside = p[equal], which[equal]
    n_unequal = np.bincount(which[~equal], minlength=n_couples)
    return np.stack(
        [
            sums_by(inside, elementary.log(c / p + (1.0 - c)), n_couples) + n_unequal * float(elementary.log(1.0 - c))
            for c in rates
        ]
    )


def _screen(pairs: LabelPairs, couples: Couples) -> Array:
    """The largest L(c) of each couple with a simple p_i, from the other labels of the item and the two workers' skill.

    If labels are right with probabilities q and errors rarely agree, workers x and y agree with probability q_x q_y,
    and x with others on a share r_x = q_x q of the labels, so that q_x q_y is about r_x r_y / q^2. It counts as one
    label beside the other labels of the item. (Shapes: returns (n_couples,).)
    """
    n_classes, n_workers, equal = pairs.n_classes, len(pairs.workers), pairs.equal
    x, y = pairs.worker[pairs.a], pairs.worker[pairs.b]
    n_met = np.bincount(x, minlength=n_workers) + np.bincount(y, minlength=n_workers)
    n_equal = np.bincount(x[equal], minlength=n_workers) + np.bincount(y[equal], minlength=n_workers)
    usual = np.count_nonzero(equal) / len(equal)
    by_skill: Array = np.full(len(couples.x), 1.0 / max(usual, _LEAST))
    for worker in (couples.x, couples.y):  # agreement with all others but the partner
        met, same = n_met[worker] - couples.n_common, n_equal[worker] - couples.n_equal
        by_skill = by_skill * ((same + usual) / (met + 1.0))
    cell = pairs.item * n_classes + pairs.label
    votes = np.bincount(cell, minlength=(int(pairs.item[-1]) + 1) * n_classes)
    item = pairs.item[pairs.a[couples.row]]
    n_same = votes[cell[pairs.a[couples.row]]] - 2  # of unequal labels, L(c) does not contain p_i
    p = (n_same + np.minimum(by_skill, 1.0)[couples.which]) / (np.bincount(pairs.item)[item] - 1)
    p = np.clip(p, _LEAST, 1 - _LEAST)
    return np.asarray(log_ratios(p, equal[couples.row], couples.which, len(couples.x), _SCREEN_RATES).max(axis=0))


_MAX_LABELS = 100_000  # labels of the fit below; of more, those on common items of candidates come first


def _fewer_items(pairs: LabelPairs, couples: Couples) -> tuple[LabelPairs, Couples]:
    """The labels of at most as many items as make up `_MAX_LABELS`, first of those that candidates have in common."""
    if len(pairs.item) <= _MAX_LABELS:
        return pairs, couples
    n_labels = np.bincount(pairs.item)
    common = np.zeros(len(n_labels), bool)
    common[pairs.item[pairs.a[couples.row]]] = True
    keep = np.zeros(len(n_labels), bool)
    room = _MAX_LABELS
    for items in (np.flatnonzero(common), np.flatnonzero(~common)):
        size = int(n_labels[items].sum())
        n_kept = len(items) if size <= room else int(len(items) * (max(room, 0) / size))
        keep[items[np.linspace(0, len(items) - 1, n_kept).astype(int)]] = True
        room -= min(size, room)
    of_label = keep[pairs.item]
    position, item = np.cumsum(of_label) - 1, np.cumsum(keep) - 1
    of_pair = of_label[pairs.a]
    labels = (item[pairs.item[of_label]], pairs.worker[of_label], pairs.label[of_label])
    fewer = LabelPairs(*labels, position[pairs.a[of_pair]], position[pairs.b[of_pair]], pairs.workers, pairs.n_classes)
    of_row = of_pair[couples.row]
    row = (np.cumsum(of_pair) - 1)[couples.row[of_row]]
    return fewer, couples._replace(row=row, which=couples.which[of_row])


# ----------------------------------------------------------------------------------------------------
# The truth without a pair, the confusion matrices of candidates, and the agreement to expect.

_MAX_ITERATIONS = 30  # of EM: rough worker parameters are enough
_TOLERANCE = 1e-4  # of EM
_TABLE_ITERATIONS = 12  # of a confusion matrix, or two, given the truth
_PRIOR_LABELS = 2.0  # pseudo-labels of the accuracy, and in every row of a confusion matrix as one accuracy implies
_N_BINS = 10  # of p_i, in which it is compared with the pairs of the crowd
_BIN_PAIRS = 10.0  # pseudo-pairs of a bin, with the agreement expected
_MAX_REFERENCE = 50_000  # pairs of labels of the crowd that are compared


def _components(x: Codes, y: Codes, n_workers: int) -> Codes:
    """Connected components of a graph: the lowest worker of each worker's component, shape (n_workers,)."""
    root = np.arange(n_workers)
    while True:
        before = root.copy()
        low = np.minimum(root[x], root[y])
        np.minimum.at(root, x, low)
        np.minimum.at(root, y, low)
        root = root[root]
        if np.array_equal(before, root):
            return root


def _ranks(pairs: LabelPairs) -> Codes:
    """Ranks of the workers by the number of labels of others that equal theirs: many labels, and good ones, come first.

    Shapes: returns (n_workers,).
    """
    cell = pairs.item * pairs.n_classes + pairs.label
    votes = np.bincount(cell)
    score = np.rint(sums_by(pairs.worker, (votes[cell] - 1).astype(float), len(pairs.workers)))
    return np.unique(-score, return_inverse=True)[1].astype(np.int64)


def _coin(accuracy: Array, n_classes: int) -> Array:
    """Confusion matrices with one accuracy; accuracy (n,); returns (n, n_classes, n_classes)."""
    right = accuracy[:, None, None]
    return np.where(np.eye(n_classes, dtype=bool), right, (1 - right) / max(n_classes - 1, 1))


def _tables(counts: Array, usual: float) -> Array:
    """Confusion matrices from counts, shrunk toward one accuracy; counts (n, n_classes, n_classes)."""
    n_classes = counts.shape[1]
    right = np.trace(counts, axis1=1, axis2=2)
    accuracy = (right + _PRIOR_LABELS * usual) / (counts.sum(axis=(1, 2)) + _PRIOR_LABELS)
    counts = counts + _PRIOR_LABELS * _coin(accuracy, n_classes)
    return np.asarray(counts / counts.sum(axis=2, keepdims=True))


def _tally(which: Codes, label: Codes, weight: Array, n: int) -> Array:
    """Sums of weight[row, truth] by group and label, as [group, truth, label]; weight (n_rows, n_classes)."""
    n_classes = weight.shape[1]
    columns = [sums_by(which * n_classes + label, column, n * n_classes).reshape(n, n_classes) for column in weight.T]
    return np.stack(columns, axis=1)


def _normalised(weight: Array) -> Array:
    """Rows divided by their sum."""
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


class _Crowd:
    """A fit in which each group is one vote, and the confusion matrices of the candidates, without their group.

    Shapes: group (n_workers,); candidates (n_candidates,).
    """

    def __init__(self, pairs: LabelPairs, group: Codes, candidates: Codes) -> None:
        self.pairs, self.group, self.candidates = pairs, group, candidates
        n_workers, n_classes = len(pairs.workers), pairs.n_classes
        size = int(pairs.item[-1]) + 1, n_workers, n_classes
        ids = tuple(np.arange(n) for n in size)
        columns = tuple(column.astype(np.int32) for column in (pairs.item, pairs.worker, pairs.label))
        votes = Annotations.from_codes(columns, ids, sorting_order=None)
        counted = counted_worker(votes, group, _ranks(pairs))
        kept = np.flatnonzero(counted == pairs.worker)
        votes = votes.keep(counted == pairs.worker)
        n_labels = np.bincount(votes.worker, minlength=n_workers).astype(float)
        noise = PooledNoise(n_classes, n_labels)
        prior = EstimatedPrior(1.0)  # pseudo-count of every class, as in Pooled Dawid-Skene
        fit = fit_confusion_em(votes, noise, prior, max_iter=_MAX_ITERATIONS, tol=_TOLERANCE)
        own = fit.used_log_confusion[votes.worker, :, votes.label]  # (n_kept, n_classes)
        first = np.flatnonzero(np.diff(votes.item, prepend=-1))
        self.score = np.add.reduceat(own, first) + fit.params.log_prior  # (n_items, n_classes)
        # (n_labels, n_classes); what the group of each label adds to the score of its item
        position = np.empty(len(pairs.item), np.int64)
        _, where = np.unique(pairs.item * n_workers + group[pairs.worker], return_inverse=True)
        position = np.zeros(where.max() + 1, np.int64)
        position[where[kept]] = np.arange(len(kept))
        self.part = own[position[where]]
        self.usual = float(np.sqrt(np.count_nonzero(pairs.equal) / len(pairs.equal)))  # a typical accuracy
        self.tables = elementary.exp(fit.used_log_confusion)
        self.row_weight, self.counts = self._of_candidates()

    def truth(self, a: Codes, b: Codes | None = None) -> Array:
        """p(truth) without the groups of these labels, and of the other label of each pair; (n_rows, n_classes)."""
        score = self.score[self.pairs.item[a]] - self.part[a]
        if b is not None:
            other = self.group[self.pairs.worker[a]] != self.group[self.pairs.worker[b]]
            score = score - np.where(other[:, None], self.part[b], 0.0)
        return _normalised(elementary.exp(score - score.max(axis=1, keepdims=True)))

    def _of_candidates(self) -> tuple[Array, Array]:
        """Fit the confusion matrix of each candidate by EM, the truth without their group being known.

        Returns the posterior of the truth that each label of a candidate has part in, (n_labels, n_classes), and the
        counts that follow, (n_candidates, n_classes, n_classes).
        """
        pairs, n = self.pairs, len(self.candidates)
        code = np.full(len(pairs.workers), -1)
        code[self.candidates] = np.arange(n)
        rows = np.flatnonzero(code[pairs.worker] >= 0)
        worker, label, truth = code[pairs.worker[rows]], pairs.label[rows], self.truth(rows)
        table = _coin(np.full(n, self.usual), pairs.n_classes)
        for _ in range(_TABLE_ITERATIONS):
            weight = _normalised(truth * table[worker, :, label])
            counts = _tally(worker, label, weight, n)
            table = _tables(counts, self.usual)
        self.tables[self.candidates] = table
        row_weight = np.zeros((len(pairs.item), pairs.n_classes))
        row_weight[rows] = weight
        return row_weight, counts

    def p_equal(self, rows: Codes) -> Array:
        """p_i of pairs of labels, the larger of both directions.

        Shapes: rows (n_rows,); returns (n_rows,).
        """
        pairs, a, b = self.pairs, self.pairs.a[rows], self.pairs.b[rows]
        truth, (x, y) = self.truth(a, b), (pairs.worker[a], pairs.worker[b])
        p = np.zeros(len(rows))
        for mine, other, label in ((x, y, pairs.label[a]), (y, x, pairs.label[b])):
            given = truth * self.tables[mine, :, label]
            np.maximum(p, np.sum(given * self.tables[other, :, label], axis=1) / np.sum(given, axis=1), out=p)
        return np.clip(p, _LEAST, 1 - _LEAST)

    def raised(self, p: Array) -> Array:
        """p_i raised, in log-odds, to what pairs of different groups show where p_i was about the same.

        Shapes: p (n_rows,); returns (n_rows,).
        """
        pairs = self.pairs
        rows = np.flatnonzero(self.group[pairs.worker[pairs.a]] != self.group[pairs.worker[pairs.b]])
        rows = rows[:: len(rows) // _MAX_REFERENCE + 1]
        expected, equal = self.p_equal(rows), pairs.equal[rows].astype(float)
        edges = np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1]
        bins = np.searchsorted(edges, expected)
        size, n_equal, total = (sums_by(bins, value, _N_BINS) for value in (np.ones(len(rows)), equal, expected))
        mean = np.clip(total / np.maximum(size, 1.0), _LEAST, 1 - _LEAST)
        share = (n_equal + _BIN_PAIRS * mean) / (size + _BIN_PAIRS)
        shift = np.where(size > 0, np.maximum(_log_odds(share) - _log_odds(mean), 0.0), 0.0)
        odds = elementary.exp(_log_odds(p) + shift[np.searchsorted(edges, p)])
        return np.clip(odds / (1.0 + odds), _LEAST, 1 - _LEAST)

    def gain(self, couples: Couples) -> Array:
        """What the log-likelihood of independent workers gains if both confusion matrices are fitted to the couple.

        Agreement can also mean that both are better than their agreement with the others says.

        Shapes: returns (n_couples,).
        """
        pairs, n, which = self.pairs, len(couples.x), couples.which
        a, b = pairs.a[couples.row], pairs.b[couples.row]
        swapped = pairs.worker[a] > pairs.worker[b]
        a, b = np.where(swapped, b, a), np.where(swapped, a, b)
        truth, labels = self.truth(a, b), (pairs.label[a], pairs.label[b])
        code = np.searchsorted(self.candidates, np.stack([couples.x, couples.y]))
        elsewhere = [  # counts on items that the other did not label
            np.maximum(self.counts[code[i]] - _tally(which, labels[i], self.row_weight[rows], n), 0.0)
            for i, rows in enumerate((a, b))
        ]
        tables = [self.tables[couples.x], self.tables[couples.y]]
        before = None
        for _ in range(_TABLE_ITERATIONS + 1):
            joint = truth * tables[0][which, :, labels[0]] * tables[1][which, :, labels[1]]
            log_p = sums_by(which, elementary.log(joint.sum(axis=1)), n)
            before = log_p if before is None else before
            weight = _normalised(joint)
            tables = [_tables(elsewhere[i] + _tally(which, labels[i], weight, n), self.usual) for i in range(2)]
        assert before is not None
        return np.maximum(log_p - before, 0.0)


def _log_odds(p: Array) -> Array:
    return np.asarray(elementary.log(p) - elementary.log(1.0 - p))


# ----------------------------------------------------------------------------------------------------
# The decision: which pairs copy.

# Chosen on simulated crowds of 8 to 60 workers (benchmarks/copies.py): of 99,640 pairs of honest workers, with hard
# items, shared confusions, rare classes and high skill, 2 are above it.
MIN_LOG_RATIO = 6.0
_PAIRS_MARGIN = 1.0  # of the ratio over the logarithm of the number of pairs that agree: one in e of crowds at most
MIN_ADVANTAGE = 1.5  # of the ratio over that of a copier of at most `_SLIGHT`
_RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)  # values of c
_LEAST_RATE = 0.6  # of a copier; below it, workers err alike without copying
_SLIGHT = 0.2  # the largest c of workers who err alike
_GAIN_SHARE = 0.25  # of the gain that counts: all of it hides copies of good sources, none of it merges experts
_TRIPLE_GAIN_SHARE = 0.5  # the same where a third worker has no part in the truth
MIN_JOIN_LOG_RATIO = 4.0  # of a further worker who copies a member of a group that was found
MIN_TRIPLE_LOG_RATIO = 8.0  # where a third worker has no part in the truth either, which is then less well known


class _Test(NamedTuple):
    ratio: Array  # (n_couples,); L(c) at its largest, among copiers
    advantage: Array  # (n_couples,); that beyond workers who err alike
    expected: Array  # (n_couples,); number of equal labels expected


def _test(pairs: LabelPairs, couples: Couples, group: Codes, gain_share: float) -> _Test:
    """Test all candidates where these groups count as one vote each."""
    n = len(couples.x)
    crowd = _Crowd(pairs, group, np.unique(np.append(couples.x, couples.y)))
    p = crowd.raised(crowd.p_equal(couples.row))
    rates = np.array(_RATES)
    ratios = log_ratios(p, pairs.equal[couples.row], couples.which, n, _RATES) - gain_share * crowd.gain(couples)
    ratio = ratios[rates >= _LEAST_RATE].max(axis=0)
    alike = np.maximum(ratios[rates <= _SLIGHT].max(axis=0), 0.0)
    return _Test(ratio, ratio - alike, sums_by(couples.which, p, n))


def _provisional(couples: Couples, score: Array, accepted: Mask, n_workers: int, *, triples: bool) -> Codes:
    """Groups of what was accepted, and of workers who are the best partner of each other; with others in `triples`.

    The truth is then known without a copy, while other good workers still have a part in it.

    Shapes: score (n_couples,); accepted (n_couples,); returns (n_workers,).
    """
    group = _components(couples.x[accepted], couples.y[accepted], n_workers)
    x, y = group[couples.x], group[couples.y]
    apart = x != y
    best = np.full(n_workers, -np.inf)
    for worker in (x[apart], y[apart]):
        np.maximum.at(best, worker, score[apart])
    of_x, of_y = apart & (score >= best[x]), apart & (score >= best[y])
    joined = of_x & of_y
    if triples:
        paired = np.isin(np.arange(n_workers), np.append(x[joined], y[joined]))
        joined |= (of_x & paired[y] & ~paired[x]) | (of_y & paired[x] & ~paired[y])
    joined |= accepted
    return _components(couples.x[joined], couples.y[joined], n_workers)


def _accepted(pairs: LabelPairs, couples: Couples, score: Array, least: float) -> tuple[Mask, Array]:
    """Which candidates copy, and the number of equal labels expected; (n_couples,) both.

    First pairs are removed from the truth, then pairs with a third worker, then what was found.
    """
    n_workers, is_copy = len(pairs.workers), np.zeros(len(couples.x), bool)
    for step in range(3):
        group = _provisional(couples, score, is_copy, n_workers, triples=step == 1)
        test = _test(pairs, couples, group, _TRIPLE_GAIN_SHARE if step == 1 else _GAIN_SHARE)
        limit = max(MIN_TRIPLE_LOG_RATIO if step == 1 else MIN_LOG_RATIO, least)
        passed = (test.ratio > limit) & (test.advantage > MIN_ADVANTAGE)
        is_copy = passed | is_copy if step == 1 else passed
        if step > 0 and not is_copy.any():
            break
    in_group = np.isin(np.arange(n_workers), np.append(couples.x[is_copy], couples.y[is_copy]))
    joins = (in_group[couples.x] | in_group[couples.y]) & (test.ratio > MIN_JOIN_LOG_RATIO)
    is_copy = is_copy | (joins & (test.advantage > MIN_ADVANTAGE))
    return is_copy, test.expected


def find_copies(annotations: Annotations, excluded: Mask | None = None) -> Copies:
    """Find groups of workers who copy one another.

    All labels are used up to 500,000 pairs of labels, beyond that evenly spaced items. Workers in `excluded`, such
    as members of a colluding group, are in no group. Of labels with weights, the strongest one of each worker and item
    counts.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(200, 12, 3, labels_per_item=8, accuracy=0.7, random_state=0).annotations
    >>> find_copies(crowd).groups()
    []
    >>> item, label = crowd.item[crowd.worker == 4], crowd.label[crowd.worker == 4]
    >>> rest = crowd.keep(crowd.worker != 9)
    >>> find_copies(rest.with_more(item, np.full(len(item), 9), label)).groups()
    [[4, 9]]

    Shapes: excluded (n_workers,).
    """
    nobody, votes = no_copies(annotations.n_workers), annotations.strongest_labels()
    if excluded is not None and excluded.any():
        votes = votes.keep(~excluded[votes.worker])
    if np.count_nonzero(votes.worker_volume) < MIN_WORKERS or votes.n_labels.max(initial=0) < MIN_LABELS:
        return nobody
    pairs = label_pairs(_one_answer_each(votes), _MAX_PAIRS)
    if len(pairs.a) == 0:
        return nobody
    couples = agreeing_couples(pairs)
    score = _screen(pairs, couples)
    least = _PAIRS_MARGIN + float(np.log(max(len(couples.x), 1)))
    candidates = np.flatnonzero(score > max(_SCREEN, _SCREEN_SHARE * least))
    if len(candidates) == 0 or not are_small_tables(len(pairs.workers), pairs.n_classes, len(pairs.item)):
        return nobody
    pairs, couples = _fewer_items(pairs, couples.part(candidates))
    score = score[candidates]
    is_copy, expected = _accepted(pairs, couples, score, least)
    if not is_copy.any():
        return nobody
    return _copies_of(pairs, couples, is_copy, expected, annotations.n_workers)


_SMALL_GROUP = 5  # members of a colluding group that is left to `find_copies`, if it finds two of them


def find_group_and_copies(
    annotations: Annotations, worker_volume: Codes | None = None
) -> tuple[CollusionGroups | None, Copies]:
    """Find the colluding group, and the copies among all other workers.

    A pair or triple of copies may pass the tests of a colluding group as well; it is then a group of copies.

    Shapes: worker_volume (n_workers,).
    """
    if worker_volume is not None:
        return _group_and_copies(annotations, worker_volume)
    cache = vars(annotations)  # labels never change, and the scorecards of a fit search those of the fit once more
    if "_group_and_copies" not in cache:
        cache["_group_and_copies"] = _group_and_copies(annotations, None)
    result: tuple[CollusionGroups | None, Copies] = cache["_group_and_copies"]
    return result


def _group_and_copies(annotations: Annotations, worker_volume: Codes | None) -> tuple[CollusionGroups | None, Copies]:
    """What `find_group_and_copies` returns.

    Shapes: worker_volume (n_workers,).
    """
    group = find_colluding_groups(annotations, worker_volume)
    if group is None:
        return None, find_copies(annotations)
    if group.max_labels is None and np.count_nonzero(group.members) <= _SMALL_GROUP:
        copies = find_copies(annotations)
        if np.count_nonzero(copies.members & group.members) >= 2:
            return None, copies
    return group, find_copies(annotations, group.members)


def _one_answer_each(votes: Annotations) -> Annotations:
    """Without the items on which a worker gave different labels, for this worker; equal labels count once."""
    item, worker = votes.item, votes.worker
    is_first = np.append(True, (item[1:] != item[:-1]) | (worker[1:] != worker[:-1]))[: len(item)]
    if is_first.all():
        return votes
    run = np.cumsum(is_first) - 1
    lowest = np.minimum.reduceat(votes.label, np.flatnonzero(is_first))
    highest = np.maximum.reduceat(votes.label, np.flatnonzero(is_first))
    return votes.keep(is_first & (lowest == highest)[run])


def _copies_of(pairs: LabelPairs, couples: Couples, is_copy: Mask, expected: Array, n_workers: int) -> Copies:
    """The groups, with the codes of the annotations."""
    x, y = couples.x[is_copy], couples.y[is_copy]
    root = _components(x, y, len(pairs.workers))
    members = np.unique(np.append(x, y))
    group, rank = np.full(n_workers, -1), np.zeros(n_workers, np.int64)
    group[pairs.workers[members]] = np.unique(root[members], return_inverse=True)[1]
    rank[pairs.workers] = _ranks(pairs)
    columns = couples.n_common[is_copy], couples.n_equal[is_copy], expected[is_copy]
    return Copies(group, rank, pairs.workers[x], pairs.workers[y], *columns)

"""Order-consistency vote: verdicts count by how well a judge's answers to the same pair agree in both orders.

A judge who compares two answers is often asked twice, with the answers in both orders. Verdicts that change with the
order follow the position and not the content. How often that happens is measured without any truth.

    flip_rate[w]    =  share of pairs of w's answers to the same item that differ
    chance[w]       =  sum over classes of share[w, k]^2,                     share = w's labels by class
    consistency[w]  =  (1 - flip_rate[w] - chance[w]) / (1 - chance[w])       1: content only; 0: as of random answers
    weight[w]       =  least + max(0, shrunk consistency[w])^exponent
    p(k | item)     ~  sum over the item's labels that name k of weight[w]

The order itself is not needed: two answers of one worker to one item are their answers in two orders (or two runs).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.aggregation.voting import shares
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold, has_no_redundancy
from manyhands.em.kernels import weighted_votes
from manyhands.validation import Number

# Chosen on simulated panels of 3, 8 and 24 judges with 20 and 100 pairs (benchmarks/verdicts.py --simulated). With 100
# pairs, where weak judges err together exponents 1, 2 and 4 gain .05, .09 and .10 over the vote; where consistency says
# nothing about errors they lose .01, .02 and .02 (.03 with 20 pairs); with random judges they gain .07, .07 and .06. A
# least weight of .3 gives a third of the gains away; .01 to .1 differ by at most .012. A shrinkage of 1, 4 or 8 pairs
# changes the mean gain by at most .001.
_LEAST_WEIGHT = 0.03  # of 1.03 at most: inconsistent judges decide where consistent ones are undecided
_SHRINKAGE = 4.0  # pairs like the crowd's average that every judge's consistency is estimated with
_CONSTANT = 1e-9  # of 1 - chance: a judge who always gives the same label has no consistency beyond chance

NO_REPEATS = (
    "No worker answered an item twice, so that nothing is known of their consistency and all labels count the same. "
    "For pairwise verdicts, give both orders of presentation."
)


class OrderConsistencyVote(Aggregator):
    """Order-consistency vote: labels count by how well a worker's repeated answers to the same items agree.

    For pairwise verdicts in both orders of presentation, such as those of language models as judges: both verdicts of a
    judge are labels of the same item (``read_annotations(table, verdicts="answer")``, or
    ``Annotations.from_triples(..., duplicates="all")``). A judge whose verdicts follow the position contradicts
    themselves and counts little; no truth is used. A worker who answered no item twice counts like the crowd's average.

    Judges who consistently prefer the wrong answer are not found: only answers of people show them. Without repeated
    answers the result is the majority vote, which a note says.

    Parameters
    ----------
    exponent : float, default=2.0
        Power of the consistency beyond chance; 0 is the majority vote.

    Attributes
    ----------
    flip_rate_ : ndarray of shape (n_workers,)
        Share of pairs of a worker's answers to the same item that differ; NaN for a worker without such pairs.
    consistency_ : ndarray of shape (n_workers,)
        Agreement of these pairs beyond chance, shrunk towards the crowd's: 1 for answers that never change, 0 or less
        for random answers and for those that follow the position.
    weight_ : ndarray of shape (n_workers,)
        Weight of each of a worker's labels.

    Examples
    --------
    >>> from manyhands import Annotations, OrderConsistencyVote
    >>> items, judges = [1, 1, 2, 2] * 2, ["content"] * 4 + ["position"] * 4
    >>> verdicts = ["A", "A", "B", "B", "A", "B", "A", "B"]
    >>> votes = Annotations.from_triples(items, judges, verdicts, duplicates="all")
    >>> model = OrderConsistencyVote().fit(votes)
    >>> model.flip_rate_.tolist()
    [0.0, 1.0]
    >>> model.labels_.tolist()
    ['A', 'B']
    """

    flip_rate_: Array
    consistency_: Array
    weight_: Array
    _weight: Array  # (n_workers + 1,) the last worker is an unseen one

    _constraints = {"exponent": Number(least=0)}

    def __init__(self, exponent: float = 2.0) -> None:
        self.exponent = exponent

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        n_pairs, n_equal = _repeated_answers(annotations)
        chance = _chance(annotations)
        beyond, crowd = _consistency(n_pairs, n_equal, chance)
        weight = _LEAST_WEIGHT + np.maximum(np.append(beyond, crowd), 0.0) ** self.exponent
        has_pairs = n_pairs > 0
        flip_rate = np.where(has_pairs, 1 - n_equal / np.maximum(n_pairs, 1.0), np.nan)
        results = {"flip_rate_": flip_rate, "consistency_": beyond, "weight_": weight[:-1], "_weight": weight}
        is_vote = not has_pairs.any() and not has_no_redundancy(annotations, gold)  # else the base has a note
        notes = {"no_repeated_answers": NO_REPEATS} if is_vote else {}
        return Inference(_weighted_vote(annotations, weight, gold), results=results, notes=notes)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return _weighted_vote(annotations, self._weight, gold)


def has_repeated_answers(annotations: Annotations) -> bool:
    """Whether a worker answered an item more than once, as in both orders of presentation."""
    same = (np.diff(annotations.item) == 0) & (np.diff(annotations.worker) == 0)  # sorted by item, then worker
    return bool(same.any())


def _repeated_answers(annotations: Annotations) -> tuple[Array, Array]:
    """Return the number of items that each worker answered repeatedly, and the expected number with equal answers.

    An item with several pairs of answers, such as two runs in both orders, counts as one, by the share of equal pairs.

    Shapes: both (n_workers,).
    """
    item, worker, label = annotations.item, annotations.worker, annotations.label
    is_new = _differs(item) | _differs(worker)  # labels are sorted by item, worker and label
    answer = np.cumsum(is_new | _differs(label)) - 1  # code of each (item, worker, label)
    group = np.cumsum(is_new) - 1  # code of each (item, worker)
    first = np.flatnonzero(is_new)
    n_same = np.bincount(answer).astype(float)
    group_of_answer = group[np.flatnonzero(is_new | _differs(label))]
    n_answers = np.diff(np.append(first, len(item))).astype(float)
    equal = np.bincount(group_of_answer, n_same * (n_same - 1), len(first))
    pairs = n_answers * (n_answers - 1)
    repeated = pairs > 0
    share = np.divide(equal, pairs, out=np.zeros(len(first)), where=repeated)
    n_pairs: Array = np.bincount(worker[first], repeated.astype(float), annotations.n_workers).astype(float)
    n_equal: Array = np.bincount(worker[first], share, annotations.n_workers).astype(float)
    return n_pairs, n_equal


def _differs(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    """Where a code differs from the one before; the first one does.

    Shapes: codes (n,); returns (n,).
    """
    return np.diff(codes, prepend=-1) != 0


def _chance(annotations: Annotations) -> Array:
    """Return the probability that two of a worker's labels, drawn at random, are equal; shape (n_workers,)."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    cell = annotations.worker.astype(np.int64) * n_classes + annotations.label
    counts = np.bincount(cell, minlength=n_workers * n_classes).reshape(n_workers, n_classes)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    chance: Array = np.sum(np.sort(share**2, axis=1), axis=1)  # sorted: the same bits for every order of the classes
    return chance


def _consistency(n_pairs: Array, n_equal: Array, chance: Array) -> tuple[Array, float]:
    """Return the consistency beyond chance of each worker, shrunk towards the crowd's, and the crowd's.

    Shapes: all (n_workers,).
    """
    total = float(np.sum(np.sort(n_pairs)))
    if not total:
        return np.zeros(len(n_pairs)), 0.0
    expected = float(np.sum(np.sort(chance * n_pairs)))  # sorted: the same bits for every order of the workers
    crowd = _beyond_chance(float(np.sum(np.sort(n_equal))) / total, expected / total)
    own = np.array([_beyond_chance(e / max(n, 1.0), c) for e, n, c in zip(n_equal, n_pairs, chance)])
    return (n_pairs * own + _SHRINKAGE * crowd) / (n_pairs + _SHRINKAGE), crowd


def _beyond_chance(agreement: float, chance: float) -> float:
    """Return agreement beyond chance as a share of what is possible, as in Scott's pi; 0 for constant labels."""
    return (agreement - chance) / (1 - chance) if 1 - chance > _CONSTANT else 0.0


def _weighted_vote(annotations: Annotations, weight: Array, gold: Gold) -> Array:
    """Return the posterior of the weighted vote, shape (n_items, n_classes)."""
    return shares(weighted_votes(annotations, weight[annotations.worker]), gold)

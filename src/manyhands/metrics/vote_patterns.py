"""What metrics of agreement are computed with: votes and their patterns, the bootstrap, distances between classes.

A worker has one vote per item. Repeated labels split the vote: a label given in two of three repetitions has two thirds
of it. Agreement is counted between different workers only, never between the repeated labels of one worker.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.encoding import as_column
from manyhands._core.randomness import Seed, make_generator
from manyhands.annotations import Annotations
from manyhands.em.kernels import sums_by
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.validation import Constraint, Number, RandomState, check_known, check_parameters

# ----------------------------------------------------------------------------------------------------
# Intervals of shares.

Z_95 = 1.959963984540054  # 97.5th percentile of the normal distribution: half of a 95% interval


def wilson(n_right: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Array, Array]:
    """Return 95% intervals of shares by Wilson's formula.

    References
    ----------
    Wilson (1927), "Probable inference, the law of succession, and statistical inference".

    Examples
    --------
    >>> low, high = wilson(18, 20)
    >>> round(float(low), 3), round(float(high), 3)
    (0.699, 0.972)
    """
    right, total = np.asarray(n_right, float), np.asarray(n, float)
    share = right / np.maximum(total, 1)
    middle = (share + Z_95**2 / (2 * np.maximum(total, 1e-12))) / (1 + Z_95**2 / np.maximum(total, 1e-12))
    half = Z_95 * np.sqrt(share * (1 - share) / np.maximum(total, 1) + Z_95**2 / (4 * np.maximum(total, 1) ** 2))
    half = half / (1 + Z_95**2 / np.maximum(total, 1))
    low, high = np.maximum(middle - half, 0), np.minimum(middle + half, 1)
    return np.where(total > 0, low, 0.0), np.where(total > 0, high, 1.0)


# ----------------------------------------------------------------------------------------------------
# Bootstrap percentile intervals over resamples of items.

Statistic = Callable[[Array], Array]  # (n_resamples, n_patterns) weights -> (n_resamples, ...), NaN where undefined
_CHUNK = 1 << 22  # numbers held at a time
_DRAW_ITEMS = 8  # with this many times fewer patterns than items, multinomial draws of patterns are faster
_CONSTRAINTS: dict[str, Constraint] = {
    "n_bootstrap": Number(whole=True, least=0),
    "confidence": Number(above=0, most=1),
    "random_state": RandomState(),
}


@dataclass(frozen=True)
class Bootstrap:
    """Settings of a bootstrap."""

    n_bootstrap: int  # number of resamples; 0 for no interval
    confidence: float  # confidence level of the interval
    random_state: Seed  # seed of the resamples

    def check(self, name: str) -> None:
        """Raise ParameterError for settings that are not allowed."""
        check_parameters(name, vars(self), _CONSTRAINTS)

    def interval(self, statistic: Statistic, count: npt.NDArray[np.int64], width: int) -> tuple[Array, Array]:
        """Compute the percentile interval of a statistic over resamples of items.

        Shapes: count (n_patterns,).
        """
        if self.n_bootstrap == 0 or count.sum() < 2:
            nothing = np.full_like(statistic(count[None].astype(float))[0], np.nan)
            return nothing, nothing.copy()
        chunk = max(1, _CHUNK // max(len(count), width))
        rng = make_generator(self.random_state)
        drawn = [statistic(part) for part in _resamples(count, self.n_bootstrap, chunk, rng)]
        low, high = _quantiles(np.concatenate(drawn), ((1 - self.confidence) / 2, (1 + self.confidence) / 2))
        return low, high


def _resamples(count: npt.NDArray[np.int64], n_bootstrap: int, chunk: int, rng: np.random.Generator) -> Iterator[Array]:
    """Counts of each pattern among as many items as there are, a chunk of resamples at a time."""
    n_items, n_patterns = int(count.sum()), len(count)
    pattern = np.repeat(np.arange(n_patterns), count)
    for first in range(0, n_bootstrap, chunk):
        size = min(chunk, n_bootstrap - first)
        if n_patterns * _DRAW_ITEMS < n_items:
            yield rng.multinomial(n_items, count / n_items, size=size).astype(float)
        else:
            items = (rng.integers(0, n_items, n_items) for _ in range(size))
            yield np.array([np.bincount(pattern[drawn], minlength=n_patterns) for drawn in items], float)


def _quantiles(values: Array, levels: tuple[float, float]) -> Array:
    """(2, ...) quantiles over the first axis, ignoring NaN; NaN where all values are NaN."""
    flat = values.reshape(len(values), -1)
    result = np.full((2, flat.shape[1]), np.nan)
    for column, of_column in enumerate(flat.T):
        defined = of_column[~np.isnan(of_column)]
        if len(defined):
            result[:, column] = np.quantile(defined, levels)
    return result.reshape(2, *values.shape[1:])


# ----------------------------------------------------------------------------------------------------
# The votes and their patterns.

Positions = npt.NDArray[np.int64]
Block = tuple[Positions, Positions, Array, int]  # row, column, value, number of columns


@dataclass(frozen=True)
class WorkerLabels:
    """The distinct triples (item, worker, label), sorted, with the share of the worker's vote."""

    item: Positions  # (n_triples,)
    worker: Positions  # (n_triples,)
    label: Positions  # (n_triples,)
    share: Array  # (n_triples,); share of the worker's vote on the item; 1 where the worker gave one label only
    vote: Positions  # (n_triples,); index of the pair (item, worker)


@dataclass(frozen=True)
class Votes:
    """Votes in sparse form; a row is an item that at least two workers labelled, or a pattern of such items."""

    n_workers: Array  # (n_rows,); number of votes in each row
    row: Positions  # (n_cells,); row of each cell (row, label) with votes
    label: Positions  # (n_cells,); class code of each cell
    weight: Array  # (n_cells,); sum of the votes for this label
    split_row: Positions  # (n_split,); row of each part of a vote that is split between labels
    split_vote: Positions  # (n_split,); index of the vote that the part belongs to
    split_label: Positions  # (n_split,); class code of the part
    split_share: Array  # (n_split,); share of the vote
    n_classes: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.n_workers)

    @property
    def contested(self) -> npt.NDArray[np.bool_]:
        """(n_rows,) whether labels differ; elsewhere disagreement is exactly 0."""
        return np.bincount(self.row, minlength=self.n_rows) > 1

    def disagreement(self) -> Array:
        """Count the ordered pairs of different workers whose labels differ, divided by n_workers - 1.

        Shapes: returns (n_rows,).
        """
        differ = self.n_workers**2 - sums_by(self.row, self.weight**2, self.n_rows)
        within = self.split_share * (1 - self.split_share)  # the parts of one vote are no pair of workers
        differ -= sums_by(self.split_row, within, self.n_rows)
        return np.where(self.contested, differ / (self.n_workers - 1), 0.0)


def gather_worker_labels(annotations: Annotations) -> WorkerLabels:
    """Merge repeated labels into one vote per item and worker."""
    columns = [column.astype(np.int64) for column in (annotations.item, annotations.worker, annotations.label)]
    item, worker, label = columns
    new_vote = np.ones(len(item), bool)
    new_vote[1:] = (item[1:] != item[:-1]) | (worker[1:] != worker[:-1])
    if new_vote.all():
        return WorkerLabels(item, worker, label, np.ones(len(item)), np.arange(len(item)))
    new_label = new_vote.copy()
    new_label[1:] |= label[1:] != label[:-1]
    vote = (np.cumsum(new_vote) - 1)[new_label]
    n_times = np.diff(np.append(np.flatnonzero(new_label), len(item)))
    share = n_times / np.bincount(vote, weights=n_times)[vote]
    return WorkerLabels(item[new_label], worker[new_label], label[new_label], share, vote)


def gather_votes(annotations: Annotations) -> tuple[Votes, npt.NDArray[np.bool_]]:
    """Collect the votes on the items that at least two workers labelled.

    Shapes: returns pairable (n_items,).
    """
    triples = gather_worker_labels(annotations)
    is_first = np.diff(triples.vote, prepend=-1) > 0
    n_workers = np.bincount(triples.item[is_first], minlength=annotations.n_items)
    pairable = n_workers >= 2
    kept = pairable[triples.item]
    row = (np.cumsum(pairable) - 1)[triples.item[kept]]
    label, share = triples.label[kept], triples.share[kept]
    cell, where = np.unique(row * annotations.n_classes + label, return_inverse=True)
    cell_row, cell_label = np.divmod(cell, max(annotations.n_classes, 1))
    split = np.flatnonzero(share < 1)
    votes = Votes(
        n_workers[pairable].astype(float),
        cell_row,
        cell_label,
        sums_by(where, share, len(cell)),
        row[split],
        triples.vote[kept][split],
        label[split],
        share[split],
        annotations.n_classes,
    )
    return votes, pairable


def find_patterns(votes: Votes) -> tuple[Votes, Positions]:
    """Merge rows with equal votes into patterns.

    A hundred thousand items labelled by five workers each have no more than 56 patterns with four classes, so a
    resample of items is drawn as a resample of patterns. The order of patterns depends on the votes alone, not on names
    or the order of items. Rows with split votes, which are rare, are not merged and keep the order of items.

    Shapes: returns count (n_patterns,).
    """
    is_split = np.zeros(votes.n_rows, bool)
    is_split[votes.split_row] = True
    pattern = _number_patterns(votes, is_split)
    chosen, count = np.unique(pattern, return_index=True, return_counts=True)[1:]
    is_chosen = np.zeros(votes.n_rows, bool)
    is_chosen[chosen] = True
    cells, split = is_chosen[votes.row], is_chosen[votes.split_row]
    one_each = Votes(
        votes.n_workers[chosen],
        pattern[votes.row[cells]],
        votes.label[cells],
        votes.weight[cells],
        pattern[votes.split_row[split]],
        votes.split_vote[split],
        votes.split_label[split],
        votes.split_share[split],
        votes.n_classes,
    )
    return one_each, count


def _number_patterns(votes: Votes, is_split: npt.NDArray[np.bool_]) -> Positions:
    """(n_rows,) equal numbers for equal rows: compared cell by cell, among rows that are equal so far."""
    n_cells = np.bincount(votes.row, minlength=votes.n_rows)
    start = np.cumsum(n_cells) - n_cells
    weights, which = np.unique(votes.weight, return_inverse=True)
    key, cell = np.unique(votes.label * len(weights) + which, return_inverse=True)
    number = np.where(is_split, np.cumsum(is_split), 0)
    n_numbers = votes.n_rows + 1
    order = np.argsort(n_cells, kind="stable")
    n_below = np.searchsorted(n_cells[order], np.arange(n_cells.max(initial=0)), side="right")
    for nth, first in enumerate(n_below):
        still = order[first:]  # rows that have an nth cell
        distinct, rank = np.unique(number[still] * len(key) + cell[start[still] + nth], return_inverse=True)
        number[still] = rank + n_numbers  # not used by rows that have no further cells
        n_numbers += len(distinct)
    return np.unique(number, return_inverse=True)[1]


def as_table(n_rows: int, *blocks: Block) -> Any:
    """Concatenate sparse blocks of columns, for `totals`."""
    from scipy.sparse import csr_array

    offsets = np.cumsum([0, *(n_columns for *_, n_columns in blocks)])
    row, column, value = (np.concatenate([block[i] for block in blocks]) for i in range(3))
    column = column + np.repeat(offsets[:-1], [len(block[0]) for block in blocks])
    table = csr_array((value, (column, row)), shape=(int(offsets[-1]), n_rows))
    table.sort_indices()  # older scipy keeps the order of the cells, which depends on the items
    return table


def as_block(value: Array) -> Block:
    """Make a block of one dense column, for `as_table`.

    Shapes: value (n_rows,).
    """
    return np.arange(len(value)), np.zeros(len(value), np.int64), value, 1


def totals(weights: Array, table: Any) -> Array:
    """Compute the weighted sum of each column for each resample.

    Shapes: weights (n_resamples, n_rows); table (n_columns, n_rows); returns (n_resamples, n_columns).
    """
    return np.ascontiguousarray((table @ weights.T).T)  # later sums over columns then have one summation order


# ----------------------------------------------------------------------------------------------------
# Squared distances between labels on a scale.
#
# The sum over all pairs of a row follows from the sums of its values and of their squares, so pairs are not enumerated:
#
#     sum_ij (x_i - x_j)^2 = 2 (n sum_i x_i^2 - (sum_i x_i)^2)


class Distances:
    """Squared distances between the labels of different workers, on the rows where labels differ."""

    def __init__(self, votes: Votes) -> None:
        row_of = np.cumsum(votes.contested) - 1
        cells, split = votes.contested[votes.row], votes.contested[votes.split_row]
        n_rows, n_classes = int(votes.contested.sum()), votes.n_classes
        self.n_workers = votes.n_workers[votes.contested]
        self.votes = _matrix(row_of[votes.row[cells]], votes.label[cells], votes.weight[cells], (n_rows, n_classes))
        vote_ids, vote = np.unique(votes.split_vote[split], return_inverse=True)
        n_split = len(vote_ids)
        self.split_votes = _matrix(vote, votes.split_label[split], votes.split_share[split], (n_split, n_classes))
        row = np.zeros(n_split, np.int64)
        row[vote] = row_of[votes.split_row[split]]
        self.row_of_vote = _matrix(row, np.arange(n_split), np.ones(n_split), (n_rows, n_split))

    def observed(self, scale: Array) -> Array:
        """Sum the squared distances over ordered pairs of workers, divided by n_workers - 1.

        Shapes: scale (n_classes, n_scales); returns (n_contested, n_scales).
        """
        between = _spread(self.votes, self.n_workers[:, None], scale)
        if self.split_votes.shape[0]:  # the labels of one worker are no pair
            between -= self.row_of_vote @ _spread(self.split_votes, 1.0, scale)
        return between / (self.n_workers[:, None] - 1)


def _spread(votes: Any, mass: Array | float, scale: Array) -> Array:
    """Sum of squared distances over all ordered pairs in each row of votes; `mass` is the total weight of a row."""
    return 2 * (mass * (votes @ scale**2) - (votes @ scale) ** 2)


def expected_distance(of_class: Array, scale: Array) -> Array:
    """Sum the squared distances over all ordered pairs of labels, whatever their items.

    Shapes: of_class (n_resamples, n_classes); scale (n_resamples, n_classes); returns (n_resamples,).
    """
    n, first, second = (np.einsum("bk,bk->b", of_class, moment) for moment in (np.ones_like(scale), scale, scale**2))
    return 2 * (n * second - first**2)


def _matrix(row: Positions, column: Positions, value: Array, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((value, (row, column)), shape=shape)


# ----------------------------------------------------------------------------------------------------
# Classes as positions on an ordinal or interval scale.

Scale = Mapping[Any, Any] | Any  # class -> number, a number for each class, or the classes from low to high


def on_scale(annotations: Annotations, level: str, values: Scale | None) -> Annotations:
    """Replace classes by their positions on a scale."""
    used = np.flatnonzero(np.bincount(annotations.label, minlength=annotations.n_classes))
    names = annotations.classes[used].tolist()
    number = _read(names, level) if values is None else _given(annotations.classes.tolist(), names, level, values)
    distinct, code = np.unique(np.array(number, float), return_inverse=True)
    code_of_class = np.zeros(annotations.n_classes, np.int64)
    code_of_class[used] = code
    ids = {"item_ids": annotations.item_ids, "worker_ids": annotations.worker_ids, "classes": distinct}
    return Annotations(annotations.item, annotations.worker, code_of_class[annotations.label], **ids)


def _read(names: list[Any], level: str) -> list[float]:
    """The classes as numbers, or their text read as numbers."""
    number = [_as_number(name) for name in names]
    if None in number:
        name = names[number.index(None)]
        remedy = (
            "give values=, the classes from low to high" if level == "ordinal" else "give values=, a number for each"
        )
        raise ParameterError(f"Level {level!r} needs classes that are numbers, but one is {name!r}; {remedy}.")
    return number  # type: ignore[return-value]


def _given(classes: list[Any], names: list[Any], level: str, values: Scale) -> list[float]:
    """The numbers of the classes that occur, from the caller's `values`."""
    if isinstance(values, Mapping):
        check_known(names, values, "Classes without a value are", "Give each class that occurs a number.")
        return [_checked(values[name], name) for name in names]
    listed = list(as_column(values, "values"))
    if all(isinstance(value, numbers.Real) for value in listed):
        if len(listed) != len(classes):
            raise AlignmentError(
                f"There are {len(classes)} classes, but {len(listed)} values; give one for each class."
            )
        number_of = dict(zip(classes, listed))
        return [_checked(number_of[name], name) for name in names]
    if level != "ordinal":
        raise ParameterError("Level 'interval' needs values that are numbers, one for each class.")
    if len(set(listed)) < len(listed):
        raise ParameterError("values, the classes from low to high, must contain each class once.")
    rank_of = {name: float(rank) for rank, name in enumerate(listed)}
    check_known(names, rank_of, "Classes without a place in values are", "Name all classes, from low to high.")
    return [rank_of[name] for name in names]


def _checked(value: Any, name: Any) -> float:
    number = _as_number(value)
    if number is None:
        raise ParameterError(f"The value of class {name!r} must be a finite number. Got {value!r}.")
    return number


def _as_number(value: Any) -> float | None:
    """A finite number, or text that can be read as one; Python would also read "1_0" as ten, which is not intended."""
    if not isinstance(value, numbers.Real | str) or (isinstance(value, str) and "_" in value):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def unit_scale(numbers_: Array) -> Array:
    """Shift and scale ascending numbers to 0 .. 1, to which coefficients of agreement are invariant.

    Shapes: numbers_ (n_classes,); returns (n_classes,).
    """
    halves = numbers_ / 2  # the difference of the largest floats would overflow
    shifted = halves - halves[0]
    return shifted / shifted[-1] if shifted[-1] > 0 else shifted

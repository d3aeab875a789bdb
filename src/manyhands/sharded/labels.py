"""Labels in shards: the interface of whatever holds them, and shards in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar
from zlib import crc32

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Mask
from manyhands._core.encoding import Values, reorder_groups
from manyhands._core.progress import report
from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups, without_copies
from manyhands.em.kernels import Packed, pack, thread_count
from manyhands.exceptions import AnnotationError, ParameterError

# ----------------------------------------------------------------------------------------------------
# Groups of workers who are connected by common items, found shard by shard.

Groups = npt.NDArray[np.int32]


def no_groups(n_workers: int) -> Groups:
    """Return the groups before any label is seen: every worker is one.

    Shapes: returns (n_workers,).
    """
    return np.arange(n_workers, dtype=np.int32)


def join_by_items(groups: Groups, packed: Packed) -> Groups:
    """Join the groups of workers who labelled the same item.

    Shapes: groups (n_workers,); returns (n_workers,).
    """
    worker = packed.code // np.int32(packed.n_classes)
    same_item = np.ones(max(len(worker) - 1, 0), bool)
    inner = packed.start[1:-1]
    same_item[inner[(inner > 0) & (inner < len(worker))] - 1] = False
    return _join(groups, worker[:-1][same_item], worker[1:][same_item])


def join_groups(groups: Groups, others: Groups) -> Groups:
    """Join two partitions of the same workers.

    Shapes: groups (n_workers,); others (n_workers,); returns (n_workers,).
    """
    order = np.argsort(others, kind="stable")
    linked = others[order[1:]] == others[order[:-1]]
    return _join(groups, order[:-1][linked], order[1:][linked])


def _join(groups: Groups, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Groups:
    """Join the groups of pairs of workers; most pairs are in one group already, and cost no more than a comparison."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    a, b = groups[first], groups[second]
    differ = a != b
    if not differ.any():
        return groups
    n_groups = int(groups.max()) + 1
    ends = (a[differ], b[differ])
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n_groups, n_groups))
    _, joined = connected_components(graph, directed=False)
    renamed: Groups = joined[groups].astype(np.int32)
    return renamed


# ----------------------------------------------------------------------------------------------------
# The order of items and the number of shards: fixed by the data alone, whatever holds the labels.
#
# Items are ordered by the CRC-32 of their id's text, then by the text itself as UTF-8 bytes. A shard is a range of
# CRC-32 values: its upper bits are the number of the shard, so that a file with `N_BLOCKS` blocks can be read as any
# smaller number of shards, each of which is a run of consecutive blocks.

N_BLOCKS = 256  # the largest number of shards, and the number of blocks on disk
LABELS_PER_SHARD = 1 << 22  # a shard is 16 MB of codes
_CRC_BITS = 32  # of the checksum by which items are ordered


def id_text(value: Any) -> str:
    """The text of an id, by which items are ordered.

    Examples
    --------
    >>> id_text(17), id_text("a")
    ('17', 'a')
    """
    return value if type(value) is str else str(value)


def item_hashes(ids: Iterable[Any]) -> npt.NDArray[np.uint32]:
    """CRC-32 of the text of each id.

    Examples
    --------
    >>> item_hashes(["a", 17]).tolist()
    [3904355907, 1060745282]

    Shapes: returns (n,).
    """
    return np.fromiter((crc32(id_text(value).encode()) for value in ids), np.uint32)


def item_order(ids: npt.NDArray[Any], hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
    """The order of the items in the layout.

    Shapes: ids (n_items,); hashes (n_items,); returns (n_items,).
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    for first, last in _runs(same):
        part = order[first : last + 1]
        texts = [(id_text(value).encode(), type(value).__name__) for value in ids[part].tolist()]
        order[first : last + 1] = part[sorted(range(len(texts)), key=texts.__getitem__)]
    return order


def _runs(same: npt.NDArray[np.intp]) -> list[tuple[int, int]]:
    """First and last position of each run of equal values, from the positions that equal their successor."""
    if len(same) == 0:
        return []
    breaks = np.flatnonzero(np.diff(same) > 1)
    firsts, lasts = np.append(same[0], same[breaks + 1]), np.append(same[breaks], same[-1]) + 1
    return list(zip(firsts.tolist(), lasts.tolist()))


def shard_count(n_labels: int, n_workers: int, n_classes: int) -> int:
    """Number of shards: a power of two that depends on the sizes of the crowd alone.

    It is the smallest with at most `LABELS_PER_SHARD` labels per shard on average, halved while a shard would have
    fewer labels than twice the numbers in a count table, and at most `N_BLOCKS`.

    Examples
    --------
    >>> shard_count(1_000, 10, 2), shard_count(10**9, 10_000, 8), shard_count(10**7, 10_000, 8)
    (1, 256, 4)
    """
    n_shards = 1
    while n_shards < N_BLOCKS and n_labels > n_shards * LABELS_PER_SHARD:
        n_shards *= 2
    while n_shards > 1 and n_labels < n_shards * 2 * n_workers * n_classes**2:
        n_shards //= 2
    return n_shards


def shard_of(hashes: npt.NDArray[np.uint32], n_shards: int) -> npt.NDArray[np.int64]:
    """Shard of each item.

    Examples
    --------
    >>> shard_of(np.array([0, 2**31, 2**32 - 1], np.uint32), 4).tolist()
    [0, 2, 3]

    Shapes: hashes (n_items,); returns (n_items,).
    """
    return hashes.astype(np.int64) >> (_CRC_BITS - (n_shards.bit_length() - 1))


# ----------------------------------------------------------------------------------------------------
# Tasks on shards in several threads, with results in the order of shards and a bounded number of them in memory.

R = TypeVar("R")


def run_in_order(job: Callable[[int], R], n_jobs: int, what: str) -> Iterator[R]:
    """Run `job(0)` to `job(n_jobs - 1)` in threads and yield their results in this order.

    At most one job more than there are threads has been started and not yet handed over, so that memory is bounded
    where the caller is slower than the jobs. An error ends the run: it is raised once the jobs under way have ended.
    """
    n_threads = min(thread_count(), n_jobs)
    if n_threads <= 1:
        for number in range(n_jobs):
            yield job(number)
            report(number + 1, n_jobs, what)
        return
    # Threads of their own: jobs may use the pool of `em.kernels` themselves, and would wait for one another in it.
    with ThreadPoolExecutor(n_threads, thread_name_prefix="manyhands-shard") as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for number in range(n_jobs):
                waiting.append(pool.submit(job, number))
                if len(waiting) > n_threads:
                    yield waiting.popleft().result()
                    report(number - n_threads + 1, n_jobs, what)
            while waiting:
                yield waiting.popleft().result()
                report(n_jobs - len(waiting), n_jobs, what)
        finally:
            for future in waiting:  # after an error, or where the caller stopped early
                future.cancel()


@dataclass(frozen=True)
class Shard:
    """The labels of some items, which one task processes as one piece."""

    number: int  # number of the shard, from 0
    packed: Packed
    item_ids: Callable[[], Values]  # returns the ids of the items, in order; called only where they are needed


class ShardedLabels(Protocol):
    """Labels in shards, wherever they are."""

    @property
    def n_shards(self) -> int:
        """Number of shards."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    @property
    def n_labels(self) -> int:
        """Number of labels."""

    @property
    def worker_ids(self) -> npt.NDArray[Any]:
        """The workers."""

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The classes."""

    @property
    def worker_volume(self) -> npt.NDArray[np.int64]:
        """Number of labels of each worker."""

    @property
    def fingerprint(self) -> str:
        """Hash of all labels and of the number of shards."""

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard; results come in the order of shards, whatever the order of execution."""


@dataclass(frozen=True)
class InMemoryShards:
    """Labels in memory, in the order and the shards of the layout; tasks run in threads.

    Built by `from_annotations`.

    Shapes: item_ids (n_items,); worker_ids (n_workers,); classes (n_classes,); first_items (n_shards + 1,).
    """

    packed: Packed  # all labels, item after item in the order of the layout
    item_ids: npt.NDArray[Any]  # (n_items,); the items in this order
    worker_ids: npt.NDArray[Any]  # (n_workers,)
    classes: npt.NDArray[Any]  # (n_classes,)
    # (n_shards + 1,); items of shard s are `first_items[s]` to `first_items[s + 1] - 1`
    first_items: npt.NDArray[np.int64]

    @classmethod
    def from_annotations(cls, annotations: Annotations, n_shards: int | None = None) -> InMemoryShards:
        """Put labels into the order of the layout."""
        if annotations.weight is not None:
            raise AnnotationError(
                "Labels with weights cannot be fitted in shards. Use the ordinary fit, or `strongest_labels()` first."
            )
        if n_shards is None:
            n_shards = shard_count(annotations.n_annotations, annotations.n_workers, annotations.n_classes)
        if n_shards not in [1 << power for power in range(N_BLOCKS.bit_length())]:
            raise ParameterError(f"The number of shards must be a power of two from 1 to {N_BLOCKS}. Got {n_shards!r}.")
        hashes = item_hashes(annotations.item_ids.tolist())
        order = item_order(annotations.item_ids, hashes)
        _, code = reorder_groups(annotations.start, order, (pack(annotations).code,))
        start = np.concatenate([[0], np.cumsum(annotations.n_labels[order])]).astype(np.int64)
        first_items = np.searchsorted(shard_of(hashes[order], n_shards), np.arange(n_shards + 1))
        return cls(
            Packed(code, None, start, annotations.n_workers, annotations.n_classes),
            annotations.item_ids[order],
            annotations.worker_ids,
            annotations.classes,
            first_items.astype(np.int64),
        )

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.first_items) - 1

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.packed.code)

    @cached_property
    def worker_volume(self) -> npt.NDArray[np.int64]:
        """Number of labels of each worker, shape (n_workers,)."""
        n_classes = self.packed.n_classes
        by_code = np.bincount(self.packed.code, minlength=self.packed.n_workers * n_classes)
        return by_code.reshape(self.packed.n_workers, n_classes).sum(axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of all labels, ids and shards."""
        digest = blake2b(digest_size=16)
        for array in (self.packed.code, self.packed.start, self.first_items):
            digest.update(np.ascontiguousarray(array).data)
        for ids in (self.item_ids, self.worker_ids, self.classes):
            digest.update("\0".join(map(id_text, ids.tolist())).encode())
        return digest.hexdigest()

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard, in threads."""
        return run_in_order(lambda number: task(self.shard(number)), self.n_shards, what)

    def shard(self, number: int) -> Shard:
        """One shard; its arrays share memory with the whole."""
        first, last = self.first_items[number : number + 2].tolist()
        start = self.packed.start[first : last + 1]
        code = self.packed.code[start[0] : start[-1]]
        piece = Packed(code, None, start - start[0], self.packed.n_workers, self.packed.n_classes)
        return Shard(number, piece, lambda: self.item_ids[first:last])


# ----------------------------------------------------------------------------------------------------
# What one shard adds to a pass, and the sum of all shards in their order.


class Partial(NamedTuple):
    """What one shard adds to a pass."""

    # (n_workers * n_classes, n_classes); expected counts: a row for each worker and label, a column for each truth
    counts: Array
    totals: Array  # (n_classes,); expected number of labelled items of each class
    evidence: float  # log p(labels), summed over the items
    n_labelled: int = 0  # number of items with labels; counted in the pass of the votes
    n_compared: int = 0  # number of items with at least two labels; counted in the pass of the votes


def summed(partials: Iterable[Partial], spare: list[Array]) -> Partial:
    """The sum of all partial results, added in their order to the first."""
    total: Partial | None = None
    for partial in partials:
        if total is None:
            total = partial
            continue
        np.add(total.counts, partial.counts, out=total.counts)
        total = Partial(
            total.counts,
            total.totals + partial.totals,
            total.evidence + partial.evidence,
            total.n_labelled + partial.n_labelled,
            total.n_compared + partial.n_compared,
        )
        if len(spare) <= thread_count():  # where tasks run elsewhere, nobody takes any
            spare.append(partial.counts)
    assert total is not None
    return total


# ----------------------------------------------------------------------------------------------------
# The labels of a shard as a fit reads them: with a colluding group as one voter, and with workers merged.

_LABELS_AT_ONCE = 1 << 18  # labels that are rearranged at a time, to bound memory


@dataclass(frozen=True, eq=False)
class View:
    """A pure function of the labels of a shard, which every pass of a fit applies.

    Shapes: members (n_workers,); group (n_workers,); copy_group (n_workers,); copy_rank (n_workers,).
    """

    n_workers: int  # number of workers after it
    members: Mask | None = None  # (n_workers,); workers of a colluding group, who become one voter
    representative: int = 0  # the member who gets the labels of the group
    group: npt.NDArray[np.int64] | None = None  # (n_workers,); number of the worker that each worker is merged into
    # (n_workers,); groups of copies, of whom the one with the lowest rank counts on each item
    copy_group: npt.NDArray[np.int64] | None = None
    copy_rank: npt.NDArray[np.int64] | None = None

    def __call__(self, packed: Packed) -> Packed:
        """Labels as the fit reads them."""
        if self.copy_group is not None and self.copy_rank is not None:
            packed = packed_of(without_copies(annotations_of(packed), self.copy_group, self.copy_rank))
        if self.members is not None and self.members[packed.code // np.int32(packed.n_classes)].any():
            collapsed = collapse_groups(annotations_of(packed), self.members, self.representative)
            packed = packed_of(collapsed)
        if self.group is None:
            return packed
        worker, label = np.divmod(packed.code, np.int32(packed.n_classes))
        code = (self.group[worker] * packed.n_classes + label).astype(np.int32)
        return Packed(code, label, packed.start, self.n_workers, packed.n_classes)

    @property
    def arrays(self) -> list[npt.NDArray[Any]]:
        """All that it depends on, for the record of a pass."""
        parts = [np.array([self.n_workers, self.representative]), self.members, self.group]
        parts += [self.copy_group, self.copy_rank] if self.copy_group is not None else []
        return [np.zeros(0) if part is None else part for part in parts]


def annotations_of(packed: Packed) -> Annotations:
    """Packed labels as annotations, with numbers in the place of ids."""
    item = np.repeat(np.arange(packed.n_items, dtype=np.int32), np.diff(packed.start))
    worker, label = np.divmod(packed.code, np.int32(packed.n_classes))
    ids = tuple(np.arange(n) for n in (packed.n_items, packed.n_workers, packed.n_classes))
    return Annotations.from_codes((item, worker, label), ids, sorting_order=None)


def packed_of(annotations: Annotations) -> Packed:
    """Annotations as packed labels; unlike `em.kernels.pack`, it does not check the size of tables."""
    code = annotations.worker * np.int32(annotations.n_classes)
    code += annotations.label
    return Packed(code, annotations.label, annotations.start, annotations.n_workers, annotations.n_classes)


def item_pieces(packed: Packed, least: int = 0) -> Iterator[tuple[int, int, Packed]]:
    """The items of a shard a part at a time, so that a large shard needs little memory beside its results."""
    at_once = max(_LABELS_AT_ONCE, least)
    n_pieces = -(-len(packed.code) // at_once)
    cuts = np.searchsorted(packed.start[:-1], np.arange(1, n_pieces) * at_once).tolist()
    for first, last in pairwise([0, *cuts, packed.n_items]):
        if first < last:
            start = packed.start[first : last + 1]
            code = packed.code[start[0] : start[-1]]
            yield first, last, Packed(code, None, start - start[0], packed.n_workers, packed.n_classes)

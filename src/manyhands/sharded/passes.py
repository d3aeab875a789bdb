"""The passes of a fit on shards: tasks on one shard, their sum in the order of shards, and the record of passes.

`ShardedSource` is the `LabelSource` of shards: `ConfusionEM` runs on it as it runs on labels in memory.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands import __version__
from manyhands._core.arrays import Array, Mask
from manyhands.aggregation.base import Aggregator
from manyhands.aggregation.tempering import release
from manyhands.em.collusion import without_copies
from manyhands.em.decisions import overall, pick_classes
from manyhands.em.kernels import Packed, PassResult, aligned_zeros, em_items, rows_of, sums_by, votes_of
from manyhands.em.plain_pass import vote_shares
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.sharded.labels import Partial, Shard, ShardedLabels, View, annotations_of, item_pieces, summed

# ----------------------------------------------------------------------------------------------------
# The record of finished passes, with which a run that was ended continues: the same bits, by construction.
#
# Every E step is written whole or not at all. A run that starts again computes its M steps anew, which is cheap, and
# takes the E steps from their records as far as these go. A record names the parameters that it belongs to, so that
# it is used for these and no others.

_MAGIC = b"manyhands pass 1\n"
_DIGEST = 16  # bytes
_UNUSABLE = "The record {} of pass {} is {}; this pass and those after it were computed again."


class PassLog:
    """Finished E steps of one fit, one file each."""

    def __init__(self, folder: str | Path, key: str) -> None:
        self.folder, self.key = Path(folder) / key, key
        self.notes: list[str] = []
        self.n_replayed = self.n_computed = 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"The folder {folder} for the record of finished passes cannot be created ({error.strerror}). "
                f"Choose another one."
            ) from None

    @classmethod
    def of(cls, folder: str | Path, method: Aggregator, labels: ShardedLabels) -> PassLog:
        """The record of a fit: of this method, its parameters, these labels, and this version of the package."""
        parameters = {name: _plain(value) for name, value in sorted(method.get_params(deep=False).items())}
        names = [__version__, type(method).__name__, parameters, labels.fingerprint, labels.n_shards]
        return cls(folder, blake2b(json.dumps(names).encode(), digest_size=_DIGEST).hexdigest())

    def step(self, parameters: bytes, compute: Callable[[], Partial]) -> Partial:
        """The next E step: from its record if there is one, otherwise computed and recorded."""
        number = self.n_replayed + self.n_computed
        if self.n_computed == 0:  # after a pass that was computed there are no records to go on with
            result = self._read(number, parameters)
            if result is not None:
                self.n_replayed += 1
                return result
        made = compute()
        self._write(number, parameters, made)
        self.n_computed += 1
        return made

    def remove(self) -> None:
        """Remove all records of this fit, after its results were written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"pass-{number:05d}"

    def _read(self, number: int, parameters: bytes) -> Partial | None:
        """The record of a pass; None where there is none, or it is broken or foreign."""
        path = self._path(number)
        try:
            data = bytearray(path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            self.notes.append(_UNUSABLE.format(path, number + 1, f"not readable ({error.strerror})"))
            return None
        made = _parse(data, parameters)
        if isinstance(made, str):
            self.notes.append(_UNUSABLE.format(path, number + 1, made))
            return None
        return made

    def _write(self, number: int, parameters: bytes, made: Partial) -> None:
        """Write a record under a temporary name, then rename it."""
        path, temporary = self._path(number), self._path(number).with_suffix(".part")
        sizes: dict[str, Any] = {
            "shape": made.counts.shape,
            "evidence": made.evidence.hex(),
            "parameters": parameters.hex(),
        }
        sizes |= {"n_labelled": made.n_labelled, "n_compared": made.n_compared}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # an earlier run of the same fit removes it at its end
            with temporary.open("wb") as file:
                digest = blake2b(digest_size=_DIGEST)
                for part in (_MAGIC, json.dumps(sizes).encode() + b"\n", made.counts, made.totals):
                    piece = np.ascontiguousarray(part).data if isinstance(part, np.ndarray) else part
                    digest.update(piece)
                    file.write(piece)
                file.write(digest.digest())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise ManyhandsError(
                f"The record of pass {number + 1} cannot be written to {self.folder} ({error.strerror}). Make room "
                f"there, {made.counts.nbytes / 1e6:.0f} MB for each pass, and run the same command again: it continues "
                f"after the last recorded pass."
            ) from None


def _parse(data: bytearray, parameters: bytes) -> Partial | str:
    """A record, or in a few words why it cannot be used."""
    view = memoryview(data)
    if blake2b(view[:-_DIGEST], digest_size=_DIGEST).digest() != bytes(view[-_DIGEST:]):
        return "broken"
    if not data.startswith(_MAGIC):
        return "of another version"
    end = data.index(b"\n", len(_MAGIC)) + 1
    sizes = json.loads(data[len(_MAGIC) : end])
    if bytes.fromhex(sizes["parameters"]) != parameters:
        return "of other parameters"
    rows, n_classes = sizes["shape"]
    numbers = np.frombuffer(bytes(view[end:-_DIGEST]), np.float64).copy()
    counts, totals = numbers[: rows * n_classes].reshape(rows, n_classes), numbers[rows * n_classes :]
    return Partial(counts, totals, float.fromhex(sizes["evidence"]), sizes["n_labelled"], sizes["n_compared"])


def digest_of(name: str, *arrays: Array) -> bytes:
    """Digest of what a task depends on besides the labels."""
    digest = blake2b(name.encode(), digest_size=_DIGEST)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.digest()


def _plain(value: Any) -> Any:
    """A parameter as JSON can write it, with all its digits."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value if isinstance(value, str | int | float | bool | type(None) | list | tuple) else repr(value)


# ----------------------------------------------------------------------------------------------------
# The tasks of EM on one shard, and their sum.


@dataclass(frozen=True)
class EMPass:
    """The task of an E step: expected counts of one shard at given parameters.

    Shapes: rows (n_workers * n_classes, n_classes); log_prior (n_classes,).
    """

    # (n_workers * n_classes, n_classes); log p(label | truth), a row for each worker and label (`em.kernels.rows_of`)
    rows: Array
    log_prior: Array  # (n_classes,)
    view: View | None = None  # what is done to the labels of the shard first
    # count tables that earlier tasks of this process no longer need; never sent elsewhere
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, shard: Shard) -> Partial:
        """Run on one shard."""
        packed = shard.packed if self.view is None else self.view(shard.packed)
        counts, totals = zero_counts(packed, self.spare), np.zeros(packed.n_classes)
        evidence = em_items(packed, 0, packed.n_items, self.rows, self.log_prior, None, counts, totals, None)
        return Partial(counts, totals, evidence)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"spare": []}


@dataclass(frozen=True)
class VotePass:
    """The task of the start: counts of one shard if each item's posterior were its vote share."""

    view: View | None = None  # what is done to the labels of the shard first
    # count tables that earlier tasks of this process no longer need; never sent elsewhere
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, shard: Shard) -> Partial:
        """Run on one shard."""
        packed = shard.packed if self.view is None else self.view(shard.packed)
        counts, totals = zero_counts(packed, self.spare), np.zeros(packed.n_classes)
        votes_of(packed, 0, packed.n_items, counts, totals, None)
        n_labels = np.diff(packed.start)
        return Partial(counts, totals, 0.0, int(np.count_nonzero(n_labels)), int(np.count_nonzero(n_labels > 1)))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"spare": []}


def zero_counts(packed: Packed, spare: list[Array]) -> Array:
    """A count table of zeros: a spare one, or a new one.

    Shapes: returns (n_workers * n_classes, n_classes).
    """
    with suppress(IndexError):  # there is none
        counts = spare.pop()
        counts[...] = 0.0
        return counts
    return aligned_zeros((packed.n_workers * packed.n_classes, packed.n_classes))


def as_result(total: Partial) -> PassResult:
    """The sum of all shards as EM reads it."""
    n_classes = len(total.totals)
    counts = total.counts.reshape(-1, n_classes, n_classes).transpose(0, 2, 1)
    return PassResult(counts, total.totals, total.evidence, None)


@dataclass(frozen=True)
class ShardedSource:
    """Shards as the labels that EM passes over (`em.kernels.LabelSource`)."""

    labels: ShardedLabels
    view: View | None = None  # what every pass does to the labels of a shard first
    log: PassLog | None = None  # record of finished passes; None keeps none
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)  # count tables that passes use again

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return len(self.labels.worker_ids) if self.view is None else self.view.n_workers

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.labels.classes)

    def em_pass(self, log_confusion: Array, log_prior: Array, *, want_posterior: bool = False) -> PassResult:
        """The E step and its expected counts; the posterior of all items is never returned.

        Shapes: log_confusion (n_workers, n_classes, n_classes); log_prior (n_classes,).
        """
        rows, log_prior = rows_of(log_confusion, self.labels.n_labels), np.ascontiguousarray(log_prior, np.float64)
        task = EMPass(rows, log_prior, self.view, self.spare)
        return as_result(self._step("shards of a pass", task, rows, log_prior))

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share."""
        return as_result(self.vote_partial())

    def vote_partial(self) -> Partial:
        """The same with the numbers of items that have labels, and that have at least two."""
        return self._step("shards: votes", VotePass(self.view, self.spare))

    def _step(self, what: str, task: Callable[[Shard], Partial], *parameters: Array) -> Partial:
        """Run a task on all shards, unless there is a record of it, and add up the results."""

        def compute() -> Partial:
            return summed(self.labels.run(task, what), self.spare)

        if self.log is None:
            return compute()
        viewed = [] if self.view is None else self.view.arrays
        return self.log.step(digest_of(type(task).__name__, *parameters, *viewed), compute)


def em_pass(labels: ShardedLabels, log_confusion: Array, log_prior: Array) -> PassResult:
    """The E step and its expected counts over all shards.

    Shapes: log_confusion (n_workers, n_classes, n_classes); log_prior (n_classes,).
    """
    return ShardedSource(labels).em_pass(log_confusion, log_prior)


def vote_pass(labels: ShardedLabels) -> PassResult:
    """The pass over all shards in which each item's posterior is its vote share."""
    return ShardedSource(labels).vote_pass()


# ----------------------------------------------------------------------------------------------------
# The tasks at the end of a fit: the posterior of every item, its class, and what items say about workers.


# How a fitted method turns labels into the posterior of their items, shape (n_items, n_classes), and which items are
# withheld, None where the method withholds none. It is pickled with the task.
Posterior = Callable[[Packed], tuple[Array, Mask | None]]


@dataclass(frozen=True)
class ModelPosterior:
    """The posterior given confusion matrices and class prior; that of an item without labels is the class prior.

    Shapes: rows (n_workers * n_classes, n_classes); log_prior (n_classes,).
    """

    # (n_workers * n_classes, n_classes); log p(label | truth), a row for each worker and label (`em.kernels.rows_of`)
    rows: Array
    log_prior: Array  # (n_classes,)
    # count tables that may be overwritten; never sent elsewhere
    spare: list[Array] = field(default_factory=list, repr=False, compare=False)

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """The posterior of some items.

        Shapes: returns posterior (n_items, n_classes).
        """
        posterior = np.empty((packed.n_items, packed.n_classes))
        counts = zero_counts(packed, self.spare)  # the pass computes them too
        totals = np.zeros(packed.n_classes)
        em_items(packed, 0, packed.n_items, self.rows, self.log_prior, None, counts, totals, posterior)
        self.spare.append(counts)
        return posterior, None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"spare": []}


@dataclass(frozen=True)
class VotePosterior:
    """The share of the votes; that of an item without labels is the share of each class in the whole crowd.

    Shapes: totals (n_classes,).
    """

    totals: Array  # (n_classes,); sum of the vote shares of all items

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """The posterior of some items.

        Shapes: returns posterior (n_items, n_classes).
        """
        share = vote_shares(packed, 0, packed.n_items)
        share[np.diff(packed.start) == 0] = overall(self.totals)
        return share, None


@dataclass(frozen=True, eq=False)
class PooledPosterior:
    """Posterior of the model, then limited overruling and the power learnt across crowds."""

    model: ModelPosterior
    view: View | None  # the colluding group as one voter, where there is one
    results: dict[str, Any]

    def __call__(self, packed: Packed) -> tuple[Array, Mask | None]:
        """The released posterior of some items.

        Shapes: returns posterior (n_items, n_classes); returns withheld (n_items,).
        """
        posterior, _ = self.model(packed if self.view is None else self.view(packed))
        withheld = np.zeros(packed.n_items, bool)
        for first, last, part in item_pieces(packed):
            votes = annotations_of(part)
            votes = without_copies(votes, self.results["copy_groups_"], self.results["_copy_rank"])
            posterior[first:last], withheld[first:last] = release(votes, posterior[first:last], None, self.results)
        return posterior, withheld


class Statistics(NamedTuple):
    """What the posteriors of items say about classes and workers; those of several shards are added."""

    totals: Array  # (n_classes,); expected number of labelled items of each class
    right: Array  # (n_workers,); expected number of right labels of each worker, on items with at least two labels
    checked: Array  # (n_workers,); number of labels of each worker on these items


@dataclass(frozen=True)
class StatisticsPass:
    """The task that sums posteriors by class and by worker."""

    posterior: Posterior

    def __call__(self, shard: Shard) -> Statistics:
        """Run on one shard."""
        packed = shard.packed
        posterior, _ = self.posterior(packed)
        sums = [np.zeros(size) for size in (packed.n_classes, packed.n_workers, packed.n_workers)]
        for first, last, part in item_pieces(packed):
            for total, more in zip(sums, _statistics_of(part, posterior[first:last])):
                total += more
        return Statistics(*sums)


def _statistics_of(packed: Packed, posterior: Array) -> Statistics:
    """The statistics of some items."""
    n_labels = np.diff(packed.start)
    totals = np.einsum("ik->k", posterior[n_labels > 0])
    weight = np.repeat((n_labels > 1).astype(np.float64), n_labels)
    item = np.repeat(np.arange(packed.n_items), n_labels)
    worker = packed.code // np.int32(packed.n_classes)
    right = sums_by(worker, weight * posterior[item, packed.label], packed.n_workers)
    return Statistics(totals, right, sums_by(worker, weight, packed.n_workers))


def summed_statistics(parts: Iterable[Statistics]) -> Statistics:
    """The sum over all shards, in their order."""
    total: Statistics | None = None
    for part in parts:
        total = part if total is None else Statistics(*(a + b for a, b in zip(total, part)))
    assert total is not None
    return total


# ----------------------------------------------------------------------------------------------------
# The task that gathers a sample of items; it is here because executors may lack SciPy, which `fit` needs.

_LARGE_ITEMS = 10  # an item with more than this part of the sample of its shard is left out


@dataclass(frozen=True)
class SamplePass:
    """The task that takes the first items of a shard."""

    n_labels: int | None  # number of labels that they have at most; None takes all items

    def __call__(self, shard: Shard) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Run on one shard.

        Shapes: returns code (n_labels,); returns size (n_items,).
        """
        code, size = shard.packed.code, np.diff(shard.packed.start)
        if self.n_labels is None:
            return code, size
        small = np.where(size <= self.n_labels // _LARGE_ITEMS, size, 0)
        chosen = (np.cumsum(small) <= self.n_labels) & (small > 0)
        return code[np.repeat(chosen, size)], size[chosen]


# ----------------------------------------------------------------------------------------------------
# The results of the items of a shard.


class ItemResults(NamedTuple):
    """The results of the items of one shard, in their order."""

    number: int  # number of the shard
    posterior: Array  # (n_items, n_classes); p(truth | labels); rows sum to 1
    code: npt.NDArray[np.int32]  # (n_items,); code of the most probable class, -1 for items without labels
    tied: Mask  # (n_items,); items on which several classes have the largest probability
    # (n_items,); items on which the plurality is named in place of the class of the model; None where the method has
    # none
    withheld: Mask | None
    n_labels: npt.NDArray[np.int64]  # (n_items,); number of labels of each item


@dataclass(frozen=True)
class FinalPass:
    """The task that computes the results of the items of a shard.

    Shapes: class_totals (n_classes,).
    """

    posterior: Posterior
    class_totals: Array  # (n_classes,); expected number of items of each class in the whole crowd, which decides ties

    def __call__(self, shard: Shard) -> ItemResults:
        """Run on one shard."""
        posterior, withheld = self.posterior(shard.packed)
        n_labels = np.diff(shard.packed.start)
        code, tied = pick_classes(posterior, n_labels == 0, self.class_totals)
        return ItemResults(shard.number, posterior, code, tied, withheld, n_labels)

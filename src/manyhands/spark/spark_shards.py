"""`SparkShards`: the labels of a DataFrame in shards, on which tasks run as one action each."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from manyhands.em.packed import Packed
from manyhands.encoding import as_ids
from manyhands.exceptions import CrowdWarning, ManyhandsError
from manyhands.progress import report
from manyhands.sharded.labels import Shard
from manyhands.spark.engine_errors import raised_clearly
from manyhands.spark.label_columns import DataFrame, LabelColumns, RowProfile
from manyhands.spark.remote import pack, remote_function
from manyhands.spark.shard_columns import PASS_COLUMNS, SCHEMA
from manyhands.spark.shard_tables import (
    FORMAT,
    Manifest,
    Session,
    Written,
    read_manifest,
    write_manifest,
    write_shards,
)
from manyhands.spark.volume_task import VolumePass

R = TypeVar("R")

_RESULT_BYTES = 400_000_000  # results that one action collects; drivers refuse more than 1 GB by default
_NEEDS_IDS = b"I"


class SparkShards:
    """Labels in a table of shards that executors read (`sharded.labels.ShardedLabels`).

    Built by `from_frame`.

    Parameters
    ----------
    spark : SparkSession
        The session.
    folder : str
        Folder of the table.
    manifest : Manifest
        What is known of it.
    """

    def __init__(self, spark: Session, folder: str, manifest: Manifest) -> None:
        self.spark, self.folder, self.manifest = spark, folder, manifest
        self.worker_ids: npt.NDArray[Any] = as_ids(manifest.workers, "worker")
        self.classes: npt.NDArray[Any] = as_ids(manifest.classes, "class")
        self.worker_volume: npt.NDArray[np.int64] = np.array(manifest.volumes, np.int64)

    @classmethod
    def from_frame(
        cls,
        frame: DataFrame,
        checkpoint_dir: str,
        *,
        item: str = "item",
        worker: str = "worker",
        label: str = "label",
        order: str | None = None,
        max_table_bytes: int = 2_000_000_000,
        n_shards: int | None = None,
        as_text: bool = False,
    ) -> SparkShards:
        """Write the labels of a DataFrame in shards, or find those that an earlier run wrote.

        Parameters
        ----------
        frame : DataFrame
            One row per label.
        checkpoint_dir : str
            Folder that driver and executors reach; the engine writes Parquet to it.
        item : str, default="item"
            Column with the item.
        worker : str, default="worker"
            Column with the worker.
        label : str, default="label"
            Column with the label.
        order : str, default=None
            Column that says which of several labels of a worker on an item is the last; None keeps the greatest in the
            order of the classes, since rows of a DataFrame have no order.
        max_table_bytes : int, default=2_000_000_000
            Bytes that the confusion matrices of all workers may have on the driver.
        n_shards : int, default=None
            Number of shards, a power of two up to 256; None is the number that the layout gives.
        as_text : bool, default=False
            Whether workers and classes that are numbers are ordered as text, as the readers of files do.

        Returns
        -------
        SparkShards

        Warns
        -----
        CrowdWarning
            ``missing_values``, ``repeated_labels``: with their number, where rows were left out.
        """
        columns = LabelColumns.of(frame, item, worker, label, order, as_text=as_text)
        profile = columns.profile(frame)
        folder = f"{str(checkpoint_dir).rstrip('/')}/{columns.key(profile, n_shards)}"
        manifest = read_manifest(frame.sparkSession, folder)
        if manifest is None:
            written = write_shards(frame, columns, profile, folder, max_table_bytes, n_shards)
            shards = cls(frame.sparkSession, folder, _manifest(columns, profile, written))
            shards.worker_volume = sum(shards.run(VolumePass(), "labels of workers"), np.zeros(1, np.int64))
            manifest = _manifest(columns, profile, written, shards.worker_volume.tolist())
            write_manifest(frame.sparkSession, folder, manifest)
        _warn(manifest.ledger, item, worker, label, order)
        return cls(frame.sparkSession, folder, manifest)

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return self.manifest.n_shards

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self.manifest.n_items

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.manifest.n_labels

    @property
    def fingerprint(self) -> str:
        """Hash of all labels, ids and shards."""
        return self.manifest.fingerprint

    @property
    def id_kind(self) -> str:
        """Kind of the item ids: "text" or "integer"."""
        return "text" if self.manifest.types["item"] == "string" else "integer"

    def table(self) -> DataFrame:
        """The rows of the shards.

        Returns
        -------
        DataFrame
        """
        return self.spark.read.schema(f"shard int, {SCHEMA}").parquet(f"{self.folder}/shards")

    def run(self, task: Callable[[Shard], R], what: str) -> Iterator[R]:
        """Run a task on every shard: one action, or several where the results are large.

        Parameters
        ----------
        task : callable
            Takes a `Shard`; a pure function that can be pickled.
        what : str
            Name under which progress is reported.

        Yields
        ------
        object
            The results, in the order of shards.

        Raises
        ------
        ManyhandsError
            Where a shard is missing or damaged.
        """
        sizes = (len(self.worker_ids), len(self.classes), self.id_kind)
        function = remote_function("run_task", pack((task, *sizes), self.folder))
        per_action = max(1, _RESULT_BYTES // (8 * len(self.worker_ids) * len(self.classes) ** 2 + 1))
        for first in range(0, self.n_shards, per_action):
            last = min(first + per_action, self.n_shards)
            found = self._collect(function, first, last)
            for number in range(first, last):
                yield pickle.loads(memoryview(found.pop(number))[1:]) if number in found else task(self._empty(number))
                report(number + 1, self.n_shards, what)

    def _empty(self, number: int) -> Shard:
        """A shard that no item belongs to, which has no row."""
        sizes = (len(self.worker_ids), len(self.classes))
        packed = Packed(np.zeros(0, np.int32), None, np.zeros(1, np.int64), *sizes)
        return Shard(number, packed, lambda: np.zeros(0, object))

    @raised_clearly
    def _collect(self, function: Any, first: int, last: int, *, with_ids: bool = False) -> dict[int, bytes]:
        """Results of the shards from `first` to `last - 1`, by number."""
        columns = [*PASS_COLUMNS, *(("id_lengths", "id_text") if with_ids else ())]
        rows = self.table().select(*columns)
        if (first, last) != (0, self.n_shards):
            rows = rows.filter(f"shard >= {first} and shard < {last}")
        # A shard whose task was run twice has the same result twice.
        found = {int(row[0]): bytes(row[1]) for row in rows.mapInArrow(function, "shard int, payload binary").collect()}
        missing = [number for number in self.manifest.present if first <= number < last and number not in found]
        if missing:
            raise ManyhandsError(
                f"Shards {', '.join(map(str, missing[:5]))}{' and others' if len(missing) > 5 else ''} of "
                f"{self.n_shards} are missing in {self.folder}. Delete this folder and fit again."
            )
        if not with_ids and any(payload[:1] == _NEEDS_IDS for payload in found.values()):
            return self._collect(function, first, last, with_ids=True)
        return found


def _manifest(
    columns: LabelColumns, profile: RowProfile, written: Written, volumes: list[int] | None = None
) -> Manifest:
    """What is known of a table after it was written; an empty shard has no row."""
    settings = written.settings
    ids = [columns.types, settings.workers, settings.classes, written.n_shards, written.numbers]
    ledger = {"rows": profile.n_rows, "missing": profile.n_missing}
    ledger |= {f"missing_{role}": n for role, n in profile.nulls.items()}
    ledger |= {name: written.total(f"n_{name}") for name in ("identical", "conflicting")}
    return Manifest(
        format=FORMAT,
        n_shards=written.n_shards,
        present=[row[0] for row in written.numbers],
        n_items=written.total("n_items"),
        n_labels=written.total("n_labels"),
        types=columns.types,
        workers=settings.workers,
        classes=settings.classes,
        volumes=[0] * len(settings.workers) if volumes is None else volumes,
        ledger=ledger,
        fingerprint=blake2b(repr(ids).encode(), digest_size=16).hexdigest(),
    )


def _warn(ledger: dict[str, int], item: str, worker: str, label: str, order: str | None) -> None:
    """Say which rows were left out."""
    if ledger["missing"]:
        named = {"item": item, "worker": worker, "label": label}
        parts = [
            f"{ledger[f'missing_{role}']:,} without {name}" for role, name in named.items() if ledger[f"missing_{role}"]
        ]
        warnings.warn(
            f"missing_values: {ledger['missing']:,} of {ledger['rows']:,} rows were left out, {', '.join(parts)}.",
            CrowdWarning,
            stacklevel=4,
        )
    if ledger["conflicting"]:
        kept = f"the last by {order}" if order else "the greatest in the order of the classes (set orderCol to choose)"
        warnings.warn(
            f"repeated_labels: {ledger['conflicting']:,} rows were left out where a worker gave one item several "
            f"labels: {kept} was kept. {ledger['identical']:,} rows repeat another one.",
            CrowdWarning,
            stacklevel=4,
        )

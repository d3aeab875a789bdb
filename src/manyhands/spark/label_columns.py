"""The three columns of a DataFrame: which types they may have, and the labels in one form.

Only the DataFrame API is used, so that everything runs on classic clusters, through Spark Connect and on engines that
speak its protocol.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy.typing as npt

from manyhands.encoding import as_ids, encode
from manyhands.exceptions import AnnotationError, LimitError, ParameterError
from manyhands.sharded.layout import id_text
from manyhands.spelling import did_you_mean

DataFrame = Any  # classic and Connect sessions have classes of their own

INTEGERS = ("tinyint", "smallint", "int", "bigint")
_ALLOWED = {
    "item": ("string", *INTEGERS),
    "worker": ("string", *INTEGERS),
    "label": ("string", *INTEGERS, "boolean", "float", "double"),
}
_SUM_OF = 1 << 28  # checksums of rows are summed modulo this: 2^34 rows stay below 2^63


@dataclass(frozen=True)
class LabelColumns:
    """Names and types of the columns of labels.

    Parameters
    ----------
    item : str
        Column with the item.
    worker : str
        Column with the worker.
    label : str
        Column with the label.
    order : str or None
        Column that says which of several labels of a worker on an item is the last.
    types : dict of str to str
        Types of the three columns, by role, as Spark writes them.
    as_text : bool
        Whether workers and classes that are numbers are ordered as text, as the readers of files do.
    """

    item: str
    worker: str
    label: str
    order: str | None
    types: dict[str, str]
    as_text: bool

    @classmethod
    def of(
        cls, frame: DataFrame, item: str, worker: str, label: str, order: str | None, *, as_text: bool = False
    ) -> LabelColumns:
        """Check the columns of a DataFrame.

        Parameters
        ----------
        frame : DataFrame
            One row per label.
        item : str
            Column with the item.
        worker : str
            Column with the worker.
        label : str
            Column with the label.
        order : str or None
            Column that orders repeated labels.
        as_text : bool, default=False
            Whether workers and classes that are numbers are ordered as text.

        Returns
        -------
        LabelColumns

        Raises
        ------
        ParameterError
            Where a column does not exist, or two roles name the same one.
        AnnotationError
            Where a column has a type that ids cannot have.
        """
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        names = {"item": item, "worker": worker, "label": label}
        for role, name in [*names.items(), ("order", order)]:
            if name is not None and name not in types:
                raise ParameterError(
                    f"{role}Col is {name!r}, but the DataFrame has no such column; it has {', '.join(types)}."
                    f"{did_you_mean(name, list(types))}"
                )
        if len(set(names.values())) < len(names):
            raise ParameterError(
                f"itemCol, workerCol and labelCol must be three columns. Got {item}, {worker}, {label}."
            )
        for role, name in names.items():
            if types[name] not in _ALLOWED[role]:
                raise AnnotationError(
                    f"The {role} column {name!r} has type {types[name]}; it must be string"
                    f"{', boolean, a number' if role == 'label' else ' or an integer type'}. "
                    f"Cast it, for example to string."
                )
        return cls(item, worker, label, order, {role: types[name] for role, name in names.items()}, as_text)

    @property
    def id_kind(self) -> str:
        """Kind of the item ids: "text" or "integer"."""
        return "text" if self.types["item"] == "string" else "integer"

    def labels(self, frame: DataFrame) -> DataFrame:
        """Rows with all three values, as item (text), worker, label and, if there is one, order.

        Parameters
        ----------
        frame : DataFrame
            One row per label.

        Returns
        -------
        DataFrame
        """
        kept = frame.filter(~self._missing())
        columns = [
            _column(self.item).cast("string").alias("item"),
            _column(self.worker).alias("worker"),
            _column(self.label).alias("label"),
        ]
        if self.order is not None:
            columns.append(_column(self.order).alias("order"))
        return kept.select(*columns)

    def _missing(self) -> Any:
        """Whether a row lacks one of the three values."""
        missing = None
        for role in ("item", "worker", "label"):
            part = self._lacks(role)
            missing = part if missing is None else missing | part
        return missing

    def _lacks(self, role: str) -> Any:
        """Whether a row lacks one value: null, or NaN for labels that are numbers."""
        import pyspark.sql.functions as f

        column = _column(getattr(self, role))
        if self.types[role] in ("float", "double"):
            return column.isNull() | f.isnan(column)
        return column.isNull()

    def profile(self, frame: DataFrame) -> RowProfile:
        """Number of rows, missing values and a hash of all rows that does not depend on their order: one action.

        Parameters
        ----------
        frame : DataFrame
            One row per label.

        Returns
        -------
        RowProfile
        """
        import pyspark.sql.functions as f

        names = [name for name in (self.item, self.worker, self.label, self.order) if name is not None]
        # A missing value is written as a character that text does not contain.
        row = f.concat_ws("\u001f", *(f.coalesce(_column(name).cast("string"), f.lit("\u0000")) for name in names))
        counts = [f.sum(f.when(self._lacks(role), 1).otherwise(0)).alias(role) for role in ("item", "worker", "label")]
        found = frame.agg(
            f.count(f.lit(1)).alias("rows"),
            f.sum(f.when(self._missing(), 1).otherwise(0)).alias("missing"),
            *counts,
            f.sum(f.crc32(row.cast("binary")) % _SUM_OF).alias("crc"),
            f.sum(f.xxhash64(row) % _SUM_OF).alias("hash"),
        ).collect()[0]
        n = {name: int(found[name] or 0) for name in ("rows", "missing", "item", "worker", "label", "crc", "hash")}
        nulls = {role: n[role] for role in ("item", "worker", "label")}
        return RowProfile(n["rows"], n["missing"], nulls, (n["crc"], n["hash"]))

    def key(self, profile: RowProfile, n_shards: int | None) -> str:
        """Name of the labels: of the columns, their types and the content of all rows.

        Parameters
        ----------
        profile : RowProfile
            Counts and hashes.
        n_shards : int or None
            Number of shards that was asked for.

        Returns
        -------
        str
        """
        parts = [
            1,
            self.item,
            self.worker,
            self.label,
            self.order,
            sorted(self.types.items()),
            profile,
            n_shards,
            self.as_text,
        ]
        return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


@dataclass(frozen=True)
class RowProfile:
    """What one pass over the rows finds.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    n_missing : int
        Rows that lack an item, a worker or a label.
    nulls : dict of str to int
        Missing values of each column, by role.
    hashes : tuple of int
        Two sums of hashes of rows.
    """

    n_rows: int
    n_missing: int
    nulls: dict[str, int]
    hashes: tuple[int, int]


def _column(name: str) -> Any:
    """A column by its name, which may contain dots and spaces."""
    import pyspark.sql.functions as f

    return f.col(quoted(name))


def quoted(name: str) -> str:
    """A column's name in quotes, so that it may contain dots and spaces.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    str

    Examples
    --------
    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def distinct_values(labels: DataFrame, role: str, limit: int, why: str, *, as_text: bool) -> npt.NDArray[Any]:
    """The distinct values of a column in the order of their codes.

    Parameters
    ----------
    labels : DataFrame
        Labels as `LabelColumns.labels` gives them.
    role : str
        "worker" or "label".
    limit : int
        Largest number of values that may be collected.
    why : str
        Ends the sentence of the error: what the limit is.
    as_text : bool
        Whether numbers are ordered as text, as the readers of files do.

    Returns
    -------
    ndarray

    Raises
    ------
    LimitError
        Where there are more.
    """
    rows = labels.select(role).distinct().limit(limit + 1).collect()
    if len(rows) > limit:
        raise LimitError(f"There are more than {limit:,} {role}s, {why}")
    values = [row[0] for row in rows]
    if as_text:
        by_text = {id_text(value): value for value in values}
        return as_ids([by_text[text] for text in encode(list(by_text), None, role)[1].tolist()], role)
    return encode(values, None, role)[1]


def check_table(n_workers: int, n_classes: int, limit: int) -> None:
    """Refuse confusion matrices that outgrow the driver.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    limit : int
        Bytes that one table may have.

    Raises
    ------
    LimitError
        Where workers * classes^2 * 8 bytes exceed the limit.
    """
    size = n_workers * n_classes**2 * 8
    if size > limit:
        raise LimitError(
            f"{n_workers:,} workers x {n_classes:,} classes x {n_classes:,} classes are {n_workers * n_classes**2:,} "
            f"numbers, {size / 1e9:.1f} GB for each table on the driver; the limit is {limit / 1e9:.1f} GB. "
            f"Merge rare classes, leave out workers with few labels, or raise maxTableBytes on a larger driver."
        )

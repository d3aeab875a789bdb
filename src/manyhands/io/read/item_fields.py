"""Fields of items as they came: text, address, any column that a training set needs beside the label.

The formats say which fields an export has (`manyhands.io.formats.fields_of_items`). Here the values of each item are
collected from all rows and files; where they differ, the first is kept and the item is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands.io.messages import counted, listed

_MOST_CONFLICTS = 0.2  # share of items with several rows in which a field of the item may differ by mistake


@dataclass
class FieldValues:
    """Values of one field.

    Attributes
    ----------
    values : dict of str to object
        Item -> its first value that is neither null nor blank.
    repeated : set of str
        Items with more than one such value, equal or not.
    conflicts : set of str
        Items with values that differ.
    blank : set of str
        Items with a row in which there is no value.
    """

    values: dict[str, Any] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    conflicts: set[str] = field(default_factory=set)
    blank: set[str] = field(default_factory=set)

    def add(self, item: str, value: Any) -> None:
        """Add one value of an item.

        Parameters
        ----------
        item : str
            The item.
        value : object
            The value; null and blank text are no value.
        """
        if value is None or (type(value) is str and not value.strip()):
            self.blank.add(item)
            return
        if item not in self.values:
            self.values[item] = value
            return
        self.repeated.add(item)
        known = self.values[item]
        if known is not value and (known != value or type(known) is not type(value)):
            self.conflicts.add(item)

    @property
    def varies(self) -> bool:
        """Whether the field belongs to rows, not to items: it differs within more than a fifth of the items.

        A comment of one worker is blank in the rows of the others, so that a blank row differs as well.
        """
        partly = self.blank & self.values.keys()
        return len(self.conflicts | partly) > _MOST_CONFLICTS * len(self.repeated | partly)


class ItemFields:
    """Fields of items by name, in the order of the file.

    Attributes
    ----------
    fields : dict of str to FieldValues
        Name -> values, only of fields that belong to items.
    left_out : list of str
        Columns that differ between the rows of an item, such as comments of workers.
    hidden : list of str
        Fields that named workers whose ids pseudonyms replace.

    Examples
    --------
    >>> found = ItemFields()
    >>> found.add("a", {"text": "Great!", "url": None})
    >>> found.add("a", {"text": "Great !"})
    >>> found.values("text"), found.notes()["field_conflicts"]
    ({'a': 'Great!'}, '1 item has different values of text; the first of each was kept.')
    """

    def __init__(self) -> None:
        """Start without fields."""
        self.fields: dict[str, FieldValues] = {}
        self.left_out: list[str] = []
        self.hidden: list[str] = []

    def __len__(self) -> int:
        """Return the number of fields."""
        return len(self.fields)

    def add(self, item: str | None, given: Mapping[str, Any]) -> None:
        """Add the fields of one row.

        Parameters
        ----------
        item : str or None
            Item of the row; rows without one are ignored.
        given : mapping of str to object
            Name -> value.
        """
        if item is None:
            return
        for name, value in given.items():
            self._column(name).add(item, value)

    def add_columns(self, items: pl.Series, columns: Iterable[tuple[str, pl.Series]]) -> None:
        """Add the columns of a table.

        Parameters
        ----------
        items : polars.Series of str
            Item of each row.
        columns : iterable of (str, polars.Series)
            Name and cells of each column, in the order of the rows.
        """
        items = items.alias("item")
        for name, column in columns:
            into = self._column(name)
            if column.dtype.is_nested() or column.dtype == pl.Object:
                for item, value in zip(items.to_list(), column.to_list()):
                    if item is not None:
                        into.add(item, value)
                continue
            given = pl.DataFrame([items, column.alias("value")]).filter(pl.col("item").is_not_null())
            is_blank = pl.col("value").is_null()
            if column.dtype == pl.String:
                is_blank |= pl.col("value").str.strip_chars() == ""
            into.blank |= set(given.filter(is_blank)["item"].unique().to_list())
            given = given.filter(~is_blank)
            # Equal values of an item are one; a row more keeps the item among the repeated ones.
            found = given.group_by("item", maintain_order=True).agg(
                pl.col("value").first(), pl.len().alias("n"), pl.col("value").n_unique().alias("n_values")
            )
            for item, value, n_rows, n_values in found.iter_rows():
                into.add(item, value)
                if n_rows > 1:
                    into.repeated.add(item)
                if n_values > 1:
                    into.conflicts.add(item)

    def drop_varying(self) -> None:
        """Leave out the fields that belong to rows, for formats that do not say which columns belong to items."""
        varying = [name for name, found in self.fields.items() if found.varies]
        for name in varying:
            del self.fields[name]
        self.left_out += varying

    def drop_empty(self) -> None:
        """Forget fields without any value."""
        self.fields = {name: found for name, found in self.fields.items() if found.values}

    def drop_values(self, hidden: set[str]) -> None:
        """Leave out the fields in which one of some texts stands, such as worker ids that pseudonyms replace.

        Parameters
        ----------
        hidden : set of str
            The texts; numbers are not searched for, as any count may equal the number of a worker.
        """
        texts = {text for text in hidden if not text.isdigit()}
        for name, column in list(self.fields.items()):
            if any(type(value) is str and value.strip() in texts for value in column.values.values()):
                del self.fields[name]
                self.hidden.append(name)

    def values(self, name: str) -> dict[str, Any]:
        """Return the values of one field.

        Parameters
        ----------
        name : str
            The field.

        Returns
        -------
        dict of str to object
            Item -> value.
        """
        return self.fields[name].values

    def convert_items(self, convert: Callable[[str], Any]) -> None:
        """Convert the item ids as the caller asked for.

        Parameters
        ----------
        convert : callable
            Conversion from text; every id can be converted.
        """
        for column in self.fields.values():
            column.values = {convert(item): value for item, value in column.values.items()}

    def notes(self) -> dict[str, str]:
        """Return notes on fields that were left out, and on items with several values.

        Returns
        -------
        dict of str to str
            Code -> sentence.
        """
        notes = {}
        if self.left_out:
            notes["fields_left_out"] = (
                f"Not fields of items, as they differ between the rows of an item: {listed(self.left_out)}."
            )
        if self.hidden:
            notes["fields_of_workers"] = f"Left out, as worker ids stand in them: {listed(self.hidden)}."
        mixed = {name: found.conflicts for name, found in self.fields.items() if found.conflicts}
        if mixed:
            items = set().union(*mixed.values())
            have = "has" if len(items) == 1 else "have"
            notes["field_conflicts"] = (
                f"{counted(len(items), 'item')} {have} different values of {listed(list(mixed))}; the first of each "
                f"was kept."
            )
        return notes

    def _column(self, name: str) -> FieldValues:
        """Return the values of a field, which is new at its first use."""
        return self.fields.setdefault(name, FieldValues())

"""Encoding: any hashable values to dense int32 codes and back; orders, sorting, groups and matching of items."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from operator import le
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands.exceptions import AlignmentError, AnnotationError

# ----------------------------------------------------------------------------------------------------
# Orders of items: that of first appearance, in which results are returned, and the sorted one, in which fits run.

Order = npt.NDArray[np.intp]
_CHUNK = 1 << 20  # codes processed together, so that a long column needs little extra memory


def sorting_order(ids: npt.NDArray[Any]) -> Order | None:
    """Return the stable order that sorts ids by the rule of `encoding.encode`; None where they are sorted already.

    Examples
    --------
    >>> sorting_order(np.array([7, 3, 5])).tolist()
    [1, 2, 0]
    >>> sorting_order(np.array(["a", 3, "b", 10], object)).tolist()  # not comparable: by type, then by text
    [3, 1, 0, 2]

    Shapes: ids (n,); returns (n,).
    """
    if ids.dtype.kind in "iufb":
        return None if bool(np.all(ids[1:] >= ids[:-1])) else _order_of_numbers(ids)
    values = ids.tolist()
    try:
        if all(map(le, values, values[1:])):
            return None
        rows = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:
        keys = [text_key(value) for value in values]
        rows = sorted(range(len(keys)), key=keys.__getitem__)
    order = np.array(rows, np.intp)
    return None if bool(np.all(order[1:] > order[:-1])) else order


def _order_of_numbers(ids: npt.NDArray[Any]) -> Order:
    """Return the stable order of numbers; where they are a permutation of low, low + 1, ..., without sorting."""
    if ids.dtype.kind in "iu":
        low = int(ids.min())
        if int(ids.max()) - low == len(ids) - 1:
            order = np.full(len(ids), -1, np.intp)
            order[(ids - ids.dtype.type(low)).astype(np.intp)] = np.arange(len(ids))
            if order.min() >= 0:
                return order
    return np.argsort(ids, kind="stable")


def text_key(value: Any) -> tuple[str, str]:
    """Return the key by which values that cannot be compared are sorted: the name of the type, then the text."""
    return type(value).__name__, str(value)


def appearance_order(codes: npt.NDArray[np.int32], n_codes: int) -> Order | None:
    """Return the codes in the order of their first appearance; None where that is 0, 1, 2, ...

    Examples
    --------
    >>> appearance_order(np.array([2, 0, 2, 1], np.int32), 3).tolist()
    [2, 0, 1]

    Shapes: codes (n,); returns (n_codes,).
    """
    first = np.empty(n_codes, np.int64)  # row of the first appearance of each code
    for begin in range((len(codes) - 1) // _CHUNK * _CHUNK, -1, -_CHUNK):  # from the end: an earlier row overwrites
        part = codes[begin : begin + _CHUNK]
        first[part[::-1]] = np.arange(begin + len(part) - 1, begin - 1, -1)
    if bool(np.all(first[1:] > first[:-1])):
        return None
    is_first = np.zeros(len(codes), bool)  # cheaper than sorting the rows
    is_first[first] = True
    return codes[is_first].astype(np.intp)


def inverse(order: Order) -> Order:
    """Return the permutation that undoes another one.

    Examples
    --------
    >>> inverse(np.array([2, 0, 1])).tolist()
    [1, 2, 0]

    Shapes: order (n,); returns (n,).
    """
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return back


# ----------------------------------------------------------------------------------------------------
# Codes for values: columns, ids and classes.

Values = Sequence[Any] | npt.NDArray[Any]
_LARGEST = 2**31 - 1
_columns = elementary.load("_columns")


def encode(
    values: Values, ids: Values | None, role: str, *, by_appearance: bool = False
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return codes and ids such that `ids[codes]` equals `values`.

    Integers from a small range are encoded through a look-up table, everything else through a dictionary.

    Examples
    --------
    >>> codes, ids = encode(["b", "a", "b"], None, "label")
    >>> codes.tolist(), ids.tolist()
    ([1, 0, 1], ['a', 'b'])
    >>> codes, ids = encode(["b", "a", "b"], None, "item", by_appearance=True)
    >>> codes.tolist(), ids.tolist()
    ([0, 1, 0], ['b', 'a'])

    Shapes: values (n,); returns codes (n,).
    """
    array = values if isinstance(values, np.ndarray) else _as_array(values)
    if array.ndim != 1:
        raise AnnotationError(f"The {role}s must be one-dimensional; they have shape {array.shape}.")
    if isinstance(array, np.ma.MaskedArray):
        array = as_objects(array.tolist()) if np.ma.is_masked(array) else array.data  # masked entries become None
    own_ids = None if ids is None else as_ids(ids, role)
    if array.dtype.kind in "iu" and (own_ids is None or own_ids.dtype.kind in "iu"):
        coded = _encode_integers(array, own_ids, role)
        if coded is not None:
            return _renumbered(*coded) if by_appearance and own_ids is None else coded
    return _encode_hashable(_own_values(array), own_ids, role, by_appearance)


def as_column(values: Any, name: str) -> Values:
    """Values with a known length: sequences stay as they are, any other iterable becomes a list."""
    try:
        len(values)
        return values
    except TypeError:
        pass
    try:
        return list(values)
    except TypeError:
        raise AnnotationError(f"The {name} must be a column of values, one per annotation; got {values!r}.") from None


def as_ids(ids: Values, role: str) -> npt.NDArray[Any]:
    """An array of the caller's own values: numbers stay numbers, everything else stays a Python object."""
    array = ids if isinstance(ids, np.ndarray) else _as_array(ids)
    if array.ndim != 1:
        raise AnnotationError(f"The {role} ids must be one-dimensional; they have shape {array.shape}.")
    if array is ids and not array.flags.writeable and array.base is None and array.dtype.kind in "iufbO":
        return array  # read-only ids of other Annotations are shared
    if array.dtype.kind in "UO":
        odd = unpaired_surrogate(array.tolist())
        if odd is not None:
            raise AnnotationError(f"One {role} in the given list is {odd!r}, {UNPAIRED_SURROGATE}")
    if array.dtype.kind not in "iufbO":
        return as_objects(_own_values(array))
    return array if isinstance(ids, list | tuple) else np.array(array)


UNPAIRED_SURROGATE = "which contains an unpaired surrogate and cannot be written in any encoding. Replace it."


def unpaired_surrogate(values: Iterable[Any]) -> str | None:
    r"""The first text with an unpaired surrogate in it, which no encoding can write; None where there is none.

    Examples
    --------
    >>> unpaired_surrogate(["a", 1, "b\ud800"]) == "b\ud800", unpaired_surrogate(["\U0001f600"])
    (True, None)
    """
    texts = [value for value in values if isinstance(value, str)]
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return next(text for text in texts if re.search("[\\ud800-\\udfff]", text))
    return None


def _as_array(values: Any) -> npt.NDArray[Any]:
    """Numbers of one kind as a numeric array; anything else as objects, so that tuples and mixed types survive."""
    if hasattr(values, "to_numpy"):  # pandas, polars and pyarrow columns
        return np.asarray(values.to_numpy())
    if hasattr(values, "__array__"):
        return np.asarray(values)
    values = list(values)
    kinds = set(map(type, values))
    kind_of = {int: "i", float: "f", bool: "b"}
    if len(kinds) == 1 and (wanted := kind_of.get(kinds.pop())):
        array = np.array(values)
        return array if array.dtype.kind == wanted else as_objects(values)  # integers beyond 64 bits stay objects
    return as_objects(values)


def _own_values(array: npt.NDArray[Any]) -> list[Any]:
    """The entries as Python values; dates stay NumPy's, which would turn fine ones into integers."""
    return list(array) if array.dtype.kind in "mM" else array.tolist()


def as_objects(values: list[Any]) -> npt.NDArray[Any]:
    """An array of Python objects, one entry per value."""
    return np.fromiter(values, object, len(values))  # one entry per value, even if the values are tuples


def _encode_integers(
    array: npt.NDArray[Any], ids: npt.NDArray[Any] | None, role: str
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]] | None:
    """Codes by a look-up table over the range of the values; None where the range is too wide."""
    if len(array) == 0:
        return np.zeros(0, np.int32), np.zeros(0, np.int64) if ids is None else ids
    low, high = int(array.min()), int(array.max())
    if high - low > 4 * len(array) + 1_000_000 or high > 2**63 - 1:
        return None
    # A narrow type would overflow; the compiled functions accept two types.
    column = np.ascontiguousarray(array, np.int32 if np.can_cast(array.dtype, np.int32) else np.int64)
    table = np.full(high - low + 1, -1, np.int32)
    if ids is None:
        present = np.flatnonzero(_present(column, low, len(table)))
        ids = present.astype(np.int64) + low
        if len(present) == len(table):  # the values are dense codes already
            dense = column if low == 0 else np.subtract(column, low, dtype=np.int64)
            return dense.astype(np.int32), ids
        table[present] = np.arange(len(present), dtype=np.int32)
    else:
        inside = (ids >= low) & (ids <= high)
        refuse_repeats(ids.tolist(), role)
        table[ids[inside].astype(np.int64) - low] = np.flatnonzero(inside)
    codes, all_known = _look_up(column, low, table)
    if not all_known:
        row = int(np.argmin(codes))
        raise _unknown(array[row].item(), row, ids, role)
    return codes, ids


def _renumbered(codes: npt.NDArray[np.int32], ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """The same values, numbered in the order of their first appearance."""
    order = appearance_order(codes, len(ids))
    if order is None:
        return codes, ids
    place = np.empty(len(ids), np.int32)
    place[order] = np.arange(len(ids), dtype=np.int32)
    return _look_up(codes, 0, place)[0], ids[order]


def _present(column: npt.NDArray[Any], low: int, size: int) -> npt.NDArray[np.bool_]:
    """Which of the integers `low`, `low + 1`, ... occur, shape (size,)."""
    present = np.zeros(size, bool)
    if _columns is not None:
        _columns.mark(low, column, present)
    else:
        present[np.subtract(column, low, dtype=np.int64)] = True
    return present


def _look_up(column: npt.NDArray[Any], low: int, table: npt.NDArray[np.int32]) -> tuple[npt.NDArray[np.int32], bool]:
    """`table[column - low]`, and whether none of it is negative."""
    if _columns is not None:
        codes = np.empty(len(column), np.int32)
        return codes, _columns.look_up(low, column, table, codes)
    codes = table[np.subtract(column, low, dtype=np.int64)]
    return codes, bool(codes.min() >= 0)


def _encode_hashable(
    values: list[Any], ids: npt.NDArray[Any] | None, role: str, by_appearance: bool
) -> tuple[npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Codes by a dictionary of the distinct values."""
    try:
        distinct = dict.fromkeys(values)
    except TypeError:
        row, value = next((i, v) for i, v in enumerate(values) if not _is_hashable(v))
        raise AnnotationError(
            f"The {role} in row {row} is {value!r}, which is not hashable. Use text, numbers or tuples."
        ) from None
    for value in distinct:
        if is_missing(value):
            row = next(i for i, v in enumerate(values) if is_missing(v))
            raise AnnotationError(
                f"The {role} in row {row} is missing ({value!r}). Leave such rows out; name items or workers "
                f"that have no labels with item_ids= or worker_ids=."
            )
    if ids is None:
        odd = unpaired_surrogate(distinct)
        if odd is not None:
            raise AnnotationError(f"The {role} in row {values.index(odd)} is {odd!r}, {UNPAIRED_SURROGATE}")
        ids = as_ids(list(distinct) if by_appearance else _sorted(list(distinct)), role)
    else:
        refuse_repeats(ids.tolist(), role)
    if len(ids) > _LARGEST:
        raise AnnotationError(f"There are {len(ids)} distinct {role}s; at most {_LARGEST} are supported.")
    code_of = {value: code for code, value in enumerate(ids.tolist())}
    unknown = next((v for v in distinct if v not in code_of), None)
    if unknown is not None:
        raise _unknown(unknown, values.index(unknown), ids, role)
    return np.fromiter(map(code_of.__getitem__, values), np.int32, len(values)), ids


def _sorted(values: list[Any]) -> list[Any]:
    """Sorted where the values can be compared, otherwise by type and text; never by order of appearance."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=text_key)


def is_missing(value: Any) -> bool:
    """Whether a value is None or not equal to itself (NaN, NaT, pandas' NA)."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # comparing pandas' NA gives no bool
        return True


def _is_hashable(value: Any) -> bool:
    """Whether a value can be a key of a dictionary."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def refuse_repeats(ids: list[Any], role: str) -> None:
    """Raise an AnnotationError where an id occurs twice or is not hashable."""
    try:
        n_distinct = len(set(ids))
    except TypeError:
        value = next(v for v in ids if not _is_hashable(v))
        raise AnnotationError(
            f"One {role} in the given list is {value!r}, which is not hashable. Use text, numbers or tuples."
        ) from None
    if n_distinct < len(ids):
        seen: set[Any] = set()
        twice = next(v for v in ids if v in seen or seen.add(v))  # type: ignore[func-returns-value]
        raise AnnotationError(f"The {role} {twice!r} occurs twice in the given list; list each {role} once.")


def _unknown(value: Any, row: int, ids: npt.NDArray[Any], role: str) -> AnnotationError:
    """The error for a value that is not among the given ids."""
    shown = ", ".join(repr(v) for v in ids[:5].tolist()) + (", ..." if len(ids) > 5 else "")
    given = {"label": "classes"}.get(role, f"{role}_ids")
    return AnnotationError(f"The {role} {value!r} in row {row} is not among the given {given} ({shown}). Add it there.")


# ----------------------------------------------------------------------------------------------------
# Sorting of triples into their canonical order, by one integer key per annotation.

Codes = npt.NDArray[np.int32]


def sort_triples(
    triples: Sequence[npt.NDArray[Any]], n_workers: int, n_classes: int, *, reuse: bool = False
) -> tuple[Codes, Codes, Codes]:
    """Sort by item, then worker, then label.

    The three codes are joined into one key, which is sorted in place and split again. NumPy sorts integers several
    times faster than it finds the order of three columns, and integers of 32 bits twice as fast as those of 64.

    Shapes: triples (n,).
    """
    item, worker, label = (column.astype(np.int32, copy=False) for column in triples)
    item_bits = max(int(item.max(initial=0)).bit_length(), 1)  # the sign bit is never part of the others
    worker_bits, label_bits = max(n_workers - 1, 0).bit_length(), max(n_classes - 1, 0).bit_length()
    n_bits = item_bits + worker_bits + label_bits
    if n_bits > 63:
        order = np.lexsort((label, worker, item))
        return item[order], worker[order], label[order]
    key_type = np.int32 if n_bits <= 31 else np.int64
    key, is_sorted = _join(item, worker, label, worker_bits, label_bits, key_type)
    if not is_sorted:
        key.sort()
    columns = tuple(column if reuse and _is_ours(column) else np.empty_like(column) for column in (item, worker, label))
    return _split(key, worker_bits, label_bits, columns)


def _is_ours(column: Codes) -> bool:
    """Whether a column owns its memory and can be overwritten."""
    return column.flags.owndata and column.flags.writeable and column.flags.c_contiguous


def _join(
    item: Codes, worker: Codes, label: Codes, worker_bits: int, label_bits: int, key_type: type[np.signedinteger[Any]]
) -> tuple[npt.NDArray[Any], bool]:
    """The keys, and whether they are sorted already."""
    if _columns is not None:
        key = np.empty(len(item), key_type)
        columns = map(np.ascontiguousarray, (item, worker, label))
        return key, _columns.join_keys(worker_bits, label_bits, *columns, key)
    key = item.astype(key_type)
    key <<= worker_bits
    key |= worker
    key <<= label_bits
    key |= label
    return key, bool(np.all(key[1:] >= key[:-1]))


def _split(
    key: npt.NDArray[Any], worker_bits: int, label_bits: int, columns: tuple[Codes, ...]
) -> tuple[Codes, Codes, Codes]:
    """Write the parts of the keys into the three columns."""
    item, worker, label = columns
    if _columns is not None:
        _columns.split_keys(worker_bits, label_bits, key, item, worker, label)
        return item, worker, label
    for first in range(0, len(key), _CHUNK):
        part = slice(first, first + _CHUNK)
        item[part] = key[part] >> (worker_bits + label_bits)
        worker[part] = (key[part] >> label_bits) & ((1 << worker_bits) - 1)
        label[part] = key[part] & ((1 << label_bits) - 1)
    return item, worker, label


# ----------------------------------------------------------------------------------------------------
# Grouping of annotations by item or worker: where each group begins, and the order of its annotations.


class Groups(NamedTuple):
    """Annotations grouped by item or worker: those of group g are at the positions `order[start[g]:start[g + 1]]`."""

    start: npt.NDArray[np.int64]  # (n_groups + 1,); where each group begins in `order`
    order: npt.NDArray[np.intp]  # (n_annotations,); positions of the annotations, group after group


def starts_of_sorted(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """The same as `starts` for sorted codes, in chunks: `bincount` would copy all codes into 64 bits.

    Shapes: codes (n,); returns (n_groups + 1,).
    """
    size = np.zeros(n_groups + 1, np.int64)
    for first in range(0, len(codes), _CHUNK):
        part = codes[first : first + _CHUNK]
        low, high = int(part[0]), int(part[-1])
        size[low + 1 : high + 2] += np.bincount(part - low, minlength=high - low + 1)
    return np.cumsum(size, out=size)


def starts(codes: Codes, n_groups: int) -> npt.NDArray[np.int64]:
    """Where each group begins when the codes are sorted, and where the last one ends.

    Shapes: codes (n,); returns (n_groups + 1,).
    """
    start = np.zeros(n_groups + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_groups), out=start[1:])
    return start


def positions_of(start: npt.NDArray[np.int64], chosen: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Positions of the annotations of chosen groups, group after group.

    Shapes: start (n_groups + 1,).
    """
    begin = start[chosen]
    size = start[chosen + 1] - begin
    group = np.repeat(np.arange(len(chosen)), size)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(size) - size - begin, size)


def reorder_groups(
    start: npt.NDArray[np.int64], order: npt.NDArray[Any], columns: Sequence[Codes]
) -> tuple[Codes, ...]:
    """Put all groups into another order.

    Shapes: start (n_groups + 1,); order (n_groups,); columns (n,).
    """
    size = np.diff(start)[order]
    end = np.cumsum(size)
    n = int(start[-1])
    group, *moved = (np.empty(n, np.int32) for _ in range(len(columns) + 1))
    n_together = max(_CHUNK * len(order) // max(n, 1), 1)  # groups; in chunks, which need little extra memory
    for first in range(0, len(order), n_together):
        part = slice(first, min(first + n_together, len(order)))
        begin, last = (int(end[first - 1]) if first else 0), int(end[part.stop - 1])
        group[begin:last] = np.repeat(np.arange(part.start, part.stop, dtype=np.int32), size[part])
        position = np.arange(begin, last) + np.repeat(start[order[part]] - (end[part] - size[part]), size[part])
        for new, old in zip(moved, columns):
            np.take(old, position, out=new[begin:last], mode="clip")  # "raise" would copy first
    return group, *moved


def unlabelled_pairs(
    start: npt.NDArray[np.int64], item: Codes, worker: Codes, n_workers: int, block_size: int
) -> Iterator[tuple[Codes, Codes]]:
    """Iterate over the (item, worker) pairs without a label, in blocks of items.

    Shapes: start (n_items + 1,); item (n_annotations,); worker (n_annotations,).
    """
    n_items = len(start) - 1
    for first in range(0, n_items, block_size):
        last = min(first + block_size, n_items)
        is_open = np.ones((last - first, n_workers), bool)
        begin, end = start[[first, last]]
        is_open[item[begin:end] - first, worker[begin:end]] = False
        open_item, open_worker = np.nonzero(is_open)
        yield (open_item + first).astype(np.int32), open_worker.astype(np.int32)


# ----------------------------------------------------------------------------------------------------
# Rows of a table matched with items by their ids.

_SHOWN = 3  # ids in a message


def find_rows(ids: Values, item_ids: npt.NDArray[Any], named: str = "ids") -> tuple[Order, npt.NDArray[Any]]:
    """Return the row of each item.

    Examples
    --------
    >>> rows, ids = find_rows([7, 5, 6], np.array(["5", "7"], object))
    >>> rows.tolist(), ids.tolist()
    ([1, 0], ['7', '5', '6'])

    Shapes: ids (n_rows,); item_ids (n_items,); returns rows (n_items,); returns ids (n_rows,).
    """
    given = in_form_of(as_ids(ids, "row"), item_ids)
    if len(given) == len(item_ids) and given.tolist() == item_ids.tolist():
        return np.arange(len(item_ids)), given  # an item may then occur twice, as it does in a bootstrap sample
    row_of = {value: row for row, value in enumerate(given.tolist())}
    if len(row_of) < len(given):
        twice = next(value for row, value in enumerate(given.tolist()) if row_of[value] != row)
        raise AlignmentError(f"The {named} of X name {twice!r} twice; every row needs an id of its own.")
    rows = np.fromiter((row_of.get(item, -1) for item in item_ids.tolist()), np.intp, len(item_ids))
    missing = item_ids[rows < 0].tolist()
    if missing:
        raise AlignmentError(
            f"{len(missing)} of {len(item_ids)} items have no row in X by its {named}, such as {_shown(missing)}; X "
            f"has {_shown(given.tolist())} ... Add the rows, or leave items out with annotations[rows]. Before "
            f"scikit-learn splits both, call annotations.for_rows(ids); if row i is item i, pass X.to_numpy()."
        )
    return rows, given


def n_found(ids: Values, item_ids: npt.NDArray[Any]) -> int:
    """Return how many of the items are among the ids, by the rule of `find_rows`.

    Shapes: ids (n_rows,); item_ids (n_items,).
    """
    ids_there = set(in_form_of(as_ids(ids, "row"), item_ids).tolist())
    return sum(item in ids_there for item in item_ids.tolist())


def in_form_of(ids: npt.NDArray[Any], item_ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids in the form of the items: whole numbers as text where all items are text, and the reverse.

    Shapes: ids (n_rows,); item_ids (n_items,); returns (n_rows,).
    """
    if ids.dtype.kind in "iu" and _are_text(item_ids):
        return np.array([str(value) for value in ids.tolist()], object)
    if item_ids.dtype.kind in "iu" and _are_text(ids):
        texts = ids.tolist()
        return np.array([int(text) for text in texts]) if all(map(_is_whole, texts)) else ids
    return ids


def _are_text(ids: npt.NDArray[Any]) -> bool:
    """Whether all ids are text."""
    return ids.dtype.kind == "O" and all(isinstance(value, str) for value in ids.tolist())


def _is_whole(text: str) -> bool:
    """Whether a text is the usual form of a whole number of 64 bits: not "007", " 7" or "7.0"."""
    return len(text) < 19 and text.removeprefix("-").isdecimal() and str(int(text)) == text


def _shown(values: list[Any]) -> str:
    """Return a few values for a message."""
    return ", ".join(repr(value) for value in values[:_SHOWN])


# ----------------------------------------------------------------------------------------------------
# A hash of codes and counts, by which labels are ordered whatever their names are.


def scatter_bits(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash 64-bit numbers (the finaliser of SplitMix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))

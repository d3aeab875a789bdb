"""Times as annotation tools write them, in microseconds since 1970.

They only decide which of two answers is the later one. A time that cannot be parsed is null and counted in a note.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, timezone

import polars as pl

Notes = dict[str, str]

# Abbreviations of time zones that MTurk and others use, in hours from UTC; ambiguous abbreviations are left out.
_ZONES = {"UTC": 0, "GMT": 0, "Z": 0, "PST": -8, "PDT": -7, "MST": -7, "MDT": -6, "EST": -5, "EDT": -4, "CET": 1}
_ZONES |= {"CEST": 2, "BST": 1, "JST": 9}
_YEAR = "JanFebMarAprMayJunJulAugSepOctNovDec"
_MONTHS = {_YEAR[at : at + 3]: at // 3 + 1 for at in range(0, len(_YEAR), 3)}
_ZONE = r"\s*(?P<zone>[A-Z]{1,4}|[+-]\d\d(?::?\d\d)?)?"
_CLOCK = r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[T ]{_CLOCK}{_ZONE}",
        rf"(?:[A-Z][a-z]{{2}},? )?(?P<name>[A-Z][a-z]{{2}}) +(?P<day>\d\d?) {_CLOCK}{_ZONE} (?P<year>\d{{4}})",
        rf"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{{4}}) {_CLOCK}(?: (?P<half>[AP]M))?{_ZONE}",
    )
)
_ISO_FORMAT = "%Y-%m-%dT%H:%M:%S%.fZ"  # the most usual format; a column of it is parsed at once
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EPOCHS = ((1e17, 1e-3), (1e14, 1.0), (1e11, 1e3), (0.0, 1e6))  # (smallest number, factor to microseconds)
_BEYOND = 1e19  # larger numbers are no times, and do not fit into 64 bits


def parse_times(column: pl.Series) -> tuple[pl.Series, Notes]:
    """Parse a column of times.

    Parameters
    ----------
    column : polars.Series of str
        The texts.

    Returns
    -------
    times : polars.Series of int
        Microseconds since 1970 (UTC if the text names no zone); null where a text cannot be parsed.
    notes : dict of str to str
        A note with the number of texts that cannot be parsed; empty if there are none.
    """
    result = column.str.to_datetime(_ISO_FORMAT, time_unit="us", strict=False).dt.epoch("us")
    rest = column.filter(result.is_null()).unique().drop_nulls()
    if len(rest):
        parsed = {text: parse_time(text) for text in rest}
        result = result.fill_null(column.replace_strict(parsed, default=None, return_dtype=pl.Int64))
    unread = column.filter(result.is_null() & column.is_not_null())
    unread = unread.filter(unread.str.strip_chars() != "")
    if not len(unread):
        return result, {}
    message = (
        f"{len(unread)} time(s) could not be read (such as {unread[0][:40]!r}); those rows count as the older ones."
    )
    return result, {"unparsed_times": message}


def parse_time(value: object) -> int | None:
    """Parse one time.

    Parameters
    ----------
    value : object
        ISO 8601, the formats of MTurk and Appen, or a number of seconds, milliseconds, microseconds or nanoseconds
        since 1970.

    Returns
    -------
    int or None
        Microseconds since 1970; None if it cannot be parsed.

    Examples
    --------
    >>> parse_time("1970-01-01T00:00:01Z"), parse_time("Thu Jan 01 01:00:00 PST 1970"), parse_time(1.5), parse_time("?")
    (1000000, 32400000000, 1500000, None)
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _from_epoch(value)
    text = value.strip() if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text):
        return _from_epoch(float(text))
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        text += " 00:00"
    return _from_words(text)


def _from_epoch(number: float) -> int | None:
    """Convert a number since 1970; its size shows the unit."""
    if not abs(number) < _BEYOND:  # true for NaN, too
        return None
    scale = next(scale for least, scale in _EPOCHS if abs(number) >= least)
    return math.floor(number * scale + 0.5)


def _from_words(text: str) -> int | None:
    """Parse a written time."""
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    if match is None:
        return None
    part = match.groupdict()
    offset = _offset(part["zone"] or "UTC")
    month = _MONTHS.get(part["name"]) if "name" in part else int(part["month"])
    hour, half = int(part["hour"]), part.get("half")
    if half and not 1 <= hour <= 12:
        return None
    hour = hour if not half else hour % 12 + (12 if half == "PM" else 0)
    if offset is None or month is None:
        return None
    micro = int((part["fraction"] or "0")[:6].ljust(6, "0"))
    clock = (hour, int(part["minute"]), int(part["second"] or 0), micro)
    try:
        return _since_epoch(datetime(int(part["year"]), month, int(part["day"]), *clock, tzinfo=timezone(offset)))
    except ValueError:
        return None


def _offset(zone: str) -> timedelta | None:
    """Return the difference of a time zone from UTC; None if it is unknown."""
    if zone[0] not in "+-":
        hours = _ZONES.get(zone)
        return None if hours is None else timedelta(hours=hours)
    size = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return None if size >= timedelta(days=1) else -size if zone[0] == "-" else size


def _since_epoch(when: datetime) -> int:
    """Return microseconds since 1970."""
    return (when - _EPOCH) // _MICROSECOND

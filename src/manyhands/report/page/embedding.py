"""The data of a run as JSON inside its page."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.io.write.json_values import to_json_value

if TYPE_CHECKING:
    from manyhands.report.building import Report
    from manyhands.report.run import Provenance, Run

SCHEMA = 1
KIND = "manyhands-report"
DATA_ID = "manyhands-data"
MOST_WORKERS = 5000  # in the data of the page
MOST_BYTES = 300_000  # of the labels in the page, beyond which they are in a file beside it; of classes, of workers
_MOST_TEXT = 2000  # characters of a title, a command or the name of a file
_MOST_FILES = 200
_MOST_VALUES = 1000  # entries of a list of numbers of a panel
_ESCAPED = ('"', "\\", *map(chr, range(32)))  # by JSON itself
_UNSAFE = re.compile("[<>&\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # markup, line ends, marks of direction


def run_data(run: Run, report: Report) -> dict[str, Any]:
    """Return what the page holds for programs.

    Parameters
    ----------
    run : Run
        The run.
    report : Report
        Its panels.

    Returns
    -------
    dict
        ``schema``, ``kind``, ``title``, ``summary``, ``panels`` (main numbers), ``classes``, ``workers``, ``labels``
        (columns; None beyond the cap) and ``labels_file``.
    """
    data = {
        "schema": SCHEMA,
        "kind": KIND,
        "title": run.title[:_MOST_TEXT],
        "created": None if run.provenance is None else run.provenance.created,
        "provenance": None if run.provenance is None else _provenance(run.provenance),
        "verdict": report.summary.title,
        "alerts": [vars(alert) | {"text": alert.text[:_MOST_TEXT]} for alert in report.summary.alerts],
        "panels": {panel.key: {"title": panel.title, "values": _short(panel.values)} for panel in report.panels},
        "n_items": run.annotations.n_items,
        "n_annotations": run.annotations.n_annotations,
        "classes": _classes(run.annotations),
        "workers": _workers(run),
        "labels": _labels(run),
        "labels_file": run.full_labels,
        "guarded": run.guarded,
    }
    value: dict[str, Any] = to_json_value(data)
    return value


def _provenance(known: Provenance) -> dict[str, Any]:
    """Return where a run comes from, with long texts cut."""
    files = {name[:_MOST_TEXT]: digest for name, digest in list(known.files.items())[:_MOST_FILES]}
    command = None if known.command is None else known.command[:_MOST_TEXT]
    return vars(known) | {"files": files, "command": command}


def _short(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the main numbers of a panel; of long lists, such as those of very many classes, the first ones."""
    return {name: value[:_MOST_VALUES] if isinstance(value, list | tuple) else value for name, value in values.items()}


def _size(texts: list[str]) -> int:
    """Return the bytes of texts in the page, where marks of HTML and of JSON are escapes of six letters."""
    joined = "".join(texts)
    escaped = 5 * (len(_UNSAFE.findall(joined)) + sum(joined.count(mark) for mark in _ESCAPED))
    return len(joined.encode("utf-8", "replace")) + escaped + 3 * len(texts)


def _classes(annotations: Annotations) -> list[str] | None:
    """Return the names of the classes; None where they are too large, and a file beside the page has the labels."""
    names = [str(value) for value in annotations.classes.tolist()]
    return names if _size(names) <= MOST_BYTES else None


def embedded(data: dict[str, Any]) -> str:
    """Return data as JSON that cannot end the script element it stands in.

    Parameters
    ----------
    data : dict
        What JSON can hold.

    Returns
    -------
    str
        JSON without ``<``, ``>``, ``&``, and line separators that are not newlines.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    plain = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return (
        "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in plain)
        if _has_surrogates(plain)
        else plain
    )


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _workers(run: Run) -> dict[str, Any]:
    """Return the workers as columns, those with most labels where there are very many; names are as the page shows."""
    a = run.annotations
    n_labels = np.bincount(a.worker, minlength=a.n_workers)
    chosen = np.argsort(-n_labels, kind="stable")[:MOST_WORKERS]
    room = np.cumsum([_size([str(w)]) for w in a.worker_ids[chosen].tolist()]) <= MOST_BYTES
    kept = np.sort(chosen[room])
    found: dict[str, Any] = {"worker": [str(w) for w in a.worker_ids[kept].tolist()], "n_labels": n_labels[kept]}
    if run.cards is None:
        return found | {"accuracy": run.model.worker_accuracy_[kept].round(3)}
    cards = run.cards
    return found | {
        "accuracy": cards.accuracy[kept].round(3),
        "low": cards.accuracy_low[kept].round(3),
        "high": cards.accuracy_high[kept].round(3),
        "flags": [";".join(cards.flags[w]) for w in kept.tolist()],
    }


def labels_fit(annotations: Annotations) -> bool:
    """Whether the labels of all items fit into the page.

    Parameters
    ----------
    annotations : Annotations
        The labels.

    Returns
    -------
    bool
        False where they or the names of the classes would be larger than 300 kB.
    """
    if 14 * annotations.n_items > MOST_BYTES or _classes(annotations) is None:
        return False
    return _size([str(item) for item in annotations.item_ids.tolist()]) + 11 * annotations.n_items <= MOST_BYTES


def _common_beginning(texts: list[str]) -> str:
    """Return what all texts begin with."""
    if not texts:
        return ""
    low, high = min(texts), max(texts)
    same = next((at for at, (a, b) in enumerate(zip(low, high)) if a != b), min(len(low), len(high)))
    return low[:same]


def _labels(run: Run) -> dict[str, Any] | None:
    """Return item, class code and posterior (in thousandths) of all items; None where they are too large."""
    if not labels_fit(run.annotations):
        return None
    items = [str(item) for item in run.annotations.item_ids.tolist()]
    sure = np.where(run.labelled, np.floor(run.confidence * 1000), -1).astype(int)
    prefix = _common_beginning(items)
    rest = [item[len(prefix) :] for item in items]
    return {
        "prefix": prefix,
        "item": rest,
        "label": run.codes,
        "confidence": sure,
        "n_labels": run.annotations.n_labels,
    }

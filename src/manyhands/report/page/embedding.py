"""The data of a run as JSON inside its page, and back."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.write.json_values import to_json_value

if TYPE_CHECKING:
    from manyhands.report.building import Report
    from manyhands.report.run import Run

SCHEMA = 1
KIND = "manyhands-report"
DATA_ID = "manyhands-data"
MOST_WORKERS = 5000  # in the data of the page
MOST_BYTES = 300_000  # of the labels in the page; beyond it they are in a file beside it
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
        "title": run.title,
        "created": None if run.provenance is None else run.provenance.created,
        "provenance": None if run.provenance is None else vars(run.provenance),
        "verdict": report.summary.title,
        "alerts": [vars(alert) for alert in report.summary.alerts],
        "panels": {panel.key: {"title": panel.title, "values": panel.values} for panel in report.panels},
        "n_items": run.annotations.n_items,
        "n_annotations": run.annotations.n_annotations,
        "classes": [str(value) for value in run.annotations.classes.tolist()],
        "workers": _workers(run),
        "labels": _labels(run),
        "labels_file": run.full_labels,
    }
    value: dict[str, Any] = to_json_value(data)
    return value


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


def read_page(path: str | Path) -> dict[str, Any]:
    """Read the data of a run back from its page.

    Parameters
    ----------
    path : str or Path
        A page that manyhands wrote.

    Returns
    -------
    dict
        The data, as of `run_data`; labels that are in a file beside the page are not read.

    Raises
    ------
    AnnotationError
        If the file is no report of manyhands, or of a later version.
    """
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    parser = _DataParser()
    parser.feed(text)
    try:
        data = json.loads("".join(parser.content))
    except json.JSONDecodeError:
        data = None
    if not isinstance(data, dict) or data.get("kind") not in (KIND, KIND + "-change"):
        raise AnnotationError(
            f"{path} is not a report of manyhands: it holds no data of a run. Give the file that manyhands "
            "report wrote."
        )
    if data.get("schema") != SCHEMA:
        raise AnnotationError(
            f"{path} has schema {data.get('schema')!r}; this version of manyhands reads {SCHEMA}. Use the "
            "version that wrote it."
        )
    labels = data.get("labels")
    if labels is not None:
        labels["item"] = [labels["prefix"] + item for item in labels["item"]]
        labels.pop("prefix")
    return data


class _DataParser(HTMLParser):
    """Collects the content of the script element that holds the data."""

    def __init__(self) -> None:
        super().__init__()
        self.content: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "script" and dict(attrs).get("id") == DATA_ID

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.content.append(data)


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
    kept = np.sort(np.argsort(-n_labels, kind="stable")[:MOST_WORKERS])
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
        False where they would be larger than 300 kB.
    """
    if 14 * annotations.n_items > MOST_BYTES:
        return False
    return sum(len(str(item).encode("utf-8", "replace")) + 14 for item in annotations.item_ids.tolist()) <= MOST_BYTES


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

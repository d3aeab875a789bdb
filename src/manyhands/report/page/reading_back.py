"""`read_page`: the data of a run from its page, checked, as pages travel and may be cut off or edited."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.report.page.embedding import DATA_ID, KIND, SCHEMA

_NUMBER = (int, float, type(None))
_WORKERS: dict[str, tuple[type, ...]] = {
    "worker": (str,),
    "n_labels": (int,),
    "accuracy": _NUMBER,
    "low": _NUMBER,
    "high": _NUMBER,
    "flags": (str,),
}
_LABELS: dict[str, tuple[type, ...]] = {"item": (str,), "label": (int,), "confidence": (int,), "n_labels": (int,)}


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
        If the file is no report of manyhands, is damaged, or is of another version.
    """
    parser = _DataParser()
    parser.feed(Path(path).read_text(encoding="utf-8", errors="replace"))
    parser.close()
    if not parser.content and parser.is_ours:
        raise _damaged(path, "its end is missing")
    if not parser.content:
        raise AnnotationError(
            f"{path} is not a report of manyhands: it holds no data of a run. Give the file that manyhands "
            "report wrote."
        )
    try:
        data = json.loads("".join(parser.content))
    except (json.JSONDecodeError, RecursionError):
        raise _damaged(path, "they end early, or were edited") from None
    if not isinstance(data, dict) or data.get("kind") not in (KIND, KIND + "-change"):
        raise _damaged(path, "they are not those of a run")
    if data.get("schema") != SCHEMA:
        raise AnnotationError(
            f"{path} has schema {data.get('schema')!r}; this version of manyhands reads {SCHEMA}. Use the "
            "version that wrote it."
        )
    wrong = _wrong_part(data)
    if wrong:
        raise _damaged(path, f"{wrong!r} is missing or not as it was written")
    labels = data.get("labels")
    if labels is not None:
        prefix = labels.pop("prefix")
        labels["item"] = [prefix + item for item in labels["item"]]
    return data


def _damaged(path: str | Path, what: str) -> AnnotationError:
    return AnnotationError(
        f"{path} is damaged: the data of the run in it cannot be used, as {what}. Use an unchanged copy, or make the "
        "report again."
    )


def _wrong_part(data: dict[str, Any]) -> str:
    """Return the name of the first part that programs could not use; "" if there is none."""
    panels = data.get("panels")
    checks = {
        "title": isinstance(data.get("title"), str),
        "verdict": isinstance(data.get("verdict"), str),
        "panels": isinstance(panels, dict) and all(_is_panel(panel) for panel in panels.values()),
    }
    if data["kind"] == KIND:
        classes, labels = data.get("classes", 0), data.get("labels", 0)
        checks |= {
            "provenance": isinstance(data.get("provenance"), dict | None),
            "labels_file": isinstance(data.get("labels_file"), str | None),
            "classes": classes is None or _all_are(classes, (str,)),
            "workers": _are_columns(data.get("workers"), _WORKERS, ("worker", "n_labels", "accuracy")),
            "labels": labels is None or _are_labels(labels, classes),
        }
    return next((name for name, is_right in checks.items() if not is_right), "")


def _is_panel(panel: Any) -> bool:
    return isinstance(panel, dict) and isinstance(panel.get("title"), str) and isinstance(panel.get("values"), dict)


def _are_labels(labels: Any, classes: list[str] | None) -> bool:
    """Whether labels have all columns, and codes of known classes."""
    if not _are_columns(labels, _LABELS, tuple(_LABELS)) or not isinstance(labels.get("prefix"), str):
        return False
    return classes is not None and all(-1 <= code < len(classes) for code in labels["label"])


def _are_columns(table: Any, kinds: dict[str, tuple[type, ...]], needed: tuple[str, ...]) -> bool:
    """Whether a table has the columns that are needed, of equal length and of the right types."""
    if not isinstance(table, dict) or any(name not in table for name in needed):
        return False
    found = [(table[name], types) for name, types in kinds.items() if name in table]
    return all(_all_are(column, types) for column, types in found) and len({len(column) for column, _ in found}) == 1


def _all_are(values: Any, types: tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(v, types) and not isinstance(v, bool) for v in values)


class _DataParser(HTMLParser):
    """Collects the content of the first script element that holds the data."""

    def __init__(self) -> None:
        super().__init__()
        self.content: list[str] = []
        self.is_ours = False
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, is_first = dict(attrs), not self.content
        self.is_ours |= tag == "meta" and given.get("name") == "generator" and given.get("content") == "manyhands"
        self._inside = is_first and tag == "script" and given.get("id") == DATA_ID

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.content.append(data)

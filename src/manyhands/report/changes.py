"""What changed between two reports: labels that flipped and why, workers that rose or fell."""

from __future__ import annotations

import csv
import math
from collections import Counter
from pathlib import Path
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.write.results import unguard
from manyhands.report.drawing import Dot, Picture, columns, dots
from manyhands.report.html import KIND, SCHEMA, read_page
from manyhands.report.run import Panel, Report, Table, cut
from manyhands.report.wording import counted, percent, visible

_MOST_ROWS = 300
_MOST_IN_CHART = 12  # workers
_SURE = 900  # thousandths
_WORKER_COLUMNS = (
    "worker",
    "labels before",
    "labels after",
    "accuracy before",
    "accuracy after",
    "change",
    "clear",
    "alerts before",
    "alerts after",
)
_CLEAR = 0.02  # change of accuracy that is worth a row


def read_run(path: str | Path) -> dict[str, Any]:
    """Read a report back, with the labels that are in a file beside it."""
    data = read_page(path)
    if data["kind"] != KIND:
        raise AnnotationError(f"{path} compares two runs. Give the two reports themselves.")
    if data["labels"] is None:
        data["labels"] = _read_labels(Path(path), data)
    return data


def compare_runs(
    before: dict[str, Any], after: dict[str, Any], names: tuple[str, str]
) -> tuple[Report, dict[str, Any]]:
    """Return what changed from one run to another."""
    old, new = _labels(before), _labels(after)
    shared = [item for item in new if item in old]
    flipped = [item for item in shared if old[item][0] != new[item][0]]
    flipped.sort(key=lambda item: -new[item][1])
    workers = _worker_panel(before, after)
    labels = _label_panel(before, after, old, new, shared, flipped)
    first = f"{counted(len(flipped), 'label')} of {counted(len(shared), 'shared item')} changed"
    sentences = f"{first}. {workers.title}" if shared else "The two reports have no item in common."
    figures = {
        "shared items": f"{len(shared):,}",
        "changed labels": f"{len(flipped):,}",
        "new items": f"{len(new.keys() - old.keys()):,}",
        "items gone": f"{len(old.keys() - new.keys()):,}",
        "at least 0.9 sure before": percent(_sure(before, old)),
        "at least 0.9 sure after": percent(_sure(after, new)),
    }
    head = Panel("summary", sentences, "what changed", counted(len(shared), "shared item"), values=figures)
    title = f"From {visible(names[0], 80)} to {visible(names[1], 80)}"
    data = {
        "schema": SCHEMA,
        "kind": f"{KIND}-change",
        "title": title,
        "verdict": sentences,
        "flipped": flipped[:_MOST_ROWS],
    } | {"panels": {panel.key: {"title": panel.title, "values": panel.values} for panel in (labels, workers)}}
    return Report(title, head, (labels, workers)), data


def _label_panel(
    before: dict[str, Any],
    after: dict[str, Any],
    old: dict[str, Any],
    new: dict[str, Any],
    shared: list[str],
    flipped: list[str],
) -> Panel:
    """Return the panel of labels that flipped."""
    methods = [(run.get("provenance") or {}).get("method") for run in (before, after)]
    checked = {item for item in new if new[item][3]} != {item for item in old if old[item][3]}
    reasons = {item: _reason(old[item], new[item], methods, checked) for item in flipped}
    rows, n_rows = cut(
        [
            (
                visible(item, 80),
                visible(old[item][0], 60),
                visible(new[item][0], 60),
                old[item][1] / 1000,
                new[item][1] / 1000,
                reasons[item],
            )
            for item in flipped
        ],
        _MOST_ROWS,
    )
    counts = Counter(reason.split(":")[0] for reason in reasons.values())
    steps = ["−0.1 or lower", "in between", "+0.1 or higher"]
    moved = Counter(0 if new[i][1] - old[i][1] <= -100 else 2 if new[i][1] - old[i][1] >= 100 else 1 for i in shared)
    return Panel(
        "labels",
        f"{percent(len(flipped) / max(len(shared), 1), 1)} of the shared items have another label."
        if flipped
        else "No shared item has another label.",
        "Items whose label is not the same, the surest new label first. The picture counts the shared items by "
        "how their posterior changed.",
        counted(len(shared), "shared item"),
        (
            columns(
                steps,
                [moved[at] for at in range(3)],
                "Shared items by the change of their posterior",
                "change of the posterior",
                "items",
            ),
        ),
        (
            Table(
                "Labels that changed",
                ("item", "before", "after", "posterior before", "posterior after", "why"),
                rows,
                n_rows,
                is_open=bool(rows),
            ),
            Table("Why labels changed", ("why", "items"), tuple(counts.most_common())),
        ),
        (),
        {"n_shared": len(shared), "n_flipped": len(flipped), "reasons": dict(counts)},
    )


def _worker_panel(before: dict[str, Any], after: dict[str, Any]) -> Panel:
    """Return the panel of workers that rose or fell."""
    old, new = _workers(before), _workers(after)
    shared = [worker for worker in new if worker in old]
    rows = [row for worker in shared if (row := _change_of(worker, old[worker], new[worker])) is not None]
    rows.sort(key=lambda row: row[5])
    risen, fallen = (sum(row[6] == "yes" and row[5] * sign > 0 for row in rows) for sign in (1, -1))
    shown, n_rows = cut(rows, _MOST_ROWS)
    notes = []
    if len(shared) < 0.5 * min(len(old), len(new)):
        notes.append(
            "Few workers are in both reports. If they are the same people, make both reports with the "
            "same key file, so that a worker keeps the pseudonym."
        )
    return Panel(
        "workers",
        _moved(risen, fallen),
        "Workers in both reports whose accuracy or alerts changed, the largest fall first. A change is clear if "
        "the old accuracy is outside the new 95% interval.",
        counted(len(shared), "shared worker"),
        _worker_chart(rows),
        (
            Table(
                "Workers that changed",
                _WORKER_COLUMNS,
                shown,
                n_rows,
                is_open=bool(shown),
            ),
        ),
        tuple(notes),
        {"n_shared": len(shared), "risen": risen, "fallen": fallen},
    )


def _change_of(worker: str, was: dict[str, Any], now: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the row of a worker whose accuracy or alerts changed; None if not, or if no label could be compared."""
    if None in (*was.values(), *now.values()):
        return None
    change = now["accuracy"] - was["accuracy"]
    if abs(change) < _CLEAR and was["alerts"] == now["alerts"]:
        return None
    clear = now["low"] > was["accuracy"] if change > 0 else now["high"] < was["accuracy"]
    labels, accuracies = (was["n_labels"], now["n_labels"]), (was["accuracy"], now["accuracy"])
    alerts = (was["alerts"] or None, now["alerts"] or None)
    return (visible(worker, 80), *labels, *accuracies, change, "yes" if clear else "no", *alerts)


def _moved(risen: int, fallen: int) -> str:
    """Return a sentence on the workers whose accuracy changed clearly."""
    if not risen and not fallen:
        return "The accuracy of no worker changed clearly."
    parts = [f"{counted(n, 'worker')} clearly {verb}" for n, verb in ((fallen, "fell"), (risen, "rose")) if n]
    return f"{' and '.join(parts)} in accuracy."


def _worker_chart(rows: list[Any]) -> tuple[Picture, ...]:
    """Draw accuracy before and after of the workers that changed most."""
    most = sorted(rows, key=lambda row: -abs(row[5]))[:_MOST_IN_CHART]
    shown = [(row[0], [Dot(row[3], math.nan, math.nan), Dot(row[4], math.nan, math.nan, 1)]) for row in most]
    if not shown:
        return ()
    low = math.floor(10 * min(dot.value for _, values in shown for dot in values)) / 10
    label = "Accuracy of the workers that changed most, before and after"
    return (dots(shown, label, series=("before", "after"), low=low, x_title="accuracy"),)


_Label = tuple[str, int, int, bool]  # label, posterior in thousandths, number of votes, whether its class is known


def _reason(was: _Label, now: _Label, methods: list[Any], other_known: bool) -> str:
    """Return why a label changed; `other_known` if the known classes of the runs are of different items."""
    if now[3]:
        return "known class: an expert's answer, or gold" + (", differs from the one before" if was[3] else "")
    if was[3]:
        return "the class is no longer known: its answer or gold was not given"
    more = now[2] - was[2]
    if more > 0:
        return f"new votes: {more} more"
    if more < 0:
        return f"votes left out: {-more} fewer"
    if methods[0] != methods[1]:
        return "another method"
    if other_known:
        return "the same number of votes: answers or gold on other items changed the estimates, or votes changed"
    return "the same number of votes: the workers' reliability is estimated anew, or votes changed"


def _labels(data: dict[str, Any]) -> dict[str, _Label]:
    """Return label, posterior in thousandths, number of votes, and whether the class is known, of labelled items."""
    classes, table = data["classes"], data["labels"]
    gold_items = set(table.get("known", ()))
    columns_ = zip(table["item"], table["label"], table["confidence"], table["n_labels"])
    return {
        item: (classes[code], sure, n, row in gold_items)
        for row, (item, code, sure, n) in enumerate(columns_)
        if code >= 0
    }


def _workers(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the columns of each worker."""
    table = data["workers"]
    plain = {"low": table["accuracy"], "high": table["accuracy"], "alerts": [""] * len(table["worker"])} | table
    return {
        worker: {name: plain[name][at] for name in ("n_labels", "accuracy", "low", "high", "alerts")}
        for at, worker in enumerate(table["worker"])
    }


def _sure(data: dict[str, Any], labels: dict[str, _Label]) -> float:
    """Return the share of sure labels as the page states it, without given classes; of all labels if it does not."""
    stated = data["panels"].get("confidence", {}).get("values", {}).get("share_above_0.9")
    if isinstance(stated, float | int):
        return float(stated)
    return sum(sure >= _SURE for _, sure, _, _ in labels.values()) / max(len(labels), 1)


def _read_labels(page: Path, data: dict[str, Any]) -> dict[str, Any]:
    """Read the labels from the file beside the page."""
    name = data["labels_file"]
    if name is None:
        raise AnnotationError(
            f"{page} has too many labels to hold them, and was written without a file of labels. Make it with "
            "manyhands report, which writes one beside the page."
        )
    path = page.parent / Path(name).name  # never a path that the page names
    if not path.is_file():
        raise AnnotationError(
            f"{page} has too many labels to hold them, and {path.name} is not beside it. Put that file beside the page."
        )
    plain = unguard if data.get("guarded") else str
    table: dict[str, list[Any]] = {"item": [], "label": [], "confidence": [], "n_labels": [], "known": []}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                table["item"].append(plain(row["item"]))
                table["label"].append(plain(row["label"]))
                table["confidence"].append(int(float(row["confidence"] or 0) * 1000))
                table["n_labels"].append(int(row["n_labels"]))
                if "gold" in (row.get("alerts") or "").split(";"):
                    table["known"].append(len(table["item"]) - 1)
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise AnnotationError(
            f"{path} is not the table of labels that was written with {page.name}: a column or a number is missing. "
            "Put the original file there."
        ) from error
    data["classes"] = sorted({*(data["classes"] or ()), *table["label"]} - {""})
    codes = {value: at for at, value in enumerate(data["classes"])}
    table["label"] = [codes.get(name, -1) for name in table["label"]]
    return table

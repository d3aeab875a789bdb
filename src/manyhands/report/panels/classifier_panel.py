"""The panel of a classifier that was trained on the labels: learning curve, agreement by class, suspected errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands.exceptions import AlignmentError
from manyhands.report.curves import lines
from manyhands.report.panel import Bar, Panel, Table, chips, cut
from manyhands.report.picture_data import Picture
from manyhands.report.run import Codes, Run
from manyhands.report.wording import counted, names, percent

_MOST_ITEMS = 50
_SURE = 0.9
_MOST_CURVES = 4
_MOST_STEPS = 200


def classifier(run: Run) -> Panel | None:
    """Learning curve of a classifier, its agreement with the labels, and labels that it contradicts.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None without a classifier.

    Raises
    ------
    AlignmentError
        If the classifier was not trained on the items of the run.
    """
    trained = run.classifier
    if trained is None:
        return None
    code, sure = _predicted(run)
    both = run.labelled & (run.codes >= 0)
    same = both & (code == run.codes)
    suspected = np.flatnonzero(both & ~same & (sure >= _SURE))
    suspected = suspected[np.lexsort((suspected, -sure[suspected]))]
    rows, n_rows = cut([_row(run, int(at), code, sure) for at in suspected[: _MOST_ITEMS + 1]], _MOST_ITEMS)
    by_class = tuple(
        (name, int(n), float(same[run.codes == k].mean()))
        for k, name in enumerate(run.classes)
        if (n := (both & (run.codes == k)).sum())
    )
    share = float(same.sum() / max(both.sum(), 1))
    heads = ("item", "votes", "label", "posterior", "class by the classifier", "its posterior")
    n_rows = len(suspected) if n_rows is not None else None
    return Panel(
        "classifier",
        f"{type(trained).__name__} gives the label of the crowd to {percent(share)} of the items; "
        f"{counted(len(suspected), 'label')} {'is' if len(suspected) == 1 else 'are'} suspected to be wrong.",
        "The picture shows what training minimised or maximised, per epoch or iteration. A label is suspected where "
        f"the posterior of another class by the classifier is at least {_SURE}.",
        counted(int(both.sum()), "labelled item"),
        _curves(trained),
        (
            Table("Items whose label the classifier contradicts", heads, rows, n_rows, is_open=bool(rows)),
            Table("Agreement with the labels, by class", ("class", "items", "share equal"), by_class),
            *_history_table(trained),
        ),
        ("The classifier learnt from the same votes, so agreement is no proof, and contradiction a reason to look.",),
        {"agreement": share, "n_suspected": len(suspected)},
    )


def learning(trained: Any, classes: Sequence[str]) -> Panel:
    """Learning curve of a model, the classes by its posterior, and its workers.

    Parameters
    ----------
    trained : CrowdClassifier or representation learner
        A fitted model.
    classes : sequence of str
        Names of the classes as they are shown.

    Returns
    -------
    Panel
        What training minimised or maximised, per epoch or iteration.
    """
    posterior = np.asarray(trained.posterior_)
    best = np.bincount(posterior.argmax(axis=1), minlength=len(classes))
    share = posterior.mean(axis=0) if len(posterior) else np.zeros(len(classes))
    by_class = tuple((name, int(best[k]), float(share[k])) for k, name in enumerate(classes))
    accuracy = np.asarray(trained.worker_accuracy_)
    ids = names(np.asarray(trained.worker_ids_).tolist())
    workers = tuple((ids[w], float(accuracy[w])) for w in np.argsort(accuracy, kind="stable").tolist())
    curves, n_steps = _curves(trained), len(trained.history_)
    return Panel(
        "learning",
        f"Training took {counted(n_steps, 'step')}, epochs or iterations." if n_steps else "Training has no steps.",
        "Pictures show what training minimised or maximised, per epoch or iteration." if curves else "",
        counted(len(posterior), "item"),
        curves,
        (
            Table("Classes by the posterior", ("class", "items", "mean posterior"), by_class),
            Table("Workers, the lowest accuracy first", ("worker", "accuracy"), workers),
        ),
        ("The posterior is of the training items, given features and labels.",),
        {"n_steps": n_steps},
    )


def _predicted(run: Run) -> tuple[Codes, np.ndarray[Any, Any]]:
    """Return the classifier's class of each item, as a code of the run, and its posterior."""
    posterior = np.asarray(run.classifier.posterior_)
    if len(posterior) != run.annotations.n_items:
        raise AlignmentError(
            f"The classifier was trained on {len(posterior)} items and the labels are of {run.annotations.n_items}: "
            "train it on the same annotations."
        )
    code_of = {value: k for k, value in enumerate(run.annotations.classes.tolist())}
    codes = np.array([code_of.get(value, -1) for value in run.classifier.classes_.tolist()], np.int64)
    return codes[posterior.argmax(axis=1)], posterior.max(axis=1)


def _row(run: Run, row: int, code: Codes, sure: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    votes = chips(run.classes, run.votes[row].tolist())
    named = run.classes[code[row]] if code[row] >= 0 else None
    mine = run.classes[run.codes[row]]
    return run.item_name(row), votes, mine, Bar(float(run.confidence[row])), named, Bar(float(sure[row]))


def _history(trained: Any) -> dict[str, list[float]]:
    """Return each quantity of the training history, NaN where it is not known."""
    history = [entry for entry in getattr(trained, "history_", None) or [] if isinstance(entry, dict)]
    found = list(dict.fromkeys(name for entry in history for name in entry))
    return {name: [float(entry.get(name, math.nan)) for entry in history] for name in found[:_MOST_CURVES]}


def _history_table(trained: Any) -> tuple[Table, ...]:
    """Return the numbers behind the learning curves; nothing without a history."""
    found = _history(trained)
    if not found:
        return ()
    steps = zip(*found.values())
    rows = [(str(at), *(v if math.isfinite(v) else None for v in row)) for at, row in enumerate(steps, 1)]
    return (Table("Training, step by step", ("epoch or iteration", *found), *cut(rows, _MOST_STEPS)),)


def _curves(trained: Any) -> tuple[Picture, ...]:
    """Draw each quantity of the training history."""
    pictures = []
    for name, values in _history(trained).items():
        known = [value for value in values if math.isfinite(value)]
        if len(known) < 2 or min(known) == max(known):
            continue
        pad = 0.05 * (max(known) - min(known))
        steps = [float(at) for at in range(1, len(values) + 1)]
        pictures.append(
            lines(
                steps,
                [(name, values)],
                f"{name} during training",
                x_title="epoch or iteration",
                y_title=name,
                low=min(known) - pad,
                high=max(known) + pad,
                marks=len(values) <= 40,
            )
        )
    return tuple(pictures)

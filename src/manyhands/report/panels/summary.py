"""Panels of the whole page: a trained classifier, provenance, and the head with verdict, key figures and notices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyhands import metrics
from manyhands._core.arrays import Codes
from manyhands.exceptions import AlignmentError
from manyhands.report.drawing import Picture, lines
from manyhands.report.panels.workers import without_flagged_sentence
from manyhands.report.run import SEVERITIES, Bar, Notice, Panel, Run, Table, chips, cut
from manyhands.report.wording import accusation, counted, joined, names, percent, share_that, visible
from manyhands.scorecards import ACCUSATIONS

# ----------------------------------------------------------------------------------------------------
# The panel of a classifier that was trained on the labels: learning curve, agreement by class, suspected errors.

_MOST_ITEMS = 50
_SURE = 0.9
_MOST_CURVES = 4
_MOST_STEPS = 200


def classifier(run: Run) -> Panel | None:
    """Learning curve of a classifier, its agreement with the labels, and labels that it contradicts."""
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
    """Learning curve of a model, the classes by its posterior, and its workers."""
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
    quantities = list(dict.fromkeys(name for entry in history for name in entry))
    return {name: [float(entry.get(name, math.nan)) for entry in history] for name in quantities[:_MOST_CURVES]}


def _history_table(trained: Any) -> tuple[Table, ...]:
    """Return the numbers behind the learning curves; nothing without a history."""
    quantities = _history(trained)
    if not quantities:
        return ()
    steps = zip(*quantities.values())
    rows = [(str(at), *(v if math.isfinite(v) else None for v in row)) for at, row in enumerate(steps, 1)]
    return (Table("Training, step by step", ("epoch or iteration", *quantities), *cut(rows, _MOST_STEPS)),)


def _curves(trained: Any) -> tuple[Picture, ...]:
    """Draw each quantity of the training history."""
    pictures = []
    for name, values in _history(trained).items():
        finite = [value for value in values if math.isfinite(value)]
        if len(finite) < 2 or min(finite) == max(finite):
            continue
        pad = 0.05 * (max(finite) - min(finite))
        steps = [float(at) for at in range(1, len(values) + 1)]
        pictures.append(
            lines(
                steps,
                [(name, values)],
                f"{name} during training",
                x_title="epoch or iteration",
                y_title=name,
                low=min(finite) - pad,
                high=max(finite) + pad,
                marks=len(values) <= 40,
            )
        )
    return tuple(pictures)


# ----------------------------------------------------------------------------------------------------
# The panel of provenance: versions, seed, files, command, and a paragraph for the methods section of a paper.

_MOST_ROWS = 60


def provenance(run: Run) -> Panel | None:
    """Everything that is needed to repeat the run."""
    origin = run.provenance
    if origin is None:
        return None
    facts: list[tuple[str, Any]] = [
        ("manyhands", origin.version),
        *origin.platform.items(),
        ("method", origin.method),
        ("parameters", visible(", ".join(f"{k}={v!r}" for k, v in run.model.get_params().items()), 600)),
        ("seed", None if origin.seed is None else str(origin.seed)),
        ("iterations", None if run.model.n_iter_ is None else str(run.model.n_iter_)),
        ("command", None if origin.command is None else visible(origin.command, 600)),
        ("created", origin.created),
    ]
    facts += [(f"SHA-256 of {visible(name, 80)}", digest) for name, digest in origin.files.items()]
    rows, n_rows = cut([(name, value) for name, value in facts if value is not None], _MOST_ROWS)
    return Panel(
        "provenance",
        f"Made by manyhands {origin.version} with the method {origin.method}.",
        "What is needed to repeat this run. The paragraph below can be pasted into a paper.",
        counted(len(origin.files), "file") if origin.files else "",
        (),
        (
            Table(
                "Provenance",
                ("what", "value"),
                rows,
                n_rows,
                is_open=True,
            ),
        ),
        (_methods_paragraph(run),),
        {"method": origin.method, "version": origin.version},
    )


def _methods_paragraph(run: Run) -> str:
    """Return a paragraph for the methods section of a paper."""
    a, origin = run.annotations, run.provenance
    assert origin is not None
    alpha = metrics.krippendorff_alpha(a, n_bootstrap=0)
    flagged = 0 if run.cards is None else sum(bool(set(f) & set(ACCUSATIONS)) for f in run.cards.alerts)
    sure = (run.confidence[run.open] >= 0.9).mean() if run.open.any() else math.nan
    sentences = [
        f"{counted(a.n_workers, 'worker')} gave {counted(a.n_annotations, 'label')} of "
        f"{counted(a.n_classes, 'class')} to {counted(a.n_items, 'item')} "
        f"({a.n_annotations / max(a.n_items, 1):.1f} per item)."
    ]
    if math.isfinite(alpha.value):
        sentences.append(f"Krippendorff's alpha (nominal) was {alpha.value:.2f}.")
    seed = "" if origin.seed is None else f", seed {origin.seed}"
    sentences.append(
        f"Labels were inferred with {origin.method} (manyhands {origin.version}{seed})"
        + (f"; {percent(float(sure))} of them had a posterior probability of at least 0.9." if run.open.any() else ".")
    )
    if flagged:
        sentences.append(
            f"{counted(flagged, 'worker')} {'was' if flagged == 1 else 'were'} flagged by leave-one-out quality "
            "checks; their labels were weighted by the model, not removed."
        )
        sentences += without_flagged_sentence(run)
    if run.answers is not None:
        sentences.append(
            f"{counted(len(run.answers), 'item')} {'was' if len(run.answers) == 1 else 'were'} answered by an "
            "expert and entered the fit as known classes."
        )
    return " ".join(sentences)


# ----------------------------------------------------------------------------------------------------
# The head of the page: the verdict in a few sentences, key figures, and notices of all panels.


def summary(run: Run, panels: Sequence[Panel]) -> Panel:
    """The verdict, key figures and the notices of all panels, the most severe first."""
    a = run.annotations
    by_key = {panel.key: panel for panel in panels}
    per_item = a.n_annotations / max(a.n_items, 1)
    sentences = [f"{counted(a.n_items, 'item')}, {counted(a.n_workers, 'worker')}, {per_item:.1f} labels per item."]
    parts = []
    sure = by_key["confidence"].values["share_above_0.9"]
    n_open = int(run.open.sum())
    n_sure = n_open - by_key["confidence"].values["n_below_0.9"]
    if n_open or not len(run.gold_rows):
        parts.append(f"{share_that(('is', 'are'), n_sure, n_open, 'label')} at least 0.9 sure")
    else:
        parts.append("the class of every labelled item was given")
    if "hard-items" in by_key:
        n = by_key["hard-items"].values["n"]
        parts.append(f"{counted(n, 'item')} {'needs' if n == 1 else 'need'} a look")
    alerts = by_key["workers"].values["alerts"] if "workers" in by_key else {}
    accusations = [
        f"{counted(n, 'worker')} {accusation(alert, n)}" for alert in ACCUSATIONS if (n := alerts.get(alert))
    ]
    parts.append(joined(accusations) if accusations else "no worker is flagged")
    sentences.append("; ".join(parts) + ".")
    checked = by_key["calibration"].values
    if checked["n"]:
        sentences.append(_checked(run, checked))
    notices = sorted(
        (notice for panel in panels for notice in panel.notices), key=lambda one: SEVERITIES.index(one.severity)
    )
    for sentence in run.model.notes_.values():
        notices.append(Notice("note", sentence))
    if run.cards is None and (run.reading is None or run.reading.workers_known):
        notices.append(Notice("note", "The workers are not scored: their scorecards would not fit into memory."))
    if "agreement" in by_key:
        alpha = by_key["agreement"].values["Krippendorff's alpha"]
    else:  # no two labels can be compared, or a notebook leaves the panel out
        alpha = metrics.krippendorff_alpha(a, n_bootstrap=0).value
    figures = {
        "items": f"{a.n_items:,}",
        "workers": f"{a.n_workers:,}",
        "labels": f"{a.n_annotations:,}",
        "classes": f"{a.n_classes:,}",
        "labels at least 0.9 sure": percent(sure),
        "Krippendorff's alpha": f"{alpha:.2f}" if math.isfinite(alpha) else "none",
    }
    method = "" if run.provenance is None else run.provenance.method
    return Panel(
        "summary",
        " ".join(sentences),
        method,
        counted(a.n_annotations, "label"),
        values=figures,
        notices=tuple(notices),
    )


def _checked(run: Run, found: Mapping[str, Any]) -> str:
    """Return the share of right labels: a count where the truth is known, else an estimate by the expert's answers."""
    right = percent(found["accuracy"], 1)
    estimate = (run.trust or {}).get("accuracy") or {}
    if run.truth or estimate.get("value") is None:
        return f"On {counted(found['n'], 'item')} of known class, {right} of the labels are right."
    n, n_items = estimate["n_covered"], estimate["n_items"]
    where = "the labels" if n == n_items else f"the labels of the {n:,} items that could be drawn"
    return f"By {counted(estimate['n_answers'], 'answer')} of an expert, {right} of {where} are right."


def learner_summary(model: Any, sure: Panel) -> Panel:
    """The verdict and key figures of a model that learns from features."""
    accuracy = np.asarray(model.worker_accuracy_)
    n_items, share = len(model.posterior_), sure.values["share_above_0.9"]
    trained = f"Learnt from labels of {counted(len(model.worker_ids_), 'worker')} on {counted(n_items, 'item')}"
    half = (
        f"half of the workers are right in at least {np.median(accuracy):.0%} of their labels" if len(accuracy) else ""
    )
    figures = {
        "items": f"{n_items:,}",
        "workers": f"{len(model.worker_ids_):,}",
        "classes": f"{len(model.classes_):,}",
        "at least 0.9 sure": percent(share),
        "epochs or iterations": f"{len(model.history_):,}",
    }
    if hasattr(model, "n_features_in_"):
        figures["features"] = f"{model.n_features_in_:,}"
    notices = tuple(Notice("note", visible(sentence, 600)) for sentence in model.notes_.values())
    verdict = f"{trained}; {half}." if half else f"{trained}."
    return Panel("summary", verdict, "", counted(n_items, "item"), values=figures, notices=notices)

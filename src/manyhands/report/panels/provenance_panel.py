"""The panel of provenance: versions, seed, files, command, and a paragraph for the methods section of a paper."""

from __future__ import annotations

import math
from typing import Any

from manyhands.report.panel import Panel, Table, cut
from manyhands.report.run import Run
from manyhands.report.wording import counted, percent, visible
from manyhands.scorecards import ACCUSATIONS

_MOST_ROWS = 60


def provenance(run: Run) -> Panel | None:
    """Everything that is needed to repeat the run.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None if nothing is known about it.
    """
    known = run.provenance
    if known is None:
        return None
    facts: list[tuple[str, Any]] = [
        ("manyhands", known.version),
        *known.platform.items(),
        ("method", known.method),
        ("parameters", visible(", ".join(f"{k}={v!r}" for k, v in run.model.get_params().items()), 600)),
        ("seed", None if known.seed is None else str(known.seed)),
        ("iterations", None if run.model.n_iter_ is None else str(run.model.n_iter_)),
        ("command", None if known.command is None else visible(known.command, 600)),
        ("created", known.created),
    ]
    facts += [(f"SHA-256 of {visible(name, 80)}", digest) for name, digest in known.files.items()]
    rows, n_rows = cut([(name, value) for name, value in facts if value is not None], _MOST_ROWS)
    return Panel(
        "provenance",
        f"Made by manyhands {known.version} with the method {known.method}.",
        "What is needed to repeat this run. The paragraph below can be pasted into a paper.",
        counted(len(known.files), "file") if known.files else "",
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
        (methods_paragraph(run),),
        {"method": known.method, "version": known.version},
    )


def methods_paragraph(run: Run) -> str:
    """Return a paragraph for the methods section of a paper.

    Parameters
    ----------
    run : Run
        A run with provenance.

    Returns
    -------
    str
        Sentences with the figures of this run.
    """
    from manyhands import metrics

    a, known = run.annotations, run.provenance
    assert known is not None
    alpha = metrics.krippendorff_alpha(a, n_bootstrap=0)
    flagged = 0 if run.cards is None else sum(bool(set(f) & set(ACCUSATIONS)) for f in run.cards.flags)
    sure = (run.confidence[run.labelled] >= 0.9).mean() if run.labelled.any() else math.nan
    sentences = [
        f"{counted(a.n_workers, 'worker')} gave {counted(a.n_annotations, 'label')} of "
        f"{counted(a.n_classes, 'class')} to {counted(a.n_items, 'item')} "
        f"({a.n_annotations / max(a.n_items, 1):.1f} per item)."
    ]
    if math.isfinite(alpha.value):
        sentences.append(f"Krippendorff's alpha (nominal) was {alpha.value:.2f}.")
    seed = "" if known.seed is None else f", seed {known.seed}"
    sentences.append(
        f"Labels were inferred with {known.method} (manyhands {known.version}{seed}); {percent(float(sure))} of "
        "them had a posterior probability of at least 0.9."
    )
    if flagged:
        sentences.append(
            f"{counted(flagged, 'worker')} {'was' if flagged == 1 else 'were'} flagged by leave-one-out quality "
            "checks; their labels were weighted by the model, not removed."
        )
    if run.answers is not None:
        sentences.append(
            f"{counted(len(run.answers), 'item')} {'was' if len(run.answers) == 1 else 'were'} answered by an "
            "expert and entered the fit as known classes."
        )
    return " ".join(sentences)

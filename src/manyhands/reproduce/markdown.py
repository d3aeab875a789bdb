"""A page of figures as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from manyhands.reproduce.formatting import title
from manyhands.reproduce.pages import Page
from manyhands.reproduce.rendering import SIGNIFICANT, differing, failures, notes, sections, unmeasured

_MEASURED = ("dataset", "row", "x", "metric", "n", "mean", "sd")
_CSV_COLUMNS = (*_MEASURED, "published", "published_sd", "difference", "margin", "verdict")


def to_csv(shown: Page) -> str:
    """Return one line per data set, row and metric; the provenance is repeated in each.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    str
        CSV with a header.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    origin = {
        "table": shown["table"],
        "command": shown["command"],
        "commit": " ".join(str(commit) for commit in shown["commits"]),
        "machine": "; ".join(filter(None, shown["machines"])),
        "seeds": " ".join(map(str, shown["seeds"])),
        "deviations": " ".join(shown["deviations"]),
        "validation_truth": str(shown["validation_truth"]).lower(),
    }
    writer.writerow([*_CSV_COLUMNS, *origin])
    for entry in shown["entries"]:
        writer.writerow([*("" if entry[name] is None else entry[name] for name in _CSV_COLUMNS), *origin.values()])
    return buffer.getvalue()


def to_markdown(shown: Page) -> str:
    """Return a document: measured beside published values, further metrics, significant differences, notes.

    Parameters
    ----------
    shown : dict
        A page.

    Returns
    -------
    str
        Markdown.
    """
    metric = shown["metrics"][0]
    parts = [f"# {shown['title']}", f"{shown['paper']} {shown['number']}."]
    parts.append(bullets(notes(shown)))
    if shown["deviations"]:
        parts += ["What differs from the paper:", bullets(shown["deviations"])]
    for what, columns, rows in sections(shown):
        parts += [f"## {what[0].upper()}{what[1:]}", grid(columns, rows)]
    parts.append(
        "*Within*: closer than two standard errors of the difference (the paper's over as many runs as ours), or than "
        "two points if the paper gives no deviation."
    )
    tested = sum(pair["p"] is not None for pair in shown["pairs"])
    if tested and shown["focus"] is not None:
        parts.append(f"P-values are of paired t-tests over seeds, corrected for {tested} pairs (Holm).")
    elif tested:
        significant = differing(shown)
        parts += ["## Methods that differ", bullets(significant) if significant else "No difference is significant."]
        parts.append(
            f"By {title(metric)}: paired t-tests over seeds, corrected for {tested} pairs (Holm), p < {SIGNIFICANT}."
        )
    if unmeasured(shown):
        parts += ["## Not measured here", bullets(unmeasured(shown))]
    if failures(shown):
        parts += ["## Failed", bullets(failures(shown))]
    return "\n\n".join(parts) + "\n"


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table.

    Parameters
    ----------
    columns : sequence of str
        Column names.
    rows : sequence of sequence of str
        Lines.

    Returns
    -------
    str
        The table, without a line break at its end.
    """
    ruled = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in ruled)


def bullets(sentences: Iterable[str]) -> str:
    """Return a Markdown list.

    Parameters
    ----------
    sentences : iterable of str
        Its items.

    Returns
    -------
    str
        The list, without a line break at its end.
    """
    return "\n".join(f"- {sentence}" for sentence in sentences)

"""`manyhands inspect`: what an export contains, before anything is fitted."""

from __future__ import annotations

from typing import Any

import polars as pl

from manyhands import workflows
from manyhands.cli.options import AsJson, Quiet, takes_export
from manyhands.cli.printing import print_json
from manyhands.cli.show import echo, show_ledger, show_table
from manyhands.exceptions import SeveralQuestionsError
from manyhands.io.messages import counted
from manyhands.io.read.reading import Reading
from manyhands.workflows import ExportOptions


@takes_export
def inspect(files: list[str], export: ExportOptions, as_json: AsJson = False, quiet: Quiet = False) -> None:
    r"""Show what an export contains: format, columns, rows left out and why, coverage and agreement.

    If it holds answers to several questions and none is chosen, all of them are described in a table.

    \b
    Examples:
      manyhands inspect export.json
      manyhands inspect export.json --question sentiment --json
      manyhands inspect report.html
      manyhands inspect batch1.csv batch2.csv --item Input.url
    """
    if len(files) == 1 and workflows.is_page(files[0]):
        _show_page(workflows.inspect_page(files[0]), as_json, quiet)
        return
    try:
        reading, figures = workflows.inspect_export(files, export)
    except SeveralQuestionsError as several:
        if export.question is not None or "-" in files:  # standard input cannot be read again
            raise
        _show_questions(files, workflows.describe_questions(files, export, several.questions), as_json, quiet)
        return
    if as_json:
        print_json(figures)
    elif not quiet:
        _show(reading, figures)


def _show_page(data: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Print the data of a report: all of it as JSON, or its findings."""
    if as_json:
        print_json(data)
        return
    if quiet:
        return
    echo(f"{data['title']}: {data['verdict']}")
    if data.get("created"):
        echo(f"Made on {data['created']}; schema {data['schema']}")
    findings = [{"panel": key, "finding": panel["title"]} for key, panel in data["panels"].items()]
    show_table(pl.DataFrame(findings), "Findings")
    if data.get("workers"):
        workers = {
            name: column
            for name, column in data["workers"].items()
            if name in ("worker", "n_labels", "accuracy", "flags")
        }
        show_table(pl.DataFrame(workers).sort("n_labels", descending=True).head(10), "Workers with the most labels")
    echo("--json prints all data of the page, labels included.")


def _show_questions(files: list[str], questions: list[dict[str, Any]], as_json: bool, quiet: bool) -> None:
    """Print one row per question, and what to type next."""
    if as_json:
        print_json({"schema": 1, "files": files, "questions": questions})
    if as_json or quiet:
        return
    readable = [row for row in questions if "reason" not in row]
    if readable:
        shown = [{name: value for name, value in row.items() if name != "note"} for row in readable]
        show_table(pl.DataFrame(shown), f"{counted(len(questions), 'question')} in {', '.join(files)}")
    for row in questions:
        if "reason" in row:
            echo(f"{row['question']}: {row['reason']}")
        elif "note" in row:
            echo(f"{row['question']}: {row['note']}")
    echo("--question NAME reads one of them; aggregate --all-questions -o FOLDER writes a folder for each.")


def _show(reading: Reading, figures: dict[str, Any]) -> None:
    """Print the description of an export to standard error."""
    show_ledger(reading)
    if reading.refusal is not None:
        echo(reading.refusal)
        return
    if len(reading.questions) > 1:
        others = ", ".join(f"{name} ({count})" for name, count in reading.questions.items())
        echo(f"Question: {reading.question}; all questions with their numbers of answers: {others}")
    echo(
        f"{counted(figures['n_items'], 'item')}, {counted(figures['n_workers'], 'worker')}, "
        f"{counted(figures['n_classes'], 'class')}; {figures['labels_per_item']['mean']:g} labels per item, "
        f"{counted(figures['n_unlabelled'], 'item')} without a label, {figures['n_labelled_once']} with one"
    )
    if not figures["n_annotations"]:
        echo("No label counts, so there is nothing to aggregate yet.")
        return
    density, imbalance = figures["density"], figures["imbalance"]
    echo(f"{density:.2%} of all item-worker pairs are labelled; imbalance ratio R = {imbalance:.3f}")
    if figures["n_components"] > 1:
        echo(f"The crowd consists of {figures['n_components']} groups that have no item in common.")
    if "kinds" in figures:
        told = ", ".join(f"{count} {kind}" for kind, count in figures["kinds"].items())
        echo(f"Workers by kind: {told}; alt-test and agree --effective compare people and machines.")
    if reading.gold:
        known = counted(len(reading.gold), "item")
        echo(f"The export contains the known answer of {known}; aggregate --use-gold uses it.")
    labels = figures["labels"]
    counts = {"class": list(labels), "labels": list(labels.values())}
    show_table(pl.DataFrame(counts).sort("labels", "class", descending=[True, False]).head(20), "Labels by class")
    show_table(pl.DataFrame(figures["agreement"]), "Agreement, with 95% intervals over items")
    show_table(pl.DataFrame(figures["examples"]), "The first judgements that count")

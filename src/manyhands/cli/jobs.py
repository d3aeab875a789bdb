"""What the commands do between reading and writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.cli.show import progress_bar, say
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.comparison import compare_methods
from manyhands.io.messages import counted
from manyhands.io.overview import describe_reading
from manyhands.io.read.gold import read_gold
from manyhands.io.read.reading import Reading
from manyhands.io.write.results import label_frame, summary, worker_frame

VOTE = "majority-vote"  # the one method that need not know who voted


@dataclass(frozen=True)
class Job:
    """One method's answer to one export: the fitted model, tables by file name, and everything worth a line of JSON."""

    model: Aggregator
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]


def run_job(
    reading: Reading,
    method: str,
    seed: int,
    gold: Mapping[str, str] | None = None,
    *,
    compare: bool = False,
    quiet: bool = True,
) -> Job:
    """Fit a method and lay out what it found; with `compare`, all others beside it."""
    model = registry.create_seeded(method, seed)
    with progress_bar(quiet):
        model.fit(reading.annotations, gold=gold or None)
    found = summary(model, method)
    told = describe_reading(reading) | found | {"n_gold_used": len(gold or {})}
    told["notes"] = reading.notes | found["notes"]
    tables = {"labels.csv": label_frame(model), "workers.csv": worker_frame(model)}
    told["workers"] = tables["workers.csv"].to_dicts()
    if compare:
        with progress_bar(quiet):
            methods, differences = compare_methods(model, method, seed, gold)
        tables |= {"methods.csv": methods, "differences.csv": differences}
        told["methods"] = methods.to_dicts()
    return Job(model, tables, told)


def refuse_unusable(reading: Reading, method: str) -> None:
    """A sentence for files from which this method cannot tell anything."""
    if method in [*registry.names("classifier"), *registry.names("representation")]:
        raise ParameterError(f"The method {method!r} learns from features, which a table of labels does not have.")
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    if not reading.ledger.kept:
        raise AnnotationError(f"{reading.source} has no label that counts: {reading.ledger}.")
    if not reading.workers_known and method != VOTE:
        raise AnnotationError(
            f"{reading.source} counts votes without saying whose they are, so workers can neither be told apart nor "
            f"judged. Only -m {VOTE} can use it, which gives vote shares as soft labels."
        )


def known_answers(reading: Reading, file: Path | None, use_own: bool) -> dict[str, str]:
    """Gold from a table and, if the user wants it, from the export itself; the table wins."""
    if use_own and not reading.gold:
        raise AnnotationError(f"{reading.source} gives no known answers, so --use-gold has nothing to use.")
    classes = set(reading.annotations.classes.tolist())
    own = {item: label for item, label in reading.gold.items() if label in classes} if use_own else {}
    if use_own and len(own) < len(reading.gold):
        said = counted(len(reading.gold) - len(own), "known answer")
        say(f"note: {said} of the export name classes that no worker gave, and were left out.")
    given = read_gold(file, reading.annotations) if file is not None else {}
    contradicted = [item for item in given if reading.gold.get(item, given[item]) != given[item]]
    if contradicted:
        said = counted(len(contradicted), "item")
        say(f"note: {said} of {file} have another known answer in the export, such as {contradicted[0]!r}.")
    return own | given

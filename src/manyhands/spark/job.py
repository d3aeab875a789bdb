"""`manyhands-spark`: aggregation as a job of a cluster, with tables in and out.

It runs under `spark-submit`, as `python -m manyhands.spark`, and against a Spark Connect server (`--remote`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any

from manyhands import __version__
from manyhands.exceptions import (
    CrowdWarning,
    LimitError,
    ManyhandsError,
    MissingExtraError,
    OutputExistsError,
    ParameterError,
)
from manyhands.spark.estimators import (
    COLUMNS,
    MACE,
    CrowdEstimator,
    DawidSkene,
    MajorityVote,
    OneCoin,
    PooledDawidSkene,
    check_free,
)
from manyhands.spark.shards import Session

METHODS: dict[str, type[CrowdEstimator]] = {
    made._method: made for made in (DawidSkene, MACE, MajorityVote, OneCoin, PooledDawidSkene)
}
_USAGE, _INPUT, _LIMIT = 2, 3, 5  # exit codes, as those of `manyhands`


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program."""
    options = parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", CrowdWarning)
            warnings.showwarning = _print_warning
            summary = aggregate(options)
    except ManyhandsError as error:
        sys.stderr.write(f"manyhands-spark: {error}\n")
        if isinstance(error, ParameterError | OutputExistsError | MissingExtraError):
            return _USAGE
        return _LIMIT if isinstance(error, LimitError) else _INPUT
    text = json.dumps(summary, default=str) if options.json else _text(summary, options.output)
    sys.stdout.write(f"{text}\n")
    return 0


def aggregate(options: argparse.Namespace) -> dict[str, Any]:
    """Read labels, fit, and write the model with its tables.

    Parameters
    ----------
    options : argparse.Namespace
        The options of the command line.

    Returns
    -------
    dict of str to object
        The summary of the model, and the seconds that it took.
    """
    began = time.monotonic()
    spark = _session(options)
    check_free(spark, options.output, overwrite=options.force)  # before hours of work
    frame = _read(spark, options)
    columns = {"itemCol": options.item, "workerCol": options.worker, "labelCol": options.label}
    checkpoint = options.checkpoint or f"{options.output.rstrip('/')}-checkpoint"
    estimator = METHODS[options.method](**columns, orderCol=options.order, checkpointDir=checkpoint)
    estimator.setParams(**_parameters(options.param))
    estimator._as_text = True  # the bits of `manyhands aggregate`, whose readers take ids as text
    model = estimator.fit(frame)
    model.save(options.output, overwrite=options.force)
    return model.summary | {"seconds": round(time.monotonic() - began, 1)}


def parser() -> argparse.ArgumentParser:
    """The arguments of the program."""
    made = argparse.ArgumentParser("manyhands-spark", description="Labels of a crowd, aggregated on Spark.")
    made.add_argument("--version", action="version", version=__version__)
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("aggregate", help="infer the label of every item", allow_abbrev=False)
    source = command.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", metavar="PATH", help="file or folder with one row per label")
    source.add_argument("--table", metavar="NAME", help="table of the catalogue with one row per label")
    command.add_argument("--format", metavar="NAME", help="format of the input; by default from its name, else parquet")
    command.add_argument("--output", metavar="PATH", required=True, help="folder for items, workers, confusions, model")
    command.add_argument("--checkpoint", metavar="PATH", help="folder for shards; by default OUTPUT-checkpoint")
    command.add_argument("--method", choices=sorted(METHODS), default="pooled-dawid-skene", help="default: %(default)s")
    for role in ("item", "worker", "label"):
        command.add_argument(f"--{role}", metavar="COLUMN", default=role, help=f"column with the {role}")
    command.add_argument("--order", metavar="COLUMN", help="column that says which of repeated labels is the last")
    command.add_argument(
        "--param", metavar="NAME=VALUE", action="append", default=[], help="parameter of the method, such as maxIter=20"
    )
    command.add_argument("--remote", metavar="URL", help="Spark Connect server, such as sc://host:15002")
    command.add_argument("--force", action="store_true", help="replace a model in OUTPUT")
    command.add_argument("--json", action="store_true", help="print the summary as JSON")
    return made


def _session(options: argparse.Namespace) -> Session:
    """The session of the cluster, or that of a Connect server."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise MissingExtraError("pyspark is not installed: pip install 'manyhands[spark]'.") from None
    builder = SparkSession.builder.appName("manyhands")
    try:
        return (builder.remote(options.remote) if options.remote else builder).getOrCreate()
    except Exception as error:
        raise ParameterError(f"There is no Spark session: {str(error).splitlines()[0]}") from None


def _read(spark: Session, options: argparse.Namespace) -> Any:
    """The input as a DataFrame; names of columns are in the first line of CSV files."""
    path, kind = options.input or options.table, options.format
    endings = {".csv": "csv", ".csv.gz": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}
    kind = kind or next((name for ending, name in endings.items() if path.endswith(ending)), "parquet")
    reader = spark.read.format(kind)
    try:
        reader = reader.option("header", "true") if kind == "csv" else reader
        frame = spark.read.table(path) if options.table else reader.load(path)
        frame.schema  # noqa: B018 through Connect, the input is looked for when its columns are
    except Exception as error:
        what = "the table" if options.table else kind
        raise ManyhandsError(f"{path} cannot be read as {what}: {str(error).splitlines()[0]}") from None
    return frame


def _parameters(given: list[str]) -> dict[str, Any]:
    """Parameters of the method from NAME=VALUE."""
    values = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name in COLUMNS[:5]:
            raise ParameterError(f"--param takes NAME=VALUE with a parameter of the method. Got {text!r}.")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return values


def _text(summary: dict[str, Any], output: str) -> str:
    """The end of a run, for a reader."""
    lines = [
        f"{summary['method']} on {summary['n_labels']:,} labels of {summary['n_items']:,} items by "
        f"{summary['n_workers']:,} workers, {len(summary['classes'])} classes: {summary['n_iter']} passes over "
        f"{summary['n_shards']} shard{'' if summary['n_shards'] == 1 else 's'}, {summary['seconds']} s.",
        *(f"Note: {sentence}" for sentence in summary["notes"].values()),
        f"Written to {output}: items, workers{', confusions' if summary['method'] != 'MajorityVote' else ''}, model.",
    ]
    return "\n".join(lines)


def _print_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Our warnings as one line; those of other packages are not for the user of the job."""
    if category.__module__.partition(".")[0] == "manyhands":
        sys.stderr.write(f"Warning: {message}\n")

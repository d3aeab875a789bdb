"""`manyhands train`: from an export and features to a classifier in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Gold, OnDevice, Quiet, Seed, UseGold, takes_export
from manyhands.cli.printing import echo_stale, print_json
from manyhands.cli.show import echo, progress_bar, show_ledger
from manyhands.cli.training_options import FeatureFile, FeatureIds, IdColumn, RowsInOrder, parse_settings
from manyhands.exceptions import ParameterError
from manyhands.io.messages import counted, listed
from manyhands.workflows import ExportOptions, FeatureOptions
from manyhands.workflows.model_training import DEFAULT_METHOD, DEFAULT_PARAMETERS, check_classifiers

_BY_DEFAULT = f"Default: {DEFAULT_METHOD} with " + ", ".join(f"{k}={v}" for k, v in DEFAULT_PARAMETERS.items())

_Out = Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the model.")]
_Method = Annotated[
    list[str] | None,
    typer.Option("-m", "--method", metavar="NAME", help=f"Classifier, see: manyhands methods. {_BY_DEFAULT}."),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter, METHOD.NAME=VALUE for one of several methods; may be repeated.",
    ),
]
_Choose = Annotated[
    bool,
    typer.Option(
        "--choose",
        help="Of several -m, train the one with the best cross-validated log-likelihood of held-out labels and gold.",
    ),
]
_Columns = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Numeric column of the features; may be repeated.")
]
_Text = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Text column of the features, encoded as TF-IDF; may be repeated."),
]
_NoStandardise = Annotated[
    bool, typer.Option("--no-standardise", help="Do not scale features to mean 0 and standard deviation 1.")
]


@takes_export
def train(
    files: list[str],
    export: ExportOptions,
    features: FeatureFile,
    out: _Out,
    method: _Method = None,
    settings: _Settings = None,
    choose: _Choose = False,
    column: _Columns = None,
    text: _Text = None,
    no_standardise: _NoStandardise = False,
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    gold: Gold = None,
    use_gold: UseGold = False,
    device: OnDevice = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Train a classifier on the crowd's labels and features of the items.

    Features are matched to items by id. Nothing is written unless all steps succeed.

    \b
    Examples:
      manyhands train ratings.csv --features X.npz -m crowd-layer -o model/
      manyhands train ratings.csv --features texts.csv --text body -m two-stage --set soft=true -o model/
      manyhands train ratings.csv --features X.npz -m crowd-layer -m two-stage --choose -o model/
    """
    methods = _parse_methods(method, settings or [], choose)
    with progress_bar(quiet or as_json):
        run = workflows.train(
            files,
            features,
            out,
            export,
            FeatureOptions(id_column, feature_ids, rows_in_order),
            methods=methods,
            columns=column or (),
            text=text or (),
            standardise=not no_standardise,
            gold=gold,
            use_gold=use_gold,
            device=device,
            random_state=seed,
            force=force,
        )
    echo_stale(run.written)
    if as_json:
        print_json(run.summary)
    elif not quiet:
        show_ledger(run.reading)
        _show(run.summary, out)


def _parse_methods(methods: list[str] | None, settings: list[str], choose: bool) -> dict[str, dict[str, Any]]:
    """Return the parameters of each method that is to be trained or compared."""
    names = list(dict.fromkeys(methods or [DEFAULT_METHOD]))
    check_classifiers(names)
    if choose != (len(names) > 1):
        raise ParameterError("--choose is for several methods: give -m for each of them, and --choose.")
    given = parse_settings(names, settings)
    defaults = {} if methods else dict(DEFAULT_PARAMETERS)
    return {name: defaults | given[name] for name in names}


def _show(summary: dict[str, Any], out: Path) -> None:
    """Print the ranking, what was trained, and the files to standard error."""
    for row in summary.get("methods", []):
        score = f"{row['heldout_log_likelihood']:.4f} ± {row['standard_error']:.4f}"
        kind = " (own likelihood)" if row["likelihood"] == "own" else ""
        echo(f"{row['rank']:>3}  {row['method']}: {score}{kind}")
    if "methods" in summary:
        what = "labels and gold classes" if summary["n_gold_used"] else "labels"
        echo(f"mean log-likelihood of held-out {what} ± standard error, five-fold cross-validation, higher is better")
    sentence = _describe_features(summary)
    if sentence:
        echo(sentence)
    shape = " x ".join(map(str, summary["n_features"]))
    scale = "standardised" if summary["standardised"] else "not standardised"
    alone = summary["n_gold_without_labels"]
    by_gold = f" ({alone} of them with gold and no label)" if alone else ""
    items = f"{counted(summary['n_items_trained'], 'item')}{by_gold}"
    place = f", on {summary['device']}" if summary["device"] else ""
    echo(f"{summary['method']}: trained on {items} with {shape} features, {scale}{place}")
    echo(f"Written to {out}: {', '.join(summary['written'])}")


def _describe_features(summary: dict[str, Any]) -> str:
    """Return what the features are, if they came from named columns."""
    parts = []
    if summary["text_columns"]:
        parts.append(f"TF-IDF of {_quoted(summary['text_columns'])} ({counted(summary['n_words'], 'word')})")
    if summary["feature_columns"]:
        parts.append(f"numbers of {_quoted(summary['feature_columns'])}")
    unused = summary["columns_not_used"]
    if unused:
        parts.append(f"not used: {_quoted(unused)}, unless --text or --column names them")
    return f"Features: {'; '.join(parts)}" if parts else ""


def _quoted(names: list[str]) -> str:
    """Return names of columns in quotes."""
    return listed([f"'{name}'" for name in names])

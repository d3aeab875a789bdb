"""Commands on models: `train`, `predict`, `evaluate`; and `methods`, `simulate`, `demo`, `doctor`.

What a command needs is imported in its function, so that the command line starts at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyhands import registry
from manyhands.cli.options import (
    AsJson,
    FeatureFile,
    FeatureIds,
    Force,
    Gold,
    IdColumn,
    Model,
    OnDevice,
    Quiet,
    RowsInOrder,
    Seed,
    SpreadsheetSafe,
    UseGold,
    complete_classifiers,
    input_option,
    method_option,
    output_option,
    parse_settings,
    takes_export,
)
from manyhands.cli.printing import (
    echo,
    echo_stale,
    print_data,
    print_json,
    progress_bar,
    require_stdout,
    show_diagnosis,
    show_ledger,
)
from manyhands.exceptions import ParameterError

if TYPE_CHECKING:
    from manyhands.jobs.options import ExportOptions
    from manyhands.jobs.simulate import DemoRun

# ----------------------------------------------------------------------------------------------------
# `manyhands demo`: a simulated crowd, from its labels to a comparison with the ground truth.

_SHOWN = 3  # flagged workers
_CONTENTS = {
    "report.html": "labels, workers and what to do next, in a browser",
    "labels.csv": "one label per item, with its posterior",
    "workers.csv": "a quality report for each worker",
    "methods.csv": "all aggregators, compared with the ground truth",
}


def demo(
    out: Annotated[Path, output_option("-o", "--out", help="Folder for the files.")] = Path("demo"),
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    r"""Simulate a crowd, aggregate its labels, and compare all aggregators with the ground truth.

    \b
    Examples:
      manyhands demo
      manyhands demo -o somewhere/ --seed 7
    """
    from manyhands.jobs.simulate import demo

    run = demo(out, random_state=seed, force=force)
    echo("A simulated crowd: 1000 pictures, 60 workers, 4 labels per picture; 3 of 10 workers answer at random.")
    echo(f"$ manyhands aggregate {out / 'ratings.csv'} -o {out}")
    _show_demo(run)
    for name, content in _CONTENTS.items():
        echo(f"Open {out / name}: {content}.")
    echo_stale(run.written)
    if as_json:
        print_json({"schema": 1, "methods": run.methods.to_dicts()})
    echo(f"Written to {out}: {run.written}")


def _show_demo(run: DemoRun) -> None:
    """Print what was read, how certain the labels are, how many are right, and which workers to check."""
    summary, workers = run.summary, run.workers
    echo(f"Rows: {run.reading.ledger}.")
    echo(f"Labels: {summary['n_items']}, of which {summary['share_above_0.9']:.0%} have a posterior of at least 0.9.")
    accuracy = dict(run.methods.select("method", "accuracy").iter_rows())
    echo(
        f"Correct labels, by the ground truth of the simulation: {accuracy[summary['method']]:.1%} "
        f"({summary['method']}), {accuracy['majority-vote']:.1%} (majority-vote)."
    )
    alerts = workers["alerts"].drop_nulls().str.split(";").explode().value_counts(sort=True)
    echo("Alerts of workers: " + ", ".join(f"{count} {alert}" for alert, count in alerts.iter_rows()) + ".")
    lowest = workers.filter(workers["alerts"].is_not_null()).sort("accuracy_high", "worker").head(_SHOWN)
    for worker, alert, reason in lowest.select("worker", "alerts", "reasons").iter_rows():
        echo(f"Check {worker} ({alert}): {reason}.")


# ----------------------------------------------------------------------------------------------------
# `manyhands doctor`: what is installed, compiled and found, and what to do.


def doctor(as_json: AsJson = False) -> None:
    r"""Examine this installation: versions, C modules, optional libraries, folders, memory; and say what to do.

    The list goes to stdout and contains no names of hosts or users. Exits with 3 if there is a problem.

    \b
    Examples:
      manyhands doctor
      manyhands doctor --json
    """
    code = show_diagnosis(as_json)
    if code:
        raise typer.Exit(code)


# ----------------------------------------------------------------------------------------------------
# `manyhands evaluate`: a trained model compared with ground truth.


def evaluate(
    model: Model,
    features: FeatureFile,
    truth: Annotated[Path, input_option(metavar="FILE", help="Table of items and their true classes: item, label.")],
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    device: OnDevice = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Compare a model's predictions with ground truth: accuracy, F1 and calibration.

    The metrics go to stdout, one per line. Truth and features are matched by id.

    \b
    Examples:
      manyhands evaluate model/ --features X_test.npz --truth truth.csv
      manyhands evaluate model/ --features X_test.npy --truth truth.csv --rows-in-order --json
    """
    from manyhands.io.messages import counted
    from manyhands.jobs.options import FeatureOptions
    from manyhands.jobs.train import evaluate

    matching = FeatureOptions(id_column, feature_ids, rows_in_order)
    run = evaluate(model, features, truth, matching, device=device)
    if as_json:
        print_json({"schema": 1} | run.as_dict())
        return
    print_data("".join(f"{name} {value:.4f}\n" for name, value in run.metrics.items()))
    if not quiet:
        echo(
            f"{counted(run.n_items, 'item')} compared; {run.n_without_features} with truth have no features, "
            f"{run.n_without_truth} with features no truth"
        )


# ----------------------------------------------------------------------------------------------------
# `manyhands methods`: all methods of the registry.

_KINDS = ("aggregator", "classifier", "representation")


def methods(as_json: AsJson = False) -> None:
    r"""List all methods, one per line: name, kind, summary.

    An aggregator uses labels only (manyhands aggregate). A classifier uses labels and features (manyhands train). A
    representation learns features for a classifier, in a scikit-learn Pipeline; some classify, too.

    \b
    Examples:
      manyhands methods
      manyhands methods --json
    """
    summaries = {name: registry.summary(name) for name in registry.names()}
    kinds = {name: "+".join(kind for kind in _KINDS if name in registry.names(kind)) for name in summaries}
    if as_json:
        listing = {"schema": 1, "default": registry.DEFAULT, "methods": summaries, "kinds": kinds}
        print_data(json.dumps(listing) + "\n")
        return
    width, kind_width = max(map(len, summaries)), max(map(len, kinds.values()))
    lines = []
    for name, summary in summaries.items():
        default = "  (default)" if name == registry.DEFAULT else ""
        lines.append(f"{name:<{width}}  {kinds[name]:<{kind_width}}  {summary}{default}\n")
    print_data("".join(lines))


# ----------------------------------------------------------------------------------------------------
# `manyhands predict`: predictions of a trained model for new features.

_PredictionsOut = Annotated[
    Path | None, output_option("-o", "--out", metavar="FILE", help="File to write: {table_endings}.")
]


def predict(
    model: Model,
    features: FeatureFile,
    out: _PredictionsOut = None,
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    device: OnDevice = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Predict the class of every row of features, with its probability.

    Without -o the table goes to stdout as CSV.

    \b
    Examples:
      manyhands predict model/ --features X_new.npz -o predictions.csv
      manyhands predict model/ --features texts.csv --id-column comment
    """
    if out is None:
        require_stdout()
    from manyhands.io.messages import counted
    from manyhands.jobs.options import FeatureOptions
    from manyhands.jobs.train import predict

    matching = FeatureOptions(id_column, feature_ids, rows_in_order)
    run = predict(model, features, matching, device=device, spreadsheet_safe=spreadsheet_safe, out=out, force=force)
    if as_json:
        written = None if out is None else out.name
        print_json({"schema": 1, "n_rows": len(run.table), "labels": run.counts, "written": written})
    elif out is None:
        print_data(run.content)
    if out is not None and not quiet and not as_json:
        counts = ", ".join(f"{n} {label}" for label, n in run.counts.items())
        echo(f"Written: {out}, {counted(len(run.table), 'row')} ({counts})")


# ----------------------------------------------------------------------------------------------------
# `manyhands simulate`: a simulated crowd as files.


def simulate(
    out: Annotated[Path | None, output_option("-o", "--out", help="Folder for ratings, truth and workers.")] = None,
    items: Annotated[int, method_option(help="Number of items.")] = 400,
    workers: Annotated[int, method_option(help="Number of workers.")] = 40,
    classes: Annotated[int, method_option(help="Number of classes.")] = 2,
    labels_per_item: Annotated[float, method_option(help="Mean number of labels per item.")] = 5,
    accuracy: Annotated[float, method_option(help="Mean accuracy of good workers.")] = 0.8,
    spread: Annotated[float, method_option(help="Standard deviation of their accuracy.")] = 0.1,
    kind: Annotated[str, method_option(help="Error model of good workers: {error_models}.")] = "honest",
    bad: Annotated[str, method_option(help="Behaviour of bad workers: {attacks}.")] = "random",
    bad_share: Annotated[float, method_option(help="Share of bad workers.")] = 0.0,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Simulate a crowd: ratings.csv, the ground truth, and which workers are bad.

    Without -o the ratings go to stdout.

    \b
    Examples:
      manyhands simulate -o crowd/ --items 1000 --classes 4 --bad constant --bad-share 0.3
      manyhands simulate | manyhands aggregate - -o out/
    """
    if out is None:
        require_stdout()
    from manyhands.jobs.simulate import simulate

    run = simulate(
        items,
        workers,
        classes,
        labels_per_item,
        kind=kind,
        accuracy=accuracy,
        spread=spread,
        bad=bad,
        bad_share=bad_share,
        random_state=seed,
        out=out,
        force=force,
    )
    echo_stale(run.written)
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.ratings)
    if out is not None and not quiet and not as_json:
        echo(f"Written to {out}: {run.written}")


# ----------------------------------------------------------------------------------------------------
# `manyhands train`: from an export and features to a classifier in a folder.

_ModelOut = Annotated[Path, output_option("-o", "--out", metavar="FOLDER", help="Folder for the model.")]
_Method = Annotated[
    list[str] | None,
    method_option(
        "-m",
        "--method",
        metavar="NAME",
        autocompletion=complete_classifiers,
        help="Classifier, see: manyhands methods. Default: {default_classifier}.",
    ),
]
_Settings = Annotated[
    list[str] | None,
    method_option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter, METHOD.NAME=VALUE for one of several methods; may be repeated.",
    ),
]
_Choose = Annotated[
    bool,
    method_option(
        "--choose",
        help="Of several -m, train the one with the best cross-validated log-likelihood of held-out labels and gold.",
    ),
]
_Columns = Annotated[
    list[str] | None, input_option(metavar="COLUMN", help="Numeric column of the features; may be repeated.")
]
_Text = Annotated[
    list[str] | None,
    input_option(metavar="COLUMN", help="Text column of the features, encoded as TF-IDF; may be repeated."),
]
_Standardise = Annotated[
    bool | None,
    method_option(
        "--standardise/--no-standardise",
        help="Scale features to mean 0 and standard deviation 1, or not; by default what the method expects.",
    ),
]


@takes_export
def train(
    files: list[str],
    export: ExportOptions,
    features: FeatureFile,
    out: _ModelOut,
    method: _Method = None,
    settings: _Settings = None,
    choose: _Choose = False,
    column: _Columns = None,
    text: _Text = None,
    standardise: _Standardise = None,
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
    from manyhands.jobs.options import FeatureOptions
    from manyhands.jobs.train import train

    methods = _parse_methods(method, settings or [], choose)
    with progress_bar(quiet or as_json):
        run = train(
            files,
            features,
            out,
            export,
            FeatureOptions(id_column, feature_ids, rows_in_order),
            methods=methods,
            columns=column or (),
            text=text or (),
            standardise=standardise,
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
        _show_training(run.summary, out)


def _parse_methods(methods: list[str] | None, settings: list[str], choose: bool) -> dict[str, dict[str, Any]]:
    """Return the parameters of each method that is to be trained or compared."""
    from manyhands.jobs.train import DEFAULT_METHOD, DEFAULT_PARAMETERS, check_classifiers

    names = list(dict.fromkeys(methods or [DEFAULT_METHOD]))
    check_classifiers(names)
    if choose != (len(names) > 1):
        raise ParameterError("--choose is for several methods: give -m for each of them, and --choose.")
    given = parse_settings(names, settings)
    defaults = {} if methods else dict(DEFAULT_PARAMETERS)
    return {name: defaults | given[name] for name in names}


def _show_training(summary: dict[str, Any], out: Path) -> None:
    """Print the ranking, what was trained, and the files to standard error."""
    from manyhands.io.messages import counted

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
    scale = _describe_scale(summary)
    alone = summary["n_gold_without_labels"]
    by_gold = f" ({alone} of them with gold and no label)" if alone else ""
    items = f"{counted(summary['n_items_trained'], 'item')}{by_gold}"
    place = f", on {summary['device']}" if summary["device"] else ""
    echo(f"{summary['method']}: trained on {items} with {shape} features, {scale}{place}")
    echo(f"Written to {out}: {', '.join(summary['written'])}")


def _describe_scale(summary: dict[str, Any]) -> str:
    """Return whether features are standardised, and what the method expects where that is not the usual."""
    scale = "standardised" if summary["standardised"] else "not standardised"
    if summary["expected_features"] == "standardised":
        return scale
    return f"{scale} ({summary['method']} expects features as they are)"


def _describe_features(summary: dict[str, Any]) -> str:
    """Return what the features are, if they came from named columns."""
    from manyhands.io.messages import counted

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
    from manyhands.io.messages import listed

    return listed([f"'{name}'" for name in names])

"""`manyhands train`: from an export and features to a classifier in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.cli.jobs import VOTE, known_answers, refuse_unusable
from manyhands.cli.options import AsJson, Force, Quiet, Seed, reads_into
from manyhands.cli.output_targets import folder_target, print_json, write_output
from manyhands.cli.show import progress_bar, say, show_ledger
from manyhands.cli.training_options import FeatureFile, FeatureIds, IdColumn, RowsInOrder, parse_settings
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.features.feature_pipeline import FeaturePipeline
from manyhands.io.features.loading import Features, match, read_features
from manyhands.io.features.model_folder import FILES, model_files
from manyhands.io.messages import counted
from manyhands.io.overview import describe_reading
from manyhands.io.read.reading import Reading
from manyhands.io.write.json_values import to_json_value
from manyhands.writing import Output

_DEFAULT: tuple[str, dict[str, Any]] = ("spee-lfc", {"start": "dawid-skene"})
_BY_DEFAULT = "By default {} that starts at what {start} says of the workers".format(_DEFAULT[0], **_DEFAULT[1])

_Out = Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the model.")]
_Method = Annotated[
    list[str] | None,
    typer.Option("-m", "--method", metavar="NAME", help=f"See: manyhands methods. {_BY_DEFAULT}."),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Set a parameter, of one of several -m as METHOD.NAME; may be repeated."
    ),
]
_Choose = Annotated[
    bool, typer.Option("--choose", help="Of several -m, train the one that foretells held-out labels best.")
]
_Columns = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="A column of the features with numbers; may be repeated.")
]
_Text = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column of the features with text, taken as TF-IDF; may be repeated."),
]
_AsTheyAre = Annotated[bool, typer.Option("--as-they-are", help="Do not bring the numbers to mean 0 and spread 1.")]
_Gold = Annotated[Path | None, typer.Option(metavar="FILE", help="Table of items whose label is known: item, label.")]
_UseGold = Annotated[bool, typer.Option("--use-gold", help="Use the answers that the export knows.")]


@reads_into(lambda given: folder_target(given["out"], FILES))
def train(
    files: list[str],
    reading: Reading,
    output: Output,
    features: FeatureFile,
    out: _Out,
    method: _Method = None,
    settings: _Settings = None,
    choose: _Choose = False,
    column: _Columns = None,
    text: _Text = None,
    as_they_are: _AsTheyAre = False,
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    gold: _Gold = None,
    use_gold: _UseGold = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn a classifier straight from the crowd's labels and features of the items.

    Features are matched to items by id. Nothing is written unless all went well.

    \b
    Examples:
      manyhands train ratings.csv --features X.npz -m crowd-layer -o model/
      manyhands train ratings.csv --features texts.csv --text body -m two-stage --set soft=true -o model/
      manyhands train ratings.csv --features X.npz -m crowd-layer -m two-stage --choose -o model/
    """
    parameters = _parameters(method, settings or [], choose, seed)
    refuse_unusable(reading, VOTE)
    _refuse_unknown_workers(reading)
    known = known_answers(reading, gold, use_gold)
    found = read_features(
        features,
        id_column=id_column,
        ids_file=feature_ids,
        columns=column or (),
        text=text or (),
        rows_in_order=rows_in_order,
    )
    job = _prepared(found, reading.annotations, known, standardise=not as_they_are)
    with progress_bar(quiet or as_json):
        model, chosen = _fitted(parameters, job, seed)
    written = write_output(output, model_files(model, job.recipe))
    told = {"schema": 1, "files": [Path(name).name for name in files]} | describe_reading(reading) | job.told
    told |= {"written": written.split(", "), "notes": reading.notes | model.notes_} | chosen
    told |= {"parameters": to_json_value(model.get_params(deep=False)), "n_epochs": len(model.history_)}
    if as_json:
        print_json(told)
    elif not quiet:
        show_ledger(reading)
        _show(told, str(out))


def _parameters(methods: list[str] | None, settings: list[str], choose: bool, seed: int) -> dict[str, dict[str, Any]]:
    """The methods that are meant, with their parameters."""
    default, own = _DEFAULT
    names = _checked(methods or [default], choose)
    wanted = parse_settings(names, settings)
    return {name: (own if not methods else {}) | _seeded(name, seed) | wanted[name] for name in names}


def _checked(methods: list[str], choose: bool) -> list[str]:
    methods = list(dict.fromkeys(methods))
    for name in methods:
        if name in registry.names("aggregator"):
            raise ParameterError(
                f"{name} looks at labels alone: use manyhands aggregate, or -m two-stage --set aggregator={name}."
            )
        if name in registry.names("representation") and name not in registry.names("classifier"):
            raise ParameterError(
                f"{name} learns a representation, which has no labels to predict: use it in Python, in a Pipeline "
                f"before a classifier."
            )
        if name not in registry.names("classifier"):
            raise ParameterError(
                f"There is no classifier called {name!r}. There are: {', '.join(registry.names('classifier'))}."
            )
    if choose != (len(methods) > 1):
        raise ParameterError("--choose is for several methods: give -m for each of them, and --choose.")
    return methods


def _seeded(method: str, seed: int) -> dict[str, Any]:
    return {"random_state": seed} if "random_state" in registry.get(method)._constraints else {}


def _refuse_unknown_workers(reading: Reading) -> None:
    if not reading.workers_known:
        raise AnnotationError(
            f"{reading.source} counts votes without saying whose they are, so there are no workers to learn from."
        )


@dataclass(frozen=True, eq=False)
class _Job:
    """Everything that a classifier learns from, and what is to be told of it."""

    X: Any
    annotations: Annotations
    known: dict[str, str]
    recipe: FeaturePipeline
    told: dict[str, Any]


def _prepared(found: Features, annotations: Annotations, known: dict[str, str], *, standardise: bool) -> _Job:
    """The items that have features, their rows as numbers, and the known answers among them."""
    annotations, rows, told = _matched(found, annotations)
    recipe = FeaturePipeline.learn(rows, standardise=standardise)
    X = recipe.apply(rows)
    here = set(annotations.item_ids.tolist())
    known = {item: label for item, label in known.items() if item in here}
    told |= {"n_gold_used": len(known), "n_features": list(X.shape[1:]), "standardised": recipe.scale is not None}
    return _Job(X, annotations, known, recipe, told)


def _matched(found: Features, annotations: Annotations) -> tuple[Annotations, Features, dict[str, Any]]:
    """The items that have features, their rows, and how many of either were left out."""
    items = [str(item) for item in annotations.item_ids.tolist()]
    kept, rows = match(found, items)
    told: dict[str, Any] = {
        "n_items_trained": len(kept),
        "n_items_without_features": len(items) - len(kept),
        "n_rows_without_item": len(found) - len(rows),
    }
    if not annotations.n_labels[kept].any():
        raise AnnotationError(f"None of the {len(kept)} items with features in {found.source} has a label.")
    if told["n_items_without_features"]:
        say(f"note: left out: {counted(told['n_items_without_features'], 'item')} without features.")
    if told["n_rows_without_item"]:
        said = counted(told["n_rows_without_item"], "row")
        say(f"note: left out: {said} of {found.source} without an item in the export.")
    if found.ids is None:
        say(f"note: by position, the first row is taken for {items[kept[0]]!r}, the last for {items[kept[-1]]!r}.")
    return annotations[kept], found.take(rows), told


def _fitted(parameters: Mapping[str, dict[str, Any]], job: _Job, seed: int) -> tuple[Any, dict[str, Any]]:
    """The fitted model, and what is to be told of the choice."""
    X, annotations, known = job.X, job.annotations, job.known or None
    if len(parameters) == 1:
        name, own = next(iter(parameters.items()))
        return registry.create(name, **own).fit(X, annotations, known), {"method": name}
    from manyhands.model_selection import compare

    estimators = [registry.create(name, **own) for name, own in parameters.items()]
    found = compare(estimators, X, annotations, random_state=seed)
    names = dict(zip(found.names, parameters))
    table = [row | {"method": names[row["method"]]} for row in found.table()]
    return found.best_estimator.fit(X, annotations, known), {"method": names[found.best], "methods": table}


def _show(told: dict[str, Any], out: str) -> None:
    for row in told.get("methods", []):
        say(f"{row['rank']:>3}  {row['method']}: {row['mean']:.4f} ± {row['standard_error']:.4f}")
    if "methods" in told:
        say("mean log-likelihood of labels held out, higher is better")
    shape = " x ".join(map(str, told["n_features"]))
    scale = "standardised" if told["standardised"] else "not standardised"
    say(f"{told['method']}: learnt from {counted(told['n_items_trained'], 'item')} with {shape} features, {scale}")
    say(f"Written to {out}: {', '.join(told['written'])}")

"""`manyhands train`: from an export and features to a classifier in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.cli.jobs import VOTE, known_answers, refuse_unusable
from manyhands.cli.learning import FeatureFile, FeatureIds, IdColumn, RowsInOrder, parse_settings
from manyhands.cli.options import AsJson, Force, Quiet, Seed, reads
from manyhands.cli.show import print_json, progress_bar, say, show_ledger
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.features import Features, Recipe, match, read_features
from manyhands.io.model_folder import FILES, save_folder
from manyhands.io.names import counted
from manyhands.io.overview import describe_reading
from manyhands.io.plain import as_plain
from manyhands.io.reading import Reading
from manyhands.writing import refuse_present

_DEFAULT = "crowd-layer"


@reads
def train(
    files: list[str],
    reading: Reading,
    features: FeatureFile,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the model.")],
    method: Annotated[
        list[str] | None,
        typer.Option("-m", "--method", metavar="NAME", help=f"See: manyhands methods. By default {_DEFAULT}."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter of the method; may be repeated."),
    ] = None,
    choose: Annotated[
        bool, typer.Option("--choose", help="Of several -m, train the one that foretells held-out labels best.")
    ] = False,
    column: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of the features with numbers; may be repeated.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the features with text, taken as TF-IDF; may be repeated."),
    ] = None,
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    gold: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A table of items whose label is known: item, label.")
    ] = None,
    use_gold: Annotated[bool, typer.Option("--use-gold", help="Use the answers that the export knows.")] = False,
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
    methods = _checked(method or [_DEFAULT], choose)
    refuse_unusable(reading, VOTE)
    _refuse_unknown_workers(reading)
    parameters = {name: _seeded(name, seed) | parse_settings(name, settings or []) for name in methods}
    if not force:
        refuse_present(out, FILES)  # before the work, not after it
    known = known_answers(reading, gold, use_gold)
    found = read_features(
        features,
        id_column=id_column,
        ids_file=feature_ids,
        columns=column or (),
        text=text or (),
        rows_in_order=rows_in_order,
    )
    annotations, rows, told = _matched(found, reading.annotations)
    recipe = Recipe.learn(rows)
    X = recipe.apply(rows)
    known = {item: label for item, label in known.items() if item in set(annotations.item_ids.tolist())}
    with progress_bar(quiet or as_json):
        model, chosen = _fitted(parameters, X, annotations, known, seed)
    save_folder(model, recipe, out, force=force)
    told = {"schema": 1, "files": [Path(name).name for name in files]} | describe_reading(reading) | told
    told |= {"n_gold_used": len(known), "n_features": list(X.shape[1:]), "written": list(FILES)}
    told["notes"] = reading.notes | model.notes_
    told |= chosen | {"parameters": as_plain(model.get_params(deep=False)), "n_epochs": len(model.history_)}
    if as_json:
        print_json(told)
    elif not quiet:
        show_ledger(reading)
        _show(told, str(out))


def _checked(methods: list[str], choose: bool) -> list[str]:
    methods = list(dict.fromkeys(methods))
    for name in methods:
        if name in registry.names("aggregator"):
            raise ParameterError(
                f"{name} looks at labels alone: use manyhands aggregate, or -m two-stage --set aggregator={name}."
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
        say(f"note: {counted(told['n_items_without_features'], 'item')} without features were left out.")
    if told["n_rows_without_item"]:
        say(f"note: {counted(told['n_rows_without_item'], 'row')} of {found.source} belong to no item of the export.")
    if found.ids is None:
        say(f"note: by position, the first row is taken for {items[kept[0]]!r}, the last for {items[kept[-1]]!r}.")
    return annotations[kept], found.take(rows), told


def _fitted(
    parameters: Mapping[str, dict[str, Any]], X: Any, annotations: Annotations, known: dict[str, str], seed: int
) -> tuple[Any, dict[str, Any]]:
    """The fitted model, and what is to be told of the choice."""
    if len(parameters) == 1:
        name, own = next(iter(parameters.items()))
        return registry.create(name, **own).fit(X, annotations, known or None), {"method": name}
    from manyhands.model_selection import compare

    estimators = [registry.create(name, **own) for name, own in parameters.items()]
    found = compare(estimators, X, annotations, random_state=seed)
    names = dict(zip(found.names, parameters))
    table = [row | {"method": names[row["method"]]} for row in found.table()]
    return found.best_estimator.fit(X, annotations, known or None), {"method": names[found.best], "methods": table}


def _show(told: dict[str, Any], out: str) -> None:
    for row in told.get("methods", []):
        say(f"{row['rank']:>3}  {row['method']}: {row['mean']:.4f} ± {row['standard_error']:.4f}")
    if "methods" in told:
        say("mean log-likelihood of labels held out, higher is better")
    shape = " x ".join(map(str, told["n_features"]))
    say(f"{told['method']}: learnt from {counted(told['n_items_trained'], 'item')} with {shape} features")
    say(f"Written to {out}: {', '.join(told['written'])}")

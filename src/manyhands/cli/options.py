"""Options that several commands share, each defined once as an `Annotated` type; their groups in the help.

`Command` shows the groups. `takes_export` adds the options of reading an export to a command, `takes_config` the option
``--config``. An option of one command only is defined beside that command.

Nothing large is imported here or in the modules of commands: polars, numpy and the jobs are loaded when a command runs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from manyhands import registry
from manyhands._core.progress import showing
from manyhands._core.spelling import did_you_mean
from manyhands.cli.printing import echo, ending_at_once_when_interrupted, progress_bar
from manyhands.exceptions import ParameterError

if TYPE_CHECKING:
    from manyhands.validation import Constraint

# ----------------------------------------------------------------------------------------------------
# The groups of options in the help of a command, in this order.

_PANELS = ("Input", "Cleaning", "Method", "Trust", "Output", "Scale")
input_option, cleaning_option, method_option, trust_option, output_option, scale_option = (
    partial(typer.Option, rich_help_panel=panel) for panel in _PANELS
)

# Lists in texts of help, as {name}: where the list is. The modules are imported when the help is shown.
_LISTS = {
    "formats": ("manyhands.io.formats", "NAMES"),
    "duplicates": ("manyhands.annotations", "DUPLICATES"),
    "label_files": ("manyhands.io.write.result_files", "KINDS"),
    "table_endings": ("manyhands.io.write.result_files", "TARGETS"),
    "error_models": ("manyhands.simulate", "KINDS"),
    "attacks": ("manyhands.simulate", "ATTACKS"),
    "default_classifier": ("manyhands.jobs.train", "DEFAULT_PARAMETERS"),
    "levels": ("manyhands.jobs.agree", "LEVELS"),
}
_LIST = re.compile(r"\{(\w+)\}")


class Command(typer.core.TyperCommand):
    """A command whose help shows options in groups, and lists that are defined in the library."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help; its lists are read now."""
        for parameter in self.get_params(ctx):
            parameter.help = _LIST.sub(_list, getattr(parameter, "help", None) or "")  # type: ignore[attr-defined]
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""  # a flag takes no value; typer would show <bool>
        super().format_help(ctx, formatter)

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``, in the last group."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = "Output"
        return option

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete names of options; their help without the lists, which take long to import."""
        for parameter in self.params:
            parameter.help = re.sub(r":? \{.*", ".", getattr(parameter, "help", None) or "")  # type: ignore[attr-defined]
        return super().shell_complete(ctx, incomplete)


def _list(match: re.Match[str]) -> str:
    """Return the names of one list, separated by commas."""
    place, name = _LISTS[match[1]]
    module: Any = import_module(place)
    names = getattr(module, name)
    if name == "DEFAULT_PARAMETERS":
        return f"{module.DEFAULT_METHOD} with " + ", ".join(f"{one}={value}" for one, value in names.items())
    return ", ".join([f"{one} ({names[one]})" for one in names] if name == "LEVELS" else names)


def _in_groups(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Return the parameters of a command sorted by group; those without one, such as arguments, come first."""

    def place(parameter: inspect.Parameter) -> int:
        panels = (getattr(one, "rich_help_panel", None) for one in getattr(parameter.annotation, "__metadata__", ()))
        return next((_PANELS.index(panel) + 1 for panel in panels if panel in _PANELS), 0)

    return sorted(parameters, key=place)


# ----------------------------------------------------------------------------------------------------
# `--config FILE` of every command: options from a TOML file; options of the command line take precedence.
#
# Keys are names of options: ``question = "sentiment"``, ``merge-spellings = true``, ``write = ["jsonl", "parquet"]``.
# Keys outside a table are for every command that has such an option, those in a table such as ``[aggregate]`` for that
# command.

_NOT_IN_FILES = ("config", "help", "version")
_WITHOUT_LIBRARIES = ("doctor", "methods")  # commands that run where polars or numpy cannot be loaded


@dataclass(frozen=True)
class ConfigRecord:
    """Options of one run that came from a file."""

    file: str  # name of the file
    # name of each option that was taken from it -> value; options given on the command line are not among them
    options: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as an entry of ``summary.json``."""
        shown = {}
        for name, value in self.options.items():
            several = isinstance(value, list | tuple)  # typer 0.26 gives tuples, 0.29 lists
            shown[name] = list(value) if several else value if isinstance(value, bool | int | float) else str(value)
        return {"file": self.file, "options": shown}


def takes_config(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--config FILE`` to a command."""
    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    needs_libraries = command.__name__ not in _WITHOUT_LIBRARIES
    wants_record, wants_context = (parameters.pop(name, None) is not None for name in ("config", "ctx"))

    @wraps(command)
    def wrapper(ctx: typer.Context, **given: Any) -> None:
        record = _record(ctx, given.pop("config"))
        if record is not None and not given.get("quiet") and not given.get("as_json"):
            shown = ", ".join(f"{name} = {value}" for name, value in record.options.items())
            echo(f"Options from {record.file}: {shown or 'none'}")
        given |= ({"config": record} if wants_record else {}) | ({"ctx": ctx} if wants_context else {})
        if needs_libraries:
            with ending_at_once_when_interrupted():
                _load_libraries()
        with showing(0) if given.get("quiet") or given.get("as_json") else nullcontext():
            command(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(p.replace(kind=keyword) for p in parameters.values()),
        inspect.Parameter("config", keyword, default=None, annotation=_Config),
    ]
    added = _in_groups(added)
    wrapper.__signature__ = inspect.Signature(added)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in added} | {"return": None}
    del wrapper.__wrapped__  # otherwise typer uses the signature of the command itself
    return wrapper


def _load_libraries() -> None:
    """Import what commands need; polars first, which explains why it cannot run."""
    import_module("manyhands.frames").load_polars()
    import_module("manyhands.jobs.options")


def read_config(path: Path, command: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of one command that a file names."""
    from manyhands._core.system import MAX_OPTIONS, parse_toml, read_limited  # only needed for files

    try:
        content = parse_toml(read_limited(path, MAX_OPTIONS).decode("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise ParameterError(f"{path} is not a TOML file: {error}.") from None
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    unknown = next((name for name in tables if name not in options), None)
    if unknown is not None:
        hint = did_you_mean(unknown, options) or f" Commands: {', '.join(options)}."
        raise ParameterError(f"{path} has a table [{unknown}], which is not a command.{hint}")
    everywhere = {_spelled(key): value for key, value in content.items() if key not in tables}
    names = {name for of_command in options.values() for name in of_command}
    _refuse_unknown(path, everywhere, names, "an option of any command")
    own = {_spelled(key): value for key, value in tables.get(command, {}).items()}
    _refuse_unknown(path, own, set(options[command]), f"an option of {command}")
    unused = [key for key in everywhere if key not in options[command]]
    if unused:
        echo(f"note: {path}: {', '.join(unused)}: not an option of {command}, so not used here.")
    return {key: value for key, value in (everywhere | own).items() if key in options[command]}


def options_of(command: Any) -> dict[str, Any]:
    """Return the options of a command that a file may name."""
    named = ((opt, param) for param in command.params if param.param_type_name == "option" for opt in param.opts)
    return {opt[2:]: param for opt, param in named if opt.startswith("--") and opt[2:] not in _NOT_IN_FILES}


def _load(ctx: typer.Context, path: Path | None) -> Path | None:
    """Make the options of a file the defaults of this run; runs before other options are processed."""
    if path is None or ctx.resilient_parsing:
        return path
    group = ctx.parent.command if ctx.parent is not None else None
    commands = getattr(group, "commands", {})
    options = {name: options_of(command) for name, command in commands.items()}
    values = read_config(path, str(ctx.info_name), options)
    own = options_of(ctx.command)
    ctx.default_map = {own[name].name: _checked(ctx, path, name, own[name], value) for name, value in values.items()}
    return path


_Config = Annotated[
    Path | None,
    input_option(
        "--config",
        metavar="FILE",
        is_eager=True,
        callback=_load,
        help="TOML file with options of this command; those given on the command line take precedence.",
    ),
]


def _checked(ctx: typer.Context, path: Path, name: str, option: Any, value: Any) -> Any:
    """Return a value of the file in the form that the option takes, or refuse it with the file and the key."""
    one_of_many = option.multiple and not isinstance(value, list)
    value = [value] if one_of_many else value
    flag = bool(getattr(option, "is_flag", False))
    values = value if isinstance(value, list) else [value]
    kinds_fit = all(isinstance(v, bool) == flag and isinstance(v, bool | int | float | str) for v in values)
    if not kinds_fit or (isinstance(value, list) and not option.multiple):
        wanted = "true or false" if flag else "a list of texts or numbers" if option.multiple else "a text or a number"
        raise ParameterError(f"{path}: {name} is {_shown(value)}; it must be {wanted}.")
    value = value if flag else [str(v) for v in value] if option.multiple else str(value)
    try:
        option.process_value(ctx, value)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise ParameterError(f"{path}: {name} is {_shown(value)}: {error.format_message()[:300]}") from None
    return value


_MOST_SHOWN = 100  # letters of a value


def _shown(value: Any) -> str:
    """Return a value of a file for an error message: its beginning, on one line."""
    text = repr(value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _record(ctx: typer.Context, path: Path | None) -> ConfigRecord | None:
    """Return which options of the run came from its file."""
    if path is None:
        return None
    taken = {}
    for name, option in options_of(ctx.command).items():
        source = ctx.get_parameter_source(option.name)
        if source is not None and source.name == "DEFAULT_MAP":
            taken[name] = ctx.params[option.name]
    return ConfigRecord(path.name, taken)


def _spelled(key: str) -> str:
    """Return a key as options are spelled: with hyphens."""
    return key.replace("_", "-")


def _refuse_unknown(path: Path, given: Mapping[str, Any], names: set[str], what: str) -> None:
    """Refuse keys that are not the names of options."""
    wrong = next((key for key in given if key not in names), None)
    if wrong is not None:
        hint = did_you_mean(wrong, sorted(names)) or f" Options: {', '.join(sorted(names))}."
        raise ParameterError(f"{path}: {wrong!r} is not {what}.{hint}")


# ----------------------------------------------------------------------------------------------------
# Options of commands on labels.

Machines = Annotated[
    list[str] | None,
    method_option(
        metavar="NAME",
        help="Workers that are machines: ids or patterns such as gpt-*, separated by commas; may be repeated. By "
        "default those that a column kind of the export calls machine.",
    ),
]
Kinds = Annotated[
    Path | None,
    method_option(metavar="FILE", help="Table of workers: worker, kind (human, machine), family, model, prompt, run."),
]
Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="The export: a file, a folder or a zip archive; several files are batches of one job; - is stdin.",
    ),
]
Item = Annotated[str | None, input_option(metavar="COLUMN", help="Column or field with the items.")]
Worker = Annotated[str | None, input_option(metavar="COLUMN", help="Column or field with the workers.")]
Label = Annotated[str | None, input_option(metavar="COLUMN", help="Column or field with the labels.")]
Question = Annotated[
    str | None,
    input_option(metavar="NAME", help="Question to read, if there are several; NAME=CHOICE reads one choice of many."),
]
Format = Annotated[str | None, input_option(metavar="NAME", help="Format, if it is not recognised: {formats}.")]
Duplicates = Annotated[
    str,
    cleaning_option(metavar="POLICY", help="Which answer counts if a worker labelled an item again: {duplicates}."),
]
Missing = Annotated[list[str], cleaning_option(metavar="LABEL", help="A label that means no label; may be repeated.")]
Abstain = Annotated[
    list[str],
    cleaning_option(metavar="LABEL", help="A label that means looked and gave no label; may be repeated."),
]
Combinations = Annotated[
    bool, cleaning_option("--combinations", help="Treat every combination of choices as a class of its own.")
]
Encoding = Annotated[
    str | None, input_option(metavar="NAME", help="Encoding of text that is not UTF-8, such as cp1252.")
]
MergeSpellings = Annotated[
    bool,
    cleaning_option(
        "--merge-spellings", help="Merge classes and worker ids that differ in case, spaces or Unicode form only."
    ),
]
LabelMap = Annotated[
    Path | None,
    cleaning_option("--map", metavar="FILE", help="Table of labels to rename, with columns from,to; empty: no label."),
]
RareClasses = Annotated[
    str,
    cleaning_option(
        metavar="POLICY",
        help="Labels so rare that they may be typing errors: drop (the item stays), keep, merge:LABEL or error.",
    ),
]
Weight = Annotated[
    str | None, input_option(metavar="COLUMN", help="Column with the weight of each label, such as its probability.")
]
LabelProbs = Annotated[
    str | None,
    input_option(metavar="A,B,C", help="Columns with the probability of each class; a row is one divided vote."),
]
ExcludeWorkers = Annotated[
    list[str],
    cleaning_option(
        metavar="NAME",
        help="Workers to leave out: ids and patterns such as gpt-*, separated by commas, a file with one id per line, "
        "or flagged, those whom alerts of a first fit accuse; may be repeated.",
    ),
]
OnlyWorkers = Annotated[
    list[str], cleaning_option(metavar="NAME", help="Leave out all other workers: ids, patterns or a file.")
]
ExcludeItems = Annotated[
    list[str], cleaning_option(metavar="NAME", help="Items to leave out: ids, patterns or a file.")
]
OnlyItems = Annotated[
    list[str], cleaning_option(metavar="NAME", help="Leave out all other items: ids, patterns or a file.")
]
Verdicts = Annotated[
    str | None,
    input_option(
        metavar="WHAT",
        help="What the label of a pairwise verdict names, in a table with the presentation order: position or answer.",
    ),
]
Time = Annotated[str | None, input_option(metavar="COLUMN", help="Column with the time of each label.")]
Seconds = Annotated[str | None, input_option(metavar="COLUMN", help="Column with the seconds that each label took.")]
Items = Annotated[
    Path | None,
    input_option(metavar="FILE", help="Texts and other fields of the items by id: for --write, pages and questions."),
]
Ordinal = Annotated[
    bool,
    method_option(
        "--ordinal", help="The classes are grades: use their order, by their numbers or the words of a known scale."
    ),
]
Order = Annotated[
    str | None, method_option(metavar="A,B,C", help="The classes from low to high, separated by commas; --ordinal too.")
]
Gold = Annotated[Path | None, method_option(metavar="FILE", help="Table of items whose class is known: item, label.")]
UseGold = Annotated[bool, method_option("--use-gold", help="Use the known answers that the export contains.")]
WorkerNames = Annotated[
    str | None,
    output_option(
        metavar="NAMES",
        help="How results name workers: ids (default; a page report.html has pseudonyms), pseudonyms by the key "
        "manyhands.key of the output folder, which is created, or by another key file.",
    ),
]
SpreadsheetSafe = Annotated[
    bool, output_option("--spreadsheet-safe", help="Prevent spreadsheets from running cells of CSV files as formulas.")
]
OnDevice = Annotated[
    str | None,
    scale_option("--device", metavar="NAME", help="Device of networks: auto (a GPU, if any), cpu, cuda, cuda:1, mps."),
]
Seed = Annotated[int, method_option(metavar="NUMBER", help="Seed of the random number generator.")]
Force = Annotated[bool, output_option("--force", help="Replace files that exist.")]
AsJson = Annotated[bool, output_option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, output_option("-q", "--quiet", help="Print nothing but data, notes and errors.")]


def complete_aggregators(incomplete: str) -> list[str]:
    """Return the names of aggregators that begin like this."""
    return [name for name in registry.names("aggregator") if name.startswith(incomplete)]


def complete_classifiers(incomplete: str) -> list[str]:
    """Return the names of classifiers that begin like this."""
    return [name for name in registry.names("classifier") if name.startswith(incomplete)]


_EXPORT_OPTIONS: dict[str, tuple[Any, Any]] = {  # field of ExportOptions -> (type, default)
    "item": (Item, None),
    "worker": (Worker, None),
    "label": (Label, None),
    "question": (Question, None),
    "format": (Format, None),
    "duplicates": (Duplicates, "last"),
    "missing": (Missing, []),
    "abstain": (Abstain, []),
    "combinations": (Combinations, False),
    "encoding": (Encoding, None),
    "merge_spellings": (MergeSpellings, False),
    "label_map": (LabelMap, None),
    "rare_classes": (RareClasses, "drop"),
    "weight": (Weight, None),
    "label_probs": (LabelProbs, None),
    "exclude_workers": (ExcludeWorkers, []),
    "only_workers": (OnlyWorkers, []),
    "exclude_items": (ExcludeItems, []),
    "only_items": (OnlyItems, []),
    "verdicts": (Verdicts, None),
    "time": (Time, None),
    "seconds": (Seconds, None),
    "items": (Items, None),
    "ordinal": (Ordinal, False),
    "order": (Order, None),
}
_COLLECTED = ("files", "export")


def takes_export(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of reading an export to a command."""

    @wraps(command)
    def wrapper(**given: Any) -> None:
        from manyhands.jobs.options import ExportOptions

        export = ExportOptions(**{name: given.pop(name) for name in _EXPORT_OPTIONS})
        command(files=given.pop("files"), export=export, **given)

    signature = inspect.signature(command, locals={"ExportOptions": Any}, eval_str=True)
    own = [parameter for name, parameter in signature.parameters.items() if name not in _COLLECTED]
    files = inspect.Parameter("files", inspect.Parameter.KEYWORD_ONLY, annotation=Files)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _EXPORT_OPTIONS.items()
    ]
    parameters = [files, *(p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own), *added]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    del wrapper.__wrapped__  # otherwise typer uses the signature of the command itself
    return wrapper


# ----------------------------------------------------------------------------------------------------
# Options that `reproduce` and `leaderboard` share.

Quick = Annotated[
    bool, scale_option("--quick", help="Reduce data and training, to test that it runs; the figures have no meaning.")
]
Seeds = Annotated[int | None, method_option(min=1, metavar="NUMBER", help="Number of seeds, if not that of the table.")]
Only = Annotated[
    list[str] | None,
    input_option(metavar="NAME", help="A data set or a row to which tables are restricted; may be repeated."),
]
Jobs = Annotated[
    int | None,
    scale_option(min=1, metavar="NUMBER", help="Processes at once; by default as many as cores and memory allow."),
]
Out = Annotated[
    Path | None,
    output_option(
        "-o",
        "--out",
        metavar="FOLDER",
        help="Folder of result rows and figures; by default docs/results in a checkout, else reproduced.",
    ),
]
Retry = Annotated[bool, method_option("--retry", help="Measure cells again that failed before.")]
ShowOnly = Annotated[bool, method_option("--show", help="Measure nothing; show the rows that exist.")]


@contextmanager
def measuring(quiet: bool) -> Iterator[None]:
    """Show progress while cells are measured, and how to resume after an interruption."""
    try:
        with progress_bar(quiet):
            yield
    except KeyboardInterrupt:
        echo("note: finished cells are saved; the same command resumes from there.")
        raise


def show_failures(page: dict[str, Any]) -> None:
    """Print a note for each row that failed on a data set, and how to try again."""
    from manyhands.io.messages import counted
    from manyhands.reproduce.pages import failures

    for sentence in failures(page):
        echo(f"note: {sentence}")
    if page["n_failed"]:
        echo(f"note: {counted(page['n_failed'], 'cell')} failed; --retry tries again.")


# ----------------------------------------------------------------------------------------------------
# Options that `train`, `predict` and `evaluate` share, and parameters of methods as `--set NAME=VALUE`.

FeatureFile = Annotated[
    Path,
    input_option(
        "--features", metavar="FILE", help="Features of the items: .npy, .npz (X and ids), CSV, Parquet, sparse .npz."
    ),
]
IdColumn = Annotated[str | None, input_option(metavar="COLUMN", help="Column of the features with the item ids.")]
FeatureIds = Annotated[
    Path | None,
    input_option(metavar="FILE", help="Item ids of the rows, for features without ids: one per line, or .npy."),
]
RowsInOrder = Annotated[
    bool,
    input_option(
        "--rows-in-order",
        help="Match rows and items by position: rows are in the order in which the labels name the items.",
    ),
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that manyhands train wrote.")]


def parse_settings(methods: Sequence[str], settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Convert ``name=value`` texts to parameters of each method that has them.

    A text becomes the first of None, bool, int, float, tuple of numbers and str that the parameter allows.
    ``method.name=value`` is for one of the methods and takes precedence; ``group__name=value`` sets a parameter of a
    group of options, ``classifier__name=value`` one of the classifier that another one wraps.

    Examples
    --------
    >>> parse_settings(["crowd-layer"], ["hidden=64,32", "patience=none", "dropout=0.1"])
    {'crowd-layer': {'hidden': (64, 32), 'patience': None, 'dropout': 0.1}}
    """
    parameters: dict[str, dict[str, Any]] = {method: {} for method in methods}
    parsed = [_split(setting, methods) for setting in settings]
    constraints = {method: _constraints(method, parsed) for method in methods} if parsed else {}
    for method, name, text in sorted(parsed, key=lambda setting: setting[0] is not None):
        among = methods if method is None else [method]
        having = [one for one in among if name in constraints[one]]
        if not having:
            raise ParameterError(
                " ".join(f"{one} has no parameter {name!r}. It has: {', '.join(constraints[one])}." for one in among)
            )
        for one in having:
            parameters[one][name] = _convert(one, name, text, constraints[one][name])
        if len(having) < len(among):
            others = [one for one in among if one not in having]
            echo(f"note: {name} is set for {', '.join(having)}; {', '.join(others)} has no such parameter.")
    return parameters


def _constraints(method: str, parsed: Sequence[tuple[str | None, str, str]]) -> dict[str, Constraint]:
    """Return the constraint of every parameter; those of option groups and of a nested classifier as ``name__own``."""
    estimator = registry.create(method)
    constraints: dict[str, Constraint] = dict(type(estimator)._constraints)
    for group, value in estimator.get_params(deep=False).items():
        own = getattr(type(value), "_constraints", {})
        if group == "classifier" and isinstance(value, str):  # the name of a classifier, which may be set here too
            named = [text for whose, name, text in parsed if name == group and whose in (None, method)]
            inner = named[-1] if named else value
            own = registry.get(inner)._constraints if inner in registry.names("classifier") else {}
        constraints |= {f"{group}__{name}": constraint for name, constraint in own.items()}
    return constraints


def _split(setting: str, methods: Sequence[str]) -> tuple[str | None, str, str]:
    """Return the method (None: all), the parameter and the text of its value."""
    name, separator, text = setting.partition("=")
    if not separator:
        raise ParameterError(f"--set {setting} has no value. Write it as name=value.")
    method, dot, own = name.partition(".")
    if not dot:
        return None, name, text
    if method not in methods:
        raise ParameterError(
            f"--set {setting} is for {method}, which is not one of the methods to train: {', '.join(methods)}."
        )
    return method, own, text


def _convert(method: str, name: str, text: str, constraint: Constraint) -> Any:
    """Return the first interpretation of the text that the constraint allows."""
    allowed = [value for value in _interpretations(text) if constraint.allows(value)]
    if not allowed:
        from manyhands.validation import check_parameters

        check_parameters(method, {name: text}, {name: constraint})
    return allowed[0]


def _interpretations(text: str) -> Iterator[Any]:
    """Yield the possible values of a text, the most specific type first."""
    word = text.strip().lower()
    if word == "none":
        yield None
    if word in ("true", "false"):
        yield word == "true"
    for kind in (int, float):
        try:
            yield kind(text)
        except ValueError:
            continue
    for kind in (int, float):
        try:
            yield tuple(kind(part) for part in text.split(",") if part.strip())
        except ValueError:
            continue
    yield text

"""`--config FILE` of every command: options from a TOML file; options of the command line take precedence.

Keys are names of options: ``question = "sentiment"``, ``merge-spellings = true``, ``write = ["jsonl", "parquet"]``.
Keys outside a table are for every command that has such an option, those in a table such as ``[aggregate]`` for that
command.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands.cli.show import echo
from manyhands.exceptions import ParameterError
from manyhands.progress_display import showing
from manyhands.spelling import did_you_mean

_NOT_IN_FILES = ("config", "help", "version")


@dataclass(frozen=True)
class ConfigRecord:
    """Options of one run that came from a file.

    Attributes
    ----------
    file : str
        Name of the file.
    options : dict of str to object, default={}
        Name of each option that was taken from it -> value; options given on the command line are not among them.
    """

    file: str
    options: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as an entry of ``summary.json``."""
        shown = {
            name: value if isinstance(value, bool | int | float | list) else str(value)
            for name, value in self.options.items()
        }
        return {"file": self.file, "options": shown}


def takes_config(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--config FILE`` to a command.

    Parameters
    ----------
    command : callable
        A command. If it has a parameter ``config``, it gets the `ConfigRecord` of the run, or None without a file.

    Returns
    -------
    callable
        The command as typer sees it.
    """
    parameters = dict(inspect.signature(command, eval_str=True).parameters)
    wants_record, wants_context = (parameters.pop(name, None) is not None for name in ("config", "ctx"))

    @wraps(command)
    def wrapper(ctx: typer.Context, **given: Any) -> None:
        record = _record(ctx, given.pop("config"))
        if record is not None and not given.get("quiet") and not given.get("as_json"):
            shown = ", ".join(f"{name} = {value}" for name, value in record.options.items())
            echo(f"Options from {record.file}: {shown or 'none'}")
        given |= ({"config": record} if wants_record else {}) | ({"ctx": ctx} if wants_context else {})
        with showing(0) if given.get("quiet") or given.get("as_json") else nullcontext():
            command(**given)

    keyword = inspect.Parameter.KEYWORD_ONLY
    added = [
        inspect.Parameter("ctx", keyword, annotation=typer.Context),
        *(p.replace(kind=keyword) for p in parameters.values()),
        inspect.Parameter("config", keyword, default=None, annotation=_Config),
    ]
    wrapper.__signature__ = inspect.Signature(added)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in added} | {"return": None}
    del wrapper.__wrapped__  # otherwise typer uses the signature of the command itself
    return wrapper


def read_config(path: Path, command: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of one command that a file names.

    Parameters
    ----------
    path : Path
        The file.
    command : str
        Name of the command.
    options : mapping of str to mapping of str to object
        Command -> name of each option -> parameter.

    Returns
    -------
    dict of str to object
        Name of the option -> value; the table of the command takes precedence over keys outside tables.

    Raises
    ------
    ParameterError
        If the file is not TOML, or a key or table is unknown.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path} is not a TOML file: {error}.") from None
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    unknown = next((name for name in tables if name not in options), None)
    if unknown is not None:
        hint = did_you_mean(unknown, options) or f" Commands: {', '.join(options)}."
        raise ParameterError(f"{path} has a table [{unknown}], which is not a command.{hint}")
    everywhere = {_spelled(key): value for key, value in content.items() if key not in tables}
    known = {name for of_command in options.values() for name in of_command}
    _refuse_unknown(path, everywhere, known, "an option of any command")
    own = {_spelled(key): value for key, value in tables.get(command, {}).items()}
    _refuse_unknown(path, own, set(options[command]), f"an option of {command}")
    unused = [key for key in everywhere if key not in options[command]]
    if unused:
        echo(f"note: {path}: {', '.join(unused)}: not an option of {command}, so not used here.")
    return {key: value for key, value in (everywhere | own).items() if key in options[command]}


def options_of(command: Any) -> dict[str, Any]:
    """Return the options of a command that a file may name.

    Parameters
    ----------
    command : typer.core.TyperCommand
        The command.

    Returns
    -------
    dict of str to typer.core.TyperOption
        Long name of each option, without its hyphens in front.
    """
    named = ((opt, param) for param in command.params if param.param_type_name == "option" for opt in param.opts)
    return {opt[2:]: param for opt, param in named if opt.startswith("--") and opt[2:] not in _NOT_IN_FILES}


def _load(ctx: typer.Context, path: Path | None) -> Path | None:
    """Make the options of a file the defaults of this run; runs before other options are processed."""
    if path is None or ctx.resilient_parsing:
        return path
    group = ctx.parent.command if ctx.parent is not None else None
    commands = getattr(group, "commands", {})
    options = {name: options_of(command) for name, command in commands.items()}
    found = read_config(path, str(ctx.info_name), options)
    own = options_of(ctx.command)
    ctx.default_map = {own[name].name: _checked(ctx, path, name, own[name], value) for name, value in found.items()}
    return path


_Config = Annotated[
    Path | None,
    typer.Option(
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
        raise ParameterError(f"{path}: {name} is {value!r}; it must be {wanted}.")
    value = value if flag else [str(v) for v in value] if option.multiple else str(value)
    try:
        option.process_value(ctx, value)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise ParameterError(f"{path}: {name} is {value!r}: {error.format_message()}") from None
    return value


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


def _refuse_unknown(path: Path, given: Mapping[str, Any], known: set[str], what: str) -> None:
    """Refuse keys that are not the names of options."""
    wrong = next((key for key in given if key not in known), None)
    if wrong is not None:
        hint = did_you_mean(wrong, sorted(known)) or f" Options: {', '.join(sorted(known))}."
        raise ParameterError(f"{path}: {wrong!r} is not {what}.{hint}")

"""A paper's table as data: data sets, methods and published values.

    Table      what is measured, over how many seeds, by which metrics, and what differs from the paper
    DataSet    where a crowd comes from, and how it is prepared
    Row        a method with its parameters, and the values published for it
    Published  a value as printed, with its standard deviation where the paper gives one

The tables that come with manyhands are in `tables/<paper>/<table>.toml`; reading them imports no method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import Keys, nearest

METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "auc", "log_loss", "ece", "label_accuracy", "fit_seconds")
FEATURES = ("as they are", "standardised")
FIRST_SEED = 1000
QUICK_ITEMS = 80

_FOLDER = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class Published:
    """A value as the paper prints it, per cent where the table says so."""

    value: float
    deviation: float | None = None


@dataclass(frozen=True)
class DataSet:
    """A crowd, and what is done to it before anybody learns.

    Attributes
    ----------
    name : how it is shown and referred to
    load, make : the name for `datasets.load`, or of a function in `datasets` or `simulate`; one of them is None
    arguments : for either
    seeded : which arguments of the function get the cell's seed; without any, all seeds see the same data
    features : "as they are" or "standardised" by the training part
    items : learn from the first so many, or None for all
    folds : for sets without a test part: seed after seed, each of so many parts is tested on in turn
    remove : the share of the annotations taken away; every item keeps one
    quick_items : how many items a quick run learns from
    """

    name: str
    load: str | None = None
    make: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    seeded: tuple[str, ...] = ("random_state",)
    features: str = FEATURES[0]
    items: int | None = None
    folds: int | None = None
    remove: float = 0.0
    quick_items: int = QUICK_ITEMS


@dataclass(frozen=True)
class Row:
    """A method and what was published of it; without a method the row is shown and not measured.

    Attributes
    ----------
    name : as in the paper
    method : its name in the registry; None where it is not measured, and then `why`
    parameters : of the method; all others are its defaults
    choose : settings among which held-out annotations choose; empty if there is no choice
    then : what classifies behind a learner of representations
    published : data set -> value of the table's first metric
    published_also : further metric -> data set -> value
    """

    name: str
    method: str | None = None
    why: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    choose: tuple[Mapping[str, Any], ...] = ()
    then: str | None = None
    published: Mapping[str, Published] = field(default_factory=dict)
    published_also: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """What is measured and what was published; `load_table` reads one.

    Attributes
    ----------
    name : paper/table, such as "crowding/table-1"
    title, paper, number : one line each; `number` is the paper's own
    datasets, rows : tuples of `DataSet` and `Row`
    seeds, first_seed : how many, and which is the first
    metrics : names from `METRICS`; the first is compared with the published values
    points : published values are per cent
    deviations : what differs from the paper, one sentence each
    validation_truth : whether settings are chosen by the truth of validation items; no table here does, nor can one yet
    figure : {"x": a number in which the data sets differ} where a plot has lines over it, else None
    """

    name: str
    title: str
    paper: str
    number: str
    datasets: tuple[DataSet, ...]
    rows: tuple[Row, ...]
    seeds: int = 5
    first_seed: int = FIRST_SEED
    metrics: tuple[str, ...] = ("accuracy",)
    points: bool = False
    deviations: tuple[str, ...] = ()
    validation_truth: bool = False
    figure: Mapping[str, str] | None = None

    @staticmethod
    def from_toml(text: str, name: str) -> Table:
        """Read a table; `name` is for its sentences and its results."""
        from manyhands.reproduce.parsing import parse_table  # it makes what is defined here

        return parse_table(text, name)

    @property
    def seed_list(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def measured(self) -> tuple[Row, ...]:
        """The rows that have a method."""
        return tuple(row for row in self.rows if row.method is not None)

    def dataset(self, name: str) -> DataSet:
        """One data set by its name; refuse what is none."""
        Keys({}, self.name).check_known(name, [d.name for d in self.datasets], "data set")
        return next(d for d in self.datasets if d.name == name)

    def row(self, name: str) -> Row:
        """One row by its name; refuse what is none."""
        Keys({}, self.name).check_known(name, [r.name for r in self.rows], "row")
        return next(r for r in self.rows if r.name == name)

    def check(self) -> None:
        """Refuse parameters that a method does not have. The methods are imported for that, and torch with some."""
        for row in self.measured:
            assert row.method is not None
            keys = Keys({}, self.name, f"row {row.name!r}")
            known = list(registry.create(row.method).get_params(deep=False))
            for parameter in [name for setting in (row.parameters, *row.choose) for name in setting]:
                if parameter == "random_state":
                    keys.refuse("random_state is the seed of the run; leave it out")
                keys.check_known(parameter, known, f"parameter of {row.method} called")


def table_names() -> list[str]:
    """The names of the tables that come with manyhands, as paper/table, sorted.

    >>> "crowding/table-1" in table_names()
    True
    """
    return sorted(f"{path.parent.name}/{path.stem}" for path in _FOLDER.glob("*/*.toml"))


def load_table(name: str | Path) -> Table:
    """Read a table that comes with manyhands by its name, or one of your own by the path of its TOML file.

    >>> load_table("crowding/table-1").number
    'Tables 1 and 2'
    """
    known = table_names()
    if name in known:
        return _read(_FOLDER / f"{name}.toml", str(name))
    path = Path(name)
    if path.suffix == ".toml" and not path.is_file():
        raise ParameterError(f"There is no file {str(name)!r}, and a table that comes with manyhands has no ending.")
    if path.suffix == ".toml":
        return _read(path, f"own/{path.stem}")
    raise ParameterError(f"There is no table {str(name)!r}{nearest(str(name), known)}.")


def _read(path: Path, name: str) -> Table:
    try:
        return Table.from_toml(path.read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"The table in {path} cannot be read: {error}.") from None

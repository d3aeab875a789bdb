"""A paper's table as data: data sets, methods and published values.

    Table      what is measured, over how many seeds, by which metrics, and what differs from the paper
    DataSet    where a crowd comes from, and how it is prepared
    Row        a method with its parameters, and the values published for it
    Published  a value as printed, with its standard deviation where the paper gives one

The tables that come with manyhands are in `tables/<paper>/<table>.toml`; reading them imports no method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from manyhands import registry
from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import Keys, nearest

METRICS = (
    "accuracy",
    "balanced_accuracy",
    "macro_f1",
    "rare_recall",
    "auc",
    "log_loss",
    "ece",
    "label_accuracy",
    "label_auc",
    "fit_seconds",
)
OF_SOME = ("expertise_error", "difficulty_rank", "difficulty_error")  # of methods that know of it, where it is known
OF_ROUND = "round."  # and what a method says of its last round, such as round.heldout
OF_HISTORY = "history."  # and what it noted last under this name while it trained
STAGES = ("aggregator__", "classifier__")  # before the parameters of either of two stages, as scikit-learn nests them
OF_LABELS = "label_accuracy."  # and the posterior that is meant: label_accuracy.first is that of posterior_first_
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
    drawn : learn from so many that the seed draws instead
    folds : for sets without a test part: seed after seed, each of so many parts is tested on in turn
    remove : the share of the annotations taken away
    keep_one : whether every item keeps one of its annotations then
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
    keep_one: bool = True
    quick_items: int = QUICK_ITEMS
    drawn: bool = False


@dataclass(frozen=True)
class Row:
    """A method and what was published of it; without a method the row is shown and not measured.

    Attributes
    ----------
    name : as in the paper
    method : its name in the registry; None where it is not measured, and then `why`
    parameters : of the method; all others are its defaults
    parameters_on : data set -> parameters that are others there
    skip : data set -> why the row is not measured there
    choose : settings among which held-out annotations choose; empty if there is no choice
    then : what classifies behind a learner of representations
    published : data set -> value of the table's first metric
    published_also : further metric -> data set -> value
    at : {parameter: value} where the row is one point of a sweep, and the parameter then has this value
    """

    name: str
    method: str | None = None
    why: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    choose: tuple[Mapping[str, Any], ...] = ()
    then: str | None = None
    published: Mapping[str, Published] = field(default_factory=dict)
    published_also: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    at: Mapping[str, float] = field(default_factory=dict)
    parameters_on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skip: Mapping[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> list[Mapping[str, Any]]:
        """All parameters that it names, wherever they hold."""
        return [self.parameters, *self.parameters_on.values(), *self.choose]

    def on(self, dataset: str) -> Row:
        """The row as it is on one data set."""
        if not self.parameters_on:
            return self
        own = dict(self.parameters) | dict(self.parameters_on.get(dataset, {}))
        return replace(self, parameters=own, parameters_on={})


@dataclass(frozen=True)
class Table:
    """What is measured and what was published; `load_table` reads one.

    Attributes
    ----------
    name : paper/table, such as "crowding/table-1"
    title, paper, number : one line each; `number` is the paper's own
    datasets, rows : tuples of `DataSet` and `Row`; the points of a sweep are rows of one name, one after the other
    seeds, first_seed : how many, and which is the first
    metrics : names that `is_metric` knows; the first is compared with the published values
    points : published values are per cent
    deviations : what differs from the paper, one sentence each
    validation_truth : whether settings are chosen by the truth of validation items; no table here does, nor can one yet
    figure : what a plot shows, or None for bars of the first metric
        "x": the number along its axis, in which the data sets or the points of a sweep differ; bars without it.
        "sweeps": true where it is a parameter of rows. "metrics": those that are drawn, each in a plot of its own.
    focus : {"row": name, "metrics": names} where that row alone is compared with the others, else None; "beside": names
        of the others, if not all.
        Fewer comparisons need less of a correction: say before measuring what is to be shown.
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
    figure: Mapping[str, Any] | None = None
    focus: Mapping[str, Any] | None = None

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

    @property
    def x(self) -> str | None:
        """What is along the axis of a plot with lines."""
        return (self.figure or {}).get("x")

    @property
    def sweeps(self) -> bool:
        """Whether that is a parameter of rows, also where those were narrowed to such as stand beside the sweep."""
        return bool((self.figure or {}).get("sweeps", False))

    @property
    def drawn(self) -> tuple[str, ...]:
        """The metrics that are drawn."""
        return tuple((self.figure or {}).get("metrics", self.metrics[:1]))

    def place(self, dataset: DataSet, row: Row) -> float | None:
        """Where a row on a data set stands on the axis; None where there is none, or where it goes beside a sweep."""
        if self.x is None:
            return None
        if self.sweeps:
            return row.at.get(self.x)
        value = dataset.arguments.get(self.x, getattr(dataset, self.x, None))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ParameterError(
                f"In the table {self.name}: figure is drawn over {self.x!r}, which is no number of the data set "
                f"{dataset.name!r}. Name a field or an argument that all data sets have, such as remove."
            )
        return value

    def dataset(self, name: str) -> DataSet:
        """One data set by its name; refuse what is none."""
        Keys({}, self.name).check_known(name, [d.name for d in self.datasets], "data set")
        return next(d for d in self.datasets if d.name == name)

    def row(self, name: str) -> Row:
        """One row by its name, of a sweep the first point; refuse what is none."""
        Keys({}, self.name).check_known(name, [r.name for r in self.rows], "row")
        return next(r for r in self.rows if r.name == name)

    def check(self) -> None:
        """Refuse parameters that a method does not have. The methods are imported for that, and torch with some."""
        for row in self.measured:
            assert row.method is not None
            keys = Keys({}, self.name, f"row {row.name!r}")
            known = list(registry.create(row.method).get_params(deep=False))
            known += _of_stages(row)
            for parameter in [name for setting in row.settings for name in setting]:
                if parameter == "random_state":
                    keys.refuse("random_state is the seed of the run; leave it out")
                keys.check_known(parameter, known, f"parameter of {row.method} called")


def _of_stages(row: Row) -> list[str]:
    """The parameters of both stages: of an aggregator, and of a logistic regression; a network's need no prefix."""
    if row.method != "two-stage":
        return []
    first = registry.create(row.parameters.get("aggregator", registry.DEFAULT)).get_params()
    found = [STAGES[0] + name for name in first if name != "random_state"]
    if row.parameters.get("classifier") == "logistic-regression":
        from sklearn.linear_model import LogisticRegression

        found += [STAGES[1] + name for name in LogisticRegression().get_params() if name != "random_state"]
    return found


def is_metric(name: str) -> bool:
    """Whether a table may name it: one of `METRICS`, one of `OF_SOME`, or what only some methods tell.

    >>> is_metric("accuracy"), is_metric("round.heldout"), is_metric("label_accuracy.first"), is_metric("luck")
    (True, True, True, False)
    """
    of_method = name.startswith((OF_ROUND, OF_HISTORY, OF_LABELS)) and name.partition(".")[2].isidentifier()
    return name in METRICS or name in OF_SOME or of_method


def is_share(metric: str) -> bool:
    """Whether a metric lies between 0 and 1 and is shown as per cent."""
    no_share = ("log_loss", "fit_seconds", "difficulty_rank")
    return metric.startswith(OF_LABELS) or (metric in METRICS + OF_SOME and metric not in no_share)


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

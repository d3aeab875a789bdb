"""A paper's table as data: data sets, methods and published values.

    Table      what is measured, with how many seeds, by which metrics, and what differs from the paper
    DataSet    where annotations and features come from, and how they are prepared
    Row        a method with its parameters, and the values published for it
    Published  a value as printed, with its standard deviation if the paper gives one

`manyhands.reproduce.parsing` reads tables from TOML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from manyhands._core.spelling import nearest
from manyhands.exceptions import ParameterError
from manyhands.validation import Constraint, Number

# ----------------------------------------------------------------------------------------------------
# Names of the metrics that a table may list, and how their values are to be read.

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
UNIFORM_PRIOR = ".uniform_prior"  # the same metric with predictions for equally frequent classes
SHIFTED = tuple(name + UNIFORM_PRIOR for name in ("accuracy", "balanced_accuracy", "macro_f1", "rare_recall"))
_PLANTED = ("expertise_error", "difficulty_rank", "difficulty_error")  # of methods and data that have these parameters
OF_ROUND = "round."  # a figure of the method's last round, such as round.heldout
OF_HISTORY = "history."  # the last value of a figure in the method's training history
OF_CLASS = "recall."  # recall of one class on the test items: recall.opencountry
TRAINING = "training_accuracy"  # of the classifier's predictions for its training items
OF_LABELS = "label_accuracy."  # accuracy of a further posterior: label_accuracy.first is that of posterior_first_
OF_CROWD = "crowd."  # a figure of the data, such as crowd.worker_accuracy
_SHARES_OF_CROWD = (OF_CROWD + "worker_accuracy", OF_CROWD + "last_class_share", OF_CROWD + "kappa")
_NOT_SHARES = ("log_loss", "fit_seconds", "difficulty_rank")


def is_metric(name: str) -> bool:
    """Return whether a table may list this metric.

    Examples
    --------
    >>> is_metric("accuracy"), is_metric("round.heldout"), is_metric("label_accuracy.first"), is_metric("luck")
    (True, True, True, False)
    """
    if name == TRAINING or (name.startswith(OF_CLASS) and name != OF_CLASS):
        return True
    of_method = name.startswith((OF_ROUND, OF_HISTORY, OF_LABELS, OF_CROWD)) and name.partition(".")[2].isidentifier()
    return name in METRICS + SHIFTED + _PLANTED or of_method


def is_share(metric: str) -> bool:
    """Return whether a metric is between 0 and 1 and is shown as per cent."""
    if metric == TRAINING or metric.startswith((OF_LABELS, OF_CLASS)):
        return True
    if metric.startswith((OF_CROWD, OF_ROUND)):
        return _is_spread(metric) or metric in _SHARES_OF_CROWD
    return metric in METRICS + SHIFTED + _PLANTED and metric not in _NOT_SHARES


def _is_spread(metric: str) -> bool:
    """Return whether a metric is a standard deviation of shares, which is small and shown with one more digit."""
    return metric.startswith((OF_CROWD, OF_ROUND)) and metric.endswith("_spread")


# ----------------------------------------------------------------------------------------------------
# Figures and names of metrics and series as text.

_TITLES = {"macro_f1": "macro F1", "ece": "ECE", "auc": "AUC", "label_auc": "label AUC"}
_LARGE = 100  # from here on, values that are no shares are shown without decimals


def figure(value: float | None, deviation: float | None, metric: str, points: bool) -> str:
    """Format a value with its deviation, with as many decimals as are meaningful."""
    if value is None:
        return ""
    form = ".3f"
    if points and is_share(metric):
        form = ".2f" if _is_spread(metric) else ".1f"
    if metric == "fit_seconds":
        form = ".0f" if value >= 10 else ".2g"
    elif form == ".3f" and abs(value) >= _LARGE:
        form = ".0f"
    return f"{value:{form}}" + ("" if deviation is None else f" ± {deviation:{form}}")


def title(metric: str) -> str:
    """Return the name of a metric, or of a swept parameter, for people.

    Examples
    --------
    >>> title("round.combined_imbalance"), title("label_accuracy.first"), title("macro_f1")
    ('combined imbalance', 'label accuracy (first)', 'macro F1')
    """
    if metric.endswith(UNIFORM_PRIOR):
        return f"{title(metric.removesuffix(UNIFORM_PRIOR))} (uniform prior)"
    if metric.startswith(OF_LABELS):
        return f"label accuracy ({title(metric.removeprefix(OF_LABELS))})"
    name = metric.removeprefix(OF_ROUND).removeprefix(OF_HISTORY).removeprefix(OF_CROWD)
    return _TITLES.get(name, name.replace("__", " ").replace("_", " "))


def series_title(name: str) -> str:
    """Return the name of a series for people.

    Examples
    --------
    >>> series_title("rounds.combined_imbalance"), series_title("shares.truth"), series_title("class_shares")
    ('combined imbalance', 'share in the truth', 'class shares')
    """
    kind, _, key = name.partition(".")
    if kind == "shares":
        return f"share in the {key}"
    return (key or kind).replace("_", " ")


# ----------------------------------------------------------------------------------------------------
# Keys of a TOML table: constraints of their values, and one sentence about whatever is wrong with them.

_MUST_BE_GIVEN: Any = object()
_LONGEST = 2000  # characters of a message that quotes a value


class Text:
    """A constraint: text on one line."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        return isinstance(value, str) and value.strip() != "" and "\n" not in value

    def __str__(self) -> str:
        return "text on one line"


class Keyed:
    """A constraint: keys with values, as in ``{ dropout = 0.5 }``."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "keys with values in braces, such as { dropout = 0.5 }"


@dataclass(frozen=True)
class ListOf:
    """A constraint: a list of values that another constraint allows."""

    other: Constraint  # the constraint of each value
    least: int = 0

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        return isinstance(value, list) and len(value) >= self.least and all(map(self.other.allows, value))

    def __str__(self) -> str:
        return f"a list of {self.least or 'any number'} or more of {self.other}"


class Figure:
    """A constraint: a published value, alone or with its standard deviation."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        parts = value if isinstance(value, list) and len(value) == 2 else [value]
        return Number().allows(parts[0]) and all(map(Number(least=0).allows, parts[1:]))

    def __str__(self) -> str:
        return "a number, or a pair [value, standard deviation]"


class Swept:
    """A constraint: one parameter with the numbers that it takes."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        if not isinstance(value, dict) or len(value) != 1:
            return False
        (numbers,) = value.values()
        return ListOf(Number(), least=2).allows(numbers) and len(set(numbers)) == len(numbers)

    def __str__(self) -> str:
        return "one parameter with a list of different numbers, such as { rounds = [0, 1, 2] }"


class Keys:
    """Keys of one part of a table: take the known ones, then `finish` refuses those that are left."""

    def __init__(self, given: Mapping[str, Any], table: str, part: str = "") -> None:
        self._left = dict(given)
        self._known: list[str] = []
        self.table = table
        self.part = part

    def take(self, key: str, constraint: Constraint, default: Any = _MUST_BE_GIVEN) -> Any:
        """Return the value of a key."""
        self._known.append(key)
        if key not in self._left:
            if default is _MUST_BE_GIVEN:
                self.refuse(f"{key} is missing; it must be {constraint}")
            return default
        value = self._left.pop(key)
        if not constraint.allows(value):
            self.refuse(f"{key} must be {constraint}, not {value!r}")
        return value

    def finish(self) -> None:
        """Refuse the first key that was not taken."""
        for key in self._left:
            self.refuse(f"there is no key {key!r}{nearest(key, self._known)}")

    def check_known(self, name: object, keys: Iterable[str], what: str) -> None:
        """Refuse a name that is unknown, with the most similar one."""
        keys = list(keys)
        if name not in keys:
            self.refuse(f"there is no {what} {name!r}{nearest(name, keys)}")

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error that names the table, the part and the problem."""
        where = f"{self.table}, {self.part}" if self.part else self.table
        problem = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}..."
        raise ParameterError(f"In the table {where}: {problem}.") from None


# ----------------------------------------------------------------------------------------------------
# The table: data sets, rows, published values, and `Picture`: what a figure shows (`plots` draws it).

DOTS, LINES, BOXES, SERIES, SCATTER, WORKERS = "dots", "lines", "boxes", "series", "scatter", "workers"
KINDS = (DOTS, LINES, BOXES, SERIES, SCATTER, WORKERS)
PANELS = ("datasets", "rows")


@dataclass(frozen=True)
class Picture:
    """One figure of a table, one SVG file."""

    kind: str  # "dots": a row for each method, with its mean and interval
    metric: str | None = None  # the metric that is shown
    series: tuple[str, ...] = ()  # names of the series that are shown
    suffix: str = ""  # last part of the file name
    rows: tuple[str, ...] = ()  # names of the rows that are shown; empty for all
    datasets: tuple[str, ...] = ()  # names of the data sets that are shown; empty for all
    title: str = ""  # a line above the figure
    x_label: str = ""  # name of the horizontal axis, if the usual one does not fit
    y_label: str = ""  # name of the vertical axis
    against: str | None = None  # of a scatter plot of metrics, the one along the horizontal axis
    first: float = 1.0  # position of the first number of a series
    component: int | None = None  # of a series of lists, the entry of each list that is shown
    at: int | None = None  # of a series of lists, the list that is shown; -1 is the last
    ticks: tuple[str, ...] = ()  # names of the positions of a series
    # metrics that lines and curves have as horizontal lines, such as a figure of the data; the mean over all rows
    levels: tuple[str, ...] = ()
    panels: str = PANELS[0]  # what has a panel of its own in curves and scatter plots

    @property
    def name(self) -> str:
        """What tells the figure apart from others of the table: its suffix, metric or series."""
        return self.suffix or self.metric or self.series[0]

    def shows(self, dataset: str, row: str) -> bool:
        """Return whether a row on a data set is part of the figure."""
        return (not self.rows or row in self.rows) and (not self.datasets or dataset in self.datasets)


STAGES = ("aggregator__", "classifier__")  # prefixes of the parameters of both stages of two-stage
FEATURES = ("raw", "standardised")
FIRST_SEED = 1000  # of a table that names none; any number serves, and rows that are stored have it
QUICK_ITEMS = 80  # of a quick run, which only tests that everything works
CHOOSE_FOLDS = 5  # in which settings are compared; scikit-learn's number


@dataclass(frozen=True)
class Published:
    """A published value, per cent if the table has `points`."""

    value: float  # the value as printed
    deviation: float | None = None  # its standard deviation, if the paper gives one


@dataclass(frozen=True)
class DataSet:
    """Annotations and features, and how they are prepared."""

    name: str  # how the data set is shown and referred to
    load: str | None = None  # name for `manyhands.datasets.load`; either `load` or `make` is given
    make: str | None = None  # name of a function of `manyhands.datasets` or `manyhands.simulate`
    arguments: Mapping[str, Any] = field(default_factory=dict)
    # arguments of the function that get the cell's seed; without any, all seeds have the same data
    seeded: tuple[str, ...] = ("random_state",)
    features: str = FEATURES[0]  # whether features are scaled to mean 0 and standard deviation 1 of the training items
    items: int | None = None  # number of training items; None for all
    folds: int | None = None  # number of folds of a data set without test items; each seed tests on the next one
    remove: float = 0.0  # share of the annotations that are removed at random
    keep_one: bool = True  # whether every item keeps at least one annotation then
    quick_items: int = QUICK_ITEMS  # number of training items of a quick run
    drawn: bool = False  # draw the `items` training items at random instead of taking the first ones

    @property
    def depends_on_seed(self) -> bool:
        """Whether seeds have different training or test items."""
        same_source = self.load is not None or not self.seeded
        return not same_source or bool(self.folds or self.remove or self.drawn)


@dataclass(frozen=True)
class Row:
    """A method and the values published for it; a row without a method is shown but not measured."""

    name: str  # name as in the paper
    method: str | None = None  # registry name; None if the row is not measured, for the reason in `why`
    why: str = ""  # why the row is not measured
    # parameters of the method; all others have their defaults
    parameters: Mapping[str, Any] = field(default_factory=dict)
    choose: tuple[Mapping[str, Any], ...] = ()  # settings among which held-out annotations choose
    then: str | None = None  # classifier after a representation learner
    published: Mapping[str, Published] = field(default_factory=dict)  # data set -> value of the table's first metric
    # further metric -> data set -> value
    published_also: Mapping[str, Mapping[str, Published]] = field(default_factory=dict)
    # ``{parameter: value}`` if the row is one point of a sweep over this parameter
    at: Mapping[str, float] = field(default_factory=dict)
    # data set -> parameters that differ there
    parameters_on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    skip: Mapping[str, str] = field(default_factory=dict)  # data set -> why the row is not measured there

    @property
    def settings(self) -> list[Mapping[str, Any]]:
        """All parameters that the row names, for whatever data set or setting."""
        return [self.parameters, *self.parameters_on.values(), *self.choose]

    def on(self, dataset: str) -> Row:
        """Return the row as it is on one data set."""
        if not self.parameters_on:
            return self
        own = dict(self.parameters) | dict(self.parameters_on.get(dataset, {}))
        return replace(self, parameters=own, parameters_on={})


@dataclass(frozen=True)
class Table:
    """What is measured, and what was published; `manyhands.reproduce.load_table` reads one.

    Attributes
    ----------
    name : str
        ``paper/table``, such as "crowding/table-1".
    title : str
        One line.
    paper : str
        One line.
    number : str
        Number of the table or figure in the paper.
    datasets : tuple of DataSet
        The data sets.
    rows : tuple of Row
        The methods; points of a sweep are consecutive rows of the same name.
    seeds : int, default=5
        Number of seeds.
    first_seed : int, default=1000
        The first seed.
    metrics : tuple of str, default=("accuracy",)
        Names of metrics; the first is the one of `Row.published`.
    points : bool, default=False
        Whether values are per cent.
    deviations : tuple of str, default=()
        What differs from the paper, one sentence each.
    validation_truth : bool, default=False
        Whether settings are chosen by the truth of validation items; not supported.
    figure : mapping or None, default=None
        The axis of plots, None for a plot of the first metric. "x": the number along the axis, in which data sets or
        points of a sweep differ. "sweeps": whether it is a parameter of rows. "metrics": one plot for each.
    choose_folds : int, default=5
        Number of folds of the held-out annotations by which rows choose a setting.
    series : tuple of str, default=()
        Names of series that rows store beside the metrics.
    figures : tuple of Picture, default=()
        The plots; empty for dots, or lines if there is an "x", of the metrics in `figure`.
    focus : mapping or None, default=None
        ``{"row": name, "metrics": names}`` if one row is compared with the others, all pairs otherwise; "beside" names
        the others, if not all. Fewer comparisons need a smaller correction for multiple tests.
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
    choose_folds: int = CHOOSE_FOLDS
    series: tuple[str, ...] = ()
    figures: tuple[Picture, ...] = ()

    @property
    def seed_list(self) -> range:
        """All seeds."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def measured(self) -> tuple[Row, ...]:
        """The rows with a method."""
        return tuple(row for row in self.rows if row.method is not None)

    @property
    def x(self) -> str | None:
        """What is along the axis of a line plot; None for a plot of methods."""
        return (self.figure or {}).get("x")

    @property
    def sweeps(self) -> bool:
        """Whether the axis is a parameter of rows."""
        return bool((self.figure or {}).get("sweeps", False))

    @property
    def drawn(self) -> tuple[str, ...]:
        """The metrics that are plotted."""
        return tuple((self.figure or {}).get("metrics", self.metrics[:1]))

    def place(self, dataset: DataSet, row: Row) -> float | None:
        """Return the position of a row on a data set along the axis of a plot.

        Parameters
        ----------
        dataset : DataSet
            The data set.
        row : Row
            The row.

        Returns
        -------
        float or None
            None if there is no axis, or the row is not a point of the sweep.

        Raises
        ------
        ParameterError
            If the data set has no such number.
        """
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
        """Return a data set by its name.

        Parameters
        ----------
        name : str
            The name.

        Returns
        -------
        DataSet
            The data set; a ParameterError if there is none.
        """
        Keys({}, self.name).check_known(name, [d.name for d in self.datasets], "data set")
        return next(d for d in self.datasets if d.name == name)

    def row(self, name: str) -> Row:
        """Return a row by its name, of a sweep the first point.

        Parameters
        ----------
        name : str
            The name.

        Returns
        -------
        Row
            The row; a ParameterError if there is none.
        """
        Keys({}, self.name).check_known(name, [r.name for r in self.rows], "row")
        return next(r for r in self.rows if r.name == name)

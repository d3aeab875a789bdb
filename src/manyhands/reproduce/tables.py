"""A paper's table as data: data sets, methods and published values.

    Table      what is measured, with how many seeds, by which metrics, and what differs from the paper
    DataSet    where annotations and features come from, and how they are prepared
    Row        a method with its parameters, and the values published for it
    Published  a value as printed, with its standard deviation if the paper gives one

`table_files` reads the tables that come with manyhands; `parsing` reads TOML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import Keys
from manyhands.reproduce.pictures import Picture

STAGES = ("aggregator__", "classifier__")  # prefixes of the parameters of both stages of two-stage
FEATURES = ("raw", "standardised")
FIRST_SEED = 1000
QUICK_ITEMS = 80
CHOOSE_FOLDS = 5


@dataclass(frozen=True)
class Published:
    """A published value, per cent if the table has `points`.

    Attributes
    ----------
    value : float
        The value as printed.
    deviation : float or None, default=None
        Its standard deviation, if the paper gives one.
    """

    value: float
    deviation: float | None = None


@dataclass(frozen=True)
class DataSet:
    """Annotations and features, and how they are prepared.

    Attributes
    ----------
    name : str
        How the data set is shown and referred to.
    load : str or None, default=None
        Name for `manyhands.datasets.load`; either `load` or `make` is given.
    make : str or None, default=None
        Name of a function of `manyhands.datasets` or `manyhands.simulate`.
    arguments : mapping, default={}
        Arguments of either.
    seeded : tuple of str, default=("random_state",)
        Arguments of the function that get the cell's seed; without any, all seeds have the same data.
    features : {"raw", "standardised"}, default="raw"
        Whether features are scaled to mean 0 and standard deviation 1 of the training items.
    items : int or None, default=None
        Number of training items; None for all.
    folds : int or None, default=None
        Number of folds of a data set without test items; each seed tests on the next one.
    remove : float, default=0.0
        Share of the annotations that are removed at random.
    keep_one : bool, default=True
        Whether every item keeps at least one annotation then.
    quick_items : int, default=80
        Number of training items of a quick run.
    drawn : bool, default=False
        Draw the `items` training items at random instead of taking the first ones.
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

    @property
    def depends_on_seed(self) -> bool:
        """Whether seeds have different training or test items."""
        same_source = self.load is not None or not self.seeded
        return not same_source or bool(self.folds or self.remove or self.drawn)


@dataclass(frozen=True)
class Row:
    """A method and the values published for it; a row without a method is shown but not measured.

    Attributes
    ----------
    name : str
        Name as in the paper.
    method : str or None, default=None
        Registry name; None if the row is not measured, for the reason in `why`.
    why : str, default=""
        Why the row is not measured.
    parameters : mapping, default={}
        Parameters of the method; all others have their defaults.
    choose : tuple of mappings, default=()
        Settings among which held-out annotations choose.
    then : str or None, default=None
        Classifier after a representation learner.
    published : mapping of str to Published, default={}
        Data set -> value of the table's first metric.
    published_also : mapping, default={}
        Further metric -> data set -> value.
    at : mapping, default={}
        ``{parameter: value}`` if the row is one point of a sweep over this parameter.
    parameters_on : mapping, default={}
        Data set -> parameters that differ there.
    skip : mapping of str to str, default={}
        Data set -> why the row is not measured there.
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
        """All parameters that the row names, for whatever data set or setting."""
        return [self.parameters, *self.parameters_on.values(), *self.choose]

    def on(self, dataset: str) -> Row:
        """Return the row as it is on one data set.

        Parameters
        ----------
        dataset : str
            Name of the data set.

        Returns
        -------
        Row
            With the parameters of this data set.
        """
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

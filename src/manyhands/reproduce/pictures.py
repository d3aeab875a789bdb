"""What a figure of a table shows; `plots` draws it."""

from __future__ import annotations

from dataclasses import dataclass

DOTS, LINES, BOXES, SERIES, SCATTER = "dots", "lines", "boxes", "series", "scatter"
KINDS = (DOTS, LINES, BOXES, SERIES, SCATTER)
PANELS = ("datasets", "rows")


@dataclass(frozen=True)
class Picture:
    """One figure of a table, one SVG file.

    Attributes
    ----------
    kind : {"dots", "lines", "boxes", "series", "scatter"}
        "dots": a row for each method, with its mean and interval. "lines": a metric over the table's x. "boxes": a box
        for each method, over seeds or over the numbers of a series. "series": curves with a band over seeds.
        "scatter": the first half of a series against the second, or one metric or series against another.
    metric : str or None, default=None
        The metric that is shown.
    series : tuple of str, default=()
        Names of the series that are shown.
    suffix : str, default=""
        Last part of the file name.
    rows : tuple of str, default=()
        Names of the rows that are shown; empty for all.
    datasets : tuple of str, default=()
        Names of the data sets that are shown; empty for all.
    title : str, default=""
        A line above the figure.
    x_label : str, default=""
        Name of the horizontal axis, if the usual one does not fit.
    y_label : str, default=""
        Name of the vertical axis.
    against : str or None, default=None
        Of a scatter plot of metrics, the one along the horizontal axis.
    first : float, default=1.0
        Position of the first number of a series.
    component : int or None, default=None
        Of a series of lists, the entry of each list that is shown.
    at : int or None, default=None
        Of a series of lists, the list that is shown; -1 is the last.
    ticks : tuple of str, default=()
        Names of the positions of a series.
    levels : tuple of str, default=()
        Metrics that lines and curves have as horizontal lines, such as a figure of the data; the mean over all rows.
    panels : {"datasets", "rows"}, default="datasets"
        What has a panel of its own in curves and scatter plots.
    """

    kind: str
    metric: str | None = None
    series: tuple[str, ...] = ()
    suffix: str = ""
    rows: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    against: str | None = None
    first: float = 1.0
    component: int | None = None
    at: int | None = None
    ticks: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    panels: str = PANELS[0]

    @property
    def name(self) -> str:
        """What tells the figure apart from others of the table: its suffix, metric or series."""
        return self.suffix or self.metric or self.series[0]

    def shows(self, dataset: str, row: str) -> bool:
        """Return whether a row on a data set is part of the figure.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        row : str
            Name of the row.

        Returns
        -------
        bool
            True if the figure names neither, or both.
        """
        return (not self.rows or row in self.rows) and (not self.datasets or dataset in self.datasets)

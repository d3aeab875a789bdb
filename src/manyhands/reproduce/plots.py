"""A measured table as SVG: dots with intervals, lines, boxes, curves of series, and scatter plots."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from manyhands.exceptions import MissingExtraError
from manyhands.reproduce import plot_lines, plot_rows, plot_scatter, plot_series
from manyhands.reproduce.formatting import series_title, title
from manyhands.reproduce.metric_names import is_share
from manyhands.reproduce.pages import Page
from manyhands.reproduce.pictures import BOXES, DOTS, LINES, SERIES, Picture
from manyhands.reproduce.plot_style import STYLE, visible
from manyhands.reproduce.standings import Standing
from manyhands.reproduce.tables import Table


def pictures_of(table: Table) -> tuple[Picture, ...]:
    """Return the figures of a table; by default, dots or lines of the metrics that it plots.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    tuple of Picture
        At least one.
    """
    return table.figures or tuple(Picture(DOTS if table.x is None else LINES, metric) for metric in table.drawn)


def file_names(table: Table) -> dict[str, Picture]:
    """Return the files of a table's figures.

    Parameters
    ----------
    table : Table
        The table.

    Returns
    -------
    dict of str to Picture
        File name -> what it shows. A single figure without a suffix has the name of the table only.

    Examples
    --------
    >>> from manyhands.reproduce import load_table
    >>> list(file_names(load_table("baselines/labelme")))
    ['baselines-labelme.svg']
    """
    name, pictures = table.name.replace("/", "-"), pictures_of(table)
    if len(pictures) == 1 and not pictures[0].suffix:
        return {f"{name}.svg": pictures[0]}
    slugs = [picture.name.replace("_", "-").replace(".", "-").replace(" ", "-") for picture in pictures]
    return {f"{name}-{slug}.svg": picture for slug, picture in zip(slugs, pictures)}


def to_svg(table: Table, shown: Page, picture: Picture | None = None) -> bytes:
    """Draw a figure; the same page gives the same bytes.

    Parameters
    ----------
    table : Table
        The table.
    shown : dict
        Its page.
    picture : Picture or None, default=None
        What to draw; None is the first figure of the table.

    Returns
    -------
    bytes
        SVG.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    return render(table, shown, picture, "svg")


def render(table: Table, shown: Page, picture: Picture | None = None, form: str = "svg") -> bytes:
    """Draw a figure in any format of matplotlib.

    Parameters
    ----------
    table : Table
        The table.
    shown : dict
        Its page.
    picture : Picture or None, default=None
        What to draw; None is the first figure of the table.
    form : str, default="svg"
        Format, such as "png".

    Returns
    -------
    bytes
        The image.
    """
    picture = pictures_of(table)[0] if picture is None else picture

    def draw(drawing: Any) -> None:
        _draw(drawing, table, shown, picture)
        if picture.title:
            drawing.suptitle(visible(picture.title))

    return _saved(draw, form)


def ranks_to_svg(places: Sequence[Standing], form: str = "svg") -> bytes:
    """Draw the mean ranks of a leaderboard.

    Parameters
    ----------
    places : sequence of Standing
        Mean ranks with their intervals.
    form : str, default="svg"
        Format, such as "png".

    Returns
    -------
    bytes
        The image.
    """
    return _saved(lambda drawing: plot_rows.draw_ranks(drawing, places), form)


def _saved(draw: Callable[[Any], None], form: str) -> bytes:
    """Return a figure as a file."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise MissingExtraError(
            "Figures need matplotlib, which is not installed. Install it with: pip install 'manyhands[plot]'"
        ) from None
    with matplotlib.rc_context(STYLE):
        drawing = Figure(layout="constrained")
        draw(drawing)
        buffer = io.BytesIO()
        metadata = {"metadata": {"Date": None}} if form == "svg" else {"dpi": 110}
        drawing.savefig(buffer, format=form, **metadata)
    return buffer.getvalue()


def _draw(drawing: Any, table: Table, shown: Page, picture: Picture) -> None:
    """Draw one kind of figure."""
    label = picture.y_label or (axis_label(shown, picture.metric) if picture.metric else "")
    if picture.kind in (DOTS, BOXES):
        label = label or visible(series_title(picture.series[0]))
        plot_rows.draw(drawing, table, shown, picture, picture.x_label or label)
    elif picture.kind == LINES:
        plot_lines.draw_lines(drawing, table, shown, picture, label)
    elif picture.kind == SERIES:
        plot_series.draw_series(drawing, table, shown, picture)
    else:
        across = picture.x_label or (axis_label(shown, picture.against) if picture.against else "")
        plot_scatter.draw_scatter(drawing, table, shown, picture, (across, label))


def axis_label(shown: Page, metric: str) -> str:
    """Return the name of an axis for a metric.

    Parameters
    ----------
    shown : dict
        A page.
    metric : str
        Name of the metric.

    Returns
    -------
    str
        Such as ``accuracy (%)``.
    """
    return visible(title(metric)) + (" (%)" if shown["points"] and is_share(metric) else "")

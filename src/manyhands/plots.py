"""Pictures of the report, one function per panel: ``mh.plots.workers(model)`` returns SVG, or a figure of matplotlib.

Every panel of `manyhands.report.PANELS` is a function of this module, with underscores in its name. It takes a `Run` or
a fitted aggregator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyhands.exceptions import AnnotationError, MissingExtraError, ParameterError
from manyhands.report.drawing import Picture
from manyhands.report.html import standalone_svg
from manyhands.report.page import PANELS
from manyhands.report.run import Panel, Run, make_run

_NAMES = {key.replace("-", "_"): key for key in PANELS}
_COLUMN = 3.4  # inches of a column of a paper
_DOCSTRING = """{summary}

    Parameters
    ----------
    run : Run or Aggregator
        What a report would show (`manyhands.report.make_run`), or a fitted aggregator.
    figure : {{"svg", "matplotlib"}}, default="svg"
        What to return.
    picture : int or None, default=None
        Which of the panel's pictures to return, from 0; None for all of them.
    width : float, default=3.4
        Width of a picture of a matplotlib figure, in inches: that of a column of a paper.
    title : bool, default=False
        Whether a matplotlib figure has the finding of the panel as its title; papers have captions.

    Returns
    -------
    list of str or matplotlib.figure.Figure
        SVG files, none if the run has no data for the panel; or one figure with the pictures side by side, whose text
        stays text in SVG and PDF.

    Raises
    ------
    AnnotationError
        If a figure is asked for, and the run has no picture of this panel.
    MissingExtraError
        If matplotlib is not installed.
    """

__all__ = [*_NAMES]


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in _NAMES:
        raise AttributeError(f"module 'manyhands.plots' has no attribute {name!r}; it has {', '.join(_NAMES)}")
    key = _NAMES[name]

    def plot(
        run: Any, *, figure: str = "svg", picture: int | None = None, width: float = _COLUMN, title: bool = False
    ) -> Any:
        _check(figure, width)
        panel = PANELS[key](run if isinstance(run, Run) else make_run(run))
        pictures = _chosen(key, _pictures(panel), picture)
        if figure == "svg":
            return [standalone_svg(one) for _, one in pictures]
        if panel is None or not pictures:
            raise AnnotationError(
                f"The run has no picture for the panel {key}: its data are absent, or it consists of tables only "
                "(docs/report.md says what each panel needs)."
            )
        return _drawn(panel, pictures, width, title)

    plot.__name__ = plot.__qualname__ = name
    plot.__doc__ = _DOCSTRING.format(summary=(PANELS[key].__doc__ or "").partition("\n")[0])
    return plot


def __dir__() -> list[str]:
    return sorted(__all__)


def _check(figure: str, width: float) -> None:
    """Refuse what is no form of a picture, and widths that nothing fits into."""
    if figure not in ("svg", "matplotlib"):
        raise ParameterError(f"figure is 'svg' or 'matplotlib'; got {figure!r}.")
    if not width >= 1:
        raise ParameterError(f"width is that of a picture in inches, at least 1; got {width!r}.")


def _pictures(panel: Panel | None) -> list[tuple[str, Picture]]:
    """Return the pictures of a panel, and those of its parts with their names."""
    if panel is None:
        return []
    own = [("", one) for one in panel.svg]
    return own + [(part.title, one) for part in panel.parts for one in part.svg]


def _chosen(key: str, pictures: list[tuple[str, Picture]], picture: int | None) -> list[tuple[str, Picture]]:
    """Return one picture or all of them."""
    if picture is None:
        return pictures
    if not 0 <= picture < len(pictures):
        raise ParameterError(f"The panel {key} has {len(pictures)} pictures, counted from 0; got picture={picture!r}.")
    return [pictures[picture]]


def _drawn(panel: Panel, pictures: list[tuple[str, Picture]], width: float, title: bool) -> Any:
    """Return a figure of matplotlib, which is loaded here."""
    try:
        from manyhands.report.matplotlib_figures import figure_of
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError(
            "Figures need matplotlib, which is not installed. Install it with: pip install 'manyhands[plot]'"
        ) from None
    return figure_of(panel, pictures, width, title)

"""`PaperFigure`: a figure of matplotlib whose text stays text, and the style of all figures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

GREY, GRID = "#5b6570", "#dfe3e8"
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "pdf.fonttype": 42,
    "svg.hashsalt": "manyhands",  # otherwise ids are random
    "text.parse_math": False,  # dollar signs in names are not formulas
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.edgecolor": GREY,
    "axes.labelcolor": "black",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "figure.titlesize": 9,
}


class PaperFigure(Figure):
    """A figure whose text stays text in SVG and PDF, however it is saved."""

    def draw(self, renderer: Any) -> None:
        """Draw with the style of the figure.

        Parameters
        ----------
        renderer : RendererBase
            What draws.
        """
        with matplotlib.rc_context(STYLE):
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save the figure; the same figure gives the same SVG.

        Parameters
        ----------
        fname : str, Path or file
            Where to save it.
        **options : object
            Options of `matplotlib.figure.Figure.savefig`.
        """
        form = str(options.get("format") or Path(str(fname)).suffix.removeprefix("."))
        if form == "svg":
            options["metadata"] = {"Date": None} | dict(options.get("metadata") or {})
        with matplotlib.rc_context(STYLE):
            super().savefig(fname, **options)

    def _repr_png_(self) -> bytes:
        """Return what a notebook shows, also where pyplot is not loaded."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()

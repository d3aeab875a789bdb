"""Panels for a notebook: HTML with its own style, which touches nothing else on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from manyhands.report.page.page_rendering import render_panels, resource

if TYPE_CHECKING:
    from manyhands.report.panel import Panel


def panels_html(panels: Sequence[Panel]) -> str:
    """Return panels as HTML for a notebook.

    Parameters
    ----------
    panels : sequence of Panel
        The panels.

    Returns
    -------
    str
        HTML; its rules apply inside it only.
    """
    style = resource("chart.css") + resource("style.css")
    return f'<div class="mh mh-part"><style>{style}</style>{render_panels(panels)}</div>'


def standalone_svg(svg: str) -> str:
    """Return a picture of a panel as a file of its own.

    Parameters
    ----------
    svg : str
        SVG element of a panel.

    Returns
    -------
    str
        SVG with its style.
    """
    head, _, rest = svg.partition(">")
    head = head.replace('class="chart"', 'class="chart mh" xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{head}><style>{resource('chart.css')}</style>{rest}"

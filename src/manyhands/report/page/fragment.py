"""Panels for a notebook: HTML with its own style, which touches nothing else on the page."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from manyhands.report.page.page_rendering import render_fragment, resource

if TYPE_CHECKING:
    from manyhands.report.panel import Panel

# How notebooks and pages of documentation say that they are dark or light, whatever the system's theme is.
_DARK = (
    "body[data-jp-theme-light=false]",  # JupyterLab, Notebook 7
    "body.vscode-dark",
    "html[theme=dark]",  # Colab
    "html[data-theme=dark]",  # Jupyter Book, Sphinx
)
_LIGHT = ("body[data-jp-theme-light=true]", "body.vscode-light", "html[theme=light]", "html[data-theme=light]")

# Notebooks style tables, lists and headings too. Theirs are undone inside the panels, and ours are more specific.
_OWN = ".mh.mh-part.mh-part"
_RESET = "p,div,section,article,h2,h3,dl,dt,dd,ul,li,table,caption,thead,tbody,tr,th,td,details,summary,a,b,bdi,span"


def panels_html(panels: Sequence[Panel], head: Panel | None = None, kicker: str = "") -> str:
    """Return panels as HTML for a notebook.

    Parameters
    ----------
    panels : sequence of Panel
        The panels.
    head : Panel or None, default=None
        The verdict with key figures and alerts, shown above the panels.
    kicker : str, default=""
        Line above the verdict, such as the call that makes the model.

    Returns
    -------
    str
        HTML; its rules apply inside it only, and its ids are its own unless the same panels are shown twice.
    """
    prefix = f"mh-{hashlib.sha256(repr((head, panels)).encode()).hexdigest()[:8]}-"
    body = render_fragment(panels, head, kicker, prefix)
    return f'<div class="mh mh-part"><style>{_style()}</style>{body}</div>'


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
    head = head.replace('class="mh-chart"', 'class="mh-chart mh" xmlns="http://www.w3.org/2000/svg"', 1)
    return f"{head}><style>{resource('chart.css')}</style>{rest}"


@cache
def _style() -> str:
    """Return the style of the report, with the colours of the notebook's own theme."""
    chart = resource("chart.css")
    colours = re.findall(r"\.mh(?:\[data-theme=dark\])?\{(--bg:[^}]*)\}", chart)
    light, dark = colours[0], colours[-1]
    themed = ""
    for hosts, rules in ((_LIGHT, light), (_DARK, dark)):
        themed += f"{','.join(f'{host} .mh-part' for host in hosts)}{{{rules}}}"
    own = (resource("style.css") + resource("notebook.css")).replace(".mh ", f"{_OWN} ")
    own = re.sub(r"(?<=\d)rem\b", "em", own)  # a notebook's root may have a font size of its own
    return chart + themed + f"{_OWN} :where({_RESET}){{all:revert}}" + own

"""`render_page`: panels as one HTML file, with a Content-Security-Policy that allows its own style and script only."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from manyhands.report.page.embedding import DATA_ID, embedded
from manyhands.report.wording import number, visible

if TYPE_CHECKING:
    from manyhands.report.building import Report
    from manyhands.report.panel import Panel

_MOST_TEXT = 4000  # letters of a sentence
_NAMES = {"ledger": "Rows", "hard-items": "Hard items", "workers": "Workers"}


def render_page(report: Report, data: dict[str, Any]) -> bytes:
    """Return the page of a report.

    Parameters
    ----------
    report : Report
        The panels.
    data : dict
        The run's data, which the page holds as JSON.

    Returns
    -------
    bytes
        HTML in UTF-8, complete in itself.
    """
    style, script = resource("chart.css") + resource("style.css"), resource("script.js")
    own = f"style-src {_hash(style)}; script-src {_hash(script)}"
    html = (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            policy=Markup(f"default-src 'none'; {own}; base-uri 'none'; form-action 'none'"),
            style=Markup(style),
            script=Markup(script),
            data=Markup(embedded(data)),
            data_id=DATA_ID,
            prefix="",
        )
    )
    return html.encode("utf-8", "backslashreplace")


def render_fragment(panels: Sequence[Panel], head: Panel | None, kicker: str, prefix: str) -> str:
    """Return panels as HTML without a page around them.

    Parameters
    ----------
    panels : sequence of Panel
        The panels.
    head : Panel or None
        The verdict with key figures and alerts.
    kicker : str
        Line above the verdict.
    prefix : str
        What all ids begin with.

    Returns
    -------
    str
        HTML.
    """
    template = environment().get_template("fragment.html")
    return str(template.render(panels=panels, summary=head, kicker=kicker, prefix=prefix))


@cache
def environment() -> Environment:
    """Return the templates; everything that they insert is escaped.

    Returns
    -------
    Environment
        Of jinja2.
    """
    made = Environment(
        loader=FunctionLoader(resource),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"cell": cell_text, "kind": cell_kind, "short": short_name, "svg": Markup}
    return made


@cache
def resource(name: str) -> str:
    """Return a file of this package.

    Parameters
    ----------
    name : str
        Name of the file.

    Returns
    -------
    str
        Its text.
    """
    return files("manyhands.report.page").joinpath(name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Return what a template inserts: text from data without control characters and marks of direction."""
    return visible(value, _MOST_TEXT) if isinstance(value, str) and not hasattr(value, "__html__") else value


def cell_text(value: Any) -> str:
    """Return a cell as text, without control characters.

    Parameters
    ----------
    value : object
        The cell.

    Returns
    -------
    str
        Text; the template escapes it.
    """
    if value is None:
        return ""
    return number(value) if isinstance(value, int | float) else visible(value, 600)


def cell_kind(value: Any) -> str:
    """Return how a cell is drawn.

    Parameters
    ----------
    value : object
        The cell.

    Returns
    -------
    {"chips", "bar", "text"}
        Name of the way.
    """
    return str(getattr(value, "drawn_as", "text"))


def short_name(key: str) -> str:
    """Return the name of a panel in the list of contents.

    Parameters
    ----------
    key : str
        Key of the panel.

    Returns
    -------
    str
        A word or two.
    """
    return _NAMES.get(key, key.replace("-", " ").capitalize())


def _hash(text: str) -> str:
    """Return the source expression of an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

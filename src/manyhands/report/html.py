"""The page as HTML: panels in a template, with the run's data as JSON inside it, and the data read back.

run_data      the data of a run as JSON
render_page   panels as one HTML file
panels_html   panels inside a notebook; `standalone_svg`: a picture as a file of its own
read_page     the data of a page, checked
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.write.results import to_json_value
from manyhands.report.wording import number, visible

if TYPE_CHECKING:
    from manyhands.report.run import Panel, Provenance, Report, Run


# ----------------------------------------------------------------------------------------------------
# The data of a run as JSON inside its page.

SCHEMA = 2  # 1 had the alerts of workers under "flags", and the notices under "alerts"
KIND = "manyhands-report"
_DATA_ID = "manyhands-data"
MOST_WORKERS = 5000  # in the data of the page
_MOST_BYTES = 300_000  # of the labels in the page, beyond which they are in a file beside it; of classes, of workers
_MOST_LABEL_TEXT = 2000  # characters of a title, a command or the name of a file
_MOST_FILES = 200
_MOST_VALUES = 1000  # entries of a list of numbers of a panel
_ESCAPED = ('"', "\\", *map(chr, range(32)))  # by JSON itself
_UNSAFE = re.compile("[<>&\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # markup, line ends, marks of direction


def run_data(run: Run, report: Report) -> dict[str, Any]:
    """Return what the page holds for programs.

    Parameters
    ----------
    run : Run
        The run.
    report : Report
        Its panels.

    Returns
    -------
    dict
        ``schema``, ``kind``, ``title``, ``summary``, ``panels`` (main numbers), ``classes``, ``workers``, ``labels``
        (columns; None beyond the cap) and ``labels_file``.
    """
    data = {
        "schema": SCHEMA,
        "kind": KIND,
        "title": run.title[:_MOST_LABEL_TEXT],
        "created": None if run.provenance is None else run.provenance.created,
        "provenance": None if run.provenance is None else _provenance(run.provenance),
        "verdict": report.summary.title,
        "notices": [vars(notice) | {"text": notice.text[:_MOST_LABEL_TEXT]} for notice in report.summary.notices],
        "panels": {panel.key: {"title": panel.title, "values": _short(panel.values)} for panel in report.panels},
        "n_items": run.annotations.n_items,
        "n_annotations": run.annotations.n_annotations,
        "classes": _classes(run.annotations),
        "workers": _workers(run),
        "labels": _labels(run),
        "labels_file": run.full_labels,
        "guarded": run.guarded,
    }
    value: dict[str, Any] = to_json_value(data)
    return value


def _provenance(provenance: Provenance) -> dict[str, Any]:
    """Return where a run comes from, with long texts cut."""
    files = {name[:_MOST_LABEL_TEXT]: digest for name, digest in list(provenance.files.items())[:_MOST_FILES]}
    command = None if provenance.command is None else provenance.command[:_MOST_LABEL_TEXT]
    return vars(provenance) | {"files": files, "command": command}


def _short(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the main numbers of a panel; of long lists, such as those of very many classes, the first ones."""
    return {name: value[:_MOST_VALUES] if isinstance(value, list | tuple) else value for name, value in values.items()}


def _size(texts: list[str]) -> int:
    """Return the bytes of texts in the page, where marks of HTML and of JSON are escapes of six letters."""
    joined = "".join(texts)
    escaped = 5 * (len(_UNSAFE.findall(joined)) + sum(joined.count(mark) for mark in _ESCAPED))
    return len(joined.encode("utf-8", "replace")) + escaped + 3 * len(texts)


def _classes(annotations: Annotations) -> list[str] | None:
    """Return the names of the classes; None where they are too large, and a file beside the page has the labels."""
    names = [str(value) for value in annotations.classes.tolist()]
    return names if _size(names) <= _MOST_BYTES else None


def _embedded(data: dict[str, Any]) -> str:
    """Return data as JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    plain = _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return (
        "".join(c if not "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}" for c in plain)
        if _has_surrogates(plain)
        else plain
    )


def _has_surrogates(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _workers(run: Run) -> dict[str, Any]:
    """Return the workers as columns, those with most labels where there are very many; names are as the page shows."""
    a = run.annotations
    n_labels = np.bincount(a.worker, minlength=a.n_workers)
    chosen = np.argsort(-n_labels, kind="stable")[:MOST_WORKERS]
    room = np.cumsum([_size([str(w)]) for w in a.worker_ids[chosen].tolist()]) <= _MOST_BYTES
    kept = np.sort(chosen[room])
    columns: dict[str, Any] = {"worker": [str(w) for w in a.worker_ids[kept].tolist()], "n_labels": n_labels[kept]}
    if run.cards is None:
        return columns | {"accuracy": run.model.worker_accuracy_[kept].round(3)}
    cards = run.cards
    return columns | {
        "accuracy": cards.accuracy[kept].round(3),
        "low": cards.accuracy_low[kept].round(3),
        "high": cards.accuracy_high[kept].round(3),
        "alerts": [";".join(cards.alerts[w]) for w in kept.tolist()],
    }


def labels_fit(annotations: Annotations) -> bool:
    """Whether the labels of all items fit into the page."""
    if 14 * annotations.n_items > _MOST_BYTES or _classes(annotations) is None:
        return False
    return _size([str(item) for item in annotations.item_ids.tolist()]) + 11 * annotations.n_items <= _MOST_BYTES


def _common_beginning(texts: list[str]) -> str:
    """Return what all texts begin with."""
    if not texts:
        return ""
    low, high = min(texts), max(texts)
    same = next((at for at, (a, b) in enumerate(zip(low, high)) if a != b), min(len(low), len(high)))
    return low[:same]


def _labels(run: Run) -> dict[str, Any] | None:
    """Return item, class code and posterior (in thousandths) of all items, and the rows of known class.

    None where they are too large.
    """
    if not labels_fit(run.annotations):
        return None
    items = [str(item) for item in run.annotations.item_ids.tolist()]
    sure = np.where(run.labelled, np.floor(run.confidence * 1000), -1).astype(int)
    prefix = _common_beginning(items)
    rest = [item[len(prefix) :] for item in items]
    return {
        "prefix": prefix,
        "item": rest,
        "label": run.codes,
        "confidence": sure,
        "n_labels": run.annotations.n_labels,
        "known": run.gold_rows,
    }


# ----------------------------------------------------------------------------------------------------
# `render_page`: panels as one HTML file, with a Content-Security-Policy that allows its own style and script only.

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
            data=Markup(_embedded(data)),
            data_id=_DATA_ID,
            prefix="",
        )
    )
    return html.encode("utf-8", "backslashreplace")


def _render_fragment(panels: Sequence[Panel], head: Panel | None, kicker: str, prefix: str) -> str:
    """Return panels as HTML without a page around them."""
    template = environment().get_template("fragment.html")
    return str(template.render(panels=panels, summary=head, kicker=kicker, prefix=prefix))


@cache
def environment() -> Environment:
    """Return the templates; everything that they insert is escaped."""
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
    """Return a file of this package."""
    return files("manyhands.report").joinpath("assets", name).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Return what a template inserts: text from data without control characters and marks of direction."""
    return visible(value, _MOST_TEXT) if isinstance(value, str) and not hasattr(value, "__html__") else value


def cell_text(value: Any) -> str:
    """Return a cell as text, without control characters."""
    if value is None:
        return ""
    return number(value) if isinstance(value, int | float) else visible(value, 600)


def cell_kind(value: Any) -> str:
    """Return how a cell is drawn."""
    return str(getattr(value, "drawn_as", "text"))


def short_name(key: str) -> str:
    """Return the name of a panel in the list of contents."""
    return _NAMES.get(key, key.replace("-", " ").capitalize())


def _hash(text: str) -> str:
    """Return the source expression of an inline style or script."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# ----------------------------------------------------------------------------------------------------
# Panels for a notebook: HTML with its own style, which touches nothing else on the page.


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
        The verdict with key figures and notices, shown above the panels.
    kicker : str, default=""
        Line above the verdict, such as the call that makes the model.

    Returns
    -------
    str
        HTML; its rules apply inside it only, and its ids are its own unless the same panels are shown twice.
    """
    prefix = f"mh-{hashlib.sha256(repr((head, panels)).encode()).hexdigest()[:8]}-"
    body = _render_fragment(panels, head, kicker, prefix)
    return f'<div class="mh mh-part"><style>{_style()}</style>{body}</div>'


def standalone_svg(svg: str, *, on_paper: bool = False) -> str:
    """Return a picture as a file of its own: with the colours of its reader's theme, or dark on white paper."""
    head, _, rest = svg.partition(">")
    theme = ' data-theme="light"' if on_paper else ""
    head = head.replace('class="mh-chart"', f'class="mh-chart mh"{theme} xmlns="http://www.w3.org/2000/svg"', 1)
    if on_paper:
        rest = f'<rect class="paper" width="100%" height="100%"/>{rest}'
    style = resource("chart.css") + (resource("figure.css") if on_paper else "")
    return f"{head}><style>{style}</style>{rest}"


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


# ----------------------------------------------------------------------------------------------------
# `read_page`: the data of a run from its page, checked, as pages travel and may be cut off or edited.

_NUMBER = (int, float, type(None))
_WORKERS: dict[str, tuple[type, ...]] = {
    "worker": (str,),
    "n_labels": (int,),
    "accuracy": _NUMBER,
    "low": _NUMBER,
    "high": _NUMBER,
    "alerts": (str,),
}
_LABELS: dict[str, tuple[type, ...]] = {"item": (str,), "label": (int,), "confidence": (int,), "n_labels": (int,)}


def read_page(path: str | Path) -> dict[str, Any]:
    """Read the data of a run back from its page.

    Parameters
    ----------
    path : str or Path
        A page that manyhands wrote.

    Returns
    -------
    dict
        The data, as of `run_data`; labels that are in a file beside the page are not read.

    Raises
    ------
    AnnotationError
        If the file is no report of manyhands, is damaged, or is of another version.
    """
    parser = _DataParser()
    parser.feed(Path(path).read_text(encoding="utf-8", errors="replace"))
    parser.close()
    if not parser.content and parser.is_ours:
        raise _damaged(path, "its end is missing")
    if not parser.content:
        raise AnnotationError(
            f"{path} is not a report of manyhands: it holds no data of a run. Give the file that manyhands "
            "report wrote."
        )
    try:
        data = json.loads("".join(parser.content))
    except (json.JSONDecodeError, RecursionError):
        raise _damaged(path, "they end early, or were edited") from None
    if not isinstance(data, dict) or data.get("kind") not in (KIND, KIND + "-change"):
        raise _damaged(path, "they are not those of a run")
    if data.get("schema") != SCHEMA:
        raise AnnotationError(
            f"{path} has schema {data.get('schema')!r}; this version of manyhands reads {SCHEMA}. Use the "
            "version that wrote it."
        )
    wrong = _wrong_part(data)
    if wrong:
        raise _damaged(path, f"{wrong!r} is missing or not as it was written")
    labels = data.get("labels")
    if labels is not None:
        prefix = labels.pop("prefix")
        labels["item"] = [prefix + item for item in labels["item"]]
    return data


def _damaged(path: str | Path, what: str) -> AnnotationError:
    return AnnotationError(
        f"{path} is damaged: the data of the run in it cannot be used, as {what}. Use an unchanged copy, or make the "
        "report again."
    )


def _wrong_part(data: dict[str, Any]) -> str:
    """Return the name of the first part that programs could not use; "" if there is none."""
    panels = data.get("panels")
    checks = {
        "title": isinstance(data.get("title"), str),
        "verdict": isinstance(data.get("verdict"), str),
        "panels": isinstance(panels, dict) and all(_is_panel(panel) for panel in panels.values()),
    }
    if data["kind"] == KIND:
        classes, labels = data.get("classes", 0), data.get("labels", 0)
        checks |= {
            "provenance": isinstance(data.get("provenance"), dict | None),
            "labels_file": isinstance(data.get("labels_file"), str | None),
            "classes": classes is None or _all_are(classes, (str,)),
            "workers": _are_columns(data.get("workers"), _WORKERS, ("worker", "n_labels", "accuracy")),
            "labels": labels is None or _are_labels(labels, classes),
        }
    return next((name for name, is_right in checks.items() if not is_right), "")


def _is_panel(panel: Any) -> bool:
    return isinstance(panel, dict) and isinstance(panel.get("title"), str) and isinstance(panel.get("values"), dict)


def _are_labels(labels: Any, classes: list[str] | None) -> bool:
    """Whether labels have all columns, and codes of known classes."""
    if not _are_columns(labels, _LABELS, tuple(_LABELS)) or not isinstance(labels.get("prefix"), str):
        return False
    gold_items = labels.get("known", [])  # earlier pages do not have it
    if not _all_are(gold_items, (int,)) or not all(0 <= row < len(labels["item"]) for row in gold_items):
        return False
    return classes is not None and all(-1 <= code < len(classes) for code in labels["label"])


def _are_columns(table: Any, kinds: dict[str, tuple[type, ...]], needed: tuple[str, ...]) -> bool:
    """Whether a table has the columns that are needed, of equal length and of the right types."""
    if not isinstance(table, dict) or any(name not in table for name in needed):
        return False
    columns = [(table[name], types) for name, types in kinds.items() if name in table]
    return (
        all(_all_are(column, types) for column, types in columns) and len({len(column) for column, _ in columns}) == 1
    )


def _all_are(values: Any, types: tuple[type, ...]) -> bool:
    return isinstance(values, list) and all(isinstance(v, types) and not isinstance(v, bool) for v in values)


class _DataParser(HTMLParser):
    """Collects the content of the first script element that holds the data."""

    def __init__(self) -> None:
        super().__init__()
        self.content: list[str] = []
        self.is_ours = False
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given, is_first = dict(attrs), not self.content
        self.is_ours |= tag == "meta" and given.get("name") == "generator" and given.get("content") == "manyhands"
        self._inside = is_first and tag == "script" and given.get("id") == _DATA_ID

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.content.append(data)

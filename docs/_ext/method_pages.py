"""Pages of the methods: one for each name of the registry, from one template.

What a page says comes from the source (summary, parameters, reference, example), from `docs/methods/methods.toml` (the
idea as a formula, where it works and fails) and from the pages of results (its rows).
"""

from __future__ import annotations

import inspect
import re
import tomllib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import api_pages
import jinja2
from numpydoc.docscrape import NumpyDocString

from manyhands import registry

DOCS = Path(__file__).resolve().parents[1]
_RESULTS = DOCS / "results"
_KINDS = {
    "aggregator": ("Aggregators", "They infer the truth from the labels alone."),
    "classifier": ("Classifiers", "They learn from features and labels, and predict new items."),
    "representation": ("Representation learners", "They learn embeddings of features; any classifier can follow."),
}
_BASELINE = {"Aggregators": "majority-vote", "Methods with features": "vote, then network"}
_ROWS_OF = {"two-stage": ["vote, then network", "vote shares, then network", "vote, then logistic regression"]}
_ATTACKED = {"majority-vote": "vote", "pooled-dawid-skene": "default", "dawid-skene": "D&S"}  # columns of the page
_ATTACK = "45%"  # share of bad workers whose rows are shown
_VARIANT_EXAMPLE = """\
>>> import numpy as np
>>> import manyhands as mh
>>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
>>> votes = mh.Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0))
>>> model = mh.registry.create({name!r}, random_state=0).fit(X, votes)
>>> model.{call}
{result}
"""


def pages() -> dict[str, str]:
    """All pages of methods and their index: place -> text."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DOCS / "_templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # Markdown
    )
    environment.filters["cell"] = lambda text: " ".join(text.split()).replace("|", "\\|")
    environment.filters["table_head"] = lambda names, first: (
        f"{first} | {names} |\n|{' --- |' * (names.count(' | ') + 2)}"
    )
    page = environment.get_template("method.md.j2")
    texts = {f"methods/{name}.md": page.render(facts_of(name)) for name in registry.names()}
    index = environment.get_template("methods.md.j2")
    groups = [(*_KINDS[kind], [facts_of(name) for name in registry.names(kind)]) for kind in _KINDS]
    texts["methods/index.md"] = index.render(groups=groups, n_methods=len(registry.names()))
    return texts


@cache
def notes() -> dict[str, dict[str, Any]]:
    """The entries of methods.toml, with what they take from others."""
    raw = tomllib.loads((DOCS / "methods" / "methods.toml").read_text(encoding="utf-8"))
    full: dict[str, dict[str, Any]] = {}
    while len(full) < len(raw):
        for name, entry in raw.items():
            like = entry.get("like")
            if like is None or like in full:
                full[name] = {"idea": "", "results": []} | (full[like] if like else {}) | entry
    return full


@cache
def facts_of(name: str) -> dict[str, Any]:
    """Everything that the template shows of a method."""
    cls = registry.get(name)
    parsed = NumpyDocString(inspect.getdoc(cls) or "")
    kinds = [kind for kind in _KINDS if name in registry.names(kind)]
    path = api_pages.class_entries()[cls].path
    constructor = registry._place(name)[2]
    fixed = registry._entry(name)[1]
    return notes()[name] | {
        "name": name,
        "kinds": kinds,
        "class_path": path,
        "class_name": cls.__name__,
        "constructor": constructor,
        "fixed": fixed,
        "needs_torch": _needs_torch(cls),
        "summary": registry.summary(name),
        "details": _markdown(parsed["Extended Summary"]),
        "parameters": [(p.name, p.type, " ".join(p.desc)) for p in parsed["Parameters"]],
        "own_defaults": _own_defaults(name) if constructor or fixed else {},
        "example": _example(name, cls, bool(constructor or fixed), kinds),
        "command": _command(kinds, name),
        "references": "\n".join(parsed["References"]),
        "result_pages": [(page, _title_of(page)) for page in notes()[name]["results"]],
        "rank": _rank(name),
        "rankings": [found for title in _BASELINE if (found := _ranking(title, name))],
        "attacks": _attacks(name),
        "attack_share": _ATTACK,
    }


def _needs_torch(cls: type) -> bool:
    """Whether the module of a class imports torch, which the extra `learn` installs."""
    assert find_spec("torch"), "the site is built with torch: pip install -e '.[docs,learn]'"
    return "torch" in vars(inspect.getmodule(cls)) or not cls.__module__.startswith("manyhands.aggregation")


def _markdown(lines: list[str]) -> str:
    """Text of a docstring as Markdown, without its indented formulas, which the page has already."""
    kept = [line for line in lines if not line.startswith("    ")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).replace("``", "`").strip()


def _own_defaults(name: str) -> dict[str, Any]:
    """The parameters of a variant that differ from the defaults of its class."""
    model, cls = registry.create(name), registry.get(name)
    defaults = {k: p.default for k, p in inspect.signature(cls).parameters.items()}
    given = model.get_params(deep=False)
    return {k: v for k, v in given.items() if k in defaults and repr(defaults[k]) != repr(v)}


def _example(name: str, cls: type, is_variant: bool, kinds: list[str]) -> str:
    """The example of the class, or one that makes the variant by its name; tests run both."""
    if not is_variant:
        return "\n".join(NumpyDocString(inspect.getdoc(cls) or "")["Examples"])
    if kinds == ["representation"]:
        return _VARIANT_EXAMPLE.format(name=name, call="transform(X).shape[0]", result="60").rstrip()
    call, result = "predict([[0.0, 1.0], [1.0, 0.0]]).tolist()", "[0, 1]"
    return _VARIANT_EXAMPLE.format(name=name, call=call, result=result).rstrip()


def _command(kinds: list[str], name: str) -> str:
    """The command line that uses a method, if there is one."""
    if "aggregator" in kinds:
        return f"manyhands aggregate ratings.csv --method {name} -o out"
    return (
        f"manyhands train ratings.csv --features features.csv --method {name} -o out" if "classifier" in kinds else ""
    )


def _title_of(page: str) -> str:
    """First heading of a page of results."""
    return (_RESULTS / f"{page}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


# ----------------------------------------------------------------------------------------------------
# Rows of the pages of results.


@cache
def tables(page: str) -> dict[str, list[dict[str, str]]]:
    """The first table below each heading of a page: heading -> rows."""
    found: dict[str, list[dict[str, str]]] = {}
    heading, head = "", None
    for line in (_RESULTS / f"{page}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading, head = line.lstrip("# "), None
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if head is None:
                head = cells
                found.setdefault(heading, [])
            elif not set(line) <= set("|- :"):
                found[heading].append(dict(zip(head, cells, strict=True)))
    return found


def _named(rows: list[dict[str, str]], name: str) -> list[dict[str, str]]:
    """The rows of a method: its own, and those in which another step follows or precedes it."""
    wanted = _ROWS_OF.get(name, [name])
    return [r for r in rows if r["method"] in wanted or re.fullmatch(rf"{name}, then .*|.* from {name}", r["method"])]


def _rank(name: str) -> str:
    """Mean rank on the leaderboard, of the first row of the method."""
    for title in _BASELINE:
        rows = _named(tables("leaderboard")[title], name)
        if rows:
            return rows[0]["mean rank"]
    return ""


def _ranking(title: str, name: str) -> dict[str, Any] | None:
    """Rows of a method in one part of the leaderboard, and its largest gain and loss against the baseline."""
    everyone = tables("leaderboard")[title]
    rows = _named(everyone, name)
    if not rows:
        return None
    accuracy = {row["method"]: row for row in tables("leaderboard")[f"{title}: accuracy"]}
    baseline = _BASELINE[title]
    first = rows[0]["method"]
    own = {k: v for k, v in accuracy[first].items() if k != "method"}
    differences = {}
    for data, value in own.items():
        if value != "failed" and accuracy[baseline][data] != "failed":
            differences[data] = (_mean(value) - _mean(accuracy[baseline][data]), value, accuracy[baseline][data])
    ordered = sorted(differences.items(), key=lambda item: item[1][0])
    failed = [data for data, value in own.items() if value == "failed"]
    return {
        "title": title,
        "n_methods": len(everyone),
        "columns": list(everyone[0]),
        "rows": rows,
        "accuracy_columns": list(accuracy[first]),
        "accuracy": [accuracy[row["method"]] for row in rows] + ([accuracy[baseline]] if first != baseline else []),
        "baseline": baseline,
        "is_baseline": first == baseline,
        "best": ordered[-1] if ordered and ordered[-1][1][0] > 0 else None,
        "worst": ordered[0] if ordered and ordered[0][1][0] < 0 else None,
        "better": sum(d[0] > 0 for d in differences.values()),
        "compared": len(differences),
        "failed": failed,
        "first": first,
    }


def _mean(value: str) -> float:
    """The mean of a cell such as 62.1 ± 1.2."""
    return float(value.partition(" ")[0])


def _attacks(name: str) -> list[dict[str, str]]:
    """Rows of the page of attacks at the largest share of bad workers, for the three methods that it measures."""
    if name not in _ATTACKED:
        return []
    rows = tables("attacks")["The default under attack"]
    column = _ATTACKED[name]
    return [
        {"attack": r["attack"], "classes": r["classes"], "own": r[column], "vote": r["vote"], "default": r["default"]}
        for r in rows
        if r["bad"] == _ATTACK
    ]

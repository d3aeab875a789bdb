"""What the site needs beside its libraries: links from code to the reference, formulas without scripts, docstrings.

- Text in backticks that names an exported object becomes a link to it, in docstrings and in Markdown. What is no such
  name stays code.
- Formulas become MathML, which browsers draw themselves: the site works without a network.
- Indented formulas in docstrings are literal blocks, and attributes stand in the pages that `api_pages` writes.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from typing import Any

import api_pages
import latex2mathml.converter
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PythonDomain
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

# ----------------------------------------------------------------------------------------------------
# Links from code.


@cache
def targets() -> dict[str, str]:
    """Names as documents write them -> the exported object."""
    known: dict[str, str] = {}
    for entry in api_pages.entries():
        names = [entry.path, *entry.aliases]
        if entry.kind in ("class", "exception") or "_" in entry.name.strip("_") or entry.name.isupper():
            names.append(entry.name)
        for name in names:
            known.setdefault(name, entry.path)
            known.setdefault(name.replace("manyhands.", "mh.", 1), entry.path)
        if entry.kind in ("class", "exception"):
            own, _ = api_pages.members_of(entry.value)
            for member in own:
                known.setdefault(f"{entry.name}.{member.name}", f"{entry.path}.{member.name}")
                known.setdefault(f"{entry.path}.{member.name}", f"{entry.path}.{member.name}")
    for module in api_pages.PACKAGES:
        known.setdefault(module, module)
        known.setdefault(module.replace("manyhands.", "mh.", 1), module)
    return known


def link_of(text: str, docname: str) -> nodes.Node | None:
    """A reference to the object that a piece of code names, unless the page is that of the object."""
    name = re.sub(r"\(.*\)$", "", text)
    target = targets().get(name)
    if target is None or docname in (f"api/{target}", f"api/{target.rpartition('.')[0]}"):
        return None
    reference = addnodes.pending_xref(
        "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=docname, refwarn=True
    )
    reference["py:module"] = reference["py:class"] = None
    reference += nodes.literal(text, text, classes=["xref", "py", "py-obj"])
    return reference


class LinkCode(SphinxTransform):
    """Code that names an exported object becomes a link to it, but in headings and in links."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Replace the literals of a document."""
        docname = self.env.current_document.docname
        for literal in list(self.document.findall(nodes.literal)):
            inside = literal.parent
            while inside is not None and not isinstance(inside, (nodes.title, nodes.reference, addnodes.pending_xref)):
                inside = inside.parent
            if inside is None and "xref" not in literal["classes"]:
                found = link_of(literal.astext(), docname)
                if found is not None:
                    literal.parent.replace(literal, found)


def code_role(
    name: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Single backticks in docstrings, which are code."""
    return [nodes.literal(raw, text.replace("\x00", ""))], []


def note_aliases(app: Sphinx, env: BuildEnvironment) -> None:
    """Objects are found under every name that exports them: manyhands.DawidSkene too."""
    domain = env.get_domain("py")
    assert isinstance(domain, PythonDomain)
    for entry in api_pages.entries():
        home = domain.objects.get(entry.path)
        for alias in entry.aliases:
            if home is not None and alias not in domain.objects:
                domain.objects[alias] = ObjectEntry(home.docname, home.node_id, home.objtype, True)


# ----------------------------------------------------------------------------------------------------
# Docstrings.


def before_numpydoc(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Take the attributes out of the docstring of a class, and make indented formulas literal."""
    text = list(lines)
    if what in ("class", "exception"):
        text = without_section(text, "Attributes")
    lines[:] = with_literal_blocks(text)


def constructor_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """The parameters of the constructor: `__new__`, which takes anything, is there for error messages."""
    if what != "class" or "__init__" not in dir(obj):
        return None
    try:
        found = inspect.signature(obj.__init__)
    except (TypeError, ValueError):  # of a class written in C
        return None
    plain = [p.replace(annotation=p.empty) for p in list(found.parameters.values())[1:]]
    return str(found.replace(parameters=plain, return_annotation=found.empty)), ""


def without_section(lines: list[str], title: str) -> list[str]:
    """A docstring without one of its sections."""
    kept, skipping = [], False
    for at, line in enumerate(lines):
        is_head = at + 1 < len(lines) and line.strip() and re.fullmatch(r"-{3,}", lines[at + 1].strip()) is not None
        if is_head:
            skipping = line.strip() == title
        if not skipping:
            kept.append(line)
    return kept


def with_literal_blocks(lines: list[str]) -> list[str]:
    """Paragraphs that are indented by four become literal blocks, as in Markdown; sections stay as they are."""
    done: list[str] = []
    literal = False
    for at, line in enumerate(lines):
        if at + 1 < len(lines) and line.strip() and re.fullmatch(r"-{3,}", lines[at + 1].strip()):
            return done + lines[at:]
        indented = line.startswith("    ")
        if indented and not literal and at and not lines[at - 1].strip():
            done += ["::", ""]
            literal = True
        elif line.strip() and not indented:
            literal = False
        done.append(line)
    return done


# ----------------------------------------------------------------------------------------------------
# Formulas.


def visit_math(translator: Any, node: nodes.math) -> None:
    """A formula in a line."""
    translator.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    """A formula of its own; a keyboard can scroll one that is wider than the page."""
    parts = node.astext().split(r"\qquad")  # a line each: a wide formula is hard to read on a narrow page
    formula = "".join(f"<div>{_mathml(part.strip(), 'block')}</div>" for part in parts)
    identifier = f' id="{node["ids"][0]}"' if node["ids"] else ""
    translator.body.append(f'<div class="formula" tabindex="0" role="group" aria-label="Formula"{identifier}>')
    translator.body.append(f"{formula}</div>\n")
    raise nodes.SkipNode


def _mathml(latex: str, display: str) -> str:
    return latex2mathml.converter.convert(" ".join(latex.split()), display=display)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect everything."""
    app.add_role("code-or-link", code_role)
    app.add_transform(LinkCode)
    app.connect("autodoc-process-docstring", before_numpydoc, priority=400)  # numpydoc has 500
    app.connect("autodoc-process-signature", constructor_signature)
    app.connect("env-updated", lambda app, env: note_aliases(app, env) or [])
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Assemble the source of the site: the documents, the pages of methods and of the API, in a folder below build.

    python docs/_ext/assemble.py build/docs/source

The documents are written for a forge, where they link to each other and to files of the repository by relative paths.
In the site they all stand below one folder, so a few links change (`_LINKS`). A file is written only if its text
differs, by which Sphinx knows what to read again.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
ROOT = DOCS.parent
sys.path.insert(0, str(HERE))

import api_pages  # noqa: E402
import method_pages  # noqa: E402

_PLACES = {  # a file -> its page; the folder _sections has the first page of each part of the site
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    ROOT / "SECURITY.md": "security.md",
    DOCS / "_sections" / "guides.md": "guides/index.md",
    DOCS / "_sections" / "papers.md": "papers/index.md",
    DOCS / "_sections" / "project.md": "project.md",
    DOCS / "_sections" / "results.md": "results/index.md",
}
_LEFT_OUT = {"_ext", "_sections", "_static", "_templates", "inventories"}  # of docs: what Sphinx reads from there
_WIDE = "---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n"  # the tables of the papers have five columns
_FROM_ROOT = {"CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"}
_LINKS = (  # in the documents below docs
    (re.compile(r"\]\((?:\.\./)+CONTRIBUTING\.md"), "](/contributing.md"),
    (re.compile(r"\]\((?:\.\./)+CHANGELOG\.md"), "](/changelog.md"),
    (re.compile(r"\]\((?:\.\./)+CODE_OF_CONDUCT\.md"), "](/code-of-conduct.md"),
    (re.compile(r"\]\((?:\.\./)+SECURITY\.md"), "](/security.md"),
    (re.compile(r"\]\((?:\.\./)+README\.md"), "](/index.md"),
    (
        re.compile(r"\]\((?:\.\./)+(examples|benchmarks|src|tests|CITATION\.cff|pyproject\.toml|LICENSE|noxfile\.py)"),
        r"](/repository/\1",
    ),
    (re.compile(r"\]\((?:\.\./)*(guides|papers)/?\)"), r"](/\1/index.md)"),
    (re.compile(r"\]\(_sections/project\.md"), "](/project.md"),
    (re.compile(r"\]\(_sections/(\w+)\.md"), r"](/\1/index.md"),
    (re.compile(r"\]\((?:\.\./)*(?:docs/)?results/?\)"), "](/results/index.md)"),
    (re.compile(r"\]\((?:\.\./)*(?:results/)?reproduced/?\)"), "](/results/index.md)"),
)
_LINKS_OF_ROOT = (
    (re.compile(r"\]\(docs/(guides|papers|results)/?\)"), r"](\1/index.md)"),
    (re.compile(r"\]\(docs/"), "]("),
    (re.compile(r"\]\(CONTRIBUTING\.md"), "](contributing.md"),
    (re.compile(r"\]\(CHANGELOG\.md"), "](changelog.md"),
    (re.compile(r"\]\(CODE_OF_CONDUCT\.md"), "](code-of-conduct.md"),
    (re.compile(r"\]\(SECURITY\.md"), "](security.md"),
    (re.compile(r"\]\(README\.md"), "](index.md"),
    (
        re.compile(r"\]\((examples|benchmarks|src|tests|CITATION\.cff|pyproject\.toml|LICENSE|noxfile\.py)"),
        r"](repository/\1",
    ),
)


def assemble(target: Path) -> int:
    """Write the source of the site and remove what does not belong to it any more; return the number of pages.

    sphinx-gallery writes its pages below `gallery`, which is left alone.
    """
    files = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*")) if _belongs(path)}
    files |= {place: path for path, place in _PLACES.items() if place not in files}
    texts = {place: _text(path) for place, path in files.items() if path.suffix == ".md"}
    texts |= api_pages.pages() | method_pages.pages()
    for place, text in texts.items():
        _write(target / place, text.encode())
    for place, path in files.items():
        if place not in texts:
            _write(target / place, path.read_bytes())
    named = set(re.findall(r"\]\(/?repository/([^)#\s]+)", "".join(texts.values())))
    for name in named:  # files of the repository that documents link to are downloads
        _write(target / "repository" / name, (ROOT / name).read_bytes())
    kept = {*texts, *files, *(f"repository/{name}" for name in named)}
    _remove_old_examples(target / "gallery")
    for path in sorted(target.rglob("*")):
        place = path.relative_to(target).as_posix()
        if path.is_file() and place not in kept and not place.startswith("gallery/"):
            path.unlink()
    return sum(place.endswith((".md", ".rst")) for place in texts)


def _remove_old_examples(gallery: Path) -> None:
    """Remove what sphinx-gallery made of examples that are gone."""
    scripts = {path.stem for path in (ROOT / "examples" / "gallery").glob("plot_*.py")}
    for path in gallery.glob("plot_*"):
        if path.name.partition(".")[0] not in scripts:
            path.unlink()


def _belongs(path: Path) -> bool:
    """Whether a file below docs is part of the site as it is."""
    parts = path.relative_to(DOCS).parts
    return path.is_file() and parts[0] not in _LEFT_OUT and "__pycache__" not in parts and path.suffix in _SUFFIXES


_SUFFIXES = {".md", ".svg", ".png", ".json"}


def _text(path: Path) -> str:
    """The text of a document, with links to the places that files have in the site."""
    text = path.read_text(encoding="utf-8")
    for pattern, new in _LINKS_OF_ROOT if path.name in _FROM_ROOT else _LINKS:
        text = pattern.sub(new, text)
    return _WIDE + text if path.parent == DOCS / "papers" else text


def _write(path: Path, content: bytes) -> None:
    """Write a file unless it has that content already."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main() -> None:
    """Assemble, or begin again with an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("--fresh", action="store_true", help="remove the folder first")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(options.target, ignore_errors=True)
    print(f"{assemble(options.target)} pages in {options.target}")


if __name__ == "__main__":
    main()

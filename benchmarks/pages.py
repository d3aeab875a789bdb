"""Writes the pages and figures of docs/results from templates and stored rows; measures nothing.

    python benchmarks/pages.py [NAME ...]    only pages and tables whose file name begins with one of the names

Files in docs/results/reproduced of tables that do not exist any more are removed. Exit code 1 if a page cannot be made.
"""

import sys
from pathlib import Path

from page_templates import REPRODUCED, render_documents

from manyhands.reproduce import table_names

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results"


def main() -> int:
    names = tuple(sys.argv[1:])
    documents = render_documents(FOLDER)
    for name, content in documents.files.items():
        path = FOLDER / name
        if names and not path.name.startswith(names):
            continue
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            print(f"wrote {name}")
    for name in removed(documents.files):
        print(f"removed {name}")
        (FOLDER / name).unlink()
    for problem in documents.problems:
        print(problem, file=sys.stderr)
    return int(any(".j2:" in problem for problem in documents.problems))


def removed(files) -> list[str]:
    """Files of tables that do not exist any more, and figures that their table does not have any more."""
    existing = {name.replace("/", "-") for name in table_names()}
    rendered = {name.removeprefix(f"{REPRODUCED}/").removesuffix(".md") for name in files if name.endswith(".md")}
    outdated = []
    for path in sorted((FOLDER / REPRODUCED).iterdir()):
        name = f"{REPRODUCED}/{path.name}"
        owner = max(
            (one for one in existing if path.stem == one or path.stem.startswith(f"{one}-")), default="", key=len
        )
        if name not in files and not path.stem.startswith("leaderboard") and (not owner or owner in rendered):
            outdated.append(name)
    return outdated


if __name__ == "__main__":
    sys.exit(main())

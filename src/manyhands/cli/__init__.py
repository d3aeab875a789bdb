"""The command line: one short file per command.

Data goes to stdout, words go to stderr. Exit codes: 0 done, 1 a fault of ours, 2 usage, 3 input that cannot be used,
5 a limit, 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; every error of ours becomes one sentence."""
    from manyhands.exceptions import MissingExtraError

    try:
        import manyhands.io.frames_library  # noqa: F401  # before the commands, which import polars themselves
    except MissingExtraError as error:
        print(f"manyhands: {error}", file=sys.stderr)
        sys.exit(3)
    from manyhands.cli.app import run

    sys.exit(run(sys.argv[1:]))

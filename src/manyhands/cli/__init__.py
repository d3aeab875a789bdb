"""The command line: one short file per command.

Data goes to stdout, words go to stderr. Exit codes: 0 done, 1 a fault of ours, 2 usage, 3 input that cannot be used,
5 a limit, 130 interrupted.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; every error of ours becomes one sentence."""
    from manyhands.cli.app import run

    sys.exit(run(sys.argv[1:]))

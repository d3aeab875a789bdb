"""Loads polars, or explains in one sentence why it cannot run on this processor.

The usual build of polars needs AVX2 and other instructions of processors since 2013. On an older processor it warns and
then crashes with a signal that no program can catch. The warning comes first, so it is turned into an error here. The
variable POLARS_SKIP_CPU_CHECK, which polars documents, switches off both checks.
"""

from __future__ import annotations

import re
import warnings

from manyhands.exceptions import MissingExtraError

_MISSING = re.compile(r"not detected:\s*(.+)")


def load_polars() -> None:
    """Import polars.

    Raises
    ------
    MissingExtraError
        If this processor lacks instructions that the installed build of polars needs.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Missing required CPU features", category=RuntimeWarning)
        try:
            import polars  # noqa: F401
        except RuntimeWarning as warning:
            found = _MISSING.search(str(warning))
            missing = found[1].strip() if found else "some instructions"
            raise MissingExtraError(
                f"The installed build of polars, which reads and writes tables, needs {missing}, which this processor "
                f"does not have. Install the build for older processors with: pip install 'polars[rtcompat]'"
            ) from None


load_polars()

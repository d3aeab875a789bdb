"""Data frames of callers: which library a frame belongs to, and frames of that library made from columns.

narwhals knows the libraries; frames of polars and pandas are read without it. Both are imported inside functions:
estimators and metrics are below `io`, and neither needs them before a frame appears.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from manyhands._core.spelling import suggest
from manyhands.exceptions import AnnotationError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    import polars as pl

# The function of `io`, a layer above, that reads a frame: reached by name, as the registry reaches methods.
_READ = ("manyhands.io.reading", "read_frame")

LIBRARIES = ("pandas", "polars", "pyarrow")  # frames that results come back as
_LIKE_PANDAS = ("modin", "cudf", "dask", "fireducks")  # libraries whose owners get results as pandas
_MISSING = re.compile(r"not detected:\s*(.+)")


def is_frame(value: Any) -> bool:
    """Whether a value is a data frame: it has named columns, or exports itself as an Arrow table."""
    cls = type(value)  # a lazy frame would have to be evaluated for its own columns
    has_columns = hasattr(cls, "columns") or hasattr(cls, "column_names")
    return has_columns or (hasattr(cls, "__arrow_c_stream__") and not hasattr(cls, "dtype"))


def library_of(frame: Any) -> str:
    """Return the library that results for the owner of a data frame should come from; "polars" for an unknown one."""
    names = [cls.__module__.partition(".")[0] for cls in type(frame).__mro__]
    if names[0] in _LIKE_PANDAS:
        return "pandas"
    return next((name for name in names if name in LIBRARIES), "polars")


def as_known_frame(frame: Any) -> Any:
    """Return a data frame of any library as one of polars, or of pandas where its library is like pandas.

    A lazy frame is evaluated. A frame of Spark is not: it may be larger than this machine's memory.
    """
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if isinstance(frame, pl.DataFrame) or type(frame).__module__.partition(".")[0] == "pandas":
        return frame
    import narwhals.stable.v2 as nw

    try:
        known = nw.from_native(nw.to_native(frame, pass_through=True))
    except TypeError:  # not a library that narwhals knows
        if hasattr(frame, "iloc"):  # a subclass of pandas' frames, or something that works like them
            return frame
        if hasattr(frame, "__arrow_c_stream__"):
            return pl.DataFrame(frame)
        raise AnnotationError(
            f"A {type(frame).__name__} is not a data frame of a library that is known here, such as pandas, polars or "
            f"pyarrow. Give one, or a path."
        ) from None
    if isinstance(known, nw.LazyFrame):
        if known.implementation.is_spark_like():
            raise AnnotationError(
                "A data frame of Spark is not brought to one machine by itself. Use manyhands.spark, or give "
                "frame.toPandas() where it fits in memory."
            )
        known = known.collect() if known.implementation.is_dask() else known.collect("polars")
    return known.to_pandas() if known.implementation.is_pandas_like() else known.to_polars()


def read_frame(frame: Any) -> Any:
    """Return the labels of a data frame as `Annotations`, which remember the library of the frame."""
    module, name = _READ
    return getattr(import_module(module), name)(frame)


def load_polars() -> None:
    """Import polars, or explain in one sentence why it cannot run on this processor.

    The usual build of polars needs AVX2 and other instructions of processors since 2013. On an older processor it warns
    and then crashes with a signal that no program can catch. The warning comes first, so it is turned into an error
    here. The variable POLARS_SKIP_CPU_CHECK, which polars documents, switches off both checks.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Missing required CPU features", category=RuntimeWarning)
        try:
            import polars  # noqa: F401
        except RuntimeWarning as warning:
            match = _MISSING.search(str(warning))
            missing = match[1].strip() if match else "some instructions"
            raise MissingExtraError(
                f"The installed build of polars, which reads and writes tables, needs {missing}, which this processor "
                f"does not have. Install the build for older processors with: pip install 'polars[rtcompat]'"
            ) from None


def make_frame(columns: Mapping[str, Any], library: str | None = None, index: str | None = None) -> Any:
    """Make a data frame of a library from columns; `index` becomes the index of a pandas frame."""
    return convert_frame(as_table(columns), library, index)


def as_table(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Make a table from columns: NaN is a missing number, and a column without any value is text."""
    import polars as pl

    table = pl.DataFrame(dict(columns), strict=False)
    floats = [name for name, dtype in table.schema.items() if dtype.is_float()]
    empty = [name for name, dtype in table.schema.items() if dtype == pl.Null]
    return table.with_columns(pl.col(floats).fill_nan(None), pl.col(empty).cast(pl.String))


def convert_frame(table: pl.DataFrame, library: str | None, index: str | None = None) -> Any:
    """Convert a table to a data frame of another library; None is polars."""
    if library is None or library == "polars":
        return table
    if library not in LIBRARIES:
        raise ParameterError(f"There is no library called {library!r}.{suggest(library, LIBRARIES)}")
    try:
        if library == "pyarrow":
            return table.to_arrow()
        import pandas
    except ImportError:
        raise MissingExtraError(
            f"{library} is not installed: pip install {library}, or use library='polars'."
        ) from None
    frame = pandas.DataFrame(table.to_dict(as_series=False))
    return frame if index is None else frame.set_index(index)

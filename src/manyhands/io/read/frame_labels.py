"""Labels of a data frame that was passed where `Annotations` are expected."""

from __future__ import annotations

import warnings
from typing import Any

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.messages import listed
from manyhands.io.read.reading import read_export

_OPTIONS = "mh.read_annotations(df, item=..., worker=..., label=...)"


def read_frame(frame: Any) -> Annotations:
    """Read a data frame with the default options of `manyhands.read_annotations`.

    Parameters
    ----------
    frame : data frame
        One row per label, or one per item and a column per worker.

    Returns
    -------
    Annotations

    Raises
    ------
    AnnotationError
        If the columns are not recognised; the message names `mh.read_annotations`, which takes their names.

    Warns
    -----
    CrowdWarning
        If every worker was taken to have a column, so that a column with another meaning does not count in silence.
    """
    try:
        reading = read_export(frame)
    except AnnotationError as error:
        if "mh.read_annotations(" in str(error):
            raise
        raise AnnotationError(
            f"{error} {_OPTIONS} takes the names of columns and other options; pass on what it returns."
        ) from None
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    if reading.format == "wide":
        workers = listed([str(worker) for worker in reading.annotations.worker_ids])
        warnings.warn(
            f"wide_frame: The data frame was read as one column per worker ({workers}). If that is wrong, name the "
            f"columns: {_OPTIONS}.",
            CrowdWarning,
            stacklevel=2,
        )
    return reading.annotations

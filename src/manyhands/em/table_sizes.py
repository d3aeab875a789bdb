"""How much memory the confusion matrices of all workers take."""

from __future__ import annotations

from manyhands.annotations import Annotations
from manyhands.validation import check_memory

_TABLES = 6  # arrays of the size of all confusion matrices that EM holds at a time
_SMALL_TABLES = 1 << 22  # numbers in the confusion matrices of all workers, 32 MB


def check_tables(annotations: Annotations) -> None:
    """Refuse a crowd whose confusion matrices would not fit into memory.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Raises
    ------
    LimitError
        Where they would take more memory than there is.
    """
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    check_memory(
        8.0 * _TABLES * n_workers * n_classes**2,
        f"Confusion matrices for {n_workers} workers and {n_classes} classes",
        "Use wawa or majority-vote, or merge rare classes.",
    )


def has_small_tables(annotations: Annotations) -> bool:
    """Whether confusion matrices for all workers cost little compared with the labels; a vote needs none.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    bool
    """
    return annotations.n_workers * annotations.n_classes**2 <= max(_SMALL_TABLES, annotations.n_annotations)

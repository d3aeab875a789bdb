"""How much memory the confusion matrices of all workers take."""

from __future__ import annotations

from manyhands.annotations import Annotations
from manyhands.exceptions import LimitError
from manyhands.validation import check_memory

_TABLES = 6  # arrays of the size of all confusion matrices that EM holds at a time
_MAX_CLASSES = 32768  # the product of 64 normalisers, each at most this, is still a double
_MAX_ROWS = (1 << 31) - 1  # that codes of 32 bits can name
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
    check_table_size(annotations.n_workers, annotations.n_classes)


def table_bytes(n_workers: int, n_classes: int, n_tables: int = _TABLES) -> float:
    """Estimate the memory of the confusion matrices during EM.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    n_tables : int, default=6
        Arrays of the size of all confusion matrices that are held at a time.

    Returns
    -------
    float
        Bytes.
    """
    return 8.0 * n_tables * n_workers * n_classes**2


def check_table_size(n_workers: int, n_classes: int, n_tables: int = _TABLES) -> None:
    """Refuse confusion matrices that would not fit into memory or exceed the largest index.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    n_tables : int, default=6
        Arrays of the size of all confusion matrices that are held at a time.

    Raises
    ------
    LimitError
        Where they would take more memory than there is, or have more rows than codes of 32 bits can name.
    """
    check_memory(
        table_bytes(n_workers, n_classes, n_tables),
        f"Confusion matrices for {n_workers} workers and {n_classes} classes",
        "Use wawa or majority-vote, or merge rare classes.",
    )
    if n_classes > _MAX_CLASSES or n_workers * n_classes > _MAX_ROWS:  # whatever memory there is
        raise LimitError(
            f"Confusion matrices for {n_workers} workers and {n_classes} classes are more than the {_MAX_CLASSES} "
            f"classes and {_MAX_ROWS} rows that a table can have. "
            f"Use wawa or majority-vote, or merge rare classes."
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
    return are_small_tables(annotations.n_workers, annotations.n_classes, annotations.n_annotations)


def are_small_tables(n_workers: int, n_classes: int, n_labels: int) -> bool:
    """The same from the sizes of a crowd.

    Parameters
    ----------
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    n_labels : int
        Number of labels.

    Returns
    -------
    bool
    """
    return n_workers * n_classes**2 <= max(_SMALL_TABLES, n_labels)

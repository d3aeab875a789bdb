"""Stray classes: labels so rare and so isolated that they are probably typing errors.

Two such classes among 145,959 labels of four classes cost the default method seven points of accuracy: an extra class
takes posterior mass from all others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.messages import counted, listed, shorten
from manyhands.io.read.text_encoding import Coded

RARE_CLASSES = ("drop", "keep", "error")
MERGE = "merge:"

_ONE_IN = 20_000  # a stray class has fewer than 1 label in this number of labels
MOST_LABELS = 5  # labels of a stray class
_MOST_OF_ALL = 1_000  # if more than 1 label in this number would be stray, rare classes are common: none is stray

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Strays:
    """Stray classes of an export.

    Attributes
    ----------
    counts : dict of str to int
        Class -> number of labels.
    n_labels : int
        Number of all labels.
    """

    counts: dict[str, int]
    n_labels: int

    def note(self, policy: str) -> str:
        """Return the sentence that says what was found, what was done with it, and what else can be done.

        Parameters
        ----------
        policy : str
            What was done.

        Returns
        -------
        str
            The sentence.
        """
        n = sum(self.counts.values())
        names = listed([f"{shorten(name)!r} ({counted(n, 'label')})" for name, n in self.counts.items()])
        done = {
            "drop": "were left out of the model; their items are kept",
            "keep": "were kept as classes",
            "error": "were refused, as --rare-classes error asks",
        }.get(policy, f"were counted as {policy.removeprefix(MERGE)!r}")
        return (
            f"{names} among {self.n_labels} labels: so rare, and never chosen by two workers for one item, that they "
            f"may be typing errors. {'They' if n > 1 else 'It'} {done if n > 1 else done.replace('were', 'was')}. "
            f"--rare-classes keep, drop, merge:LABEL or error decides."
        )


def check_policy(policy: str) -> None:
    """Refuse a policy that does not exist.

    Parameters
    ----------
    policy : str
        "drop", "keep", "error" or "merge:LABEL".

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if policy not in RARE_CLASSES and not (policy.startswith(MERGE) and policy.removeprefix(MERGE).strip()):
        raise ParameterError(f"rare_classes is {policy!r}; allowed are keep, drop, error and merge:LABEL.")


def find_strays(
    coded: dict[str, Coded],
    rows: npt.NDArray[np.intp] | slice,
    known: Collection[str],
    *,
    n_labels: int | None = None,
) -> tuple[npt.NDArray[np.bool_], Strays]:
    """Find the classes with at most five labels, fewer than 1 in 20,000, that no two workers chose for one item.

    Parameters
    ----------
    coded : dict of str to Coded
        Items, workers and labels.
    rows : ndarray of int, or slice
        The rows that count.
    known : collection of str
        Classes that the caller or the gold labels of the file name; they are not stray.
    n_labels : int, default=None
        Number of all labels, where the rows are those of the rarest classes only; None for the number of rows.

    Returns
    -------
    is_stray : ndarray of bool of shape (n_values,)
        For each distinct label.
    strays : Strays
        Their names and numbers.
    """
    item, worker, label = (coded[role].codes[rows] for role in ("item", "worker", "label"))
    values = coded["label"].values
    n_labels = len(label) if n_labels is None else n_labels
    counts = np.bincount(label, minlength=len(values))
    is_stray = (counts > 0) & (counts <= MOST_LABELS) & (counts * _ONE_IN < n_labels)
    if not is_stray.any():
        return is_stray, Strays({}, n_labels)
    names, here = values.to_list(), np.flatnonzero(is_stray[label])
    chosen: dict[tuple[int, int], set[int]] = {}  # (class, item) -> workers
    for code, at, who in zip(label[here].tolist(), item[here].tolist(), worker[here].tolist()):
        chosen.setdefault((code, at), set()).add(who)
    for (code, _), workers in chosen.items():
        is_stray[code] &= len(workers) == 1 and names[code] not in known
    if counts[is_stray].sum() * _MOST_OF_ALL > n_labels:
        is_stray[:] = False
    return is_stray, Strays({names[code]: int(counts[code]) for code in np.flatnonzero(is_stray)}, n_labels)


def merge_target(coded: Coded, policy: str, strays: Strays) -> str:
    """Return the class that stray labels are counted as.

    Parameters
    ----------
    coded : Coded
        Labels.
    policy : str
        "merge:LABEL".
    strays : Strays
        The stray classes, for the message.

    Returns
    -------
    str
        LABEL.

    Raises
    ------
    AnnotationError
        If the export has no such label.
    """
    wanted, names = policy.removeprefix(MERGE).strip(), coded.values.to_list()
    if wanted not in names or wanted in strays.counts:
        others = [name for name in names if name not in strays.counts]
        raise AnnotationError(
            f"rare_classes is {policy!r}, and the export has no other class {wanted!r}. It has: {listed(others)}."
        )
    return wanted

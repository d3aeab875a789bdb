"""`load`: real crowds from the folder that the environment variable MANYHANDS_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from manyhands.datasets import catalog
from manyhands.datasets import table_sets as crowds
from manyhands.datasets import vote_sets as votes
from manyhands.datasets.crowd_dataset import CrowdDataset
from manyhands.datasets.labels import DUPLICATES
from manyhands.exceptions import AnnotationError, ParameterError

VARIABLE = "MANYHANDS_DATA"

_FAMILIES = {
    "crowd": crowds.read_crowd,
    "patterns": votes.read_patterns,
    "items": votes.read_items,
    "hotel": votes.read_hotel,
    "syn": votes.read_syn,
}
_FILES = {  # the files that each family needs
    "crowd": ("annotations.csv",),
    "patterns": ("caries_patterns.csv",),
    "items": ("features.npz",),
    "hotel": ("features.npz", "votes.csv"),
    "syn": ("features.npz", "votes.csv"),
}


def load(name: str, *, features: str | None = None, duplicates: str | None = None) -> CrowdDataset:
    """Load a real crowd from the folder in MANYHANDS_DATA.

    Parameters
    ----------
    name : str
        One of `names()`; the part before a slash may be left out.
    features : str or None, default=None
        Which features to return as `X`, if there are several. labelme: "vgg16" (default), "vgg16-max", "efficientnet".
        weather_text: "embedding" (default), "lsa".
    duplicates : {"last", "all"} or None, default=None
        Which labels to keep if a worker labelled an item several times: the last row of the file, or all of them. None
        keeps the last, but all of agg/anesthesia, where repeats are by design.

    Returns
    -------
    CrowdDataset
        Ids and classes are integers if they are in the files.

    Raises
    ------
    ParameterError
        If there is no such data set or choice of features.
    AnnotationError
        If MANYHANDS_DATA is not set, or the files are missing or damaged.

    Examples
    --------
    >>> data = load("labelme")  # doctest: +SKIP
    >>> data.annotations.n_workers  # doctest: +SKIP
    59
    """
    full_name = catalog.find(name)
    spec = catalog.SPECS[full_name]
    if duplicates not in (None, *DUPLICATES):
        raise ParameterError(f"duplicates must be one of {', '.join(DUPLICATES)} or None. Got {duplicates!r}.")
    choices = list(spec.features)
    if features is not None and features not in choices:
        there = f"it has {', '.join(choices)}" if len(choices) > 1 else "leave the parameter out"
        raise ParameterError(f"The data set {full_name} has no choice of features called {features!r}; {there}.")
    chosen = spec.features[features or choices[0]] if choices else None
    folder = _folder_of(full_name)
    needed = set(_FILES[spec.family]) | ({chosen[0], "features.npz"} if chosen else set())
    _refuse_missing(folder, sorted(needed), full_name)
    return _FAMILIES[spec.family](folder, full_name, spec, chosen, duplicates or spec.duplicates)


def _folder_of(name: str) -> Path:
    """Return the folder of a data set."""
    given = os.environ.get(VARIABLE)
    if not given:
        raise AnnotationError(
            f"The environment variable {VARIABLE} is not set: let it name the folder that holds {name}, or use a "
            f"simulated set such as datasets.make_digits()."
        )
    if not Path(given).is_dir():
        raise AnnotationError(f"{VARIABLE} is {given!r}, which is not a folder; let it name the one that holds {name}.")
    folder = Path(given) / name
    if not folder.is_dir():
        there = [known for known in catalog.names() if (Path(given) / known).is_dir()]
        hint = catalog.nearest(name, there) or (f"; it has {', '.join(there[:3])}" if there else "")
        raise AnnotationError(f"The folder in {VARIABLE}, {given!r}, has no {name}{hint}.")
    return folder


def _refuse_missing(folder: Path, files: list[str], name: str) -> None:
    """Refuse a folder that lacks files."""
    missing = [file for file in files if not (folder / file).is_file()]
    if missing:
        raise AnnotationError(
            f"{name} in {VARIABLE} is not complete: {folder} has no {' and no '.join(missing)}. Copy it again."
        )

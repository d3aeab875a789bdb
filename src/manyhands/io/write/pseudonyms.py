"""Pseudonyms for workers, whose ids are often e-mail addresses."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.read.reading import Reading
from manyhands.randomness import make_generator

_MIN_ID = 2  # characters of an id that is searched for in messages; a single one would be found everywhere
_MIN_KEY = 16  # bytes
_LETTERS = 12  # hexadecimal digits of a keyed pseudonym: 48 bits


def pseudonymise(reading: Reading, key: str | Path | None = None) -> tuple[Reading, Callable[[str], str]]:
    """Replace the worker ids of an export by pseudonyms.

    Without a key, workers are numbered by volume: ``worker-001`` has the most labels. With a key, a pseudonym is
    computed from the key and the id (HMAC-SHA256), so that it is the same in every export, and cannot be reversed
    without the key.

    Parameters
    ----------
    reading : Reading
        The export.
    key : str, Path or None, default=None
        File with at least 16 secret bytes.

    Returns
    -------
    reading : Reading
        The same export with pseudonyms.
    hide : callable
        Replaces ids by pseudonyms in any text.

    Raises
    ------
    AnnotationError
        If the key is too short or missing.
    """
    annotations = reading.annotations
    names, hide = pseudonyms_of(annotations, None if key is None else read_key(key))
    renamed = Annotations(
        annotations.item,
        annotations.worker,
        annotations.label,
        item_ids=annotations.item_ids,
        worker_ids=names,
        classes=annotations.classes,
        weight=annotations.weight,
    ).marked_like(annotations)
    new_name = dict(zip(map(str, annotations.worker_ids.tolist()), names))
    kinds = {new_name[worker]: kind for worker, kind in reading.kinds.items() if worker in new_name}
    groups = {new_name[worker]: group for worker, group in reading.groups.items() if worker in new_name}
    notes = {code: hide(text) for code, text in reading.notes.items()}
    refusal = None if reading.refusal is None else hide(reading.refusal)
    if reading.item_fields is not None:
        reading.item_fields.drop_values(set(map(str, annotations.worker_ids.tolist())))
    source = hide(reading.source)
    time = rename_workers(reading.working_time, reading.annotations, renamed)
    shown = replace(reading, annotations=renamed, notes=notes, source=source, refusal=refusal, kinds=kinds)
    return replace(shown, working_time=time, groups=groups), hide


def rename_workers(values: Mapping[Any, Any], old: Annotations, new: Annotations) -> dict[Any, Any]:
    """Return a mapping by worker with the ids of other annotations of the same workers.

    Parameters
    ----------
    values : mapping
        Worker id -> anything.
    old : Annotations
        Annotations with these ids.
    new : Annotations
        The same with other ids.

    Returns
    -------
    dict
        New id -> the same value.
    """
    new_name = dict(zip(old.worker_ids.tolist(), new.worker_ids.tolist()))
    return {new_name[worker]: value for worker, value in values.items() if worker in new_name}


def pseudonyms_of(annotations: Annotations, key: bytes | None = None) -> tuple[list[str], Callable[[str], str]]:
    """Return a pseudonym for each worker, and a function that replaces ids by pseudonyms in any text.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    key : bytes or None, default=None
        Secret from which pseudonyms are derived; None numbers the workers by volume.

    Returns
    -------
    names : list of str
        Pseudonyms in the order of ``annotations.worker_ids``.
    hide : callable
        Replaces ids that stand as words of their own.
    """
    names = _numbered(annotations) if key is None else _keyed(annotations, key)
    return names, _make_replacer(dict(zip(map(str, annotations.worker_ids.tolist()), names)))


def _make_replacer(pseudonym: dict[str, str]) -> Callable[[str], str]:
    """Return a function that replaces ids that stand as words of their own, such as in notes and file names."""
    known = {name: new for name, new in pseudonym.items() if len(name) >= _MIN_ID}
    known |= {ascii(name)[1:-1]: new for name, new in known.items()}  # escaped as in the notes on look-alikes

    def hide(text: str) -> str:
        for name in sorted((name for name in known if name in text), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", known[name].replace("\\", r"\\"), text)
        return text

    return hide


def _numbered(annotations: Annotations) -> list[str]:
    """Return a number for each worker, those with the most labels first."""
    volume = np.bincount(annotations.worker, minlength=annotations.n_workers)
    rank = np.empty(annotations.n_workers, np.int64)
    rank[np.lexsort((_shuffled(annotations), -volume))] = np.arange(1, annotations.n_workers + 1)
    width = max(len(str(annotations.n_workers)), 3)
    return [f"worker-{number:0{width}d}" for number in rank.tolist()]


def _shuffled(annotations: Annotations) -> npt.NDArray[np.int64]:
    """Return an order of the workers that depends on the labels only: reproducible, and not alphabetical."""
    digest = hashlib.sha256(annotations.item.tobytes() + annotations.worker.tobytes() + annotations.label.tobytes())
    return make_generator(int.from_bytes(digest.digest()[:8], "big")).permutation(annotations.n_workers)


def _keyed(annotations: Annotations, key: bytes) -> list[str]:
    """Return a pseudonym from the key and each id."""
    digests = [hmac.digest(key, str(worker).encode(), "sha256").hex() for worker in annotations.worker_ids.tolist()]
    return [f"worker-{digest[:_LETTERS]}" for digest in digests]


def read_key(path: str | Path) -> bytes:
    """Read the secret from which pseudonyms are derived.

    Parameters
    ----------
    path : str or Path
        File with at least 16 bytes.

    Returns
    -------
    bytes
        The secret.

    Raises
    ------
    AnnotationError
        If the key is too short or missing.
    """
    try:
        key = Path(path).read_bytes().strip()
    except FileNotFoundError:
        key = b""
    if len(key) < _MIN_KEY:
        raise AnnotationError(
            f"{path} must hold at least {_MIN_KEY} secret bytes. Make one: "
            "python -c 'import secrets; print(secrets.token_hex())' > KEYFILE"
        )
    return key

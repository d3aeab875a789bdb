"""Pseudonyms for workers, whose ids are often e-mail addresses."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.read.reading import Reading
from manyhands.randomness import make_generator

_MIN_ID = 2  # letters of an id that is looked for in sentences; a single one would be found everywhere
_MIN_KEY = 16  # bytes
_LETTERS = 12  # of a keyed pseudonym: 48 bits


def pseudonymise(reading: Reading, key: str | Path | None = None) -> tuple[Reading, Callable[[str], str]]:
    """The same reading with other names for its workers, and what puts them in place of the old ones in any text.

    Without a key they are numbered, the busiest first: `worker-001`. With a secret file they come from its content and
    the id, so that a worker keeps his pseudonym from one export to the next, and nobody without the file can find out
    whose it is.
    """
    annotations = reading.annotations
    names = _numbered(annotations) if key is None else _keyed(annotations, _read_key(key))
    renamed = Annotations(
        annotations.item,
        annotations.worker,
        annotations.label,
        item_ids=annotations.item_ids,
        worker_ids=names,
        classes=annotations.classes,
    )
    hide = _make_replacer(dict(zip(map(str, annotations.worker_ids.tolist()), names)))
    notes = {code: hide(text) for code, text in reading.notes.items()}
    refusal = None if reading.refusal is None else hide(reading.refusal)
    return replace(reading, annotations=renamed, notes=notes, source=hide(reading.source), refusal=refusal), hide


def _make_replacer(pseudonym: dict[str, str]) -> Callable[[str], str]:
    """Replace ids where they stand as words of their own: in notes that quote them, in names of files after workers."""
    known = {name: new for name, new in pseudonym.items() if len(name) >= _MIN_ID}
    known |= {ascii(name)[1:-1]: new for name, new in known.items()}  # as notes on look-alikes spell them

    def hide(text: str) -> str:
        for name in sorted((name for name in known if name in text), key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", known[name].replace("\\", r"\\"), text)
        return text

    return hide


def _numbered(annotations: Annotations) -> list[str]:
    volume = np.bincount(annotations.worker, minlength=annotations.n_workers)
    rank = np.empty(annotations.n_workers, np.int64)
    rank[np.lexsort((_shuffled(annotations), -volume))] = np.arange(1, annotations.n_workers + 1)
    width = max(len(str(annotations.n_workers)), 3)
    return [f"worker-{number:0{width}d}" for number in rank.tolist()]


def _shuffled(annotations: Annotations) -> npt.NDArray[np.int64]:
    """An order of the workers that follows from the labels, so that it is the same each time and not the alphabet's."""
    digest = hashlib.sha256(annotations.item.tobytes() + annotations.worker.tobytes() + annotations.label.tobytes())
    return make_generator(int.from_bytes(digest.digest()[:8], "big")).permutation(annotations.n_workers)


def _keyed(annotations: Annotations, key: bytes) -> list[str]:
    digests = [hmac.digest(key, str(worker).encode(), "sha256").hex() for worker in annotations.worker_ids.tolist()]
    return [f"worker-{digest[:_LETTERS]}" for digest in digests]


def _read_key(path: str | Path) -> bytes:
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

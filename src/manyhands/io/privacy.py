"""Pseudonyms for workers, whose ids are often e-mail addresses."""

from __future__ import annotations

import hmac
from dataclasses import replace
from pathlib import Path

import numpy as np

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.reading import Reading

_LEAST_KEY = 16  # bytes
_LETTERS = 12  # of a keyed pseudonym: 48 bits


def pseudonymise(reading: Reading, key: str | Path | None = None) -> Reading:
    """The same reading with other names for its workers, so that nothing made from it knows the old ones.

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
    notes = {code: said for code, said in reading.notes.items() if code != "look_alike_ids"}  # it may quote workers
    return replace(reading, annotations=renamed, notes=notes)


def _numbered(annotations: Annotations) -> list[str]:
    volume = np.bincount(annotations.worker, minlength=annotations.n_workers)
    rank = np.empty(annotations.n_workers, np.int64)
    rank[np.argsort(-volume, kind="stable")] = np.arange(1, annotations.n_workers + 1)
    width = max(len(str(annotations.n_workers)), 3)
    return [f"worker-{number:0{width}d}" for number in rank.tolist()]


def _keyed(annotations: Annotations, key: bytes) -> list[str]:
    digests = [hmac.digest(key, str(worker).encode(), "sha256").hex() for worker in annotations.worker_ids.tolist()]
    return [f"worker-{digest[:_LETTERS]}" for digest in digests]


def _read_key(path: str | Path) -> bytes:
    try:
        key = Path(path).read_bytes().strip()
    except FileNotFoundError:
        key = b""
    if len(key) < _LEAST_KEY:
        raise AnnotationError(
            f"{path} must hold at least {_LEAST_KEY} secret bytes. Make one: "
            "python -c 'import secrets; print(secrets.token_hex())' > KEYFILE"
        )
    return key

"""Pseudonyms for workers, whose ids are often e-mail addresses, and the key that they come from."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.randomness import make_generator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.reading import Reading
from manyhands.io.write.pseudonym_words import ADJECTIVES, NOUNS

_MIN_ID = 2  # characters of an id that is searched for in messages; a single one would be found everywhere
_MIN_KEY = 16  # bytes
_MOST_WORDS = 8  # of a keyed pseudonym: two workers of other ids never share so many
LEFT_OUT = "left-out-worker"  # in place of the ids of all workers who are left out
KEY = "manyhands.key"  # the file with the key, beside the files whose workers it names


def pseudonymise(reading: Reading, key: bytes | None = None) -> tuple[Reading, Callable[[str], str]]:
    """Replace the worker ids of an export by pseudonyms.

    Without a key, workers are numbered by volume: ``worker-001`` has the most labels. With a key, a pseudonym is
    two words that are computed from the key and the id (HMAC-SHA256), so that it is the same in every export, and
    cannot be reversed without the key.
    """
    annotations = reading.annotations
    names, hide = pseudonyms_of(annotations, key, reading.left_out_workers)
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
        reading.item_fields.drop_values({*map(str, annotations.worker_ids.tolist()), *reading.left_out_workers})
    source = hide(reading.source)
    time = rename_workers(reading.working_time, reading.annotations, renamed)
    shown = replace(reading, annotations=renamed, notes=notes, source=source, refusal=refusal, kinds=kinds)
    bias = rename_workers(reading.position_bias, reading.annotations, renamed)
    return replace(shown, working_time=time, position_bias=bias, groups=groups, left_out_workers=()), hide


def rename_workers(values: Mapping[Any, Any], old: Annotations, new: Annotations) -> dict[Any, Any]:
    """Return a mapping by worker with the ids of other annotations of the same workers."""
    new_name = dict(zip(old.worker_ids.tolist(), new.worker_ids.tolist()))
    return {new_name[worker]: value for worker, value in values.items() if worker in new_name}


def pseudonyms_of(
    annotations: Annotations, key: bytes | None = None, left_out: Iterable[str] = ()
) -> tuple[list[str], Callable[[str], str]]:
    """Return a pseudonym for each worker, and a function that replaces ids by pseudonyms in any text.

    Ids of workers who are left out are replaced by one word for all of them.
    """
    names = _numbered(annotations) if key is None else _keyed(annotations, key)
    shown = dict.fromkeys(left_out, LEFT_OUT) | dict(zip(map(str, annotations.worker_ids.tolist()), names))
    return names, _make_replacer(shown)


def _make_replacer(pseudonym: dict[str, str]) -> Callable[[str], str]:
    """Return a function that replaces ids that stand as words of their own, such as in notes and file names."""
    replacement = {name: new for name, new in pseudonym.items() if len(name) >= _MIN_ID}
    replacement |= {
        ascii(name)[1:-1]: new for name, new in replacement.items()
    }  # escaped as in the notes on look-alikes

    def hide(text: str) -> str:
        names = sorted((name for name in replacement if name in text), key=len, reverse=True)
        if not names:
            return text
        ids = "|".join(map(re.escape, names))  # all at once: an id may be a word of a pseudonym
        return re.sub(rf"(?<!\w)(?:{ids})(?!\w)", lambda match: replacement[match[0]], text)

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
    """Return the first two words of each worker; all workers who would share a pseudonym take further words of theirs.

    None of them keeps the short pseudonym: in another export it could be that of the other one.
    """
    drawn = [_words(key, str(worker)) for worker in annotations.worker_ids.tolist()]
    names = ["-".join(next(words) for _ in range(2)) for words in drawn]
    for _ in range(2, _MOST_WORDS):
        count = Counter(names)
        if len(count) == len(names):
            break
        names = [f"{name}-{next(words)}" if count[name] > 1 else name for name, words in zip(names, drawn)]
    return names


def _words(key: bytes, worker: str) -> Iterator[str]:
    """Yield an adjective and nouns, drawn from the key and the id of one worker alone."""
    block, words = hmac.digest(key, worker.encode("utf-8", "surrogatepass"), "sha256"), ADJECTIVES
    while True:
        for begin in range(0, len(block), 8):  # 64 bits per word: all words are as good as equally likely
            yield words[int.from_bytes(block[begin : begin + 8], "big") % len(words)]
            words = NOUNS
        block = hmac.digest(key, block, "sha256")


# ----------------------------------------------------------------------------------------------------
# The key, in a file beside the files whose workers it names.


def find_secret(key: str | Path | None, folder: Path) -> tuple[bytes, dict[str, bytes]]:
    """Return the key of a file, or that of a folder; and the file to write if the folder has none yet."""
    given = folder / KEY if key is None else Path(key)
    if key is not None or given.exists():
        return read_key(given), {}
    secret = secrets.token_hex().encode()
    return secret, {KEY: secret + b"\n"}


def protect_secret(folder: Path, files: Mapping[str, bytes]) -> None:
    """Let nobody else read a new key."""
    if KEY in files:
        os.chmod(folder / KEY, 0o600)


def read_key(path: str | Path) -> bytes:
    """Read the secret from which pseudonyms are derived."""
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

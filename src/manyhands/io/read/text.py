"""Bytes as UTF-8 text: byte order marks, UTF-16, and what to say of anything else."""

from __future__ import annotations

import codecs
from dataclasses import replace

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.read.sources import Source

_MARKS = {  # the longer ones first: one of them begins like a shorter one
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def as_utf8(source: Source, encoding: str | None = None) -> Source:
    """The same file, in memory, in UTF-8 without a byte order mark; its content as it is, where it is that already.

    UTF-16 is recognised by its mark, or by a zero in every other byte. Whether all of the rest is UTF-8 is found out
    by whoever reads it, so that large files are looked through once. Lines that end as on old Macs end as elsewhere.
    """
    source = source.loaded()
    head = source.head
    if encoding is None:
        encoding = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None) or _alternating(head)
    if encoding is not None:
        source = replace(source, content=_decode(source, encoding))
    elif head.startswith(codecs.BOM_UTF8):
        source = replace(source, content=source.read()[len(codecs.BOM_UTF8) :])
    content = source.read()
    at = content.find(b"\0")
    if at >= 0:
        line = content.count(b"\n", 0, at) + 1
        raise AnnotationError(
            f"{source.name}, line {line}: a NUL byte, which text never has. Export the file again, or name its "
            "encoding, such as --encoding utf-16-le."
        )
    head = source.head
    if b"\r" in head and b"\n" not in content:
        source = replace(source, content=content.replace(b"\r", b"\n"))
    return source


def utf8_error(source: Source) -> str | None:
    """The sentence for a file that is not UTF-8; None where it is."""
    content = source.read()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        begin = max(content.rfind(b"\n", 0, error.start) + 1, error.start - 20)
        near = content[begin : error.start + 20].split(b"\n")[0].decode("cp1252", "replace").strip()
        return (
            f"{source.name}, line {line}: byte {error.start} is not UTF-8 text (as Windows text it reads {near!r}). "
            "Save the file as UTF-8, or name its encoding, such as --encoding cp1252."
        )
    return None


def _alternating(head: bytes) -> str | None:
    """The kind of UTF-16 in which every other byte of Latin letters is zero."""
    sample = head[:200]
    if len(sample) < 4 or any(sample[0::2]) == any(sample[1::2]):
        return None
    return "utf-16-le" if any(sample[0::2]) else "utf-16-be"


def _decode(source: Source, encoding: str) -> bytes:
    content = source.read()
    try:
        return content.decode(encoding).removeprefix("\ufeff").encode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise AnnotationError(
            f"{source.name}, line {line}: byte {error.start} is not {encoding} ({error.reason}). "
            "Name another encoding with --encoding."
        ) from None
    except UnicodeError:
        raise AnnotationError(f"{source.name} is not {encoding} text. Name another encoding with --encoding.") from None
    except (LookupError, ValueError):
        raise ParameterError(f"There is no encoding called {encoding!r}. Common ones: utf-8, utf-16, cp1252.") from None

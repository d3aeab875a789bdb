"""Text encodings: bytes of a file as UTF-8, with error messages that name the line."""

from __future__ import annotations

import codecs
from dataclasses import replace

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.read.sources import Source

ENCODING_ADVICE = ", or name its encoding, such as --encoding cp1252"  # the end of a sentence
_MARKS = {  # the longer ones first: one of them begins like a shorter one
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def as_utf8(source: Source, encoding: str | None = None) -> Source:
    r"""Return a file in memory, in UTF-8 without a byte order mark.

    UTF-16 and UTF-32 are recognised by their byte order mark, UTF-16 also by a zero in every other byte. Whether the
    rest is valid UTF-8 is left to the parser, so that large files are scanned once. Line ends of old Macs (``\r``) are
    replaced.

    Parameters
    ----------
    source : Source
        The file.
    encoding : str or None, default=None
        Its encoding; None to recognise it.

    Returns
    -------
    Source
        The same file with its content in UTF-8; the same object if nothing had to be changed.

    Raises
    ------
    AnnotationError
        If the content is not text in this encoding, or has NUL bytes.
    ParameterError
        If there is no such encoding.
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
    """Return the error message for a file that is not UTF-8.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    str or None
        The message, with the line and the position of the first wrong byte; None if the file is UTF-8.
    """
    content = source.read()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        begin = max(content.rfind(b"\n", 0, error.start) + 1, error.start - 20)
        near = content[begin : error.start + 20].split(b"\n")[0].decode("cp1252", "replace").strip()
        return (
            f"{source.name}, line {line}: byte {error.start} is not UTF-8 text (as Windows text it reads {near!r}). "
            f"Save the file as UTF-8{ENCODING_ADVICE}."
        )
    return None


def _alternating(head: bytes) -> str | None:
    """Return the kind of UTF-16 in which every other byte of Latin letters is zero, or None."""
    sample = head[:200]
    if len(sample) < 4 or any(sample[0::2]) == any(sample[1::2]):
        return None
    return "utf-16-le" if any(sample[0::2]) else "utf-16-be"


def _decode(source: Source, encoding: str) -> bytes:
    """Return the content in UTF-8, decoded from another encoding."""
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

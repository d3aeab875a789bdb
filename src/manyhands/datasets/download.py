"""Downloads over http(s): streamed, limited in size and time, verified, and only then given their name.

A run that fails or is killed leaves no file under the final name. Redirects may lead to http(s) addresses only, and
not from https to http.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from manyhands.exceptions import DownloadError, LimitError

_CHUNK = 1 << 20
_LENGTHS = {32: "md5", 64: "sha256"}  # hexadecimal digits of each checksum


@dataclass(frozen=True)
class RetryPolicy:
    """Time limits and number of attempts.

    Attributes
    ----------
    timeout : float
        Seconds to wait for a response.
    total : float
        Seconds for a whole file.
    tries : int
        Number of attempts.
    pause : float
        Seconds before the second attempt; the pause grows with each attempt.
    """

    timeout: float = 30.0
    total: float = 3600.0
    tries: int = 3
    pause: float = 1.0


def download(url: str, final: Path, checksum: str, max_bytes: int, policy: RetryPolicy | None = None) -> Path:
    """Download a file, unless a file with this checksum exists already.

    Parameters
    ----------
    url : str
        Its address.
    final : Path
        Where to put it.
    checksum : str
        MD5 or SHA-256 in hexadecimal digits.
    max_bytes : int
        Largest size that is downloaded.
    policy : RetryPolicy or None, default=None
        Time limits and number of attempts.

    Returns
    -------
    Path
        `final`.

    Raises
    ------
    DownloadError
        If it cannot be downloaded, or has another checksum.
    LimitError
        If it is too large.
    """
    if final.is_file() and has_checksum(final, checksum):
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{final.name}.", suffix=".part", dir=final.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            retrieve(url, file, max_bytes, policy or RetryPolicy())
            file.flush()
            os.fsync(file.fileno())
        if not has_checksum(part, checksum):
            raise DownloadError(
                f"The download from {url} is not the published file (its checksum is not {checksum}), so nothing "
                f"was kept. Try again later, or from another network."
            )
        os.replace(part, final)
    finally:
        part.unlink(missing_ok=True)
    return final


def has_checksum(path: Path, checksum: str) -> bool:
    """Whether a file has this checksum.

    Parameters
    ----------
    path : Path
        The file.
    checksum : str
        MD5 or SHA-256 in hexadecimal digits.

    Returns
    -------
    bool
        True if it does.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, lambda: hashlib.new(_LENGTHS[len(checksum)], usedforsecurity=False))
    return found.hexdigest() == checksum.lower()


def parse_checksum(text: str, where: str) -> str:
    """Return the checksum in a publisher's file: its first word, of 32 or 64 hexadecimal digits.

    Parameters
    ----------
    text : str
        Content of the file.
    where : str
        Its name, for the error message.

    Returns
    -------
    str
        The checksum in lower case.

    Raises
    ------
    DownloadError
        If there is none.
    """
    word = (text.split() or [""])[0].lower()
    if len(word) not in _LENGTHS or not re.fullmatch("[0-9a-f]+", word):
        raise DownloadError(f"{where} should be a checksum, and is not. Try again later.")
    return word


def retrieve(url: str, file: IO[bytes], max_bytes: int, policy: RetryPolicy) -> None:
    """Write the content of an address into a file, starting again if the connection breaks.

    Parameters
    ----------
    url : str
        The address.
    file : binary file
        Open for writing; it is emptied before each attempt.
    max_bytes : int
        Largest size that is downloaded.
    policy : RetryPolicy
        Time limits and number of attempts.

    Raises
    ------
    DownloadError
        If all attempts fail.
    LimitError
        If it is too large.
    """
    last = ""
    for attempt in range(policy.tries):
        if attempt:
            time.sleep(policy.pause * attempt)
        file.seek(0)
        file.truncate()
        try:
            return _stream(url, file, max_bytes, policy)
        except urllib.error.HTTPError as error:
            error.close()
            last = f"the server answered {error.code} {error.reason}"
            if error.code < 500 and error.code not in (408, 429):
                break  # another attempt would give the same response
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError, ssl.SSLError) as error:
            last = f"{getattr(error, 'reason', error) or type(error).__name__}"
    raise DownloadError(
        f"{url} could not be fetched: {last}. Check the connection, or put the file into the folder by hand."
    )


def _stream(url: str, file: IO[bytes], max_bytes: int, policy: RetryPolicy) -> None:
    """Make one attempt to download a file."""
    _refuse_scheme(url)
    deadline = time.monotonic() + policy.total
    request = urllib.request.Request(url, headers={"User-Agent": "manyhands"})
    with _opener().open(request, timeout=policy.timeout) as response:
        announced = response.headers.get("Content-Length")
        expected = int(announced) if announced and announced.isdecimal() else None
        _refuse_size(url, expected or 0, max_bytes)
        n_bytes = 0
        while chunk := response.read(_CHUNK):
            n_bytes += len(chunk)
            _refuse_size(url, n_bytes, max_bytes)
            if time.monotonic() > deadline:
                raise DownloadError(f"{url} was not complete after {policy.total:g} seconds. Try again later.")
            file.write(chunk)
    if expected is not None and n_bytes != expected:
        raise ConnectionError(f"the connection ended after {n_bytes} of {expected} bytes")


def _refuse_size(url: str, n_bytes: int, max_bytes: int) -> None:
    """Refuse a file that is too large."""
    if n_bytes > max_bytes:
        raise LimitError(f"{url} is larger than the {max_bytes} bytes it may have, so nothing was kept.")


def _refuse_scheme(url: str) -> None:
    """Refuse addresses other than http(s)."""
    if not url.lower().startswith(("https://", "http://")):
        raise DownloadError(f"Files are fetched from http:// and https:// addresses only, not from {url}.")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http(s) addresses, but not from https to http."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        """Return the request of a redirect, or refuse it."""
        try:
            _refuse_scheme(newurl)
            if req.full_url.lower().startswith("https://") and not newurl.lower().startswith("https://"):
                raise DownloadError(f"{req.full_url} leads to {newurl}, which is not encrypted; that is refused.")
        except DownloadError:
            fp.close()  # urllib does not close it
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """Return an opener without the handlers for file, ftp and data addresses that urllib adds by default."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener

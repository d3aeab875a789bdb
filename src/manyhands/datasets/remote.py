"""`fetch`: public data sets from the web; verified by checksum and kept in a cache folder.

The file: downloads; the public data sets; `fetch` and a function for each of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import io
import os
import re
import ssl
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from manyhands._core.arrays import AnyArray
from manyhands._core.spelling import nearest
from manyhands._core.writing import write_files
from manyhands.datasets import local
from manyhands.datasets.local import Column, CrowdDataset, read_bz2, read_packed_tables
from manyhands.exceptions import AnnotationError, DownloadError, LimitError, ParameterError
from manyhands.validation import Number, check_parameters

# ----------------------------------------------------------------------------------------------------
# Downloads over http(s): streamed, limited in size and time, verified, and only then given their name.
#
# A run that fails or is killed leaves no file under the final name. Redirects may lead to http(s) addresses only, and
# not from https to http.

_CHUNK = 1 << 20  # bytes read at a time
_LENGTHS = {32: "md5", 64: "sha256"}  # hexadecimal digits of each checksum


@dataclass(frozen=True)
class RetryPolicy:
    """Time limits and number of attempts."""

    timeout: float = 30.0  # seconds to wait for a response
    total: float = 3600.0  # seconds for a whole file
    tries: int = 3
    pause: float = 1.0  # seconds before the second attempt; the pause grows with each attempt


def download(url: str, final: Path, checksum: str, max_bytes: int, policy: RetryPolicy | None = None) -> Path:
    """Download a file, unless a file with this checksum exists already."""
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
    """Whether a file has this checksum."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.new(_LENGTHS[len(checksum)], usedforsecurity=False))
    return digest.hexdigest() == checksum.lower()


def parse_checksum(text: str, where: str) -> str:
    """Return the checksum in a publisher's file: its first word, of 32 or 64 hexadecimal digits."""
    word = (text.split() or [""])[0].lower()
    if len(word) not in _LENGTHS or not re.fullmatch("[0-9a-f]+", word):
        raise DownloadError(f"{where} should be a checksum, and is not. Try again later.")
    return word


def retrieve(url: str, file: IO[bytes], max_bytes: int, policy: RetryPolicy) -> None:
    """Write the content of an address into a file, starting again if the connection breaks."""
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


# ----------------------------------------------------------------------------------------------------
# Public data sets: their addresses, published checksums, and the names of their tables and columns.
#
# relevance2, relevance5, nist_trec_relevance, netease_crowd   addresses and MD5 sums published with crowd-kit
# cifar10h                                                     address and SHA-256 in TensorFlow Datasets
# usps                                                         addresses and MD5 sums in torchvision
# gisette                                                      addresses of UCI; its SHA-256 sums are those in the
#                                                              benchmarks of scikit-learn-intelex

_TOLOKA = "https://tlk.s3.yandex.net/dataset/crowd-kit"
_NETEASE = "https://huggingface.co/datasets/liuhyuu/NetEaseCrowd/resolve/58cab8743581a2647dcc86590a5a2aaf5429fa8c"
_CIFAR10H = "https://github.com/jcpeterson/cifar-10h/raw/389f22d9d300ec71a4c44735d46f550c94b957ab/data"
_GISETTE = "https://archive.ics.uci.edu/ml/machine-learning-databases/gisette"
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"


@dataclass(frozen=True)
class Remote:
    """A file on the web and its checksum."""

    base: str  # address of its folder
    file: str  # name of the file
    checksum: str | None = None  # MD5 or SHA-256 in hexadecimal digits
    checksum_file: str | None = None  # file beside it in which the publisher states the checksum
    max_bytes: int = 100_000_000  # largest size that is downloaded


@dataclass(frozen=True)
class Tables:
    """Members of an archive that hold labels and truth, and their columns."""

    labels: str = "crowd_labels.csv"  # file with the labels
    # columns of item, worker and label; each may have one of several names
    triple: tuple[tuple[str, ...], ...] = (("task",), ("worker", "performer"), ("label",))
    truth: str = "gt.csv"  # file with the ground truth
    pair: tuple[str, ...] = ("task", "label")  # its columns of item and class
    unless: str | None = None  # rows in which this column is not 0 are left out


@dataclass(frozen=True)
class PublicSet:
    """A public data set."""

    description: str
    remotes: tuple[Remote, ...]
    tables: Tables | None = None  # its tables; None if it has no annotations
    class_names: tuple[str, ...] | None = None  # names of the classes


SOURCES: dict[str, PublicSet] = {
    "relevance2": PublicSet(
        "Relevance of documents, yes or no, Toloka 2016: about 0.5 million labels, truth of a part.",
        (Remote(_TOLOKA, "relevance-2.zip", "a39c3c30d9e946eeb80ca39954c96e95"),),
        Tables(),
    ),
    "relevance5": PublicSet(
        "Relevance of documents in five grades, Toloka 2016: about a million labels, truth of a part.",
        (Remote(_TOLOKA, "relevance-5.zip", "4520f973003c7e151051e888edcd1a03"),),
        Tables(),
    ),
    "nist_trec_relevance": PublicSet(
        "Relevance of web pages, TREC 2010: 98,453 labels on 20,232 items by 766 workers, truth of a part.",
        (Remote(_TOLOKA, "relevance.zip", "afc308986bb0cac865bf2434eb49a3f4"),),
        Tables(),
    ),
    "netease_crowd": PublicSet(
        "NetEaseCrowd, CC BY-SA 4.0: 6 million labels on a million items by 2,413 workers, with truth.",
        (Remote(_NETEASE, "NetEaseCrowd.zip", checksum_file="NetEaseCrowd.md5", max_bytes=1_000_000_000),),
        Tables(triple=(("taskId",), ("workerId",), ("answer",)), pair=("taskId", "truth")),
    ),
    "cifar10h": PublicSet(
        "CIFAR-10H, CC BY-NC-SA 4.0: 514,200 labels on the 10,000 test images of CIFAR-10 by 2,571 workers.",
        (
            Remote(
                _CIFAR10H,
                "cifar10h-raw.zip",
                "4b0283f9b2ae72a616eeb4a2a38474cc2a238eb041bfb8df5ead3a8a47f35aa3",
            ),
        ),
        Tables(
            labels="cifar10h-raw.csv",
            triple=(("cifar10_test_test_idx",), ("annotator_id",), ("chosen_label",)),
            truth="cifar10h-raw.csv",
            pair=("cifar10_test_test_idx", "true_label"),
            unless="is_attn_check",
        ),
        ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    ),
    "gisette": PublicSet(
        "Gisette, UCI: two handwritten digits by 5,000 numbers, half of them without information; 6,000 items and "
        "1,000 for testing; no annotations. The classes are 1 where the file has 1, and 0 where it has -1.",
        (
            Remote(
                f"{_GISETTE}/GISETTE",
                "gisette_train.data",
                "6d4c5e998afe67937b9e77a3334e03c85e545ebc65a6eb1333ffc14125cfc389",
                max_bytes=200_000_000,
            ),
            Remote(
                f"{_GISETTE}/GISETTE",
                "gisette_train.labels",
                "42bd681fe51b161f033df773df14a0116e492676555ab14616c1b72edc054075",
            ),
            Remote(
                f"{_GISETTE}/GISETTE",
                "gisette_valid.data",
                "5cea897956dd172a006132738254a27a8f61ecc1ceb6f5b20639c281d2942254",
            ),
            Remote(
                _GISETTE,
                "gisette_valid.labels",
                "a6b857a0448023f033c4dda2ef848714b4be2ae45ce598d088fb3efb406e08c5",
            ),
        ),
    ),
    "usps": PublicSet(
        "Handwritten digits of 16 x 16 pixels, 0 to 255; 7291 items and 2007 for testing; no annotations.",
        (
            Remote(_USPS, "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
            Remote(_USPS, "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
    ),
}

# ----------------------------------------------------------------------------------------------------
# `fetch`, and a function for each data set.

VARIABLE = "MANYHANDS_CACHE"
_CHECKSUM_BYTES = 10_000  # limit for a file with a checksum


def fetch_names() -> list[str]:
    """Return the names that `fetch` accepts.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> fetch_names()
    ['cifar10h', 'gisette', 'netease_crowd', 'nist_trec_relevance', 'relevance2', 'relevance5', 'usps']
    """
    return sorted(SOURCES)


def fetch(
    name: str, folder: str | Path | None = None, *, address: str | None = None, timeout: float = 30.0
) -> CrowdDataset:
    """Download a public data set, or read it from the cache.

    Parameters
    ----------
    name : str
        One of `fetch_names()`.
    folder : str, Path or None, default=None
        Folder for the files; None for the one in MANYHANDS_CACHE, or else the cache folder of the user.
    address : str or None, default=None
        Address of a mirror, https:// or http://; checksums are those of the publisher.
    timeout : float, default=30.0
        Seconds to wait for a response; three attempts are made.

    Returns
    -------
    CrowdDataset
        The data set. If a worker labelled an item several times, the last label is kept.

    Raises
    ------
    ParameterError
        If there is no such data set.
    DownloadError
        If it cannot be downloaded, or is not the published file.

    Examples
    --------
    >>> data = fetch("relevance2")  # doctest: +SKIP
    """
    if name not in SOURCES:
        hint = nearest(name, SOURCES)
        raise ParameterError(f"There is no public data set called {name!r}{hint}.")
    check_parameters("fetch", {"timeout": timeout}, {"timeout": Number(above=0)})
    source = SOURCES[name]
    home = (cache_folder() if folder is None else Path(folder)) / name
    policy = RetryPolicy(timeout=timeout)
    files = [_obtain(remote, home, address or remote.base, policy) for remote in source.remotes]
    if source.tables is not None:
        return _read_crowd(name, source, files[0])
    return {"usps": _read_usps, "gisette": _read_gisette}[name](name, source, files)


def fetch_relevance2(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch relevance2: half a million binary relevance labels.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        The data set.
    """
    return fetch("relevance2", folder)


def fetch_relevance5(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch relevance5: a million relevance labels in five grades.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        The data set.
    """
    return fetch("relevance5", folder)


def fetch_nist_trec_relevance(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch the relevance labels of TREC 2010: a hundred thousand labels.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        The data set.
    """
    return fetch("nist_trec_relevance", folder)


def fetch_netease_crowd(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch NetEaseCrowd: six million labels.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        The data set.
    """
    return fetch("netease_crowd", folder)


def fetch_cifar10h(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch CIFAR-10H: half a million labels on the test images of CIFAR-10.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        The data set.
    """
    return fetch("cifar10h", folder)


def fetch_usps(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch USPS: handwritten digits to simulate crowds on.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        Features and truth without annotations.
    """
    return fetch("usps", folder)


def fetch_gisette(folder: str | Path | None = None) -> CrowdDataset:
    """Fetch Gisette: two digits by 5,000 numbers, to simulate crowds on.

    Parameters
    ----------
    folder : str, Path or None, default=None
        As in `fetch`.

    Returns
    -------
    CrowdDataset
        Features and truth without annotations.
    """
    return fetch("gisette", folder)


def cache_folder() -> Path:
    """Return the folder in MANYHANDS_CACHE, or else `manyhands` in the cache folder of this user and system."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    if base := os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"):
        return Path(base) / "manyhands"
    try:
        home = Path.home()
    except RuntimeError:
        raise DownloadError(f"There is no home folder to keep files in; let {VARIABLE} name a folder.") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "manyhands"


def _obtain(remote: Remote, home: Path, base: str, policy: RetryPolicy) -> Path:
    """Return the verified file; a checksum that only a file of the publisher states is fetched first, and kept."""
    base = base.rstrip("/")
    try:
        checksum = remote.checksum or _published_checksum(remote, home, policy)
        return download(f"{base}/{remote.file}", home / remote.file, checksum, remote.max_bytes, policy)
    except DownloadError:
        raise
    except OSError as error:
        raise DownloadError(
            f"{home} cannot be written to ({error.strerror}); let {VARIABLE} name another folder."
        ) from None


def _published_checksum(remote: Remote, home: Path, policy: RetryPolicy) -> str:
    """Return the checksum that the publisher states, even if the file itself comes from a mirror."""
    assert remote.checksum_file is not None
    kept = home / remote.checksum_file
    if kept.is_file():
        with contextlib.suppress(DownloadError):  # the cached checksum is damaged: fetch it again
            return parse_checksum(kept.read_text(encoding="ascii", errors="replace"), str(kept))
    url = f"{remote.base}/{remote.checksum_file}"
    response = io.BytesIO()
    retrieve(url, response, _CHECKSUM_BYTES, policy)
    checksum = parse_checksum(response.getvalue().decode("ascii", errors="replace"), url)
    write_files(home, {remote.checksum_file: checksum.encode()}, force=True)
    return checksum


def _read_crowd(name: str, source: PublicSet, path: Path) -> CrowdDataset:
    """Build the data set from the tables of labels and of truth in an archive."""
    tables = source.tables or Tables()
    pair = [(column,) for column in tables.pair]
    if tables.labels == tables.truth:
        both = _read_table(path, tables.labels, [*tables.triple, *pair], tables.unless)
        columns, truth = both[:3], both[3:]
    else:
        columns = _read_table(path, tables.labels, tables.triple, tables.unless)
        truth = _read_table(path, tables.truth, pair, tables.unless)
    annotations, y_true, _ = local.build(columns, truth, None, "last", str(path))
    return CrowdDataset(
        name, annotations.classes, source.description, annotations, y_true, class_names=source.class_names
    )


def _read_table(path: Path, member: str, wanted: Sequence[Sequence[str]], unless: str | None) -> list[Column]:
    """Read columns of a member; rows in which the column `unless` is not 0 are left out."""
    if unless is None:
        return read_packed_tables(path, {member: list(wanted)})[member]
    *columns, excluded = read_packed_tables(path, {member: [*wanted, (unless,)]})[member]
    return [column[excluded == 0] for column in columns]


def _read_usps(name: str, source: PublicSet, files: list[Path]) -> CrowdDataset:
    """Build the data set of USPS."""
    (X, y), (X_test, y_test) = map(_read_pixels, files)
    return CrowdDataset(name, np.arange(10), source.description, y_true=y, X=X, X_test=X_test, y_test=y_test)


def _read_pixels(path: Path) -> tuple[AnyArray, AnyArray]:
    """Return pixels from 0 to 255 and digits from 0 to 9; the file in LIBSVM format has -1 to 1 and 1 to 10."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(read_bz2(path)), n_features=256, zero_based=False)
    except ValueError as error:
        if isinstance(error, AnnotationError):
            raise
        raise AnnotationError(f"{path} is not in the format of LIBSVM: {error}.") from None
    return ((X.toarray() + 1) / 2 * 255).astype(np.uint8), y.astype(np.int64) - 1


def _read_gisette(name: str, source: PublicSet, files: list[Path]) -> CrowdDataset:
    """Build the data set of Gisette; its validation part, the only other one with labels, is for testing."""
    (X, y), (X_test, y_test) = _read_rows(*files[:2]), _read_rows(*files[2:])
    if X.shape[1] != X_test.shape[1]:
        raise AnnotationError(f"{files[0]} has rows of {X.shape[1]} numbers, {files[2]} of {X_test.shape[1]}.")
    return CrowdDataset(name, np.arange(2), source.description, y_true=y, X=X, X_test=X_test, y_test=y_test)


def _read_rows(data: Path, labels: Path) -> tuple[AnyArray, AnyArray]:
    """Return numbers and classes of a part: a line of numbers, and one of 1 or -1, for each item."""
    lines = data.read_bytes().splitlines()
    classes = labels.read_bytes().split()
    n_features = len(lines[0].split()) if lines else 0
    try:
        X = np.array([np.array(line.split(), np.int32) for line in lines]).reshape(len(lines), n_features)
    except ValueError:
        raise AnnotationError(f"{data} does not have {n_features} whole numbers on every line.") from None
    if len(classes) != len(lines) or not set(classes) <= {b"1", b"-1"}:
        raise AnnotationError(f"{labels} does not have 1 or -1 for each of the {len(lines)} lines of {data}.")
    return X, np.array([value == b"1" for value in classes], np.int64)

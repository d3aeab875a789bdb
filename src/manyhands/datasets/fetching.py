"""`fetch`: public data sets from the web; verified by checksum and kept in a cache folder."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manyhands.datasets import labels
from manyhands.datasets.catalog import nearest
from manyhands.datasets.crowd_dataset import Array, CrowdDataset
from manyhands.datasets.download import RetryPolicy, download, parse_checksum, retrieve
from manyhands.datasets.files import Column, read_bz2, read_packed_tables
from manyhands.datasets.remote_sources import SOURCES, PublicSet, Remote, Tables
from manyhands.exceptions import AnnotationError, DownloadError, ParameterError
from manyhands.validation import Number, check_parameters
from manyhands.writing import write_files

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
    ['cifar10h', 'netease_crowd', 'nist_trec_relevance', 'relevance2', 'relevance5', 'usps']
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
        hint = nearest(name, SOURCES) or f"; there are {', '.join(fetch_names())}"
        raise ParameterError(f"There is no public data set called {name!r}{hint}.")
    check_parameters("fetch", {"timeout": timeout}, {"timeout": Number(above=0)})
    source = SOURCES[name]
    home = (cache_folder() if folder is None else Path(folder)) / name
    policy = RetryPolicy(timeout=timeout)
    files = [_obtain(remote, home, address or remote.base, policy) for remote in source.remotes]
    return _read_usps(name, source, files) if source.tables is None else _read_crowd(name, source, files[0])


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


def cache_folder() -> Path:
    """Return the folder in MANYHANDS_CACHE, or else `manyhands` in the cache folder of this user and system.

    Returns
    -------
    Path
        The folder, which may not exist.

    Raises
    ------
    DownloadError
        If there is no home folder, and no variable names another one.
    """
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
    annotations, y_true, _ = labels.build(columns, truth, None, "last", str(path))
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


def _read_pixels(path: Path) -> tuple[Array, Array]:
    """Return pixels from 0 to 255 and digits from 0 to 9; the file in LIBSVM format has -1 to 1 and 1 to 10."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(read_bz2(path)), n_features=256, zero_based=False)
    except ValueError as error:
        if isinstance(error, AnnotationError):
            raise
        raise AnnotationError(f"{path} is not in the format of LIBSVM: {error}.") from None
    return ((X.toarray() + 1) / 2 * 255).astype(np.uint8), y.astype(np.int64) - 1

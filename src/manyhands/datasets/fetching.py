"""`fetch`: public sets by their address; checked, kept in a cache folder, and read from there the next time."""

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

_CHECKSUM_BYTES = 10_000  # more than any checksum file has


def fetch_names() -> list[str]:
    """The names that `fetch` knows.

    >>> fetch_names()
    ['cifar10h', 'netease_crowd', 'nist_trec_relevance', 'relevance2', 'relevance5', 'usps']
    """
    return sorted(SOURCES)


def fetch(
    name: str, folder: str | Path | None = None, *, address: str | None = None, timeout: float = 30.0
) -> CrowdDataset:
    """Download a public set, or read it from where an earlier call has put it.

    Parameters
    ----------
    name : one of `fetch_names()`
    folder : where files are kept; by default the one in MANYHANDS_CACHE, else the user's cache folder
    address : a mirror to take the files from, https:// or http://; they must still be the published ones
    timeout : seconds to wait for an answer; three tries are made

    Returns
    -------
    CrowdDataset
        Where a worker labelled an item more than once, the last label is kept.
    """
    if name not in SOURCES:
        hint = nearest(name, SOURCES) or f"; there are {', '.join(fetch_names())}"
        raise ParameterError(f"There is no public set called {name!r}{hint}.")
    check_parameters("fetch", {"timeout": timeout}, {"timeout": Number(above=0)})
    source = SOURCES[name]
    home = (_cache_folder() if folder is None else Path(folder)) / name
    policy = RetryPolicy(timeout=timeout)
    files = [_obtain(remote, home, address or remote.base, policy) for remote in source.remotes]
    return _read_usps(name, source, files) if source.tables is None else _read_crowd(name, source, files[0])


def fetch_relevance2(folder: str | Path | None = None) -> CrowdDataset:
    """Half a million yes-or-no labels of relevance; see `fetch`."""
    return fetch("relevance2", folder)


def fetch_relevance5(folder: str | Path | None = None) -> CrowdDataset:
    """A million labels of relevance in five grades; see `fetch`."""
    return fetch("relevance5", folder)


def fetch_nist_trec_relevance(folder: str | Path | None = None) -> CrowdDataset:
    """A hundred thousand labels of relevance from TREC 2010; see `fetch`."""
    return fetch("nist_trec_relevance", folder)


def fetch_netease_crowd(folder: str | Path | None = None) -> CrowdDataset:
    """Six million labels of NetEaseCrowd; see `fetch`."""
    return fetch("netease_crowd", folder)


def fetch_cifar10h(folder: str | Path | None = None) -> CrowdDataset:
    """Half a million labels on the test images of CIFAR-10; see `fetch`."""
    return fetch("cifar10h", folder)


def fetch_usps(folder: str | Path | None = None) -> CrowdDataset:
    """Handwritten digits to simulate crowds on; see `fetch`."""
    return fetch("usps", folder)


def _cache_folder() -> Path:
    """The folder in MANYHANDS_CACHE, else `manyhands` in the cache folder of this user and system."""
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
    """The verified file; a checksum that only the publisher's own file states is fetched first, and kept."""
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
    """What the publisher states, even where the file itself comes from a mirror."""
    assert remote.checksum_file is not None
    kept = home / remote.checksum_file
    if kept.is_file():
        with contextlib.suppress(DownloadError):  # what was kept is damaged: ask again
            return parse_checksum(kept.read_text(encoding="ascii", errors="replace"), str(kept))
    url = f"{remote.base}/{remote.checksum_file}"
    answer = io.BytesIO()
    retrieve(url, answer, _CHECKSUM_BYTES, policy)
    checksum = parse_checksum(answer.getvalue().decode("ascii", errors="replace"), url)
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
    (X, y), (X_test, y_test) = map(_read_pixels, files)
    return CrowdDataset(name, np.arange(10), source.description, y_true=y, X=X, X_test=X_test, y_test=y_test)


def _read_pixels(path: Path) -> tuple[Array, Array]:
    """Pixels from -1 to 1 and digits from 1 to 10 in the format of LIBSVM, as 0 to 255 and 0 to 9."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(read_bz2(path)), n_features=256, zero_based=False)
    except ValueError as error:
        if isinstance(error, AnnotationError):
            raise
        raise AnnotationError(f"{path} is not in the format of LIBSVM: {error}.") from None
    return ((X.toarray() + 1) / 2 * 255).astype(np.uint8), y.astype(np.int64) - 1

"""Revision numbers of methods: the part of a result row's key that identifies the code which measured it.

A finished row of `docs/results/rows` stays valid as long as the revisions of its methods are those of this table, and
is measured again when one of them has changed. The version of the package is not part of the key, so that a release
does not invalidate rows.

**Raise the number of a method whenever its results change**: after a correction, a new default, or a change of code
that it shares with other methods (then raise all of them). A method that is not listed has revision 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from manyhands import registry
from manyhands.reproduce.tables import Row

# Registry name -> revision, from 2 on.
REVISIONS: dict[str, int] = {
    "difficulty-em": 2,  # gradient through difficulty, one Newton step a pass
    "fixed-difficulty-em": 2,  # vote shares as prior, plain, one Newton step a pass, not accelerated
    "crowd-layer-gan": 2,  # the printed discriminator, all pairs
    "crowd-layer-generator": 2,  # the published CrowdInG imputes, all pairs
    "crowd-layer-graph": 2,  # all pairs
    "crowd-layer-self": 2,  # all pairs
    "crowding": 2,  # the printed discriminator, label correlation and generator loss
    "iced": 2,  # the paper to the letter: hard counts, estimated prior, all candidates, R x m items, frozen decoder
    "neucrowd": 3,  # 2: weight decay by the optimizer; 3: ReLU, warm-up, search of settings and C on held-out items
    "neucrowd-plus": 4,  # 3: its first epoch, the warm-up, can no longer be the best; 4: the default's new posterior
    "pooled-dawid-skene": 2,  # overrules the plurality with support only; a power learnt across crowds
    "self-crowd": 2,  # the paper's settings are the defaults
    "siamese": 2,  # the bias of the distance starts at the mean distance
}


def revision(method: str) -> int:
    """Return the revision of a method.

    Parameters
    ----------
    method : str
        Registry name.

    Returns
    -------
    int
        1 for a method whose results never changed.

    Examples
    --------
    >>> revision("majority-vote")
    1
    """
    return REVISIONS.get(method, 1)


def revisions_of(row: Row) -> dict[str, int]:
    """Return the revisions of all methods that a row names: its own, and those in its parameters.

    Parameters
    ----------
    row : Row
        A row with a method, such as two-stage with ``aggregator = "glad"``.

    Returns
    -------
    dict of str to int
        Registry name -> revision, sorted by name.

    Examples
    --------
    >>> revisions_of(Row("GLAD", "two-stage", parameters={"aggregator": "glad", "classifier": "logistic-regression"}))
    {'glad': 1, 'two-stage': 1}
    """
    names = {row.method, "two-stage" if row.then else None}
    for setting in row.settings:
        names |= set(_texts(setting))
    known = set(registry.names())
    return {name: revision(name) for name in sorted(name for name in names if name is not None and name in known)}


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts among nested parameters."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)

"""Down-weighting of families: judges that err together count as many votes as they are worth.

Copies of one judge are one vote: of workers of a family with the same labels on the same items, the first is kept. The
k other votes of a family on an item get the weight 1 / (1 + (k - 1) r) each, with r the mean correlation of their
errors, so that together they count as Kish's effective number of votes (`effective_votes`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning
from manyhands.trust.effective_votes import HUMANS, effective_votes
from manyhands.validation import check_annotations


def down_weight_families(
    annotations: Annotations,
    families: Mapping[str, Iterable[Any]],
    *,
    reference: str | None = HUMANS,
    answers: Mapping[Any, Any] | None = None,
) -> Annotations:
    """Give the labels of each family the weights that their errors allow; copies of a judge count once.

    Methods that take weights then count six language models as the two or three independent votes that they are worth,
    and a judge that is copied k times as one.

    Parameters
    ----------
    annotations : Annotations
        The labels of all workers.
    families : mapping of str to iterable of worker ids
        Workers whose errors may be correlated, such as the versions of one model. Others keep their weights.
    reference : str or None, default="humans"
        Group that decides how often judges err (`effective_votes`); its own weights stay.
    answers : mapping of item to class or None, default=None
        Known answers, which then decide it.

    Returns
    -------
    Annotations
        With weights; copies have no labels. All items, workers and classes stay.

    Raises
    ------
    ParameterError
        If a family names an unknown worker, or a worker is in two families.

    Warns
    -----
    CrowdWarning
        ``unknown_correlation`` for a family whose errors cannot be compared; its weights stay.

    Examples
    --------
    >>> import manyhands as mh
    >>> rows = [(i, w, int(i % 5 == 0)) for i in range(40) for w in ("gpt", "copy")]
    >>> rows += [(i, w, int(i % 10 == 3 + j)) for i in range(40) for j, w in enumerate("abc")]
    >>> votes = mh.Annotations.from_triples(*zip(*rows))
    >>> down_weight_families(votes, {"machines": ["gpt", "copy"], "humans": "abc"})
    Annotations(160 labels on 40 items by 5 workers, 2 classes)
    """
    annotations = check_annotations(annotations, takes_weights=True)
    members = {name: list(workers) for name, workers in families.items()}
    kept = annotations.keep(~_is_copy(annotations, members, reference)[annotations.worker])
    weight = np.ones(kept.n_annotations) if kept.weight is None else kept.weight.copy()
    worth = effective_votes(kept.strongest_labels(), members, reference=reference, answers=answers, n_bootstrap=0)
    code = {worker: at for at, worker in enumerate(kept.worker_ids.tolist())}
    for group in worth:
        if group.group == reference or group.n_workers < 2:
            continue
        if np.isnan(group.correlation):
            note = f"The errors of the family {group.group!r} cannot be compared; its votes keep their weights."
            warnings.warn(f"unknown_correlation: {note}", CrowdWarning, stacklevel=2)
            continue
        inside = np.isin(kept.worker, [code[worker] for worker in members[group.group]])
        n_votes = kept.keep(inside).n_voters[kept.item[inside]]
        weight[inside] /= 1.0 + (n_votes - 1) * min(max(group.correlation, 0.0), 1.0)
    return kept._with(kept.item, kept.worker, kept.label, weight=weight)


def _is_copy(
    annotations: Annotations, members: Mapping[str, list[Any]], reference: str | None
) -> npt.NDArray[np.bool_]:
    """Whether each worker has exactly the labels of a worker before them in the same family."""
    code = {worker: at for at, worker in enumerate(annotations.worker_ids.tolist())}
    groups = annotations.by_worker
    weight = np.ones(annotations.n_annotations) if annotations.weight is None else annotations.weight
    is_copy = np.zeros(annotations.n_workers, bool)
    for name, workers in members.items():
        seen: set[bytes] = set()
        for worker in [] if name == reference else workers:
            if worker not in code:
                continue  # `effective_votes` names it
            rows = groups.order[groups.start[code[worker]] : groups.start[code[worker] + 1]]
            labels = b"".join(column[rows].tobytes() for column in (annotations.item, annotations.label, weight))
            is_copy[code[worker]] = len(rows) > 0 and labels in seen
            seen.add(labels)
    return is_copy

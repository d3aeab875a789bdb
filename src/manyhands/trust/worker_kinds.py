"""Which workers are people and which are machines, and which machines belong to one family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from manyhands.exceptions import ParameterError
from manyhands.spelling import did_you_mean

HUMAN, MACHINE = "human", "machine"
_WORDS = {
    HUMAN: "human humans person people h crowd expert annotator worker",
    MACHINE: "machine machines model models llm ai bot m judge",
}
_KIND_OF = {word: kind for kind, words in _WORDS.items() for word in words.split()}


class WorkerKind(NamedTuple):
    """What is known of a worker.

    Attributes
    ----------
    kind : {"human", "machine"}
        A person or a machine.
    family : str, default=""
        Machines of one family, such as versions of one model, form a group; all machines by default.
    model : str, default=""
        Name of the model.
    prompt : str, default=""
        Name of the prompt.
    run : str, default=""
        Name of the run.
    """

    kind: str
    family: str = ""
    model: str = ""
    prompt: str = ""
    run: str = ""


def kind_from_word(word: str) -> str | None:
    """Return the kind that a word of a table means.

    Parameters
    ----------
    word : str
        Such as "human", "LLM" or "model".

    Returns
    -------
    {"human", "machine"} or None
        None for any other word.

    Examples
    --------
    >>> kind_from_word("LLM"), kind_from_word("Human "), kind_from_word("blue")
    ('machine', 'human', None)
    """
    return _KIND_OF.get(word.strip().casefold())


def find_machines(workers: Sequence[Any], names: Iterable[Any]) -> list[Any]:
    """Return the workers that are named, or match a pattern such as ``"gpt-*"``.

    Parameters
    ----------
    workers : sequence
        Ids of all workers.
    names : iterable
        Ids, or patterns with ``*`` and ``?``.

    Returns
    -------
    list
        Ids in the order of `workers`.

    Raises
    ------
    ParameterError
        If a name matches no worker.
    """
    found: set[int] = set()
    for name in [names] if isinstance(names, str) else names:
        matching = {at for at, worker in enumerate(workers) if worker == name or _matches(worker, name)}
        if not matching:
            hint = did_you_mean(name, [str(worker) for worker in workers])
            raise ParameterError(f"No worker is called {str(name)!r}.{hint}")
        found |= matching
    return [workers[at] for at in sorted(found)]


def groups_of(workers: Sequence[Any], kinds: Mapping[Any, WorkerKind]) -> dict[str, list[Any]]:
    """Return the workers of each group: people, and the machines of each family.

    Parameters
    ----------
    workers : sequence
        Ids of all workers.
    kinds : mapping of worker to WorkerKind
        What is known of them; workers that it does not name are people.

    Returns
    -------
    dict of str to list
        ``"humans"`` first, then ``"machines"``, or one group per family of machines that is named.
    """
    groups: dict[str, list[Any]] = {}
    for worker in workers:
        known = kinds.get(worker)
        if known is None or known.kind == HUMAN:
            groups.setdefault("humans", []).append(worker)
        else:
            groups.setdefault(known.family or "machines", []).append(worker)
    return dict(sorted(groups.items(), key=lambda group: group[0] != "humans"))


def _matches(worker: Any, pattern: Any) -> bool:
    """Whether a worker's id matches a pattern."""
    return isinstance(worker, str) and isinstance(pattern, str) and fnmatchcase(worker, pattern)

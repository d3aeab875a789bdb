"""Users of a Label Studio export: one worker each, although an export names them in two ways.

Annotations name their author by a number (``completed_by``) or by an object with number and e-mail address; drafts name
theirs by the address alone. Three places of an export link the two: such an object, ``created_username`` ("Ann Lee
ann@example.org, 11"), and a draft that changes a submitted annotation.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from manyhands.io.formats.label_studio_tasks import Task, scalar_text, worker_name
from manyhands.io.messages import counted

_NAME_AND_NUMBER = re.compile(r"(?:^|\s)(\S+@\S+), (\d+)\s*$")


class Users:
    """Names of the users that were met so far, and the links between their numbers and addresses."""

    def __init__(self) -> None:
        """Start without users."""
        self._address_of: dict[str, str] = {}  # number of a user -> e-mail address
        self._seen: dict[Any, str] = {}  # the same by integer, to avoid repeated conversions to text
        self._numbers: dict[int, str] = {}  # users known by their number alone
        self._authors: dict[str, str] = {}  # id of an annotation -> number of its author
        self._changed: list[tuple[str, str]] = []  # (address, id of the annotation that their draft changes)

    def name(self, user: Any) -> str | None:
        """Return the e-mail address of a user if there is one, otherwise the number.

        Parameters
        ----------
        user : object
            What an export says of a user: a number, a text, or an object with ``id`` and ``email``.

        Returns
        -------
        str or None
            The name; None if there is none.
        """
        if type(user) is int:
            return self._numbers.get(user) or self._numbers.setdefault(user, str(user))
        if type(user) is not dict:
            return worker_name(user)
        number, address = user.get("id"), user.get("email")
        quick = type(number) is int and type(address) is str
        if quick and self._seen.get(number) == address:
            return str(address)
        number_text, name = worker_name(number), worker_name(address)
        if number_text and name:
            self._address_of[number_text] = name
            self._seen |= {number: name} if quick else {}
        return name or number_text

    def meet(self, entry: Task, author: str | None, *, is_draft: bool) -> None:
        """Note which number and address an annotation or a draft links.

        Parameters
        ----------
        entry : dict
            The annotation or draft.
        author : str or None
            Name of its author.
        is_draft : bool
            Whether it is a draft.
        """
        found = entry.get("created_username")
        linked = _NAME_AND_NUMBER.search(found) if type(found) is str else None
        if linked is not None:
            self._address_of.setdefault(linked[2], linked[1])
        if author is None:
            return
        changed = scalar_text(entry.get("annotation")) if is_draft else None
        if changed is not None:
            self._changed.append((author, changed))
        number = None if is_draft else scalar_text(entry.get("id"))
        if number is not None and author.isdigit():
            self._authors[number] = author

    def addresses(self) -> dict[str, str]:
        """Return the address of each number that the export links to one.

        A draft that changes an annotation is usually its author's; but others may change it too. So these links hold
        only where they join each number to one address and each address to one number.

        Returns
        -------
        dict of str to str
            Number -> address.
        """
        joined, addresses_of, numbers_of = dict(self._address_of), defaultdict(set), defaultdict(set)
        taken = set(joined.values())
        for address, annotation in self._changed:
            number = self._authors.get(annotation)
            if number is not None and "@" in address:
                addresses_of[number].add(address)
                numbers_of[address].add(number)
        for number, addresses in addresses_of.items():
            address = min(addresses)
            if len(addresses) == 1 and len(numbers_of[address]) == 1 and address not in taken:
                joined.setdefault(number, address)
        return joined

    def notes(self, annotators: set[str], drafters: set[str]) -> dict[str, str]:
        """Return notes on workers that were joined, and on drafts whose author cannot be told.

        Parameters
        ----------
        annotators : set of str
            Authors of annotations, as the export names them.
        drafters : set of str
            Authors of drafts, as the export names them.

        Returns
        -------
        dict of str to str
            ``joined_workers`` and ``draft_authors``, each if there are such workers. Addresses are not quoted.
        """
        joined = self.addresses()
        both = [
            number for number, address in joined.items() if number in annotators and address in annotators | drafters
        ]
        unlinked = sorted(name for name in drafters - annotators - set(joined.values()) if "@" in name)
        nameless = [name for name in annotators if name.isdigit() and name not in joined]
        notes = {}
        if both:
            what = (
                "is a number in some places and an e-mail address in others"
                if len(both) == 1
                else ("are numbers in some places and e-mail addresses in others")
            )
            notes["joined_workers"] = (
                f"{counted(len(both), 'worker')} {what}; the export links the two, so that each is one worker, under "
                f"the address."
            )
        if unlinked and nameless:
            notes["draft_authors"] = (
                f"{counted(len(unlinked), 'author')} of drafts {'is' if len(unlinked) == 1 else 'are'} known by e-mail "
                f"address only, while annotators are numbers. The export does not link them, so the list of workers "
                f"may have a person twice; labels are not affected, because drafts do not count."
            )
        return notes

"""The words of the table in tests/role_table.py: who, what comes back, and what is left of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.callers import PEOPLE

READERS = frozenset(PEOPLE)
ACTORS = frozenset({"owner", "on_call", "admin", "superuser"})
OWNERS = frozenset({"owner", "admin", "superuser"})
ADMINS = frozenset({"admin", "superuser"})
MEMBERS = frozenset({"viewer", "owner", "on_call", "admin", "superuser"})
IN_THE_TEAM = frozenset({"admin"})
"""Whoever did what is undone."""
ADMINS_OF_ANY_TEAM = ADMINS | {"stranger"}
OWNERS_OF_ANY_TEAM = OWNERS | {"stranger"}
SUPERUSERS = frozenset({"superuser"})
STAFF = frozenset({"staff", "superuser"})
NOBODY: frozenset[str] = frozenset()
ANYBODY = frozenset({"anonymous", *PEOPLE})

DONE = (200, 201, 202, 204, 302)
REFUSED = (400, 422)
"""Understood, allowed, and lacking something that this small world does not have."""
NOTHING = "nothing"
ANY_SCOPE = "any"
"""Every token that lives."""


@dataclass(frozen=True)
class Line:
    methods: str
    address: str
    """As in the resolver; `*` is anything."""
    who: frozenset[str]
    scope: str = ""
    """What a token needs beside; empty: tokens may not be used here."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """With which it does something, asked by somebody who may. {key} is what tests/callers.py has there."""
    leaves: str = ""
    """What is left of it: `audit`, `event` (of the incident), or `nothing: why`."""
    acts: frozenset[str] | None = None
    """Where everybody is answered, but for these nothing is changed: None, all of `who`."""
    asks: str = ""
    """The query."""
    answers: tuple[int, ...] = DONE
    slow: bool = False
    """It starts a process that reads data: of those who may, one asks."""
    team_in_body: bool = False
    """Whose right it takes is said in the body: that much of it is read before."""

    def fits(self, method: str, address: str) -> bool:
        return method in self.methods.split() and fnmatchcase(address, self.address)

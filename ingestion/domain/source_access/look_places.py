"""Which sources may be asked at the same time, so that those that are silent hold up nobody else.

A look that takes longer than SLOW_AFTER makes its connection a slow one, until a look there has been quick again. Looks at slow connections
have places of their own: they take none from the others. Those that find no such place when they turn out to be slow are to be interrupted,
and come again in their turn. So sources that fall silent all at once hold the others up for SLOW_AFTER, and only once.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import NamedTuple

QUICK_PLACES = 8
SLOW_PLACES = 4
PLACES_A_CONNECTION = 2
SLOW_AFTER = 5.0
"""Seconds."""


class Look(NamedTuple):
    """Under way since `began_at`, seconds of a clock that only grows."""

    connection: Hashable
    began_at: float


@dataclass
class LookPlaces:
    """Looks have a key each. Call `note_slow` from time to time: what was quick so far may have become slow."""

    _looks: dict[Hashable, Look] = field(default_factory=dict)
    _slow: set[Hashable] = field(default_factory=set)

    def has_place(self, connection: Hashable) -> bool:
        beside_it = sum(look.connection == connection for look in self._looks.values())
        is_slow = connection in self._slow
        slow = sum(look.connection in self._slow for look in self._looks.values())
        others, most = (slow, SLOW_PLACES) if is_slow else (len(self._looks) - slow, QUICK_PLACES)
        return others < most and beside_it < (1 if is_slow else PLACES_A_CONNECTION)

    def begin(self, key: Hashable, connection: Hashable, *, now: float) -> None:
        """There has to be a place for it."""
        self._looks[key] = Look(connection, now)

    def end(self, key: Hashable, *, has_answered: bool, now: float) -> None:
        look = self._looks.pop(key)
        if now - look.began_at >= SLOW_AFTER:
            self._slow.add(look.connection)
        elif has_answered:
            self._slow.discard(look.connection)

    def note_slow(self, *, now: float) -> list[Hashable]:
        """The keys of looks that are slow and have no place for that: those that began last."""
        self._slow |= {look.connection for look in self._looks.values() if now - look.began_at >= SLOW_AFTER}
        slow = [key for key, look in self._looks.items() if look.connection in self._slow]
        return sorted(slow, key=lambda key: self._looks[key].began_at)[SLOW_PLACES:]

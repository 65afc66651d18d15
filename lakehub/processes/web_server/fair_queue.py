"""Who is served next: the callers take turns, and no caller has all there is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


@dataclass
class FairQueue(Generic[Item]):
    """Of `places` one caller has all but one at most, so that whoever comes next finds one. A place that is free goes to the caller
    who was served the longest ago, of those who may have one more.
    """

    places: int
    _waiting: dict[str, deque[tuple[Item, int]]] = field(default_factory=dict)
    """By caller, each with its size; the caller who was served the longest ago first."""
    _callers: dict[Item, str] = field(default_factory=dict)
    """Of those that have a place."""
    _busy: Counter[str] = field(default_factory=Counter)
    size: int = 0
    """Of all that wait."""

    @property
    def most_of_one(self) -> int:
        return max(1, self.places - 1)

    @property
    def is_empty(self) -> bool:
        """Nobody waits."""
        return not self._waiting

    def add(self, item: Item, caller: str, size: int = 0) -> None:
        self._waiting.setdefault(caller, deque()).append((item, size))
        self.size += size

    def take(self) -> Item | None:
        """The next one, which has a place from now on; None: nobody waits, or may have one."""
        if len(self._callers) >= self.places:
            return None
        caller = next((caller for caller in self._waiting if self._busy[caller] < self.most_of_one), None)
        if caller is None:
            return None
        line = self._waiting.pop(caller)
        item, size = line.popleft()
        if line:
            self._waiting[caller] = line  # behind the others
        self.size -= size
        self._callers[item] = caller
        self._busy[caller] += 1
        return item

    def give_back(self, item: Item) -> None:
        """Its place is free."""
        caller = self._callers.pop(item)
        self._busy[caller] -= 1
        if not self._busy[caller]:
            del self._busy[caller]

    def drop(self) -> Item | None:
        """Takes out the newest of the longest line; None: nobody waits."""
        if self.is_empty:
            return None
        caller = max(self._waiting, key=lambda waiting: len(self._waiting[waiting]))
        item, size = self._waiting[caller].pop()
        if not self._waiting[caller]:
            del self._waiting[caller]
        self.size -= size
        return item

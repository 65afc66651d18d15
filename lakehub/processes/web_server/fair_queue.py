"""Who is served next: each caller in turn, and never one caller with all there is."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


@dataclass
class FairQueue(Generic[Item]):
    """Of `places` one caller has all but one at most, so that whoever comes next finds one. A place that is free goes to the caller who
    has the fewest, and among these to the one who was served the longest ago.
    """

    places: int
    _waiting: dict[str, deque[Item]] = field(default_factory=dict)
    """By caller; the one who was served the longest ago first."""
    _callers: dict[Item, str] = field(default_factory=dict)
    """Of those that have a place."""
    _busy: Counter[str] = field(default_factory=Counter)

    @property
    def most_of_one(self) -> int:
        return max(1, self.places - 1)

    def add(self, item: Item, caller: str) -> None:
        self._waiting.setdefault(caller, deque()).append(item)

    def take(self) -> Item | None:
        """The next one, which has a place from now on; None: nobody waits, or may have one."""
        if not self._waiting or len(self._callers) >= self.places:
            return None
        caller = min(self._waiting, key=self._busy.__getitem__)
        if self._busy[caller] >= self.most_of_one:
            return None
        line = self._waiting.pop(caller)
        item = line.popleft()
        if line:
            self._waiting[caller] = line  # behind the others
        self._callers[item] = caller
        self._busy[caller] += 1
        return item

    def give_back(self, item: Item) -> None:
        """Its place is free."""
        caller = self._callers.pop(item)
        self._busy[caller] -= 1
        if not self._busy[caller]:
            del self._busy[caller]

"""Whose turn it is: lanes before tiers before turns, so that much work of one never keeps the others waiting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class QueuedCopy:
    """A copy with work to do. `lane` is that of its most urgent work; `team_served` and `copy_served` are greater, the later it was; 0: never."""

    copy: int
    lane: int
    tier: int
    team: int
    team_served: int = 0
    copy_served: int = 0


def fair_order(waiting: Iterable[QueuedCopy]) -> list[QueuedCopy]:
    """The order in which the copies are served from now on, if nothing else comes up.

    The lower lane goes first, then the lower tier. Within these the teams take turns, the one that waits longest first,
    and within a team its copies do: a team with one copy is served as often as one with a thousand.
    """
    groups: dict[tuple[int, int, int], list[QueuedCopy]] = defaultdict(list)
    for copy in sorted(waiting, key=lambda copy: (copy.copy_served, copy.copy)):
        groups[copy.lane, copy.tier, copy.team].append(copy)
    rounds = [(turn, copy) for group in groups.values() for turn, copy in enumerate(group)]
    rounds.sort(key=lambda it: (it[1].lane, it[1].tier, it[0], it[1].team_served, it[1].team))
    return [copy for _, copy in rounds]

"""What a replica does next, by the names in two timelines: take back, publish, or be made anew (a resync).

The source keeps its newest commits on its timeline and archives older ones, oldest request first. `open_since` is what makes a gap
certain to be seen: when the replica looked last, whatever was requested before was either taken by it or will never be completed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ingestion.domain.replication.instants import CompletedInstant, DataFile, TimelineNames


@dataclass(frozen=True)
class ReplicaState:
    """What a replica remembers. `source`: the URI that it is made from; `open_since`: see above.

    `gone`: files that the source no longer has, each with when that was seen first, in seconds of the clock.
    """

    source: str
    open_since: str
    gone: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Steps:
    """Newest completion first is taken back, then the oldest is published first: after each step readers see a state that the source had."""

    take_back: tuple[CompletedInstant, ...] = ()
    publish: tuple[CompletedInstant, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return not self.take_back and not self.publish


@dataclass(frozen=True)
class Resync:
    """The replica is made anew, and takes the place of what is there when it is whole."""

    why: str


def open_since(source: TimelineNames) -> str:
    """No instant that is unseen in `source` was requested before."""
    return min([*source.pending, max((instant.requested for instant in source.completed), default="")])


def next_steps(
    source: TimelineNames, target: TimelineNames, state: ReplicaState | None, *, source_uri: str
) -> Steps | Resync:
    """`state`: None where the target is no replica, or no table. The source has a completed write."""
    if state is None:
        return Resync("there is no replica yet")
    if state.source != source_uri:
        return Resync(f"it was a replica of {state.source}")
    # Both reach back as far: what the source has archived, the replica still has.
    if source.start > state.open_since:
        return Resync("commits were archived in the source, or its table was made anew, before they were replicated")
    ours, theirs = frozenset(target.completed), frozenset(source.completed)
    # No cleaning is ever taken back, and they are archived for themselves.
    taken_back = [instant for instant in ours - theirs if instant.is_write and instant.requested >= source.start]
    if not any(instant.is_write for instant in ours & theirs):
        return Resync("the source was set back to before what was replicated")
    return Steps(tuple(sorted(taken_back, reverse=True)), tuple(sorted(theirs - ours)))


def gone_files(
    source: Iterable[DataFile], target: Iterable[DataFile], known: Mapping[str, float], *, now: float
) -> dict[str, float]:
    """Files that only the replica has, with when that was seen first. A time that lies ahead was noted by a clock that was wrong."""
    kept = {file.path for file in source}
    return {file.path: min(known.get(file.path, now), now) for file in target if file.path not in kept}


def expired_files(gone: Mapping[str, float], *, now: float, grace_s: float) -> list[str]:
    return sorted(path for path, since in gone.items() if now - since >= grace_s)


def prunable(
    source: TimelineNames, target: TimelineNames, files: Iterable[DataFile], gone: Collection[str]
) -> list[CompletedInstant]:
    """Instants of the target that the source has archived and that can go, oldest request first. `files`: of the target, `gone` among them.

    Readers take for written what was requested before the first write that a timeline names. So all of what must not be read (a rollback
    or a replacement is why it is gone) has to be later than that, or deleted; an older version of a file that is read does no harm.
    """
    newest: dict[str, str] = {}
    for file in files:
        if file.path not in gone:
            newest[file.group] = max(newest.get(file.group, ""), file.instant)
    harmful = [file.instant for file in files if file.path in gone and newest.get(file.group, "") <= file.instant]
    bound = min([source.start, *harmful])
    archived = set(target.completed) - set(source.completed)
    return sorted((each for each in archived if each.requested < bound), key=lambda instant: instant.requested)

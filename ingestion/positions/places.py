"""Where a copy stands in its changelog: asked of the lake's timeline and of the log, which takes a moment. Nothing of it is kept in the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import BoundedSemaphore

from ingestion.captures.topics import topic_to_look_at
from ingestion.changelog import ChangelogError, OffsetGone
from ingestion.domain.checkpoint import Position, unfinished_snapshot
from ingestion.domain.log_moves import LOG, LogMove, TopicOffsets, least_offsets, offsets_of, plan_move
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import ERRORS_SUFFIX
from ingestion.spark.tables.timeline import DamagedTable, Timeline
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Busy, Refused

MAX_AT_ONCE, _RETRY_AFTER_S = 2, 5
"""Half of the threads of a web process: a log that is silent keeps no more of them."""
_MAX_AGED = 8
"""Partitions whose oldest message is looked at: each is a question to the log."""
_places = BoundedSemaphore(MAX_AT_ONCE)


@dataclass(frozen=True)
class PartitionPlace:
    """`offset`: of the next message to read; `least`: the earliest that it may be set to; `end`: of the message to come. `oldest_at`: when the first that
    waits was logged; None: none waits, or nobody looked."""

    topic: str
    partition: str
    offset: int
    least: int
    end: int
    oldest_at: datetime | None = None

    @property
    def is_of_errors(self) -> bool:
        """Of the topic beside the events'."""
        return self.topic.endswith(ERRORS_SUFFIX)

    @property
    def waiting(self) -> int:
        return max(0, self.end - self.offset)


@dataclass(frozen=True)
class CopyPlace:
    """`instant`: of the commit that carries it."""

    copy: DatasetCopy
    instant: str
    partitions: tuple[PartitionPlace, ...]

    @property
    def waiting(self) -> int:
        """Offsets: a log may have notes of its own among its messages."""
        return sum(each.waiting for each in self.partitions)

    @property
    def oldest_at(self) -> datetime | None:
        return min((each.oldest_at for each in self.partitions if each.oldest_at is not None), default=None)


def place_of_copy(copy: DatasetCopy) -> CopyPlace:
    """Raises Refused where it has none, or the log cannot be read, with what to do; Busy."""
    with _asking():
        instant, position = _position(copy)
        topic = topic_to_look_at(copy.dataset)
        kept = topic.kept()
        offsets, least = offsets_of(position, kept), least_offsets(position, kept)
        places = [
            PartitionPlace(name, part, offsets[name][part], least[name][part], bounds.next)
            for name, parts in kept.items()
            for part, bounds in sorted(parts.items(), key=lambda item: (len(item[0]), item[0]))
        ]
        return CopyPlace(copy, instant, (*_aged(topic, places),))


def planned_move(copy: DatasetCopy, wanted: TopicOffsets) -> LogMove:
    """What it would mean to read on there. Raises Refused and Busy, UnfitMove."""
    with _asking():
        return plan_move(_position(copy)[1], wanted, topic_to_look_at(copy.dataset).kept())


def offsets_at(copy: DatasetCopy, time: datetime) -> TopicOffsets:
    """The first messages of then or later, but none that the copy may not be set back to. Raises Refused and Busy."""
    with _asking():
        topic = topic_to_look_at(copy.dataset)
        least, found_offsets = least_offsets(_position(copy)[1], topic.kept()), topic.at(time)
        return {
            name: {part: max(offset, least[name][part]) for part, offset in parts.items()}
            for name, parts in found_offsets.items()
        }


def earliest_offsets(copy: DatasetCopy) -> TopicOffsets:
    """Raises Refused and Busy."""
    with _asking():
        return least_offsets(_position(copy)[1], topic_to_look_at(copy.dataset).kept())


def _position(copy: DatasetCopy) -> tuple[str, Position]:
    """The commit and what it says. Raises Refused."""
    timeline = Timeline(copy.uri)
    checkpoint = timeline.checkpoint() if timeline.exists else None
    bootstrap = f"`manage.py ingest bootstrap {copy.dataset.name} --data-center {copy.data_center.name}`"
    if checkpoint is None:
        raise Refused(f"{copy} was not loaded yet, so it has no place in the changelog. Bootstrap it: {bootstrap}.")
    if unfinished_snapshot(checkpoint.position) is not None:
        raise Refused(f"{copy} is being loaded: it has a place in the changelog when that has ended.")
    if LOG not in checkpoint.position:
        raise Refused(
            f"{copy} was loaded by its cursor column, and not from a changelog. Bootstrap it with `replace`: {bootstrap} --replace."
        )
    return checkpoint.instant, checkpoint.position


def _aged(topic: EventTopic, places: list[PartitionPlace]) -> Iterator[PartitionPlace]:
    left = _MAX_AGED
    for place in places:
        if not place.waiting or not left:
            yield place
            continue
        left -= 1
        yield PartitionPlace(
            place.topic, place.partition, place.offset, place.least, place.end, _oldest_at(topic, place)
        )


def _oldest_at(topic: EventTopic, place: PartitionPlace) -> datetime | None:
    try:
        return topic.logged_at(place.topic, place.partition, place.offset)
    except OffsetGone:
        return None


@contextmanager
def _asking() -> Iterator[None]:
    if not _places.acquire(timeout=_RETRY_AFTER_S):
        raise Busy("Others ask the changelog just now.", retry_after_s=_RETRY_AFTER_S)
    try:
        yield
    except (ChangelogError, DamagedTable, OSError) as problem:
        raise Refused(f"Where the copy stands is not known: {problem}") from problem
    finally:
        _places.release()

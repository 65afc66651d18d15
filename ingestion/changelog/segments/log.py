"""The writer and the reader of a log of segments. Several processes may write and read it at once, on one machine."""

from __future__ import annotations

import fcntl
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ingestion.changelog import (
    Bounds,
    ChangelogConfig,
    ChangelogError,
    Logged,
    OffsetGone,
    Offsets,
    Outgoing,
    ProducerPosition,
    ShutOut,
    check_offsets,
)
from ingestion.changelog.segments import segment
from ingestion.changelog.segments.marks import Marks, ProducerMark, TopicMark, sync_folder

_RESTORE = "Restore the folder from a backup, or bootstrap the dataset again."
SEGMENT_BYTES = 16 * 2**20
"""A segment that has more is not appended to."""


@dataclass(frozen=True)
class SegmentsLog:
    config: ChangelogConfig
    segment_bytes: int = SEGMENT_BYTES

    @property
    def root(self) -> Path:
        return Path(unquote(urlsplit(self.config.url).path))

    def writer(self, producer: str) -> SegmentsWriter:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)  # rows of data: nobody else's
        with _locked(self.root):
            marks = Marks.read(self.root)
            mark = marks.producers.get(producer, ProducerMark())
            marks.producers[producer] = replace(mark, opened=mark.opened + 1)
            marks.write(self.root)
        return SegmentsWriter(self, producer, mark.opened + 1)

    def reader(self) -> SegmentsReader:
        return SegmentsReader(self.root)


@dataclass(frozen=True)
class SegmentsWriter:
    log: SegmentsLog
    producer: str
    opened: int

    def position(self) -> ProducerPosition | None:
        return self._mark(Marks.read(self.log.root)).position

    def commit(self, messages: Sequence[Outgoing], position: ProducerPosition, at: datetime | None = None) -> None:
        try:
            self._commit(messages, position, at or self.log.config.clock())
        except OSError as problem:
            raise ChangelogError(
                f"The changelog at {self.log.root} could not be written ({problem}). What was committed before is there: "
                "open the producer again, and go on from its position."
            ) from problem

    def _commit(self, messages: Sequence[Outgoing], position: ProducerPosition, now: datetime) -> None:
        by_topic: dict[str, list[Outgoing]] = defaultdict(list)
        for message in messages:
            by_topic[message.topic].append(message)
        root = self.log.root
        with _locked(root):
            marks = Marks.read(root)
            self._mark(marks)
            before = {topic: marks.topics.get(topic, TopicMark()) for topic in by_topic}
            after = {topic: self._append(topic, mark, by_topic[topic], now) for topic, mark in before.items()}
            marks.topics |= after
            marks.producers[self.producer] = ProducerMark(self.opened, position)
            marks.write(root)
            for topic, mark in after.items():
                if mark.segment != before[topic].segment:
                    _remove_segments(segment.topic_folder(root, topic), mark.first)

    def _mark(self, marks: Marks) -> ProducerMark:
        mark = marks.producers[self.producer]
        if mark.opened != self.opened:
            raise ShutOut(f"Another process writes as {self.producer!r} since: this one must end.")
        return mark

    def _append(self, topic: str, mark: TopicMark, messages: Sequence[Outgoing], now: datetime) -> TopicMark:
        folder = segment.topic_folder(self.log.root, topic)
        is_new = mark.bytes >= self.log.segment_bytes or not mark.bytes
        if is_new:
            folder.mkdir(exist_ok=True)
            first = max(mark.first, self._oldest_kept(folder, mark, now)) if mark.bytes else mark.next
            mark = TopicMark(first, mark.next, mark.next, 0)
        size = segment.append(segment.segment_path(folder, mark.segment), mark.bytes, messages, now)
        if is_new:
            sync_folder(folder)
            sync_folder(self.log.root)
        return replace(mark, next=mark.next + len(messages), bytes=size)

    def _oldest_kept(self, folder: Path, mark: TopicMark, now: datetime) -> int:
        """The newest segment that is full is kept, whatever its age: the next one is empty yet."""
        oldest = now.timestamp() - self.log.config.retention_s
        kept = (
            first
            for first in segment.segments_of(folder)
            if first == mark.segment or segment.segment_path(folder, first).stat().st_mtime >= oldest
        )
        return min(kept, default=mark.segment)


@dataclass(frozen=True)
class SegmentsReader:
    root: Path

    def bounds(self, topic: str) -> Mapping[str, Bounds]:
        mark = Marks.seen(self.root).topics.get(topic)
        return {} if mark is None else {segment.PARTITION: Bounds(mark.first, mark.next)}

    def offsets_at(self, topic: str, at: datetime) -> Offsets:
        """Reads the first messages of some segments, and then one segment."""
        mark = Marks.seen(self.root).topics.get(topic)
        if mark is None:
            return {}
        segments = segment.segments_of(segment.topic_folder(self.root, topic))
        firsts = [first for first in segments if mark.first <= first < mark.next]
        earlier = bisect_left(
            firsts, at, key=lambda first: next(self.read(topic, {segment.PARTITION: first})).logged_at
        )
        start = firsts[earlier - 1] if earlier else mark.first
        messages = self.read(topic, {segment.PARTITION: start})
        later = next((message.offset for message in messages if message.logged_at >= at), mark.next)
        return {segment.PARTITION: later}

    def read(self, topic: str, offsets: Offsets) -> Iterator[Logged]:
        mark = Marks.seen(self.root).topics.get(topic, TopicMark())
        check_offsets(topic, offsets, {segment.PARTITION: Bounds(mark.first, mark.next)})
        start = offsets.get(segment.PARTITION, mark.first)
        folder = segment.topic_folder(self.root, topic)
        firsts = [first for first in segment.segments_of(folder) if first <= mark.segment]
        return self._messages(topic, mark, start, firsts)

    def _messages(self, topic: str, mark: TopicMark, start: int, firsts: Sequence[int]) -> Iterator[Logged]:
        """Each offset once, up to the mark: a segment that is removed meanwhile, or has lost some, is told."""
        folder = segment.topic_folder(self.root, topic)
        for first, following in pairwise([*firsts, mark.next]):
            if following <= start:
                continue
            committed = mark.bytes if first == mark.segment else None
            path = segment.segment_path(folder, first)
            try:
                for message in segment.read(path, first, start, committed):
                    if message.offset == start:
                        yield message
                        start += 1
            except FileNotFoundError as gone:
                raise OffsetGone(f"The topic {topic!r} was read too slowly: {gone.filename} was removed.") from gone
            if start < following:
                raise ChangelogError(
                    f"{path} has no message {start:,} of the topic {topic!r}, which was committed. {_RESTORE}"
                )
        if start < mark.next:
            raise ChangelogError(
                f"{folder} has no message {start:,} of the topic {topic!r}, which was committed. {_RESTORE}"
            )


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """By one writer of the log at a time, whatever its process."""
    with (root / ".lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_segments(folder: Path, first_kept: int) -> None:
    for first in segment.segments_of(folder):
        if first < first_kept:
            segment.segment_path(folder, first).unlink()

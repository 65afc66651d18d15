"""Changelogs: where change events lie between their capture and the lake, in topics of partitions of messages with offsets.

To add one: a module here with a writer and a reader, a line in CHANGELOGS, and a row in tests/contracts/test_changelogs.py.

A producer commits messages of several topics together with its position: after a crash either all of it is there or nothing, and whoever opens the
producer anew goes on from the position and shuts out the one before. Readers see what was committed only. Offsets grow in each partition, and
a message keeps its offset; where a log keeps notes of its own, some offsets are no message's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from lakehub.kernel.registry import Registry

Offsets = Mapping[str, int]
"""By partition: the offset of the next message to read. What is not named is read from the first message on."""
ProducerPosition = Mapping[str, Any]
"""What a producer keeps to go on later: plain JSON, opaque to the log."""


class ChangelogError(RuntimeError):
    """The log cannot be read or written; the message says what, and what to do."""


class OffsetGone(ChangelogError):
    """What was to be read is not in the log any more, or not yet."""


class ShutOut(ChangelogError):
    """Another process has opened the producer since."""


class Outgoing(NamedTuple):
    """`key`: messages of one key stay in order. `value` None: what was written under the key may be forgotten."""

    topic: str
    key: bytes
    value: bytes | None


class Logged(NamedTuple):
    """`logged_at`: aware UTC, to the millisecond."""

    partition: str
    offset: int
    key: bytes
    value: bytes | None
    logged_at: datetime


class Bounds(NamedTuple):
    """`first` is the offset of the oldest message that is kept, `next` that of the one to come."""

    first: int
    next: int


class ChangelogWriter(Protocol):
    def position(self) -> ProducerPosition | None:
        """That of the last commit; None: there was none."""

    def commit(self, messages: Sequence[Outgoing], position: ProducerPosition, at: datetime | None = None) -> None:
        """All or nothing, and durable when it returns. `at`: aware UTC, when the messages are logged; None: now. Raises ShutOut."""


class ChangelogReader(Protocol):
    def bounds(self, topic: str) -> Mapping[str, Bounds]:
        """By partition; none for a topic that nobody has written to."""

    def offsets_at(self, topic: str, at: datetime) -> Offsets:
        """By partition, the offset of the first message that was logged at that time or later; behind the last one where there is none."""

    def read(self, topic: str, offsets: Offsets) -> Iterator[Logged]:
        """All that was committed when it was called; ends there. Whoever has enough may close it before. Raises OffsetGone."""


def check_offsets(topic: str, offsets: Offsets, bounds: Mapping[str, Bounds]) -> None:
    """Raises OffsetGone where one of them cannot be read from; for implementations."""
    for partition, start in offsets.items():
        first, end = bounds.get(partition, Bounds(0, 0))
        if not first <= start <= end:
            kept = f"the offsets {first:,} to {end - 1:,}" if first < end else "no messages"
            raise OffsetGone(
                f"Partition {partition} of the topic {topic!r} has {kept}, and {start:,} was to be read. "
                "Bootstrap the dataset again, or keep messages for longer than its readers pause."
            )


@dataclass(frozen=True)
class ChangelogConfig:
    """`url`: where it is; may hold a password. `retention_s`: how long messages are kept at least. `clock`: aware UTC."""

    url: str = field(repr=False)
    retention_s: float
    clock: Callable[[], datetime]


class Changelog(Protocol):
    def writer(self, producer: str) -> ChangelogWriter: ...

    def reader(self) -> ChangelogReader: ...


CHANGELOGS: Registry[Callable[[ChangelogConfig], Changelog]] = Registry(
    "changelog",
    {"segments": "ingestion.changelog.segments.log:SegmentsLog", "kafka": "ingestion.changelog.kafka.log:KafkaLog"},
    group="lakehub.changelogs",
)

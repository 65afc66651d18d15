"""Reads events of a topic from a position on, as many as one commit takes, and tells broken messages apart. A position is an offset for each partition.

Beside a topic lies another one, with what its producer could not encode: the rows as JSON, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from ingestion.changelog import Bounds, ChangelogReader, Logged, Offsets
from ingestion.heatpipe.broken_message import BrokenMessage, Defect
from ingestion.heatpipe.decoder import Decoded, Decoder
from ingestion.heatpipe.unencoded_row import UnencodedRow
from ingestion.heatpipe.wire_format import schema_id_of

ERRORS_SUFFIX = ".errors"
"""Of the topic that has what could not be encoded."""
_CLOCKS_APART = timedelta(minutes=1)
"""So far the clocks of the log and of the registry may be from each other."""
_AT_ONCE = timedelta(seconds=2)


@dataclass(frozen=True)
class EventLimits:
    """Of one commit: its events, and the bytes of their messages."""

    events: int = 30_000
    bytes: int = 32 * 2**20


def place_in_log(topic: str, *position: object) -> str:
    """For people, and to know a message by."""
    return ":".join(map(str, (topic, *position)))


@dataclass(frozen=True)
class BrokenEvent:
    """A message of `topic` that is no event of the dataset; it is kept as it came."""

    topic: str
    message: Logged
    problem: BrokenMessage

    @property
    def place(self) -> str:
        return place_in_log(self.topic, self.message.partition, self.message.offset)


@dataclass
class TopicBatch:
    """`offsets`: where to read on. `has_more`: there was more when it ended. `waits_for_schema`: it ended before a message of a schema that was
    registered after the reader was told of schemas; whoever reads on is to be told anew."""

    decoded: list[Decoded] = field(default_factory=list)
    broken: list[BrokenEvent] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    has_more: bool = False
    waits_for_schema: int | None = None
    logged_hours: Counter[str] = field(default_factory=Counter)
    """How many of the messages were logged in which hour: `2026-11-16T05`, in UTC."""

    def count(self, message: Logged) -> None:
        self.logged_hours[hour_of(message.logged_at)] += 1

    @property
    def read(self) -> int:
        return len(self.decoded) + len(self.broken)

    def pass_gaps(self, ends: Mapping[str, Bounds]) -> None:
        """Of a topic that was read to its end: offsets that belong to no message, such as those where a transaction ended, are read too."""
        for partition, bounds in ends.items():
            self.offsets[partition] = max(self.offsets.get(partition, 0), bounds.next)


@dataclass(frozen=True)
class KnownSchemas:
    """What a reader was told of the registry. `newest`: the greatest id of a schema that there was `at` that time, aware UTC."""

    newest: int
    at: datetime

    def may_lack(self, number: int, message: Logged) -> bool:
        """Was it registered since? A schema is registered before the first message of it is written. Of one with a smaller id than the newest that is so only
        where two were registered at once."""
        apart = _CLOCKS_APART if number > self.newest else _AT_ONCE
        return message.logged_at + apart > self.at


def read_events(
    log: ChangelogReader, topic: str, offsets: Offsets, decoder: Decoder, *, known: KnownSchemas, limits: EventLimits
) -> TopicBatch:
    """Raises OffsetGone."""
    batch, taken, ends = TopicBatch(offsets=dict(offsets)), 0, log.bounds(topic)
    for message in log.read(topic, offsets):
        if batch.read >= limits.events or taken >= limits.bytes:
            batch.has_more = True
            break
        number = _schema_id(message)
        if number is not None and not decoder.knows(number) and known.may_lack(number, message):
            batch.waits_for_schema = number
            break
        _decode(topic, message, decoder, batch)
        taken += len(message.value or b"")
        batch.offsets[message.partition] = message.offset + 1
        batch.count(message)
    else:
        batch.pass_gaps(ends)
    return batch


def hour_of(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H}"


def _decode(topic: str, message: Logged, decoder: Decoder, batch: TopicBatch) -> None:
    try:
        batch.decoded.append(decoder.decode(message.value or b"", (int(message.partition), message.offset)))
    except BrokenMessage as problem:
        batch.broken.append(BrokenEvent(topic, message, problem))


def read_rejected(log: ChangelogReader, topic: str, offsets: Offsets, *, limits: EventLimits) -> TopicBatch:
    """What the producer of `topic` could not encode, from the topic beside it. Raises OffsetGone."""
    name, batch, taken = topic + ERRORS_SUFFIX, TopicBatch(offsets=dict(offsets)), 0
    ends = log.bounds(name)
    for message in log.read(name, offsets):
        if batch.read >= limits.events or taken >= limits.bytes:
            batch.has_more = True
            break
        taken += len(message.value or b"")
        batch.broken.append(BrokenEvent(name, message, _told_problem(message)))
        batch.offsets[message.partition] = message.offset + 1
        batch.count(message)
    else:
        batch.pass_gaps(ends)
    return batch


def _told_problem(message: Logged) -> BrokenMessage:
    """As the producer told it."""
    row = UnencodedRow.from_json(message.value or b"")
    if row is None:
        return BrokenMessage(Defect.CORRUPT, "The message is none of a row that could not be encoded.")
    return BrokenMessage(row.defect, row.reason, row.column)


def _schema_id(message: Logged) -> int | None:
    """None: it has none that can be read."""
    try:
        return schema_id_of(message.value or b"")
    except BrokenMessage:
        return None


def lag_of(log: ChangelogReader, topic: str, offsets: Offsets) -> Mapping[str, int]:
    """By partition, how many messages are there that were not read. Of a log that was emptied some are: whoever reads it is told that it was."""
    return {
        partition: abs(bounds.next - max(offsets.get(partition, bounds.first), bounds.first))
        for partition, bounds in log.bounds(topic).items()
    }

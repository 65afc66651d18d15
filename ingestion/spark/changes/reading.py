"""Reads events of a topic from a position on, as many as one commit takes, and tells broken messages apart. A position is an offset for each partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestion.changelog import ChangelogReader, Logged, Offsets
from ingestion.heatpipe.broken_message import BrokenMessage
from ingestion.heatpipe.decoder import Decoded, Decoder
from ingestion.heatpipe.wire_format import schema_id_of


@dataclass(frozen=True)
class EventLimits:
    """Of one commit: its events, and the bytes of their messages."""

    events: int = 10_000
    bytes: int = 32 * 2**20


@dataclass(frozen=True)
class BrokenEvent:
    """A message that is no event of the dataset; it is kept as it came."""

    message: Logged
    problem: BrokenMessage


@dataclass
class EventBatch:
    """`offsets`: where to read on. `has_more`: there was more when it ended. `waits_for_schema`: it ended before a message of a schema that was
    registered after the reader was told of schemas; whoever reads on is to be told anew."""

    decoded: list[Decoded] = field(default_factory=list)
    broken: list[BrokenEvent] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    has_more: bool = False
    waits_for_schema: int | None = None

    @property
    def read(self) -> int:
        return len(self.decoded) + len(self.broken)


def read_events(
    log: ChangelogReader, topic: str, offsets: Offsets, decoder: Decoder, *, newest_schema: int, limits: EventLimits
) -> EventBatch:
    """`newest_schema`: the greatest id that the decoder may know of: a message with a greater one is none of a schema that does not exist. Raises
    OffsetGone."""
    batch, taken = EventBatch(offsets=dict(offsets)), 0
    for message in log.read(topic, offsets):
        if batch.read >= limits.events or taken >= limits.bytes:
            batch.has_more = True
            break
        if (number := _schema_id(message)) is not None and number > newest_schema:
            batch.waits_for_schema = number
            break
        _decode(message, decoder, batch)
        taken += len(message.value or b"")
        batch.offsets[message.partition] = message.offset + 1
    return batch


def _decode(message: Logged, decoder: Decoder, batch: EventBatch) -> None:
    try:
        batch.decoded.append(decoder.decode(message.value or b"", (int(message.partition), message.offset)))
    except BrokenMessage as problem:
        batch.broken.append(BrokenEvent(message, problem))


def _schema_id(message: Logged) -> int | None:
    """None: it has none that can be read."""
    try:
        return schema_id_of(message.value or b"")
    except BrokenMessage:
        return None


def lag_of(log: ChangelogReader, topic: str, offsets: Offsets) -> Mapping[str, int]:
    """By partition, how many messages are there that were not read."""
    return {
        partition: bounds.next - max(offsets.get(partition, bounds.first), bounds.first)
        for partition, bounds in log.bounds(topic).items()
    }

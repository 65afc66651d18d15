"""Events of a topic as one commit takes them: in order, bounded, each message once, and the broken ones told apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingestion.changelog import ChangelogConfig, OffsetGone, Outgoing
from ingestion.changelog.segments.log import SegmentsLog
from ingestion.heatpipe.broken_message import Defect
from ingestion.heatpipe.reading import EventLimits, KnownSchemas, TopicBatch, lag_of, read_events
from tests.unit.ingestion.heatpipe.messages import change, decoder, encoder, subject_schema

USUAL = EventLimits()
FIRST, SECOND = subject_schema(), subject_schema(version=2, schema_id=8)


@pytest.fixture
def log(tmp_path: Path) -> SegmentsLog:
    return SegmentsLog(ChangelogConfig(tmp_path.as_uri(), 86_400.0, lambda: datetime.now(UTC)))


def write(log: SegmentsLog, *messages: bytes) -> None:
    log.writer("tap").commit([Outgoing("trips", b"k", message) for message in messages], {})


def message(number: int, *, schema: int = 1) -> bytes:
    written_by = SECOND if schema == 2 else FIRST
    return encoder(written_by).encode(change({"id": number, "city": "Ulm"}, key=number)).value


def read(
    log: SegmentsLog,
    start: int = 0,
    *,
    newest_schema: int = 8,
    told_ago: timedelta = timedelta(),
    limits: EventLimits = USUAL,
) -> TopicBatch:
    reads, known = (
        decoder(*(each for each in (FIRST, SECOND) if each.schema_id <= newest_schema)),
        KnownSchemas(newest_schema, datetime.now(UTC) - told_ago),
    )
    return read_events(log.reader(), "trips", {"0": start}, reads, known=known, limits=limits)


def numbers(batch: TopicBatch) -> list[int]:
    return [decoded.event.values["id"] for decoded in batch.decoded]


def test_events_are_read_in_order_with_their_places(log: SegmentsLog) -> None:
    write(log, *map(message, range(3)))
    batch = read(log)
    assert numbers(batch) == [0, 1, 2]
    assert [decoded.event.position for decoded in batch.decoded] == [(0, 0), (0, 1), (0, 2)]
    assert (batch.offsets, batch.has_more) == ({"0": 3}, False)
    assert read(log, 3).read == 0


@pytest.mark.parametrize("limits", [EventLimits(events=2), EventLimits(bytes=1)])
def test_a_batch_ends_at_its_limits_and_the_next_goes_on(log: SegmentsLog, limits: EventLimits) -> None:
    write(log, *map(message, range(5)))
    collected, start, batches = list[int](), 0, 0
    while True:
        batch = read(log, start, limits=limits)
        collected += numbers(batch)
        start, batches = batch.offsets["0"], batches + 1
        if not batch.has_more:
            break
    assert collected == [0, 1, 2, 3, 4]
    assert batches == (3 if limits.events == 2 else 5)


def test_broken_messages_are_told_apart_and_stop_nothing(log: SegmentsLog) -> None:
    write(log, message(0), b"{", message(1)[:-2], b"", message(2))
    batch = read(log)
    assert numbers(batch) == [0, 2]
    assert [broken.problem.defect for broken in batch.broken] == [Defect.MAGIC_BYTE, Defect.TRUNCATED, Defect.EMPTY]
    assert [broken.message.offset for broken in batch.broken] == [1, 2, 3]
    assert (batch.read, batch.offsets) == (5, {"0": 5})


def test_a_message_of_a_schema_that_is_newer_than_what_the_reader_was_told_waits(log: SegmentsLog) -> None:
    """It is no broken message: the next reader is told of its schema."""
    write(log, message(0), message(1, schema=2), message(2))
    batch = read(log, newest_schema=7)
    assert (numbers(batch), batch.broken, batch.waits_for_schema) == ([0], [], 8)
    assert numbers(read(log, batch.offsets["0"])) == [1, 2]


def test_a_schema_that_nobody_has_registered_is_broken(log: SegmentsLog) -> None:
    write(log, b"\x00\x00\x00\x00\x05" + message(0)[5:])
    assert read(log).waits_for_schema == 5  # another may be registered at the same moment
    later = read(log, told_ago=timedelta(seconds=-5))
    assert [broken.problem.defect for broken in later.broken] == [Defect.UNKNOWN_SCHEMA]


def test_a_schema_that_could_have_been_told_of_and_was_not_is_broken_whatever_its_id(log: SegmentsLog) -> None:
    """A message with a made-up id keeps nobody waiting for longer than clocks are apart."""
    write(log, b"\x00\x7f\xff\xff\xff" + message(0)[5:], message(1))
    assert read(log).waits_for_schema == 0x7FFFFFFF
    later = read(log, told_ago=timedelta(minutes=-2))
    assert ([broken.problem.defect for broken in later.broken], numbers(later)) == ([Defect.UNKNOWN_SCHEMA], [1])


def test_what_is_gone_is_told(log: SegmentsLog) -> None:
    with pytest.raises(OffsetGone):
        read(log, 4)


def test_how_many_are_not_read_yet(log: SegmentsLog) -> None:
    assert lag_of(log.reader(), "trips", {}) == {}
    write(log, *map(message, range(3)))
    assert [lag_of(log.reader(), "trips", offsets) for offsets in ({}, {"0": 1}, {"0": 3})] == [
        {"0": 3},
        {"0": 2},
        {"0": 0},
    ]

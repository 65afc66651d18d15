"""A source is spared for each row that it gave, once, and not only for those that were handed over; whoever waits looks at its deadline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ingestion.domain.pace import Pace
from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, EventBatch
from ingestion.spark.reading_pace import ReadingPace


def batch(rows: int) -> EventBatch:
    return EventBatch.of(Chunk({"id": list(range(rows))}), Schema.of({"id": "long"}))


@pytest.mark.parametrize(
    ("pieces", "paid"),
    [([3, 7, 0], [3, 7]), ([3, 7, 20], [3, 7, 20]), ([0, 0, 0], [2, 1])],
    ids=["as many at the end", "more at the end", "a source that does not tell"],
)
def test_rows_are_paid_for_once(pieces: list[int], paid: list[int]) -> None:
    """`pieces`: how many rows the source has read before each of the batches of 2 and 1 rows, and at the end."""
    payments: list[int] = []
    pace = ReadingPace(lambda: None, pay=payments.append)

    def batches() -> Iterator[EventBatch]:
        for rows, piece in zip((2, 1), pieces, strict=False):
            pace.after_piece(piece)
            yield batch(rows)
        pace.after_piece(pieces[-1])

    assert [each.rows for each in pace.batches(batches())] == [2, 1]
    assert payments == paid


def test_rows_that_were_read_before_are_not_paid_for_again() -> None:
    payments: list[int] = []
    pace = ReadingPace(lambda: None, pay=payments.append)

    def batches() -> Iterator[EventBatch]:
        yield replace(batch(5), is_landed=True)
        pace.after_piece(2)
        yield batch(2)

    assert [each.rows for each in pace.batches(batches())] == [5, 2]
    assert payments == [2]


def test_rows_that_are_only_looked_at_are_paid_for_piece_by_piece() -> None:
    """All at the end was one payment of hours."""
    events: list[object] = []
    pace = ReadingPace(lambda: events.append("alive"), pay=events.append)
    for _ in range(3):
        pace.after_piece(1000)
    assert events == ["alive", 1000] * 3


def test_the_wait_of_a_feed_is_between_its_pieces() -> None:
    events: list[object] = []
    pace = ReadingPace(lambda: None, Pace(10.0), clock=lambda: 0.0, sleep=events.append)
    pace.after_piece(10)
    pace.after_piece(20)
    assert events == [1.0, 3.0]


def test_a_wait_of_years_ends_at_the_deadline() -> None:
    slept: list[float] = []

    def alive() -> None:
        if sum(slept) > 60:
            raise TimeoutError

    pace = ReadingPace(alive, Pace(1e-9), clock=lambda: 0.0, sleep=slept.append)
    with pytest.raises(TimeoutError):
        pace.after_piece(1)
    assert max(slept) <= 5

"""What a connection's rows per second count: each row that the source gave, once, and not only those that were handed over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ingestion.domain.schema import Schema
from ingestion.sources import Chunk, EventBatch, SourceReading
from ingestion.spark.loading.staging import paid_for


def batch(rows: int) -> EventBatch:
    return EventBatch.of(Chunk({"id": list(range(rows))}), Schema.of({"id": "long"}))


@pytest.mark.parametrize(
    ("looked_at", "paid"),
    [([3, 10, 10], [3, 7]), ([3, 10, 30], [3, 7, 20]), ([0, 0, 0], [2, 1])],
    ids=["as many at the end", "more at the end", "a source that does not say"],
)
def test_rows_are_paid_for_once(looked_at: list[int], paid: list[int]) -> None:
    """`looked_at`: how many the source has given with each batch of 2 and 1 rows, and at the end."""
    given, payments = iter(looked_at), list[int]()
    count = 0

    def batches() -> Iterator[EventBatch]:
        nonlocal count
        for rows in (2, 1):
            count = next(given)
            yield batch(rows)
        count = next(given)

    reading = SourceReading(batches(), dict, rows_read=lambda: count)
    assert [each.rows for each in paid_for(reading, payments.append)] == [2, 1]
    assert payments == paid

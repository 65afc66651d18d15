"""Where a reading ends: at the first limit of rows, bytes or seconds that is reached."""

from __future__ import annotations

import pytest

from ingestion.domain.batch_limits import UNLIMITED, BatchLimits, BatchMeter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("limits", "full"),
    [
        (BatchLimits(rows=10), True),
        (BatchLimits(rows=11), False),
        (BatchLimits(bytes=500), True),
        (BatchLimits(bytes=501, rows=11), False),
        (BatchLimits(seconds=3), True),
        (BatchLimits(seconds=3.5), False),
        (BatchLimits(rows=1_000, seconds=2), True),
        (UNLIMITED, False),
    ],
)
def test_a_limit_that_is_reached_fills_the_batch(limits: BatchLimits, full: bool) -> None:
    clock = Clock()
    meter = BatchMeter(limits, clock)
    assert not meter.is_full()
    meter.add(4, 200)
    meter.add(6, 300)
    clock.now += 3
    assert meter.is_full() is full


@pytest.mark.parametrize(
    ("limits", "rows"),
    [
        (BatchLimits(rows=25), 15),
        (BatchLimits(bytes=1000), 10),
        (BatchLimits(seconds=3), 5),
        (BatchLimits(rows=25, bytes=1000, seconds=3), 5),
        (BatchLimits(seconds=1), 0),
        (UNLIMITED, None),
    ],
)
def test_how_much_more_fits_is_judged_by_what_was_handed_over(limits: BatchLimits, rows: int | None) -> None:
    clock = Clock()
    meter = BatchMeter(limits, clock)
    meter.add(10, 500)
    clock.now += 2
    assert meter.rows_that_fit() == rows


@pytest.mark.parametrize("name", ["rows", "bytes", "seconds"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"The limit `{name}` of a batch is 0"):
        BatchLimits(**{name: 0})

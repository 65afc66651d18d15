"""A query on a partition column that says times by a form: the range that is asked about holds every row that random queries match."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import Grain, partition_at
from lakehub.kernel.partitions.form import PartitionForm
from tests.partition_form_queries import asked, form_of

KOLKATA, NEW_YORK, HERE = ZoneInfo("Asia/Kolkata"), ZoneInfo("America/New_York"), ZoneInfo("UTC")
FORMS = (
    (Grain.DAY, "%Y%m%d"), (Grain.DAY, "%d.%m.%Y"), (Grain.DAY, "%d%m%Y"), (Grain.DAY, "%Y-%j"), (Grain.DAY, "%-m/%d/%Y"),
    (Grain.DAY, "epoch days"), (Grain.DAY, "epoch seconds"), (Grain.HOUR, "%Y%m%d%H"), (Grain.MONTH, "%Y%m"),
    (Grain.MONTH, "%b %Y"), (Grain.WEEK, "%G%V"), (Grain.QUARTER, "%Y-Q%q"), (Grain.YEAR, "%Y"),
)  # fmt: skip
COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    kind=st.sampled_from(FORMS),
    zone=st.sampled_from((HERE, KOLKATA, NEW_YORK)),
    rows=st.lists(st.integers(0, 3_000), min_size=1, max_size=12),
    constant=st.one_of(st.integers(0, 3_000), st.sampled_from(("2026-11-16", "2026", "16", "zz", "20261100", "-1"))),
    sign=st.sampled_from(sorted(COMPARED)),
    is_number=st.booleans(),
)
def test_every_row_that_matches_lies_in_the_range(
    kind: tuple[Grain, str], zone: ZoneInfo, rows: list[int], constant: int | str, sign: str, is_number: bool
) -> None:
    """Naively: the value of each row's partition, compared as a text, or as a number where the constant is one."""
    form = form_of(kind[1], kind[0], zone)
    partitions = [_partition(hours, form) for hours in rows]
    written = constant if isinstance(constant, str) else form.value_of(_partition(constant, form))
    number = is_number and written.lstrip("-").isdecimal()
    ranges, _ = asked(f"ds {sign} {written if number else repr(written)}", form)
    for partition in partitions:
        value = form.value_of(partition)
        if number and not value.lstrip("-").isdecimal():
            continue  # an error of the database
        left, right = (int(value), int(written)) if number else (value, written)
        if COMPARED[sign](left, right):
            assert any(piece.covers(partition) for piece in ranges), (value, sign, written, ranges)


def _partition(hours: int, form: PartitionForm) -> Interval:
    """Hours around the end of summer time, when one comes twice."""
    return partition_at(datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=hours), form.grain, form.zone)


@settings(max_examples=200, deadline=None)
@given(
    zone=st.sampled_from((HERE, KOLKATA, NEW_YORK)),
    text=st.sampled_from(("time", "time in UTC")),
    hours=st.lists(st.integers(0, 2_000), min_size=1, max_size=10),
    day=st.integers(1, 28),
    sign=st.sampled_from(sorted(COMPARED)),
)
def test_rows_with_times_lie_in_the_range_whatever_zone_they_are_shown_in(
    zone: ZoneInfo, text: str, hours: list[int], day: int, sign: str
) -> None:
    form = form_of(text, Grain.DAY, zone)
    written = datetime(2026, 10, day)
    ranges, _ = asked(f"ds {sign} TIMESTAMP '{written:%Y-%m-%d %H:%M:%S}'", form)
    for hour in hours:
        instant = datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=hour)
        shown = instant.astimezone(zone if text == "time" else UTC).replace(tzinfo=None)
        if COMPARED[sign](shown, written):
            assert any(piece.covers(partition_at(instant, Grain.DAY, zone)) for piece in ranges), (instant, ranges)

"""Following a watermark: no row is missed, however many share a value, and few come twice."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.checkpoint import Position
from ingestion.sources import UnusableCursors
from ingestion.sources.sql import watermark
from ingestion.sources.sql.row_sums import ContentDigest
from ingestion.sources.sql.watermark import (
    MAX_REMEMBERED_HASHES,
    WatermarkTracker,
    as_instant,
    decode_value,
    encode_value,
    is_beyond_all,
    moved_back,
)

ROWS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from("xyz")), max_size=8)
HALF_PAST = datetime(2026, 11, 16, 8, 30, tzinfo=UTC)


@given(st.lists(ROWS, max_size=5))
def test_every_row_is_handed_over_whatever_comes_when(batches: list[list[tuple[int, str]]]) -> None:
    """A table grows; rows with an old watermark come late only at or above the highest that was read."""
    table: list[tuple[int, str]] = []
    position: Position | None = None
    seen: list[tuple[int, str]] = []
    highest = 0
    for batch in batches:
        table += [(max(value, highest), name) for value, name in batch]
        handed, position = read(table, position)
        seen += handed
        highest = max([highest, *(row[0] for row in table)])
    assert set(seen) == set(table)


def test_a_row_that_was_handed_over_as_it_is_does_not_come_again() -> None:
    _, position = read([(1, "a"), (2, "b")], None)
    assert read([(1, "a"), (2, "b"), (2, "c")], position)[0] == [(2, "c")]


def test_a_row_that_changed_within_its_watermark_comes_again() -> None:
    _, position = read([(2, "b")], None)
    assert read([(2, "B")], position)[0] == [(2, "B")]


def test_rows_without_a_watermark_come_once() -> None:
    rows: list[tuple[Any, str]] = [(None, "a"), (1, "b")]
    handed, position = read(rows, None)
    assert handed == rows
    assert read([*rows, (None, "c")], position)[0] == [(None, "c")]


def test_where_too_many_share_a_watermark_some_come_again_and_none_is_missed() -> None:
    rows = [(1, str(number)) for number in range(MAX_REMEMBERED_HASHES + 500)]
    _, position = read(rows, None)
    assert len(position["seen"]) == MAX_REMEMBERED_HASHES
    handed, _ = read([*rows, (1, "new")], position)
    assert (1, "new") in handed
    assert len(handed) == 501


def test_an_overlap_looks_again_for_rows_that_were_committed_late() -> None:
    _, position = read([("2026-11-16 08:30:00", "a")], None, timed=True)
    late = ("2026-11-16 08:29:30", "late")
    keeper = WatermarkTracker(0, True, position, None, timedelta(minutes=1))
    assert keeper.read_from() == "2026-11-16 08:29:00"
    assert keeper.admit(late)


def test_a_crowd_behind_the_watermark_is_known_when_newer_rows_have_come() -> None:
    """With an overlap the crowd lies in the next reading as well: what a look at it found is remembered."""
    rows = [(f"2026-11-16 08:30:{number % 60:02}.5", number) for number in range(MAX_REMEMBERED_HASHES + 500)]
    position = looking_back(rows, None)[1]
    keeper, looked = (WatermarkTracker(0, True, position, None, timedelta(minutes=2)) for _ in range(2))
    assert keeper.admit(("2026-11-16 08:31:00", "newer"))
    for row in rows:
        looked.admit(row)
    assert not keeper.crowd_parts(looked)
    assert keeper.position() == looking_back([*rows, ("2026-11-16 08:31:00", "newer")], None)[1]


def looking_back(rows: list[Any], start: Position | None) -> tuple[list[Any], Position]:
    keeper = WatermarkTracker(0, True, start, None, timedelta(minutes=2))
    return [row for row in rows if keeper.admit(row)], keeper.position()


def test_rows_after_upto_are_not_there_yet() -> None:
    keeper = WatermarkTracker(0, True, None, HALF_PAST)
    assert keeper.admit(("2026-11-16 08:30:00", "now"))
    assert not keeper.admit(("2026-11-16 08:30:01", "later"))
    assert keeper.position()["watermark"] == {"type": "str", "value": "2026-11-16 08:30:00"}


def test_a_watermark_that_is_no_time_does_not_lead() -> None:
    keeper = WatermarkTracker(0, True, None, None)
    assert keeper.admit(("2026-11-16 08:30:00", "a"))
    assert keeper.admit(("zzz", "b"))
    assert keeper.position()["watermark"] == {"type": "str", "value": "2026-11-16 08:30:00"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")])
def test_what_is_greater_than_all_never_becomes_the_watermark(value: Any) -> None:
    """As the watermark it would stay for ever: nothing is greater than it, or greater than NaN."""
    handed, position = read([(value, "a"), (2.5, "b"), (value, "c")], None)
    assert [name for _, name in handed] == ["a", "b", "c"]
    assert decode_value(position["watermark"]) == 2.5
    assert [name for _, name in read([(value, "a"), (2.5, "b"), (3.5, "d"), (value, "c")], position)[0]] == ["d"]


def test_a_position_that_says_nan_is_read_from_the_beginning() -> None:
    start = {"watermark": encode_value(float("nan")), "seen": []}
    assert WatermarkTracker(0, False, start, None).read_from() is None


def test_rows_that_have_no_place_in_the_order_are_counted() -> None:
    keeper = WatermarkTracker(0, False, None, None)
    for value in (None, 1.0, float("nan"), float("inf"), float("nan"), float("-inf")):
        keeper.admit((value,))
    assert keeper.unusable_cursors() == UnusableCursors(3, ("nan", "inf"))


class CountingTime(datetime):
    comparisons = 0

    def __ge__(self, other: Any) -> bool:
        CountingTime.comparisons += 1
        return super().__ge__(other)


def test_an_overlap_of_hours_costs_a_few_comparisons_a_row() -> None:
    """Six hours have 21,600 seconds; they were walked through with each row (40,000 rows: 145 s)."""
    CountingTime.comparisons = 0
    start, rows = CountingTime(2026, 11, 16), 3_000
    keeper = WatermarkTracker(0, True, None, None, timedelta(hours=6))
    for number in range(rows):
        keeper.admit((start + timedelta(seconds=number), number))
    assert CountingTime.comparisons < 5 * rows
    assert keeper.position()["crowd"]["rows"] == rows


@pytest.mark.parametrize(
    "value", [None, 7, 1.5, Decimal("2.50"), "text", date(2026, 11, 16), HALF_PAST, HALF_PAST.replace(tzinfo=None)]
)
def test_a_watermark_keeps_its_type_in_json(value: object) -> None:
    assert decode_value(encode_value(value)) == value
    assert type(decode_value(encode_value(value))) is type(value)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2026-11-16 08:30:00", HALF_PAST),
        ("2026-11-16T09:30:00+01:00", HALF_PAST),
        (HALF_PAST.replace(tzinfo=None), HALF_PAST),
        (date(2026, 11, 16), HALF_PAST.replace(hour=0, minute=0)),
        ("soon", None),
        (5, None),
    ],
)
def test_what_databases_call_a_time(value: object, moment: datetime | None) -> None:
    assert as_instant(value) == moment


def test_the_time_of_a_row_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at an idle table reads the rows of the overlap again."""
    texts: list[str] = []
    monkeypatch.setattr(watermark, "as_instant", lambda text: texts.append(text) or HALF_PAST)
    tracker = WatermarkTracker(0, is_timed=True, start=None, upto=HALF_PAST)
    for second in range(3):
        row = (f"2026-11-16 08:30:0{second}",)
        tracker.admit(row)
        tracker.is_new(row)
    assert len(texts) == 3


@given(st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.sampled_from(" T"))
def test_an_earlier_text_sorts_before(moment: datetime, between: str) -> None:
    text = moment.isoformat(sep=between)
    assert moved_back(text, timedelta()) <= text
    assert moved_back(text, timedelta(seconds=90)) < text


@given(st.lists(st.integers()), st.randoms(use_true_random=False))
def test_a_digest_does_not_mind_the_order_and_minds_every_row(values: list[int], chance: Any) -> None:
    shuffled = chance.sample(values, len(values))
    assert digest(values) == digest(shuffled)
    assert digest(values) != digest([*values, 0])


def digest(values: list[int]) -> Position:
    keeper = ContentDigest(None)
    for value in values:
        keeper.admit((value,))
    return keeper.position()


def read(table: list[Any], start: Position | None, *, timed: bool = False) -> tuple[list[Any], Position]:
    """What a source hands over of `table`, which it reads from the watermark on."""
    keeper = WatermarkTracker(0, timed, start, None)
    lower = keeper.read_from()
    wanted = [row for row in table if lower is None or row[0] is None or is_beyond_all(row[0]) or row[0] >= lower]
    return [row for row in wanted if keeper.admit(row)], keeper.position()

"""The history has each version once, however often and in whichever batches its event is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestion.domain.merging.events import ChangeEvent
from ingestion.domain.merging.history import (
    RowVersion,
    history_schema,
    oldest_day_kept,
    unknown_until,
    version_of_event,
    version_of_stored_row,
)
from ingestion.domain.merging.stored_metadata import LatestEvent
from ingestion.domain.schema import Schema
from tests.unit.ingestion.change_events import change, delete, logs

AT = datetime(2026, 11, 27, 23, 59, 59, 999_999, tzinfo=UTC)
FACTS = LatestEvent("s", AT, AT + timedelta(days=1), 3)


def version(event: ChangeEvent, facts: LatestEvent = FACTS, *, is_whole: bool = True) -> RowVersion:
    return version_of_event(event, f'["{event.row_key[0]}"]', facts, is_whole=is_whole)


@given(logs(forced=True), st.integers(1, 5))
def test_an_event_that_comes_again_is_the_same_version(events: list[ChangeEvent], later: int) -> None:
    """Also at another place in the log, and encoded at another time."""
    again = [replace(event, position=(event.position[0] + 100 * later,)) for event in events]
    facts = replace(FACTS, schematised_at=AT + timedelta(days=later))
    assert [version(event).key for event in events] == [version(event, facts).key for event in again]


@given(logs(forced=True))
def test_versions_that_differ_are_both_kept(events: list[ChangeEvent]) -> None:
    """They differ by the row, the reference key, the data center or by what they say; a null says what no value says."""

    def identity(event: ChangeEvent) -> Any:
        values = () if event.operation == "delete" else sorted((n, v) for n, v in event.values.items() if v is not None)
        named = (event.row_key, event.reference_key, event.data_center, event.force_update)
        return (*named, event.operation == "delete", tuple(values))

    assert len({version(event).key for event in events}) == len({identity(event) for event in events})


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        (5, 5.0),
        (Decimal("1.5"), Decimal("1.500")),
        ({"a": 1}, {"a": 1, "b": None}),
        ([1, 2], (1.0, 2.0)),
        (1e300, 1e300),
    ],
)
def test_a_column_that_has_widened_makes_no_other_version(narrow: object, wide: object) -> None:
    assert version(change(x=narrow)).key == version(change(x=wide, y=None)).key


@pytest.mark.parametrize(
    ("left", "right"),
    [(10, 1), (100, 10.5), (b"", None), ("", None), (float("nan"), None), (float("inf"), float("-inf")), ([1], [1, 1]), (0.1, 0.2), (True, False), ({"a": 1}, {"b": 1}),
     (Decimal("12345678901234567890123456789012345678"), Decimal("12345678901234567890123456789012345679"))],
)  # fmt: skip
def test_values_that_differ_do_not_look_alike(left: object, right: object) -> None:
    assert version(change(x=left)).key != version(change(x=right)).key


def test_a_version_lies_in_the_day_of_its_commit_at_the_source_and_keys_grow_with_time() -> None:
    first = version(change(x=1))
    second = version(change(x=1), replace(FACTS, source_committed_at=AT + timedelta(microseconds=1)))
    assert (first.day, second.day, first.key < second.key) == ("2026-11-27", "2026-11-28", True)
    unsaid = version(change(x=1), replace(FACTS, source_committed_at=None))
    assert (unsaid.day, unsaid.row["_lakehub_committed_at"] - first.row["_lakehub_committed_at"]) == (
        "2026-11-28",
        86_400_000_000,
    )


def test_a_version_says_which_columns_it_carries() -> None:
    whole, partial = version(change(x=1, y=None)), version(change(x=1, y=None), is_whole=False)
    gone = version(delete(x=1), is_whole=False)
    columns = [each.row["_lakehub_changed_columns"] for each in (whole, partial, gone)]
    assert columns == [None, ["x", "y"], None]
    assert [each.row["_lakehub_is_deleted"] for each in (whole, gone)] == [False, True]
    names = history_schema(Schema.of({"x": "int", "y": "int"}), int).names
    assert {*whole.row} == {*names}


def test_a_row_that_was_there_before_is_kept_with_its_own_time_in_the_day_of_its_change() -> None:
    at = (AT - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    metadata: dict[str, Any] = {
        "row_key": '["a"]', "reference_key": 7, "data_center": "dc1", "position": [0, 7], "schema_version": 2,
        "source_committed_at": None, "schematised_at": at, "force_update": False,
    }  # fmt: skip
    stored = version_of_stored_row({"x": 1}, metadata, day="2026-12-24")
    assert (stored.day, stored.row["x"], stored.row["_lakehub_committed_at"]) == ("2026-12-24", 1, at)
    assert (stored.row["_lakehub_is_snapshot"], stored.row["_lakehub_reference_key"]) == (True, 7)
    assert stored == version_of_stored_row({"x": 1}, metadata | {"schematised_at": AT}, day="2026-12-24")


def test_what_is_removed_can_be_asked_for_by_nobody() -> None:
    """A row stood from the first day to the last: the change of the last brings along what it was, or the first day is kept for as long as it counts."""
    days = [AT + timedelta(days=day) for day in range(100)]
    kept_for = timedelta(days=10)
    for first in days[:40]:
        for next_change in (first + timedelta(days=stood) for stood in range(30)):
            instant = f"{first:%Y%m%d%H%M%S%f}"[:17]
            is_copied = instant <= unknown_until("", now=next_change, kept_for=kept_for)
            last_asked_for = next_change + kept_for
            day = first.date().isoformat()
            assert is_copied or day >= oldest_day_kept(now=last_asked_for, kept_for=kept_for)
    assert unknown_until("2026", now=AT, kept_for=None) == "2026"

"""What a change event must have, and the compact form of a row's versions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given

from ingestion.domain.merging.events import ChangeEvent, ReferenceKey, misfit
from ingestion.domain.merging.row_state import RowState, changelog_columns, columns_from_changelog
from tests.unit.ingestion.change_events import change, delete, logs, table_after

FITTING = change(1, 1, x=1)


@pytest.mark.parametrize(
    ("event", "reference_type"),
    [
        (FITTING, int),
        (replace(FITTING, reference_key=b"\x00"), bytes),
        (replace(FITTING, reference_key=None), None),
        (replace(FITTING, reference_key=-(2**63)), int),
        (replace(FITTING, source_committed_at=datetime(2026, 1, 1, tzinfo=UTC)), int),
        (delete(1, 1), int),
    ],
)
def test_an_event_that_fits(event: ChangeEvent, reference_type: type[ReferenceKey] | None) -> None:
    assert misfit(event, reference_type) is None


@pytest.mark.parametrize(
    ("event", "reference_type", "reason"),
    [
        (replace(FITTING, row_key=()), int, "row key"),
        (replace(FITTING, row_key=("a", None)), int, "row key"),
        (replace(FITTING, row_key=(["a"],)), int, "row key"),  # type: ignore[arg-type]  # what a decoder must not do
        (replace(FITTING, reference_key=None), int, "a 64-bit integer"),
        (replace(FITTING, reference_key=True), int, "a 64-bit integer"),
        (replace(FITTING, reference_key=2**63), int, "a 64-bit integer"),
        (FITTING, bytes, "bytes"),
        (FITTING, None, "none"),
        (replace(FITTING, position=()), int, "position"),
        (replace(FITTING, source_committed_at=datetime(2026, 1, 1)), int, "time zone"),
        (replace(FITTING, values={}), int, "no columns"),
    ],
)
def test_why_an_event_does_not_fit(event: ChangeEvent, reference_type: type[ReferenceKey] | None, reason: str) -> None:
    assert reason in (misfit(event, reference_type) or "")


def test_bytes_compare_as_unsigned_bytes() -> None:
    assert replace(FITTING, reference_key=b"\x7f\xff").version < replace(FITTING, reference_key=b"\x80").version


@given(logs(forced=True))
def test_the_compact_form_keeps_every_version(log: list[ChangeEvent]) -> None:
    for row in table_after([log]).values():
        changelog = changelog_columns(row)
        assert columns_from_changelog(changelog, row.values) == row.columns
        assert len({entry.version for entry in changelog}) == len(changelog)


def test_a_row_that_one_event_wrote_has_one_changelog_entry() -> None:
    row = table_after([[change(1, 1, y=1, x=1)]])["a",]
    assert [entry.names for entry in changelog_columns(row)] == [("x", "y")]


def test_a_column_that_no_event_gave_is_not_a_null() -> None:
    changelog = changelog_columns(table_after([[change(1, 1, x=None)]])["a",])
    assert set(columns_from_changelog(changelog, {"x": None, "y": None})) == {"x"}


def test_a_row_without_columns_has_an_empty_changelog() -> None:
    assert changelog_columns(RowState()) == ()

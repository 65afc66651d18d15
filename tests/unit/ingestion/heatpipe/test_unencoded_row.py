"""A row that could not be encoded goes to the log and comes back, whatever it holds; and what somebody else has written there is none."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ingestion.heatpipe.broken_message import Defect
from ingestion.heatpipe.unencoded_row import MAX_BYTES, UnencodedRow
from ingestion.spark.changes.broken_raw import broken_raw, is_broken_raw
from ingestion.spark.changes.republishing import row_of_event

ROW = UnencodedRow("0-1-7", 3, Defect.TYPE, "fare", "no number", {"id": 1}, {"id": 1, "fare": "?"})


def test_it_comes_back_with_its_values_in_the_form_of_the_error_table() -> None:
    values = {
        "at": datetime(2026, 11, 27, tzinfo=UTC),
        "day": date(2026, 11, 27),
        "fare": Decimal("1.50"),
        "token": b"\x00\xff",
    }
    row = UnencodedRow.from_json(replace(ROW, after=values).to_json())
    assert row is not None
    assert row.after == {
        "at": "2026-11-27T00:00:00+00:00",
        "day": "2026-11-27",
        "fare": "1.50",
        "token": {"base64": "AP8="},
    }
    assert (row.defect, row.is_cut, UnencodedRow.from_json(ROW.to_json())) == (Defect.TYPE, False, ROW)
    assert json.loads(row_of_event(ROW.to_json().decode())) == {"id": 1, "fare": "?"}


@pytest.mark.parametrize("value", [b"\x00" * 9 * 2**20, "ü" * 6 * 2**20, "\udcff" * 2 * 2**20, [b"x" * 5 * 2**20]])
def test_a_row_that_is_too_long_for_a_log_is_cut_and_not_taken_for_whole(value: Any) -> None:
    """It stops no tap; whoever mends it gives all of its values."""
    text = replace(ROW, before={"id": 1, "body": value}, after={"id": 1, "body": value}, reason="?" * 10**7).to_json()
    assert len(text) < MAX_BYTES
    row = UnencodedRow.from_json(text)
    assert row is not None
    assert (row.is_cut, row.before and row.before["id"], row.transaction) == (True, 1, "0-1-7")
    assert row_of_event(text.decode()) == ""


@pytest.mark.parametrize(
    "facts",
    [
        {"transaction": 5},
        {"transaction": "0-1-x"},
        {"row": "3"},
        {"row": True},
        {"row": -1},
        {"column": {"a": 1}},
        {"reason": None},
        {"before": [1]},
        {"before": None, "after": None},
        {"defect": "made up"},
        {"more": 1},
    ],
)
def test_what_is_no_such_row_is_none(facts: dict[str, Any]) -> None:
    text = json.dumps(json.loads(ROW.to_json()) | facts)
    assert UnencodedRow.from_json(text.encode()) is None


@pytest.mark.parametrize("text", [b"", b"?", b"[]", b"\xff", b"[" * 200_000, b'{"a":' * 100_000])
def test_what_is_no_json_stops_nobody(text: bytes) -> None:
    assert UnencodedRow.from_json(text) is None
    assert not is_broken_raw(text.decode(errors="backslashreplace"))


def test_of_a_message_that_cannot_be_decoded_as_much_is_kept_as_people_can_read() -> None:
    raw = broken_raw(Defect.OVERSIZED, bytes(9 * 2**20))
    assert (is_broken_raw(raw), len(raw) < 2**20, json.loads(raw)["bytes"]) == (True, True, 9 * 2**20)
    assert row_of_event(raw) == ""

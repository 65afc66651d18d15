"""What was written under the old name of a column is read under the new one, whenever it comes."""

from __future__ import annotations

import pytest

from ingestion.domain.merging.column_renames import (
    ColumnRename,
    renamed_columns,
    renamed_event,
    renames_of_text,
    renames_to_text,
)
from ingestion.domain.merging.events import ChangeEvent, Operation

FIRST = ColumnRename(b"\x05", {"name": "a"})
SECOND = ColumnRename(b"\x07", {"title": "name"})
SWAP = ColumnRename(b"\x05", {"x": "y", "y": "x"})


def event(key: bytes, **values: object) -> ChangeEvent:
    return ChangeEvent(Operation.UPDATE, (1,), key, (1,), {"id": 1, **values}, 1)


@pytest.mark.parametrize(
    ("key", "values", "becomes"),
    [
        (b"\x04", {"a": "v"}, {"a": "v", "name": "v", "title": "v"}),
        (b"\x05", {"name": "v", "a": None}, {"name": "v", "a": None, "title": "v"}),
        (b"\x07", {"title": "v", "name": None, "a": None}, {"title": "v", "name": None, "a": None}),
        (b"\x04", {"a": None, "name": "of before"}, {"a": None, "name": None, "title": None}),
        (b"\x04", {"b": 1}, {"b": 1}),
    ],
)
def test_an_event_of_before_has_the_new_names(
    key: bytes, values: dict[str, object], becomes: dict[str, object]
) -> None:
    assert renamed_event(event(key, **values), [FIRST, SECOND]).values == {"id": 1, **becomes}


def test_two_columns_change_their_names_at_once() -> None:
    assert renamed_event(event(b"\x04", x=1, y=2), [SWAP]).values == {"id": 1, "x": 2, "y": 1}
    unchanged = event(b"\x05", x=1, y=2)
    assert renamed_event(unchanged, [SWAP]) is unchanged


def test_a_version_of_before_has_the_new_columns_too() -> None:
    assert renamed_columns(("id", "a"), [FIRST, SECOND]) == ("id", "a", "name", "title")
    assert renamed_columns(("id", "x", "y"), [SWAP]) == ("id", "x", "y")
    assert renamed_columns(("id",), [FIRST]) == ("id",)


def test_they_travel_as_a_text() -> None:
    assert renames_of_text(renames_to_text([FIRST, SWAP])) == (FIRST, SWAP)

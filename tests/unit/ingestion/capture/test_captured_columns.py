"""Which columns of a row are captured and how, what is put aside, and why a table is not captured at all."""

from __future__ import annotations

import hmac
import json
import re
from dataclasses import replace

import pytest

from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn, TableMap
from ingestion.capture.tap.captured_table import CaptureSpec
from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.capture.tap.tap import ERRORS_SUFFIX
from tests.unit.ingestion.capture.tapping import (
    SPECS,
    TRIPS,
    UTF8,
    Server,
    Tapping,
    inserted,
    keys,
    row,
    table,
    transaction,
)


def hidden(**columns: str) -> HiddenColumns:
    return HiddenColumns(**{way: frozenset([name]) for way, name in columns.items()}, key="key")


def test_what_nobody_may_see_is_in_no_row_that_is_put_aside() -> None:
    wide = table(
        "trips",
        *(MappedColumn(name, ColumnKind.VARCHAR, (40, 0), collation=UTF8) for name in ("email", "phone", "left")),
    )
    bad = row(1, "\udcff", email="EMAIL", phone="PHONE", left="LEFT")
    spec = replace(SPECS[0], hidden=hidden(left_out="left", hashed="email", masked="phone"))
    tapping = Tapping(Server([transaction(1, inserted(wide, bad))]))
    tapping.run([spec])
    (rejected,) = tapping.log.messages
    assert not [secret for secret in (b"EMAIL", b"PHONE", b"LEFT", b"left") if secret in (rejected.value or b"")]
    assert json.loads(rejected.value or b"")["after"] == {
        "id": 1,
        "city": "\udcff",
        "email": hmac.digest(b"key", b"EMAIL", "sha256").hex(),
        "phone": None,
    }


def test_a_row_that_does_not_fit_is_put_aside_with_what_it_was() -> None:
    no_text = row(2, "\udcff")
    tapping = Tapping(Server([transaction(1, inserted(TRIPS, row(1), no_text, row(3)))]))
    tapping.run()
    assert keys(tapping.events()) == [1, 3]
    (rejected,) = (message for message in tapping.log.messages if message.topic == f"trips{ERRORS_SUFFIX}")
    assert rejected.key == b"0-1-1:1"
    assert b'"column": "city"' in (rejected.value or b"")
    assert rb'"after": {"id": 2, "city": "\udcff"}' in (rejected.value or b"")


def test_a_row_that_is_put_aside_says_that_dropped_columns_are_null() -> None:
    """As each row that is written says it: published again, it leaves no old value in them."""
    before = table("trips", MappedColumn("fare", ColumnKind.LONG))
    changes = [transaction(1, inserted(before, row(1, fare=7))), transaction(2, inserted(TRIPS, row(1, "\udcff")))]
    tapping = Tapping(Server(changes))
    tapping.versions.keeps = True
    tapping.run()
    (rejected,) = (message for message in tapping.log.messages if message.topic == f"trips{ERRORS_SUFFIX}")
    assert json.loads(rejected.value or b"")["after"] == {"id": 1, "city": "\udcff", "fare": None}


def test_columns_are_left_out_hashed_and_masked() -> None:
    wide = table(
        "trips",
        MappedColumn("email", ColumnKind.VARCHAR, (40, 0), collation=UTF8),
        MappedColumn("phone", ColumnKind.VARCHAR, (40, 0), collation=UTF8),
        MappedColumn("place", ColumnKind.GEOMETRY, (4,)),
    )
    changed = inserted(
        wide, row(1, email="a@b.c", phone="0731", place=b"\x00"), row(2, email=None, phone=None, place=None)
    )
    spec = replace(SPECS[0], hidden=hidden(left_out="place", hashed="email", masked="phone"))
    tapping = Tapping(Server([transaction(1, changed)]))
    tapping.run([spec])
    first, second = (values for _, values in tapping.events())
    assert first == row(1, email=hmac.digest(b"key", b"a@b.c", "sha256").hex(), phone=None)
    assert second == row(2, email=None, phone=None)


@pytest.mark.parametrize(
    ("spec", "of", "reason"),
    [
        (CaptureSpec("trips", "shop", "trips", record_key=("nope",)), TRIPS, "`nope`, a part of the record key, is not there"),
        (replace(SPECS[0], hidden=hidden(left_out="id")), TRIPS, "`id`, a part of the record key, is to be left out"),
        (replace(SPECS[0], hidden=hidden(masked="id")), TRIPS, "`id`, a part of the record key, is to be masked"),
        (CaptureSpec("trips", "shop", "trips", record_key=("city",), hidden=hidden(hashed="id")), TRIPS, "`id`, a part of the primary key, is to be hashed"),
        (replace(SPECS[0], hidden=hidden(masked="City")), TRIPS, r"does not have `City` \(masked\) any more, and under another name the values would be seen"),
        (SPECS[0], table("trips", MappedColumn("a-b", ColumnKind.TINY)), "cannot hold the columns `a-b`.*leave them out, or load a view without them"),
        (SPECS[0], table("trips", MappedColumn("g", ColumnKind.GEOMETRY, (4,))), "type GEOMETRY, .*or drop that column"),
    ],
)  # fmt: skip
def test_why_a_table_is_not_captured(spec: CaptureSpec, of: TableMap, reason: str) -> None:
    tapping = Tapping(Server([transaction(1, inserted(of, {column.name: 1 for column in of.columns}))]))
    tapping.run([spec])
    assert re.search(reason, tapping.stopped["trips"]), tapping.stopped

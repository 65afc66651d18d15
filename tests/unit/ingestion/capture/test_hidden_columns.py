"""Columns that nobody is to see: what of them is written, and when two ways to hide them are one."""

from __future__ import annotations

import hashlib
import hmac
import json
from decimal import Decimal

import pytest

from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn
from ingestion.capture.tap.captured_table import CapturedTable, CaptureSpec
from ingestion.capture.tap.hidden_columns import HiddenColumns, NoHashKey, differences
from tests.unit.ingestion.capture.tapping import (
    TRIPS,
    UTF8,
    Server,
    Tapping,
    Versions,
    inserted,
    row,
    table,
    transaction,
)

HIDDEN = HiddenColumns(frozenset(["place"]), frozenset(["email", "n"]), frozenset(["phone"]), key="secret")


def digest(content: bytes, key: bytes = b"secret") -> str:
    return hmac.digest(key, content, "sha256").hex()


def test_a_hash_has_a_key_that_nothing_shows() -> None:
    assert HIDDEN.digest("a@b.c") == digest(b"a@b.c") != hashlib.sha256(b"a@b.c").hexdigest()
    assert (HIDDEN.digest(None), HIDDEN.digest("")) == (None, digest(b""))
    assert HIDDEN.digest(Decimal("1.50")) == digest(b"1.50")
    assert HIDDEN.digest("\udcff") == HIDDEN.digest(b"\xff") == digest(b"\xff")
    shown = f"{HIDDEN!r} {CaptureSpec('t', 'd', 't', hidden=HIDDEN)!r} {HIDDEN.as_options()} {HIDDEN.as_json()}"
    assert "secret" not in shown
    with pytest.raises(NoHashKey, match=r"email.*no key is given"):
        HiddenColumns(hashed=frozenset(["email"]))


def test_a_job_hides_what_the_tap_hides() -> None:
    options = {**HIDDEN.as_options(), "hash_key": "secret", "topic": "trips"}
    assert HiddenColumns.from_options(options) == HIDDEN
    assert HiddenColumns.from_options({"topic": "trips"}) == HiddenColumns()
    with pytest.raises(NoHashKey):
        HiddenColumns.from_options(HIDDEN.as_options())


def test_a_row_of_before_is_concealed_and_one_of_after_stays() -> None:
    before = {"id": 1, "place": "home", "email": "a@b.c", "n": 7, "phone": "0731"}
    after = {"id": 1, "email": digest(b"a@b.c"), "n": digest(b"7"), "phone": None}
    assert HIDDEN.concealed(before) == HIDDEN.concealed(after) == after
    assert HIDDEN.concealed({"id": 2, "email": None}) == {"id": 2, "email": None}


def test_what_differs_is_named() -> None:
    stored = json.loads(json.dumps(HIDDEN.as_json()))
    assert differences(stored, HIDDEN.as_json()) == differences({}, HiddenColumns().as_json()) == []
    other = HiddenColumns(frozenset(["phone"]), frozenset(["email", "n"]), key="secret")
    assert differences(stored, other.as_json()) == [
        "`phone` is left out, and was masked",
        "`place` is not hidden, and was left out",
    ]
    assert differences({}, HiddenColumns(masked=frozenset(["a"])).as_json()) == ["`a` is masked, and was not hidden"]
    rekeyed = HiddenColumns(HIDDEN.left_out, HIDDEN.hashed, HIDDEN.masked, key="another")
    assert differences(stored, rekeyed.as_json()) == [
        "`email`, `n` is hashed with another key, as LAKEHUB_ENCRYPTION_KEY is another one"
    ]


def test_a_value_that_cannot_be_read_is_not_told_where_it_is_hashed() -> None:
    """The reason would say what it was."""
    sex = MappedColumn("sex", ColumnKind.ENUM, (247, 1), collation=UTF8, labels=(b"f",))
    changed = [transaction(1, inserted(table("trips", sex), row(1, sex=77_777)))]
    seen, hashed = Tapping(Server(changed)), Tapping(Server(changed))
    seen.run()
    hashed.run([CaptureSpec("trips", "shop", "trips", hidden=HiddenColumns(hashed=frozenset(["sex"]), key="k"))])
    assert b"77777" in (seen.log.messages[0].value or b"")
    (rejected,) = hashed.log.messages
    assert b"`sex`, which is hashed, is none of its type" in (rejected.value or b"")
    assert b"77777" not in (rejected.value or b"")


def test_a_table_with_a_name_that_no_lake_has_is_captured_without_that_column() -> None:
    names = ("a b", "`", "x" * 64, "größe 😀")
    wide = table("trips", *(MappedColumn(name, ColumnKind.VARCHAR, (9, 0), collation=UTF8) for name in names))
    kept = frozenset(["a b", "`", "größe 😀"])
    spec = CaptureSpec("trips", "shop", "trips", hidden=HiddenColumns(left_out=kept))
    tapping = Tapping(Server([transaction(1, inserted(wide, row(1, **dict.fromkeys(names, "v"))))]))
    tapping.run([spec])
    assert tapping.events() == [("update", {"id": 1, "city": "Ulm", "x" * 64: "v"})]


def test_a_hidden_column_that_has_another_name_stops_the_table() -> None:
    """Under that it would be seen. So does one whose case differs, and one that is gone: nobody knows what has become of it."""
    spec = CaptureSpec("trips", "shop", "trips", hidden=HiddenColumns(masked=frozenset(["city"])))
    renamed = TRIPS.columns[0], MappedColumn("City", ColumnKind.VARCHAR, (40, 0), collation=UTF8)
    of = type(TRIPS)("shop", "trips", renamed, ("id",))
    tapping = Tapping(
        Server([transaction(1, inserted(TRIPS, row(1))), transaction(2, inserted(of, {"id": 2, "City": "Ulm"}))])
    )
    tapping.run([spec])
    assert tapping.events() == [("update", {"id": 1, "city": None})]
    assert "does not have `city` (masked) any more" in tapping.stopped["trips"]


def test_what_is_hidden_has_the_type_of_what_is_written() -> None:
    wide = table("trips", MappedColumn("n", ColumnKind.LONG), MappedColumn("phone", ColumnKind.LONG))
    hidden = HiddenColumns(hashed=frozenset(["n"]), masked=frozenset(["phone"]), key="k")
    captured = CapturedTable.of(
        CaptureSpec("trips", "shop", "trips", hidden=hidden), wide, Versions(), {UTF8: "utf8mb4"}
    )
    types = captured.schema.row_columns.types
    assert (types["n"], types["phone"]) == ("string", "int")
    assert captured.values_of(row(1, n=7, phone=7)) == row(1, n=digest(b"7", b"k"), phone=None)

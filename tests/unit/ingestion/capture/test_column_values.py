"""What a column of a binlog is in the lake, for the values that mysql-event-stream 1.8.0 hands over of MariaDB 10.11."""

from __future__ import annotations

import codecs
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from ingestion.capture.binlog import charsets
from ingestion.capture.binlog.charsets import decoded
from ingestion.capture.binlog.column_values import UnfitColumn, lake_type_of, value_reader_of
from ingestion.capture.binlog.table_map import ColumnKind, MappedColumn

K = ColumnKind
LATIN1, UTF8, UCS2, GEOSTD8 = 8, 45, 35, 92
CHARSETS = {LATIN1: "latin1", UTF8: "utf8mb4", UCS2: "ucs2", GEOSTD8: "geostd8"}


def column(kind: ColumnKind, *metadata: int, **facts: Any) -> MappedColumn:
    return MappedColumn("x", kind, metadata, **facts)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("mapped", "type_", "handed_over", "value"),
    [
        (column(K.TINY), "int", -128, -128),
        (column(K.YEAR, is_unsigned=True), "int", 1901, 1901),
        (column(K.INT24, is_unsigned=True), "int", 2**24 - 1, 2**24 - 1),
        (column(K.LONG), "int", -(2**31), -(2**31)),
        (column(K.LONG, is_unsigned=True), "long", 2**32 - 1, 2**32 - 1),
        (column(K.LONGLONG), "long", -(2**63), -(2**63)),
        (column(K.LONGLONG, is_unsigned=True), "decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
        (column(K.LONGLONG, is_unsigned=True), "decimal(20,0)", 7, Decimal(7)),
        (column(K.FLOAT, 4), "float", 1.100000023841858, 1.100000023841858),
        (column(K.DOUBLE, 8), "double", 1.1, 1.1),
        (column(K.DECIMAL, 20, 4), "decimal(20,4)", "-1.5000", Decimal("-1.5000")),
        (column(K.DECIMAL, 65, 30), "string", "1." + "0" * 30, "1." + "0" * 30),
        (column(K.BIT, 1, 0), "boolean", 1, True),
        (column(K.BIT, 2, 1), "long", 1023, 1023),
        (column(K.BIT, 0, 8), "decimal(20,0)", "18446744073709551615", Decimal(2**64 - 1)),
        (column(K.DATE), "date", "2026-01-02", date(2026, 1, 2)),
        (column(K.DATE), "date", "0000-00-00", None),
        (column(K.DATE), "date", "2026-00-01", None),
        (column(K.DATETIME, 6), "timestamp", "1000-01-01 00:00:00.000001", at(1000, 1, 1, 0, 0, 0, 1)),
        (column(K.DATETIME, 0), "timestamp", "2026-01-02 03:04:05", at(2026, 1, 2, 3, 4, 5)),
        (column(K.DATETIME, 0), "timestamp", "0000-00-00 00:00:00", None),
        (column(K.TIMESTAMP, 3), "timestamp", "1767323045.123", at(2026, 1, 2, 3, 4, 5, 123_000)),
        (column(K.TIMESTAMP, 0), "timestamp", "1767323045", at(2026, 1, 2, 3, 4, 5)),
        (column(K.TIMESTAMP, 6), "timestamp", "0.000001", at(1970, 1, 1, 0, 0, 0, 1)),
        (column(K.TIMESTAMP, 6), "timestamp", "0.000000", None),
        (column(K.TIMESTAMP, 0), "timestamp", "0", None),
        (column(K.TIME, 2), "string", "-838:59:59.00", "-838:59:59.00"),
        (column(K.ENUM, 247, 1, labels=(b"x", b"\xe9"), collation=LATIN1), "string", 2, "é"),
        (column(K.ENUM, 247, 1, labels=(b"x",), collation=UTF8), "string", 0, ""),
        (column(K.SET, 248, 1, labels=(b"p", b"q", b"r"), collation=UTF8), "string", 5, "p,r"),
        (column(K.SET, 248, 8, labels=(b"p",) * 64, collation=UTF8), "string", str(2**63), "p"),
        (column(K.SET, 248, 1, labels=(b"p",), collation=UTF8), "string", 0, ""),
        (column(K.STRING, 254, 4), "binary", b"a", b"a\x00\x00\x00"),
        (column(K.VARCHAR, 4, 0), "binary", b"a\x00", b"a\x00"),
        (column(K.BLOB, 2), "binary", b"", b""),
        (column(K.BLOB, 4, collation=UTF8), "string", '{"a": "ü"}', '{"a": "ü"}'),
        (column(K.STRING, 254, 3, collation=LATIN1), "string", "\udce9\udc81", "é\x81"),
        (column(K.VARCHAR, 10, 0, collation=UCS2), "string", "\x00h\x00\udcfc \udcac", "hü€"),
    ],
)  # fmt: skip
def test_a_type_and_a_value(mapped: MappedColumn, type_: str, handed_over: Any, value: Any) -> None:
    no_dates = Counter[str]()
    read = value_reader_of(mapped, CHARSETS, no_dates)(handed_over)
    assert (lake_type_of(mapped), read, type(read)) == (type_, value, type(value))
    assert no_dates == ({"x": 1} if value is None else {})


@pytest.mark.parametrize("kind", [K.GEOMETRY, K.JSON, K.COMPRESSED_BLOB, K.COMPRESSED_VARCHAR])
def test_a_column_that_cannot_be_captured_says_what_to_do(kind: ColumnKind) -> None:
    with pytest.raises(UnfitColumn, match=rf"`x` is a column of the binlog's type {kind.name}, .* or drop that column"):
        lake_type_of(column(kind))


@pytest.mark.parametrize(("collation", "charset"), [(GEOSTD8, "geostd8"), (999, "of the collation 999")])
def test_a_character_set_that_nobody_can_read(collation: int, charset: str) -> None:
    with pytest.raises(UnfitColumn, match=f"the character set {charset}, .*Convert the column to utf8mb4"):
        value_reader_of(column(K.VARCHAR, 9, 0, collation=collation), CHARSETS, Counter())


@pytest.mark.parametrize(("kind", "value"), [(K.ENUM, 3), (K.SET, 4)])
def test_a_label_that_is_not_there_is_an_error_and_not_another_label(kind: ColumnKind, value: int) -> None:
    read = value_reader_of(column(kind, kind, 1, labels=(b"x", b"y"), collation=UTF8), CHARSETS, Counter())
    with pytest.raises(ValueError, match="no label 3 of `x`: it has 2"):
        read(value)


def test_each_character_set_that_is_read_has_a_codec_of_python() -> None:
    assert [codecs.lookup(codec).name for codec in charsets._CODECS.values()]


def test_every_korean_syllable_is_a_character() -> None:
    """MySQL's euckr has those of Windows, which Python's euc_kr lacks."""
    assert decoded(b"\x81A\xb0\xa1", charsets.codec_of("euckr") or "") == "갂가"


def test_every_byte_of_latin1_is_a_character() -> None:
    assert len(decoded(bytes(range(256)), "cp1252")) == 256

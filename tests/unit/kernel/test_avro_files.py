"""Avro files that were written to do harm, and those that were not: what is refused, at which cost, and that nothing else is."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest

from lakehub.kernel.avro_files import MAX_BLOCK_BYTES, AvroFile, BadAvro, _long

MAGIC, SYNC = b"Obj\x01", bytes(range(16))


def record(*fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "row", "fields": [{"name": name, "type": kind} for name, kind in fields], **more}


def text(value: bytes) -> bytes:
    return _long(len(value)) + value


def container(schema: Any, *blocks: tuple[int, bytes], codec: str = "null") -> bytes:
    """A file as its writer wants it, true or not."""
    written = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    head = (
        MAGIC + _long(2) + text(b"avro.schema") + text(written) + text(b"avro.codec") + text(codec.encode()) + _long(0)
    )
    return head + SYNC + b"".join(_long(count) + text(stored) + SYNC for count, stored in blocks)


def rows_of(content: bytes) -> list[Any]:
    return list(AvroFile(io.BytesIO(content)).records())


def deflated(plain: bytes) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(plain) + packer.flush()


EVERY_TYPE = record(
    ("id", "long"),
    ("name", ["null", "string"]),
    ("at", {"type": "long", "logicalType": "timestamp-micros"}),
    ("day", {"type": "int", "logicalType": "date"}),
    ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("tags", {"type": "array", "items": "string"}),
    ("counts", {"type": "map", "values": "int"}),
    ("hash", {"type": "fixed", "name": "md5", "size": 4}),
    ("same", "md5"),
    ("kind", {"type": "enum", "name": "kind", "symbols": ["a", "b"]}),
    ("inner", record(("x", "double"), name="inner", namespace="org.example")),
    ("again", ["null", "org.example.inner"]),
    namespace="com.example",
)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_what_was_written_is_read(codec: str) -> None:
    rows = [
        {
            "id": number,
            "name": None if number % 3 else "Zürich",
            "at": datetime(2026, 3, 29, 1, tzinfo=UTC),
            "day": date(2026, 3, 29),
            "price": Decimal("1234567.89"),
            "tags": ["a"] * (number % 4),
            "counts": {"n": number},
            "hash": b"abcd",
            "same": b"efgh",
            "kind": "b",
            "inner": {"x": 0.5},
            "again": {"x": 1.5} if number % 2 else None,
        }
        for number in range(700)
    ]
    written = io.BytesIO()
    fastavro.writer(written, EVERY_TYPE, rows, codec=codec, sync_interval=2_000)
    assert rows_of(written.getvalue()) == rows
    assert AvroFile(io.BytesIO(written.getvalue())).row_count() == len(rows)
    assert [field["name"] for field in AvroFile(io.BytesIO(written.getvalue())).schema["fields"]] == list(rows[0])


def nested(depth: int) -> Any:
    return record(("a", {"type": "array", "items": nested(depth - 1)}), name=f"r{depth}") if depth else "int"


def doubled(depth: int) -> Any:
    """2^depth values, written in a few lines: each type has the one before it twice."""
    inner: Any = record(("a", "int"), ("b", "int"), name="r0")
    for level in range(1, depth):
        inner = record(("a", inner), ("b", f"r{level - 1}"), name=f"r{level}")
    return inner


BOMBS = {
    "a type that holds itself": (
        container(record(("next", ["null", "row"])), (1, b"\x02" * 100_000 + b"\x00")),
        "holds itself",
    ),
    "in a namespace that it has from outside": (
        container(
            record(("b", record(("next", ["null", "ns.b"]), name="b")), name="ns.row"), (1, b"\x02" * 100_000 + b"\x00")
        ),
        "holds itself",
    ),
    "rows of no bytes": (container(record(("a", "null")), (2**40, b"")), "takes no bytes"),
    "an array of nulls": (
        container(record(("a", {"type": "array", "items": "null"})), (1, _long(2**40) + b"\x00")),
        "array of what takes no bytes",
    ),
    "an array of empty records": (
        container(record(("a", {"type": "array", "items": record(name="none")})), (1, _long(2**40) + b"\x00")),
        "array of what takes no bytes",
    ),
    "more rows than bytes": (container(record(("a", "int")), (2**40, b"\x02\x02")), "cannot hold them"),
    "an array that is longer than its block": (
        container(record(("a", {"type": "array", "items": "int"})), (1, _long(2**40) + b"\x02")),
        "EOFError",
    ),
    "a text that is longer than its block": (container(record(("a", "string")), (1, _long(2**50))), "EOFError"),
    "a block that is larger than the file": (container(record(("a", "int"))) + _long(1) + _long(2**50), "are the most"),
    "a block of less than nothing": (container(record(("a", "int"))) + _long(1) + _long(-5), "are the most"),
    "a block that inflates": (
        container(record(("a", "bytes")), (1, deflated(bytes(2 * MAX_BLOCK_BYTES))), codec="deflate"),
        "once it is decompressed",
    ),
    "a head that is larger than the file": (MAGIC + _long(1) + _long(2**50), "its head has more"),
    "a head without end": (MAGIC + _long(2**50) + (text(b"k") + text(b"v" * 1_000)) * 5_000, "its head has more"),
    "a schema that is nested without end": (
        container(b'{"type":"record","fields":' + b"[" * 100_000),
        "cannot be read",
    ),
    "a schema that is nested deep": (container(nested(80)), "nested deeper"),
    "a schema of 2^40 values": (container(doubled(40)), "are the most"),
    "a fixed of a terabyte": (
        container(record(("a", {"type": "fixed", "name": "f", "size": 2**40})), (1, b"x")),
        "has a size of",
    ),
    "no record": (container({"type": "array", "items": "int"}), "not a record"),
    "a schema of nothing": (container(b""), "cannot be read"),
    "fields that are none": (container({"type": "record", "name": "row", "fields": 5}), "cannot be read"),
    "an unknown type": (container(record(("a", "wide")), (1, b"\x02")), "cannot be read"),
    "an unknown codec": (container(record(("a", "int")), codec="brotli"), "deflate, bzip2, xz can be read"),
    "what is no deflate": (
        container(record(("a", "int")), (1, b"\xff\xff"), codec="deflate"),
        "cannot be decompressed",
    ),
    "deflate that was cut off": (
        container(record(("a", "bytes")), (1, deflated(bytes(1_000))[:-3]), codec="deflate"),
        "it was cut off",
    ),
    "cut off": (container(record(("a", "int")), (1, b"\x02"))[:-3], "it was cut off"),
    "another mark at the end of a block": (
        container(record(("a", "int")), (1, b"\x02"))[:-1] + b"x",
        "does not end where",
    ),
    "a number without end": (MAGIC + b"\xff" * 40, "more than ten bytes"),
    "not Avro": (b"PAR1 and so on", "does not begin like an Avro file"),
    "nothing": (b"", "does not begin like an Avro file"),
}


@pytest.mark.parametrize(("content", "why"), BOMBS.values(), ids=BOMBS)
def test_a_file_that_is_none_is_refused_within_bounds(content: bytes, why: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadAvro, match=why):
            rows_of(content)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 3 * MAX_BLOCK_BYTES


def test_one_value_that_is_none_does_not_stop_the_rows_after_it() -> None:
    schema = record(
        ("name", "string"),
        ("at", {"type": "long", "logicalType": "timestamp-millis"}),
        ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    )
    bad = text(b"caf\xe9") + _long(2**61) + text(b"\x01" * 1_000)
    good = text(b"tea") + _long(0) + text(b"\x7f")
    first, second = rows_of(container(schema, (2, bad + good)))
    assert first == {"name": "caf\udce9", "at": 2**61, "price": b"\x01" * 1_000}
    assert second == {"name": "tea", "at": datetime(1970, 1, 1, tzinfo=UTC), "price": Decimal("1.27")}


def test_no_damage_is_more_than_a_bad_file(request: pytest.FixtureRequest) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    written = io.BytesIO()
    rows = [{"id": number, "name": "x" * number, "tags": ["a", None]} for number in range(50)]
    schema = record(("id", "long"), ("name", "string"), ("tags", {"type": "array", "items": ["null", "string"]}))
    fastavro.writer(written, schema, rows, codec="deflate", sync_interval=300)
    whole, refused = written.getvalue(), 0
    for _ in range(400):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 3, 20])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            rows_of(bytes(damaged[: chance.randrange(len(damaged))] if chance.randrange(4) == 0 else damaged))
        except BadAvro:
            refused += 1
    assert refused > 200

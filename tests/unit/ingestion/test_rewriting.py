"""A base file that is written anew holds what a slow model says, whatever its rows, and is as small as it was."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from ingestion.spark.file_groups.rewriting import FileRewrite, RowsNotMet, footer_to_rewrite, rewrite_file, rows_by_key
from tests.fuzz_seed import REPEAT, SEED

LOCAL = fs.LocalFileSystem()
OLD, NEW = "20261116080000000", "20261117080000000"
META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
CHANGES = pa.list_(pa.struct([("ref_key", pa.binary()), ("position", pa.list_(pa.int64()))]))
COLUMNS = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("fare", pa.decimal128(38, 6)),
        ("seats", pa.int64()),
        ("share", pa.float64()),
        ("day", pa.date32()),
        ("began", pa.timestamp("us", tz="UTC")),
        ("body", pa.binary()),
        ("is_late", pa.bool_()),
        ("metadata", pa.struct([("source", pa.string()), ("changes", CHANGES)])),
    ]
)  # fmt: skip
TEXTS = ("", "Zürich", "北京", "\U0001f6b2 bike", "a\0b", "x" * 500, "'; drop table rides; --")
Row = Mapping[str, Any]


def a_row(key: str, randomly: random.Random) -> dict[str, Any]:
    """Days and times as numbers, as they come from the merge; any value may be missing."""
    changes = [{"ref_key": randomly.randbytes(3), "position": [randomly.randrange(9)] * n} for n in range(2)]
    row: dict[str, Any] = {
        "id": key,
        "city": randomly.choice(TEXTS),
        "fare": Decimal(randomly.randrange(-(10**20), 10**20)).scaleb(-6),
        "seats": randomly.randrange(-(2**63), 2**63),
        "share": randomly.choice([0.0, -1e300, float("inf"), 0.1]),
        "day": randomly.randrange(-700_000, 2_900_000),
        "began": randomly.randrange(-(10**15), 10**15),
        "body": randomly.randbytes(randomly.randrange(9)),
        "is_late": randomly.random() < 0.5,
        "metadata": {"source": randomly.choice(TEXTS), "changes": randomly.choice([None, [], changes])},
    }
    return {name: None if name != "id" and randomly.random() < 0.1 else value for name, value in row.items()}


def write_file(path: Path, rows: Sequence[Row], *, group: int = 1000, columns: pa.Schema = COLUMNS) -> None:
    """As an earlier commit left it."""
    own = [
        [OLD] * len(rows),
        [f"{OLD}_0_{n}" for n in range(len(rows))],
        [row["id"] for row in rows],
        ["day=a"] * len(rows),
        [path.name] * len(rows),
    ]
    arrays = [pa.array(values, pa.string()) for values in own]
    arrays += [pa.array([row[each.name] for row in rows], each.type) for each in columns]
    keys = sorted(row["id"] for row in rows) or [""]
    footer = {
        "hoodie_min_record_key": keys[0],
        "hoodie_max_record_key": keys[-1],
        "org.apache.hudi.bloomfilter": "old",
        "org.apache.spark.version": "3.5.6",
    }
    schema = pa.schema([*(pa.field(name, pa.string()) for name in META), *columns], metadata=footer)
    pq.write_table(pa.table(arrays, schema=schema), path, row_group_size=group, compression="zstd")


def a_rewrite(folder: Path, **what: Any) -> FileRewrite:
    given: dict[str, Any] = {"changed": {}, "added": {}, **what}
    old, new = str(folder / "a_old.parquet"), str(folder / "a_new.parquet")
    columns = given.pop("columns", COLUMNS)
    given |= {name: rows_by_key(given[name], columns) for name in ("changed", "added")}
    return FileRewrite(old, new, "day=a", NEW, 3, columns, **given)


def read(path: str) -> list[dict[str, Any]]:
    return pq.ParquetFile(path).read().to_pylist()


def as_read(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return pa.table(
        [pa.array([row[each.name] for row in rows], each.type) for each in COLUMNS], schema=COLUMNS
    ).to_pylist()


@pytest.mark.parametrize("number", range(30))
def test_random_changes_leave_what_a_model_leaves(tmp_path: Path, number: int) -> None:
    randomly = random.Random(f"{SEED} {number}")
    keys = [f"{randomly.choice(TEXTS[:5])}{n}" for n in range(randomly.randrange(60))]
    rows = [a_row(key, randomly) for key in keys]
    write_file(tmp_path / "a_old.parquet", rows, group=randomly.choice([1, 7, 1000]))
    touched = randomly.sample(keys, randomly.randrange(len(keys) + 1))
    changed = {key: None if randomly.random() < 0.3 else a_row(key, randomly) for key in touched}
    added = {f"new {n}": a_row(f"new {n}", randomly) for n in range(randomly.choice([0, 0, 3]))}
    rewrite = a_rewrite(tmp_path, changed=changed, added=added, footer={b"parquet.avro.schema": b"{}"})

    written = rewrite_file(LOCAL, rewrite)

    stands = [(row, changed.get(row["id"], row)) for row in rows]
    expected = [after for _, after in stands if after is not None] + [*added.values()]
    got = read(rewrite.new)
    assert written == len(got) == len(expected), REPEAT
    assert [{name: row[name] for name in COLUMNS.names} for row in got] == as_read(expected), REPEAT
    assert {row["_hoodie_file_name"] for row in got} <= {"a_new.parquet"}
    assert {row["_hoodie_partition_path"] for row in got} <= {"day=a"}
    assert [row["_hoodie_record_key"] for row in got] == [row["id"] for row in expected]
    fresh = {*changed, *added}
    assert all(row["_hoodie_commit_time"] == (NEW if row["id"] in fresh else OLD) for row in got), REPEAT
    numbers = [row["_hoodie_commit_seqno"] for row in got]
    assert len({*numbers}) == len(numbers)


def test_what_hudi_keeps_in_the_footer_stays_and_the_keys_that_are_added_lie_within_its_ends(tmp_path: Path) -> None:
    """In the order of Java, in which the bicycle comes before the last signs of the first plane."""
    randomly = random.Random(SEED)
    write_file(tmp_path / "a_old.parquet", [a_row(key, randomly) for key in ("m", "n")])
    keys = ["\U0001f6b2", "￮", "b"]
    rewrite = a_rewrite(
        tmp_path, added={key: a_row(key, randomly) for key in keys}, footer={b"parquet.avro.schema": b"{}"}
    )
    rewrite_file(LOCAL, rewrite)
    footer = pq.read_metadata(rewrite.new).metadata
    assert footer[b"hoodie_min_record_key"] == b"b"
    assert footer[b"hoodie_max_record_key"].decode() == "￮"
    assert (footer[b"org.apache.hudi.bloomfilter"], footer[b"parquet.avro.schema"]) == (b"old", b"{}")
    assert not {name for name in footer if name.startswith((b"org.apache.spark", b"ARROW"))}


@pytest.mark.parametrize("keys", [("a", "b"), ("a", "a")])
def test_a_row_that_is_not_there_and_one_that_is_there_twice_are_refused(tmp_path: Path, keys: Sequence[str]) -> None:
    randomly = random.Random(SEED)
    write_file(tmp_path / "a_old.parquet", [a_row(key, randomly) for key in keys])
    changed = {key: a_row(key, randomly) for key in ("a", "c")} if keys == ("a", "b") else {"a": None}
    with pytest.raises(RowsNotMet, match="that are to be changed in it"):
        rewrite_file(LOCAL, a_rewrite(tmp_path, changed=changed))


def test_columns_that_the_table_got_later_are_null_and_narrow_ones_get_its_type(tmp_path: Path) -> None:
    randomly = random.Random(SEED)
    narrow = pa.schema([("id", pa.string()), ("seats", pa.int32()), ("share", pa.float32())])
    write_file(tmp_path / "a_old.parquet", [{"id": key, "seats": 3, "share": 0.5} for key in "ab"], columns=narrow)
    assert footer_to_rewrite(LOCAL, str(tmp_path / "a_old.parquet"), COLUMNS) is not None
    changed = a_row("b", randomly)
    rewrite_file(LOCAL, a_rewrite(tmp_path, changed={"b": changed}))
    first, second = read(str(tmp_path / "a_new.parquet"))
    nothing = dict.fromkeys(name for name in COLUMNS.names if name not in narrow.names)
    assert {name: first[name] for name in COLUMNS.names} == {"id": "a", "seats": 3, "share": 0.5} | nothing
    assert {name: second[name] for name in COLUMNS.names} == as_read([changed])[0]


@pytest.mark.parametrize(
    "stored",
    [
        pa.field("seats", pa.string()),
        pa.field("seats", pa.float64()),
        pa.field("fare", pa.decimal128(38, 2)),
        pa.field("began", pa.timestamp("ms", tz="UTC")),
        pa.field("gone", pa.int64()),
        pa.field("metadata", pa.struct([("source", pa.string())])),
        pa.field("metadata", pa.struct([("source", pa.string()), ("changes", pa.list_(pa.string()))])),
    ],
    ids=str,
)
def test_a_file_that_only_hudi_can_read_is_left_to_it(tmp_path: Path, stored: pa.Field) -> None:
    columns = pa.schema([("id", pa.string()), stored])
    write_file(tmp_path / "a_old.parquet", [{"id": "a", stored.name: None}], columns=columns)
    assert footer_to_rewrite(LOCAL, str(tmp_path / "a_old.parquet"), COLUMNS) is None


def test_a_file_of_another_writer_has_none_of_the_columns_of_hudi(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a"]}), tmp_path / "a_old.parquet")
    assert footer_to_rewrite(LOCAL, str(tmp_path / "a_old.parquet"), COLUMNS) is None


def test_a_text_that_is_there_many_times_is_not_written_out(tmp_path: Path) -> None:
    """A file of some kilobytes would be 400 MB in memory."""
    columns = pa.schema([("id", pa.string()), ("city", pa.string())])
    write_file(tmp_path / "a_old.parquet", [{"id": str(n), "city": "x" * 2000} for n in range(200)], columns=columns)
    table = pq.ParquetFile(tmp_path / "a_old.parquet", read_dictionary=["city"]).read()
    many = pa.concat_tables([table] * 1000)
    ids = pa.array([str(n) for n in range(many.num_rows)])
    many = many.set_column(2, META[2], ids).set_column(5, "id", ids)
    pq.write_table(many, tmp_path / "a_old.parquet", compression="zstd", row_group_size=10**6)
    rewrite = a_rewrite(tmp_path, changed={"7": {"id": "7", "city": "y"}}, columns=columns)
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        rewrite_file(LOCAL, rewrite)
    finally:
        pa.set_memory_pool(usual)
    assert 2**20 < (pool.max_memory() or 0) < 150 * 2**20
    assert Path(rewrite.new).stat().st_size < 1.1 * Path(rewrite.old).stat().st_size


def test_values_that_are_all_different_take_as_much_room_as_before(tmp_path: Path) -> None:
    randomly = random.Random(SEED)
    rows = [a_row(f"{n:08}", randomly) for n in range(5000)]
    write_file(tmp_path / "a_old.parquet", rows)
    once = a_rewrite(tmp_path, changed={"00000007": rows[8]})
    rewrite_file(LOCAL, once)
    again = replace(once, old=once.new, new=str(tmp_path / "a_newer.parquet"))
    rewrite_file(LOCAL, again)
    assert Path(again.new).stat().st_size < 1.1 * Path(once.new).stat().st_size

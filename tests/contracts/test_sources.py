"""What every source promises: a schema, a snapshot in bounded chunks, and every change since a position, in words where it cannot."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.checkpoint import Position
from ingestion.domain.schema import UnknownColumn
from ingestion.sources import SOURCES, Source, SourceConfig, SourceError, SourceReading, schema_version
from ingestion.sources.sql.source import SqlSource
from ingestion.sources.sql.watermark import MAX_REMEMBERED_HASHES
from ingestion.spark.loading.fitting import FitRules, fit_rows

Rows = Sequence[Mapping[str, Any]]
OLD: Rows = [
    {"id": n, "day": f"2026-11-{n % 3 + 1:02}", "amount": n / 2, "updated_at": "2026-11-16 08:00:00"} for n in range(7)
]
NEW: Rows = [{"id": n, "day": "2026-11-04", "amount": None, "updated_at": "2026-11-16 09:00:00"} for n in (7, 8)]


@dataclass(frozen=True)
class Place:
    """A source with rows, and how more rows get into it."""

    config: SourceConfig
    add: Callable[[Rows], None]

    @property
    def source(self) -> Source:
        return SOURCES.get(self.plugin)(self.config)

    plugin: str = "files"


def sql(folder: Path) -> Place:
    path = folder / "shop.db"
    run(path, "create table orders(id integer, day text, amount real, updated_at timestamp)")
    config = SourceConfig(f"sqlite:///{path}", "orders", "updated_at", chunk_rows=3)
    return Place(
        config, lambda rows: run(path, "insert into orders values (:id, :day, :amount, :updated_at)", rows), "sql"
    )


def sql_without_cursor(folder: Path) -> Place:
    place = sql(folder)
    return replace(place, config=replace(place.config, cursor_column=None))


def files(ending: str, write: Callable[[Path, Rows], None]) -> Callable[[Path], Place]:
    def place(folder: Path) -> Place:
        def add(rows: Rows) -> None:
            number = len(list(folder.iterdir()))
            write(folder / f".orders-{number}{ending}", rows)
            (folder / f".orders-{number}{ending}").rename(folder / f"orders-{number}{ending}")

        return Place(SourceConfig(folder.as_uri(), f"orders-*{ending}", chunk_rows=3), add)

    return place


def run(path: Path, statement: str, rows: Rows = ()) -> None:
    with sqlite3.connect(path) as connection:
        connection.executemany(statement, rows) if rows else connection.execute(statement)
    connection.close()


def write_csv(path: Path, rows: Rows) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_json(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_parquet(path: Path, rows: Rows) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("day", pa.string()), ("amount", pa.float64()), ("updated_at", pa.string())]
    )
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path)


def write_avro(path: Path, rows: Rows) -> None:
    types = {"id": "long", "day": "string", "amount": ["null", "double"], "updated_at": "string"}
    fields = [{"name": name, "type": type_} for name, type_ in types.items()]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "order", "fields": fields}, rows)


PLACES: dict[str, Callable[[Path], Place]] = {
    "sql": sql,
    "sql without a cursor": sql_without_cursor,
    "csv": files(".csv", write_csv),
    "json lines": files(".jsonl", write_json),
    "parquet": files(".parquet", write_parquet),
    "avro": files(".avro", write_avro),
}


@pytest.fixture(params=list(PLACES))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    made = PLACES[request.param](tmp_path)
    made.add(OLD)
    return made


def test_the_schema_names_every_column_with_its_type(place: Place) -> None:
    types = place.source.schema().types
    assert list(types) == ["id", "day", "amount", "updated_at"]
    assert (types["id"], types["amount"]) == ("long", "double")


def test_a_snapshot_has_every_row_once_in_chunks_of_bounded_size(place: Place) -> None:
    reading = place.source.snapshot()
    chunks = list(reading.batches)
    assert max(chunk.rows for chunk in chunks) <= 3
    assert ids(place, chunks) == [row["id"] for row in OLD]


def test_how_many_rows_there_are_is_known_or_not_said(place: Place) -> None:
    reading = place.source.snapshot()
    assert reading.total() in (None, len(OLD))
    if isinstance(place.source, SqlSource):
        assert reading.total() == len(OLD)
    assert sum(chunk.rows for chunk in reading.batches) == len(OLD)  # to ask is not to read


def test_each_row_that_is_read_is_told_once(place: Place) -> None:
    pieces: list[int] = []
    source = SOURCES.get(place.plugin)(replace(place.config, on_rows_read=pieces.append))
    handed_over = ids(place, list(source.snapshot().batches))
    assert (sum(pieces), max(pieces) <= 3) == (len(handed_over), True)


class TimeIsUp(Exception):
    """What a reader raises; no error of the source."""


def test_a_reader_whose_time_is_up_ends_the_reading_at_the_next_piece(place: Place) -> None:
    position, pieces = drained(place.source.snapshot()), list[int]()
    place.add(NEW)

    def end(rows: int) -> None:
        pieces.append(rows)
        raise TimeIsUp

    source = SOURCES.get(place.plugin)(replace(place.config, on_rows_read=end))
    with pytest.raises(TimeIsUp):
        drained(source.changes(position))
    assert len(pieces) == 1


def test_what_is_called_new_was_never_handed_over(place: Place) -> None:
    """However far back the next look goes. Who does not know calls nothing new."""
    config = replace(place.config, overlap_s=7200.0)
    place = replace(place, config=config)
    position = drained(place.source.snapshot())
    place.add([{"id": 9, "day": "2026-11-04", "amount": None, "updated_at": "2026-11-16 07:59:00"}, *NEW])
    batches = list(place.source.changes({**position, "seen": []} if "seen" in position else position).batches)
    new = ids(place, [batch for batch in batches if batch.is_new])
    assert set(new) <= {7, 8}
    assert {7, 8, 9} <= set(ids(place, batches))
    assert new == ([7, 8] if place.plugin == "sql" and config.cursor_column else [])


def test_changes_have_what_came_since_and_nothing_twice(place: Place) -> None:
    position = drained(place.source.snapshot())
    place.add(NEW)
    reading = place.source.changes(position)
    read_ids = ids(place, list(reading.batches))
    assert read_ids[-2:] == [7, 8]
    assert len(read_ids) in (2, 9)  # a source with no cursor hands everything over again
    assert drained(place.source.changes(reading.position())) == reading.position()


def test_without_changes_there_is_nothing_or_the_source_says_that_it_is_unchanged(place: Place) -> None:
    position = drained(place.source.snapshot())
    reading = place.source.changes(position)
    chunks = list(reading.batches)
    assert not chunks or reading.unchanged()
    assert reading.position() == position


def test_each_batch_carries_its_schema_and_says_what_its_rows_are(place: Place) -> None:
    for batch in place.source.snapshot().batches:
        assert batch.schema == place.source.schema()
        assert batch.schema_version == schema_version(batch.schema)
        assert (batch.operations, batch.committed_at) == (None, None)  # upserts of a source that has no log


def test_bounded_readings_hand_over_what_one_reading_does(place: Place) -> None:
    """However small the limit: each reading gets further, and the last one says that there is no more."""
    position = drained(place.source.snapshot())
    place.add(NEW)
    place.add([{**row, "id": row["id"] + 2, "updated_at": "2026-11-16 10:00:00"} for row in NEW])
    whole = ids(place, list(place.source.changes(position).batches))
    for limits in (BatchLimits(rows=1), BatchLimits(bytes=1), BatchLimits(seconds=1e-9)):
        assert bounded_ids(place, position, limits) == whole
        assert bounded_ids(place, position, BatchLimits(rows=10_000)) == whole


def bounded_ids(place: Place, position: Position, limits: BatchLimits) -> list[int]:
    read: list[int] = []
    for _ in range(10):
        reading = place.source.changes(json.loads(json.dumps(position)), limits=limits)
        read += ids(place, list(reading.batches))
        position = reading.position()
        if not reading.has_more():
            return read
    raise AssertionError(f"There is no end with {limits}.")


def test_a_position_survives_json(place: Place) -> None:
    position = drained(place.source.snapshot())
    assert json.loads(json.dumps(position)) == position


def test_only_some_partitions(place: Place) -> None:
    reading = place.source.snapshot(only={"day": ["2026-11-01", "2026-11-03"]})
    assert ids(place, list(reading.batches)) == [row["id"] for row in OLD if row["day"] != "2026-11-02"]


def test_only_by_a_column_that_is_not_there(place: Place) -> None:
    with pytest.raises(UnknownColumn, match=r"has no column `dya`\. Did you mean `day`"):
        list(place.source.snapshot(only={"dya": ["x"]}).batches)


def test_an_object_that_is_not_there(place: Place) -> None:
    name = {"sql": "order", "files": "order-*.csv"}[place.plugin]
    with pytest.raises(SourceError, match="order"):
        SOURCES.get(place.plugin)(replace(place.config, object=name)).schema()


@pytest.mark.parametrize(
    ("plugin", "url", "message"),
    [
        ("sql", "sqlite:////nowhere/shop.db", "There is no SQLite database at /nowhere/shop.db"),
        ("sql", "postgresql+psycopg://u:secret@127.0.0.1:9/shop", "cannot be read"),
        ("sql", "oracle://u:secret@127.0.0.1/shop", "driver that Lakehub does not open"),
        ("sql", "shop.db", "The URL does not parse"),
        ("files", "file:///nowhere", "There is no folder /nowhere"),
        ("files", "gopher://nowhere", "cannot be reached"),
    ],
)
def test_a_source_that_cannot_be_reached_is_named_without_its_password(plugin: str, url: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as refused:
        SOURCES.get(plugin)(SourceConfig(url, "orders")).schema()
    assert "secret" not in str(refused.value)


def test_rows_that_share_the_last_watermark_are_not_missed(tmp_path: Path) -> None:
    place = sql(tmp_path)
    place.add(OLD)
    position = drained(place.source.snapshot())
    place.add([{**OLD[0], "id": 99}])
    assert ids(place, list(place.source.changes(position).batches)) == [99]


@pytest.mark.parametrize("overlap_s", [0.0, 120.0])
def test_a_crowd_at_one_watermark_is_not_handed_over_again(tmp_path: Path, overlap_s: float) -> None:
    place = sql(tmp_path)
    place = replace(place, config=replace(place.config, chunk_rows=1000, overlap_s=overlap_s))
    place.add([{**OLD[0], "id": number} for number in range(MAX_REMEMBERED_HASHES + 100)])
    position = drained(place.source.snapshot())
    reading = place.source.changes(position)
    assert list(reading.batches) == []
    assert reading.position() == position
    place.add(NEW)
    after_new = place.source.changes(position)
    assert ids(place, list(after_new.batches)) == [7, 8]
    place.add([{**OLD[0], "id": -1}])
    assert -1 in ids(place, list(place.source.changes(position).batches))


def test_a_misspelt_cursor(tmp_path: Path) -> None:
    place = sql(tmp_path)
    with pytest.raises(UnknownColumn, match=r"has no column `updatd_at`\. Did you mean `updated_at`"):
        SOURCES.get("sql")(replace(place.config, cursor_column="updatd_at")).snapshot()


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    place = PLACES["csv"](tmp_path)
    place.add(OLD)
    position = drained(place.source.snapshot())
    write_csv(tmp_path / "orders-0.csv", [*OLD, *NEW])
    assert len(ids(place, list(place.source.changes(position).batches))) == 9


def test_a_broken_line_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "orders-0.jsonl").write_text('{"id": 1}\n{"id": \n[2]\n{"id": 3}\n')
    (tmp_path / "orders-0.csv").write_text("id,day\n1,a\n2\n3,c\n")
    for ending in ("jsonl", "csv"):
        source = SOURCES.get("files")(SourceConfig(tmp_path.as_uri(), f"*.{ending}"))
        (chunk,) = source.snapshot().batches
        assert chunk.rows == 2
        assert chunk.unreadable


def test_a_file_that_is_not_what_its_ending_says(tmp_path: Path) -> None:
    for name in ("orders.parquet", "orders.avro"):
        (tmp_path / name).write_text("not at all")
        with pytest.raises(SourceError, match=f"The file {name} cannot be read"):
            SOURCES.get("files")(SourceConfig(tmp_path.as_uri(), name)).schema()


def test_files_are_read_in_the_order_of_their_time(tmp_path: Path) -> None:
    for number, name in enumerate(("b.jsonl", "a.jsonl")):
        write_json(tmp_path / name, [{"id": number}])
        os.utime(tmp_path / name, (1000 + number, 1000 + number))
    chunks = list(SOURCES.get("files")(SourceConfig(tmp_path.as_uri(), "*.jsonl")).snapshot().batches)
    assert [chunk.columns["id"][0] for chunk in chunks] == [0, 1]


def ids(place: Place, chunks: list[Any]) -> list[int]:
    """Fitted, as a job does it: formats differ in what they hand over, not in what it means."""
    rules = FitRules(place.source.schema())
    return [row for chunk in chunks for row in fit_rows(chunk, rules).rows["id"].to_pylist()]


def drained(reading: SourceReading) -> Any:
    for _ in reading.batches:
        pass
    return reading.position()


def test_the_names_of_folders_are_columns_where_the_rows_lack_them(tmp_path: Path) -> None:
    for day, own in (("2026-11-15", "a"), ("__HIVE_DEFAULT_PARTITION__", "b")):
        folder = tmp_path / "sales" / f"dt={day}" / "region=N%2FW"
        folder.mkdir(parents=True)
        (folder / "1.csv").write_text(f"id,region\n1,{own}\n")
    source = SOURCES.get("files")(SourceConfig(tmp_path.as_uri(), "sales/*/*/*.csv"))
    assert source.schema().types == {"id": "long", "region": "string", "dt": "string"}
    chunks = list(source.snapshot().batches)
    rows = sorted((str(chunk.columns["dt"][0]), str(chunk.columns["region"][0])) for chunk in chunks)
    assert rows == [("2026-11-15", "a"), ("None", "b")]

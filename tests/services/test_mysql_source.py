"""The source of captured tables promises what every source does: a snapshot in bounded pieces that can be gone on with, then changes, and errors in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingestion.domain.batch_limits import BatchLimits
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.heatpipe.reading import KnownSchemas
from ingestion.sources import LoggedEvents, LogReading, SourceConfig, SourceError, has_changes
from ingestion.sources.mysql.server import OpenServer
from ingestion.sources.mysql.source import MysqlSource
from tests.services.tapped_server import TappedServer, tapped_server

DATABASE = "lakehub_source"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        tapped.execute(
            "CREATE TABLE trips (id int PRIMARY KEY, city varchar(20), at datetime)",
            "INSERT INTO trips SELECT seq, 'Ulm', '2026-11-26' FROM seq_1_to_10",
        )
        yield tapped


def config(server: TappedServer, table: str = "trips", **fields: Any) -> SourceConfig:
    schemas = tuple(schema for schema, _ in server.versions.known if schema.subject == table)
    topic = EventTopic("segments", server.log_url, table, schemas, KnownSchemas(len(schemas), datetime.now(UTC)))
    options = topic.as_options() | fields.pop("options", {})
    url = server.url.render_as_string(hide_password=False)
    return SourceConfig(url, f"{DATABASE}.{table}", chunk_rows=3, options=options, key_columns=("id",), **fields)


def test_a_snapshot_is_read_in_pieces_each_in_one_reading_and_then_come_the_changes(server: TappedServer) -> None:
    server.take("trips")
    pieces: list[int] = []
    source = MysqlSource(config(server, on_rows_read=pieces.append))
    assert source.schema().names == ("id", "city", "at", METADATA_COLUMN)
    ids: list[int] = []
    after: Any = None
    for _ in range(10):
        reading = MysqlSource(config(server, on_rows_read=pieces.append)).snapshot(
            after=after, limits=BatchLimits(rows=4)
        )
        batches = [*reading.batches]
        assert max(batch.rows for batch in batches) <= 3
        ids += [number for batch in batches for number in batch.columns["id"]]
        after = json.loads(json.dumps(reading.position()))
        if not reading.has_more():
            break
        server.execute(f"UPDATE trips SET city = 'later' WHERE id IN ({ids[-1]}, 10)", "DELETE FROM trips WHERE id = 1")
    assert (ids, sum(pieces)) == ([*range(1, 11)], 10)
    assert not has_changes(source, after)
    server.take("trips")
    assert has_changes(MysqlSource(config(server)), after)
    changes = source.changes(after)
    assert isinstance(changes, LogReading)
    (events,) = changes.batches
    assert isinstance(events, LoggedEvents)
    assert {decoded.event.row_key for decoded in events.decoded} >= {(1,), (10,)}
    assert not has_changes(source, changes.position())


def test_rows_say_after_which_transaction_they_were_so(server: TappedServer) -> None:
    """By the version of the registry where there is one that has their columns, and by their columns where there is none yet."""
    for is_registered in (False, True):
        before = server.sequence()
        (batch, *_) = MysqlSource(config(server)).snapshot().batches
        (metadata, *_) = batch.columns[METADATA_COLUMN].to_pylist()
        assert (metadata["row_key"], metadata["schema_version"]) == ('["1"]', int(is_registered))
        (position,) = metadata["position"]
        assert before <= position <= server.sequence()
        entries = metadata["changelog_columns"]
        assert [entry["changed_fields"] for entry in entries or []] == ([] if is_registered else [["at", "city", "id"]])
        server.take("trips")


@pytest.mark.parametrize("name", [":id", "a :b \\:c", "o`d", "it's", 'q"', "<b>;--", "::x"])
def test_a_table_is_read_whatever_it_is_called(server: TappedServer, name: str) -> None:
    """More rows than a chunk has, so that its key is asked for too."""
    table = f"`{name.replace('`', '``')}`"
    server.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, n int)", f"INSERT INTO {table} SELECT id, 7 FROM trips")
    (*batches,) = MysqlSource(config(server, name)).snapshot().batches
    assert [number for batch in batches for number in batch.columns["id"]] == [*range(1, 11)]


def test_an_empty_table_has_a_schema_and_a_place_from_which_its_changes_come(server: TappedServer) -> None:
    server.execute("CREATE TABLE none_yet (id int PRIMARY KEY)")
    reading = MysqlSource(config(server, "none_yet")).snapshot()
    assert ([*reading.batches], reading.has_more()) == ([], False)
    server.execute("INSERT INTO none_yet VALUES (1)")
    server.take("none_yet")
    assert has_changes(MysqlSource(config(server, "none_yet")), reading.position())


def test_a_chunk_that_has_not_seen_what_the_changelog_has_is_read_again(
    server: TappedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction is in the binlog before its commit ends. Where it does not come to be seen, nothing is handed over."""
    server.take("trips")
    ahead = server.sequence() + 1_000_000  # other suites commit to the same server
    monkeypatch.setattr(OpenServer, "newest_sequence", lambda self: ahead)
    with pytest.raises(SourceError, match=f"{ahead:,} is in its binlog"):
        next(iter(MysqlSource(config(server)).snapshot().batches))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"object": f"{DATABASE}.nowhere"}, "There is no table"),
        ({"url": "mysql://reader:hunter2@127.0.0.1:1/ops"}, "cannot be read"),
        ({"key_columns": ("nowhere",)}, "`nowhere`, a part of the record key"),
    ],
)
def test_what_cannot_be_read_is_said_without_the_password(
    server: TappedServer, change: dict[str, Any], reason: str
) -> None:
    source = MysqlSource(replace(config(server), **change))
    with pytest.raises(SourceError, match=reason) as failed:
        next(iter(source.snapshot().batches))
    assert "hunter2" not in str(failed.value)
    with pytest.raises(SourceError):
        source.schema()


def test_single_partitions_are_not_read_again(server: TappedServer) -> None:
    with pytest.raises(SourceError, match="Bootstrap it with `replace`"):
        MysqlSource(config(server)).snapshot(only={"at": ["2026-11-26"]})


def test_a_load_does_not_go_on_across_a_gap_of_its_capture(server: TappedServer) -> None:
    reading = MysqlSource(config(server)).snapshot(limits=BatchLimits(rows=3))
    assert [batch.rows for batch in reading.batches] == [3]
    with pytest.raises(SourceError, match="was stopped: what changed there since is nowhere"):
        MysqlSource(config(server, options={"load": "2"})).snapshot(after=reading.position())


def test_a_table_that_was_loaded_by_its_cursor_says_what_to_do(server: TappedServer) -> None:
    with pytest.raises(SourceError, match="Bootstrap it with `replace`"):
        MysqlSource(config(server)).changes({"watermark": 7})


def test_rows_are_read_again_by_their_keys_and_by_nothing_else(server: TappedServer) -> None:
    """Great numbers are not rounded, a text is no SQL, and texts that are equal by their collation only are rows of their own."""
    key = ("n", "d", "day", "t")
    server.execute(
        "CREATE TABLE keyed (n bigint, d decimal(20,0), day date, t varchar(20) COLLATE utf8mb4_bin, v int, PRIMARY KEY (n, d, day, t))",
        "INSERT INTO keyed VALUES (9007199254740992, 9, '2026-11-27', 'a', 1), (9007199254740993, 9, '2026-11-27', 'a', 2), "
        "(1, 18446744073709551615, '2026-11-27', 'a'' OR ''1', 3), (1, 18446744073709551615, '2026-11-27', 'A', 4)",
    )
    server.take("keyed", record_key=key)
    source = MysqlSource(replace(config(server, "keyed"), key_columns=key))

    def read(*keys: tuple[str, ...]) -> list[int]:
        before = server.sequence()
        (events,) = source.rows_again(keys).batches
        assert isinstance(events, LoggedEvents)
        after = server.sequence()
        assert all((before,) <= each.event.position <= (after,) for each in events.decoded)
        return sorted(each.event.values["v"] for each in events.decoded)

    great, text = "18446744073709551615", "a' OR '1"
    assert read(("9007199254740993", "9", "2026-11-27", "a")) == [2]
    assert read(("1", great, "2026-11-27", text), ("1", great, "2026-11-27", "a"), ("9007199254740992", "9", "2026-11-27", "a")) == [1, 3]  # fmt: skip
    assert read(("1", great, "2026-11-27", "x' OR '1'='1")) == []
    many = [(str(number), "9", "2026-11-27", "a") for number in range(1200)]
    assert read(*many, ("9007199254740992", "9", "2026-11-27", "a")) == [1]
    for wrong, name in (
        (("x", "9", "2026-11-27", "a"), "n"),
        (("1", "9", "27.11.", "a"), "day"),
        (("1",), "n, d, day, t"),
        (("1", "NaN", "2026-11-27", "a"), "`d` is not a value"),
        (("1", "1e999999", "2026-11-27", "a"), "`d` is not a value"),
    ):
        with pytest.raises(SourceError, match=name) as refused:
            read(wrong)
        assert "27.11." not in str(refused.value)

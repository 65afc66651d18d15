"""What a load reads lands as Avro: an interrupted one goes on with it, another one reads it again without the source, and both are as the source's rows."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastavro import reader
from pyarrow import fs

from ingestion.capture.tap.hidden_columns import HiddenColumns
from ingestion.changelog import Bounds
from ingestion.domain.batch_limits import UNLIMITED, BatchLimits
from ingestion.domain.log_moves import LOG
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.raw_chunks.chunk_file import METADATA_KEY
from ingestion.raw_chunks.folders import RawFolder
from ingestion.sources import EventBatch, RawChunks, SourceConfig, SourceError
from ingestion.sources.mysql import chunk_reading
from ingestion.sources.mysql.server import MysqlServer
from ingestion.sources.mysql.source import MysqlSource
from tests.polling import scaled
from tests.services.tapped_server import TappedServer, tapped_server
from tests.services.test_mysql_source import config
from tests.services.test_tap import EVERY_TYPE, ROWS

DATABASE = "lakehub_source"
NOWHERE = "mysql://reader:hunter2@127.0.0.1:1/ops"


@pytest.fixture
def server(mariadb_url: str, tmp_path: Path) -> Iterator[TappedServer]:
    with tapped_server(mariadb_url, DATABASE, tmp_path / "log") as tapped:
        tapped.execute(
            "CREATE TABLE trips (id int PRIMARY KEY, city varchar(20), at datetime)",
            "INSERT INTO trips SELECT seq, 'Ulm', '2026-11-26' FROM seq_1_to_10",
        )
        tapped.take("trips")
        yield tapped


@pytest.fixture
def folder(tmp_path: Path) -> RawFolder:
    return RawFolder(fs.LocalFileSystem(), str(tmp_path / "raw"))


def landing(server: TappedServer, folder: RawFolder, load: str = "one", table: str = "trips", **fields: Any) -> SourceConfig:  # fmt: skip
    return replace(config(server, table, **fields), raw=RawChunks(folder, load))


def read_again(server: TappedServer, folder: RawFolder, table: str = "trips", **fields: Any) -> MysqlSource:
    """By a URL that leads nowhere."""
    given = config(server, table, **fields)
    return MysqlSource(replace(given, url=NOWHERE, raw=RawChunks(folder, "another", is_read=True)))


def snapshot(
    source: MysqlSource, limits: BatchLimits = UNLIMITED
) -> tuple[list[EventBatch], dict[str, Any], list[Any]]:
    """All batches, however many readings it takes, the last position, and those between."""
    batches: list[EventBatch] = []
    places: list[Any] = [None]
    while True:
        reading = source.snapshot(after=places[-1], limits=limits)
        batches += reading.batches
        position = json.loads(json.dumps(reading.position()))
        if not reading.has_more():
            return batches, position, places[1:]
        places.append(position)


def shown(batches: list[EventBatch]) -> list[Any]:
    """All that is handed over, but for how it was come by."""
    return [
        (
            {name: [*values] for name, values in batch.columns.items() if name != METADATA_COLUMN},
            batch.columns[METADATA_COLUMN].to_pylist(),  # type: ignore[attr-defined]
            batch.unreadable,
            batch.schema,
            batch.schema_version,
        )
        for batch in batches
    ]


def test_an_interrupted_load_reads_nothing_of_the_source_twice(server: TappedServer, folder: RawFolder) -> None:
    """Its position is that of when it began, as its first chunks are."""
    pieces: list[int] = []
    batches = MysqlSource(landing(server, folder, on_rows_read=pieces.append)).snapshot().batches
    before = [next(batches), next(batches)]
    del batches
    began_at = server.log.reader().bounds("trips")["0"].next
    server.execute("UPDATE trips SET city = 'later'", "DELETE FROM trips WHERE id = 1")
    server.take("trips")
    after, position, _ = snapshot(MysqlSource(landing(server, folder, on_rows_read=pieces.append)))
    assert (pieces, sum(pieces)) == ([3, 3, 3, 1], 10)
    assert shown(after[:2]) == shown(before)
    assert [batch.is_landed for batch in after] == [True, True, False, False]
    assert [city for batch in after for city in batch.columns["city"]] == ["Ulm"] * 6 + ["later"] * 4
    assert position[LOG]["trips"] == {"0": began_at}
    other, _, _ = snapshot(MysqlSource(landing(server, folder, "two")))
    assert not any(batch.is_landed for batch in other)


def test_a_load_is_read_again_without_the_source(server: TappedServer, folder: RawFolder) -> None:
    """In as many commits as are wanted, whatever the table is by now; and its changes are those since it began."""
    batches, position, _ = snapshot(MysqlSource(landing(server, folder)), BatchLimits(rows=4))
    server.execute("UPDATE trips SET city = 'later'")
    server.take("trips")
    assert read_again(server, folder).schema() == MysqlSource(config(server)).schema()
    for limits in (UNLIMITED, BatchLimits(rows=4)):
        again, position_again, places = snapshot(read_again(server, folder), limits)
        assert shown(again) == shown(batches)
        assert (position_again, len(places)) == (position, 1 if limits.rows else 0)
    assert read_again(server, folder).snapshot().total() == 10
    (events,) = MysqlSource(config(server)).changes(position).batches
    assert events.rows == 10


def test_a_chunk_is_an_avro_file_that_says_what_it_is(server: TappedServer, folder: RawFolder, tmp_path: Path) -> None:
    before = server.sequence()
    snapshot(MysqlSource(landing(server, folder)))
    files = sorted((tmp_path / "raw" / "one").glob("*.avro"))
    assert {path.name for path in (tmp_path / "raw" / "one").iterdir()} - {path.name for path in files} == {
        "beginning.json",
        "end.json",
    }
    with files[1].open("rb") as file:
        avro = reader(file)
        rows, facts = [record["row"] for record in avro], json.loads(avro.metadata[METADATA_KEY])
    assert [(row["id"], row["city"]) for row in rows] == [(4, "Ulm"), (5, "Ulm"), (6, "Ulm")]
    assert (facts["key"], facts["after"], facts["last_key"]) == (["id"], [["int", "3"]], [["int", "6"]])
    assert facts["rows"] == 3
    assert before <= facts["sequence"] <= server.sequence()
    assert (len(files), avro.codec) == (4, "deflate")


def test_what_is_hidden_is_in_no_chunk_and_every_type_comes_back(server: TappedServer, folder: RawFolder, tmp_path: Path) -> None:  # fmt: skip
    server.execute(
        "SET SESSION time_zone = '+00:00'", EVERY_TYPE.format(t="t"), f"INSERT INTO t VALUES {', '.join(ROWS)}"
    )
    server.execute(
        "CREATE TABLE people (id int PRIMARY KEY, email varchar(40), phone varchar(40), pin int, c varchar(9))",
        "INSERT INTO people VALUES (1, 'hidden@example.org', '0731-5550', 77123456, 'x')",
    )
    hidden = HiddenColumns(frozenset(["email"]), frozenset(["pin"]), frozenset(["phone"]), key="of the hashes")
    options = {"t": {}, "people": {**hidden.as_options(), "hash_key": "of the hashes"}}
    for table, keys in (("t", ("id", "k")), ("people", ("id",))):
        given = replace(landing(server, folder, table, table, options=options[table]), key_columns=keys)
        direct, _, _ = snapshot(MysqlSource(given))
        again = replace(given, url=NOWHERE, raw=RawChunks(RawFolder(folder.filesystem, folder.path), "x", is_read=True))
        assert shown(snapshot(MysqlSource(again))[0]) == shown(direct)
        assert sum(batch.rows for batch in direct) == (len(ROWS) if table == "t" else 1)
        folder.load("t").remove()
    written = b"".join(path.read_bytes() for path in (tmp_path / "raw" / "people").iterdir())
    assert b"0731" not in written
    rows = folder.load("people").chunk(0)
    assert rows is not None
    assert {name: [*values] for name, values in rows.columns.items()} == {
        "id": [1], "phone": [None], "pin": [hidden.digest(77123456)], "c": ["x"]
    }  # fmt: skip


def test_chunks_that_do_not_fit_any_more_are_read_of_the_source(
    server: TappedServer, folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is damaged, of a table with another key, or of a load whose changes are gone."""
    pieces: list[int] = []
    snapshot(MysqlSource(landing(server, folder)))
    chunks = sorted((tmp_path / "raw" / "one").glob("*.avro"))
    content = chunks[1].read_bytes()
    chunks[1].write_bytes(content[:-20] + bytes([content[-20] ^ 1]) + content[-19:])
    batches, _, _ = snapshot(MysqlSource(landing(server, folder, on_rows_read=pieces.append)))
    assert (pieces, [batch.is_landed for batch in batches]) == ([3], [True, False, True, True])
    chunks[2].unlink()
    snapshot(MysqlSource(landing(server, folder, on_rows_read=pieces.append)))
    assert pieces == [3, 3]
    server.execute("ALTER TABLE trips ADD note varchar(9)", "INSERT INTO trips (id, city) VALUES (11, 'x')")
    server.take("trips")
    chunks[3].unlink()
    batches, _, _ = snapshot(MysqlSource(landing(server, folder, on_rows_read=pieces.append)))
    assert [batch.is_landed for batch in batches] == [True, True, True, False]
    assert {batch.schema.names for batch in batches} == {("id", "city", "at", "note", METADATA_COLUMN)}
    assert [batch.columns[METADATA_COLUMN].to_pylist()[0]["schema_version"] for batch in batches] == [1, 1, 1, 2]  # type: ignore[attr-defined]
    assert shown(snapshot(read_again(server, folder))[0]) == shown(batches)
    kept = {"trips": {"0": Bounds(12, 20)}, "trips.errors": {}}
    with monkeypatch.context() as patched:
        patched.setattr(EventTopic, "kept", lambda self: kept)
        batches, position, _ = snapshot(MysqlSource(landing(server, folder)))
    assert not any(batch.is_landed for batch in batches)
    assert position[LOG]["trips"] == {"0": 20}
    server.execute("ALTER TABLE trips DROP PRIMARY KEY, ADD PRIMARY KEY (id, city)")
    batches, _, _ = snapshot(MysqlSource(landing(server, folder)))
    assert not any(batch.is_landed for batch in batches)


def test_what_cannot_be_read_again_is_refused_with_the_remedy(
    server: TappedServer, folder: RawFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusal(**options: Any) -> str:
        with pytest.raises(SourceError) as refused:
            snapshot(read_again(server, folder, **options))
        assert "Bootstrap it with `replace` and without `from_chunks`" in str(refused.value)
        assert "hunter2" not in str(refused.value)
        return str(refused.value)

    assert "No raw chunks of a whole load of `lakehub_source.trips` are kept" in refusal()
    next(MysqlSource(landing(server, folder)).snapshot().batches)
    assert "No raw chunks of a whole load" in refusal()
    snapshot(MysqlSource(landing(server, folder)))
    assert "was stopped after its raw chunks were read" in refusal(options={"load": "2"})
    kept = {"trips": {"0": Bounds(12, 20)}, "trips.errors": {}}
    with monkeypatch.context() as patched:
        patched.setattr(EventTopic, "kept", lambda self: kept)
        assert "keeps messages of `trips` from 12 on, and the load began at 10" in refusal()
    (tmp_path / "raw" / "one" / "00000001.avro").write_bytes(b"Obj\x01nothing")
    assert "00000001.avro is damaged" in refusal()
    (tmp_path / "raw" / "one" / "00000001.avro").unlink()
    assert "chunk 1 is gone" in refusal()


def test_several_connections_read_at_once_and_all_comes_in_its_order(
    server: TappedServer, folder: RawFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of three ranges waits until the others were read. Each is read once, also where commits end between them; no more connections are open."""
    server.execute("INSERT INTO trips SELECT seq * seq, 'far', NULL FROM seq_11_to_20")
    one_by_one, position, _ = snapshot(MysqlSource(landing(server, folder, "serial")))
    at_once, read_later = threading.Barrier(3, timeout=scaled(30)), threading.Event()
    opened, read, waits = list[int](), list[int](), {None, (3,), (6,)}
    read_range, open_server = chunk_reading.read_range, MysqlServer.opened

    def reading(*args: Any, after: Any, upto: Any) -> Any:
        if after in waits:
            at_once.wait()
            if after is None:
                assert read_later.wait(scaled(30))
        chunk = read_range(*args, after=after, upto=upto)
        read.append(len(chunk.rows))
        if after == (6,):
            read_later.set()
        return chunk

    @contextmanager
    def opening(self: MysqlServer) -> Iterator[Any]:
        opened.append(1)
        with open_server(self) as connection:
            yield connection
        opened.append(-1)

    monkeypatch.setattr(chunk_reading, "read_range", reading)
    monkeypatch.setattr(MysqlServer, "opened", opening)
    for limits in (UNLIMITED, BatchLimits(rows=7)):
        pieces: list[int] = []
        name = f"parallel {limits.rows}"
        given = replace(landing(server, folder, name, on_rows_read=pieces.append), readers=3)
        batches, position_of_it, places = snapshot(MysqlSource(given), limits)
        assert [[*batch.columns["id"]] for batch in batches] == [[*batch.columns["id"]] for batch in one_by_one]
        assert (sum(pieces), len(pieces)) == (20, 7)
        assert sorted(read) == sorted(pieces)
        read.clear()
        waits.clear()
        assert position_of_it[LOG] == position[LOG]
        assert all(len(json.dumps(place)) < 600 for place in places)
        assert max(itertools.accumulate(opened)) == 3
        assert sum(opened) == 0
    assert shown(snapshot(read_again(server, folder))[0]) == shown(batches)


def test_a_range_that_cannot_be_read_ends_the_load_and_all_connections(
    server: TappedServer, folder: RawFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read before it has landed."""
    read_range = chunk_reading.read_range

    def reading(*args: Any, after: Any, upto: Any) -> Any:
        if after == (6,):
            raise sa.exc.OperationalError("SELECT", {}, Exception("Lost connection"))
        return read_range(*args, after=after, upto=upto)

    with monkeypatch.context() as patched:
        patched.setattr(chunk_reading, "read_range", reading)
        with pytest.raises(SourceError, match="did not answer: Lost connection"):
            snapshot(MysqlSource(replace(landing(server, folder), readers=2)))
    pieces: list[int] = []
    batches, _, _ = snapshot(MysqlSource(replace(landing(server, folder, on_rows_read=pieces.append), readers=2)))
    assert ([batch.is_landed for batch in batches], sum(pieces)) == ([True, True, False, False], 4)

"""Every storage says the same of the same table."""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from lakehub.catalog.connection_guard import refuse_guarded_location
from lakehub.catalog.metadata import ColumnType, Drawn, KeyEvidence, MetadataUnavailable, NoSuchTable
from lakehub.catalog.metadata.table_locations import is_same_table
from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable, StoredTable
from lakehub.catalog.storages import STORAGES, LocalPath, Location, ServerDatabase, Storage, UncertainLocation
from lakehub.catalog.storages.kafka import KafkaTopic
from lakehub.catalog.storages.sql import looks
from lakehub.catalog.storages.sql.schemaless import CellTable
from lakehub.kernel.errors import Refused
from quality.engines.storage.plain_files import local_files
from tests.hudi_tables import hudi_table

ROWS = [
    {"tailnum": "N1", "seats": 55, "speed": 1.5},
    {"tailnum": "N2", "seats": 149, "speed": 2.5},
    {"tailnum": "N2", "seats": 182, "speed": 3.5},
    {"tailnum": None, "seats": 2, "speed": 4.5},
]


def sql(folder: Path) -> tuple[str, str, str]:
    with sqlite3.connect(folder / "ops.db") as db:
        db.execute("CREATE TABLE planes (tailnum TEXT, seats INTEGER, speed REAL)")
        db.executemany("INSERT INTO planes VALUES (:tailnum, :seats, :speed)", ROWS)
    return "sql", f"sqlite:///{folder / 'ops.db'}", "planes"


def csv_files(folder: Path) -> tuple[str, str, str]:
    for at, part in enumerate((ROWS[:2], ROWS[2:])):
        with (folder / f"{at}.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, list(ROWS[0]))
            writer.writeheader()
            writer.writerows(part)
    return "files", folder.as_uri(), "*.csv"


def json_lines(folder: Path) -> tuple[str, str, str]:
    (folder / "planes.jsonl").write_text("\n".join(json.dumps(row) for row in ROWS))
    return "files", folder.as_uri(), "*.jsonl"


def parquet(folder: Path) -> tuple[str, str, str]:
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "planes.parquet")
    return "files", folder.as_uri(), "*.parquet"


def avro(folder: Path) -> tuple[str, str, str]:
    kinds = {"tailnum": ["null", "string"], "seats": "long", "speed": "double"}
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with (folder / "planes.avro").open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "plane", "fields": fields}, ROWS)
    return "files", folder.as_uri(), "*.avro"


def hudi(folder: Path) -> tuple[str, str, str]:
    hudi_table(folder / "planes", {None: pa.Table.from_pylist(ROWS)})
    return "hudi", folder.as_uri(), "planes"


@pytest.fixture(params=[sql, csv_files, json_lines, parquet, avro, hudi], ids=lambda made: made.__name__)
def at(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Storage, str]:
    make: Callable[[Path], tuple[str, str, str]] = request.param
    plugin, url, table = make(tmp_path)
    return STORAGES.get(plugin)(url), table


def test_columns_and_their_types(at: tuple[Storage, str]) -> None:
    storage, table = at
    types = {column.name: column.type for column in storage.describe(table).columns}
    assert types == {"tailnum": ColumnType.STRING, "seats": ColumnType.INTEGER, "speed": ColumnType.FLOAT}


def test_few_looks_at_databases_are_under_way_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that answer people are left, however many sources are silent."""
    monkeypatch.setattr(looks, "WAIT_S", 0.05)
    plugin, url, table = sql(tmp_path)
    storage = STORAGES.get(plugin)(url)
    with ExitStack() as under_way:
        for _ in range(looks.MAX_LOOKS):
            under_way.enter_context(looks.place_for_a_look())
        with pytest.raises(MetadataUnavailable, match=r"2 looks at databases are under way.*Try again in a minute"):
            storage.describe(table)
    assert storage.describe(table).columns


def test_the_table_is_listed(at: tuple[Storage, str]) -> None:
    storage, table = at
    assert list(storage.tables(10)) == [table]
    assert list(storage.tables(0)) == []


def test_evidence_counts_rows_values_and_nulls(at: tuple[Storage, str]) -> None:
    storage, table = at
    assert storage.key_evidence(table, ["tailnum"]) == KeyEvidence(4, distinct=2, nulls=1, null_columns={"tailnum": 1})
    of_both = storage.key_evidence(table, ["tailnum", "seats"])
    assert of_both == KeyEvidence(4, distinct=3, nulls=1, null_columns={"tailnum": 1})
    assert of_both.sentence == "3 keys in 4 rows, 1 row with a null (1 in `tailnum`); all rows were read"


LIMITS = (
    "lakehub.catalog.metadata.duckdb_files.EVIDENCE_LIMIT",
    "lakehub.catalog.storages.sql.evidence.EVIDENCE_LIMIT",
    "lakehub.catalog.metadata.duckdb_files.SAMPLE_ROWS",
    "lakehub.catalog.storages.sql.evidence.SAMPLE_ROWS",
    "lakehub.catalog.storages.files.SAMPLE_ROWS",
)


def test_evidence_of_a_part_says_of_how_many_rows_and_how_they_were_drawn(
    at: tuple[Storage, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in LIMITS:
        monkeypatch.setattr(limit, 2)
    storage, table = at
    evidence = storage.key_evidence(table, ["tailnum"])
    if evidence.drawn is Drawn.BY_KEY:
        assert (
            "of 4 rows, seed 17: all rows of keys that their hash chooses, and all rows with a null"
            in evidence.sentence
        )
        assert (evidence.nulls, evidence.total) == (1, 4)
        assert evidence.rows - 1 in (0, 1, 2, 3)
    else:
        assert (evidence.drawn, evidence.rows, evidence.distinct) == (Drawn.FIRST, 2, 2)
        known = "4" if table.endswith(".avro") else "more than 10,000,000"
        assert f"the first 2 of {known} rows, as the source hands them over" in evidence.sentence


def test_what_repeats_among_the_keys_of_a_sample_is_counted_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 10,000 keys each is there twice: of random rows next to none would be seen twice."""
    monkeypatch.setattr("lakehub.catalog.metadata.duckdb_files.EVIDENCE_LIMIT", 1_000)
    monkeypatch.setattr("lakehub.catalog.metadata.duckdb_files.SAMPLE_ROWS", 1_000)
    pq.write_table(pa.table({"id": [*range(10_000), *range(10_000)]}), tmp_path / "1.parquet")
    evidence = STORAGES.get("files")(tmp_path.as_uri()).key_evidence("*.parquet", ["id"])
    assert evidence.repeats == evidence.distinct == evidence.rows / 2
    assert 800 < evidence.rows < 1_200


def test_a_table_that_is_not_there_is_named(at: tuple[Storage, str]) -> None:
    storage, _ = at
    with pytest.raises(NoSuchTable, match="boats"):
        storage.describe("boats*")


@pytest.mark.parametrize(
    ("plugin", "url", "table"),
    [
        ("sql", "sqlite:////nowhere/ops.db", "planes"),
        ("files", "file:///nowhere", "*.csv"),
        ("hudi", "file:///nowhere", "flights"),
    ],
)
def test_a_storage_out_of_reach_does_not_say_that_a_table_is_gone(plugin: str, url: str, table: str) -> None:
    with pytest.raises(MetadataUnavailable) as caught:
        STORAGES.get(plugin)(url).describe(table)
    assert not isinstance(caught.value, NoSuchTable)


def test_a_list_of_times_is_no_time(tmp_path: Path) -> None:
    kinds = {"times": pa.list_(pa.timestamp("us")), "prices": pa.list_(pa.decimal128(9, 2)), "at": pa.timestamp("us")}
    pq.write_table(pa.table({name: pa.array([None], kind) for name, kind in kinds.items()}), tmp_path / "lists.parquet")
    columns = STORAGES.get("files")(tmp_path.as_uri()).describe("lists.parquet").columns
    assert [column.type for column in columns] == [ColumnType.ARRAY, ColumnType.ARRAY, ColumnType.TIMESTAMP]


@pytest.mark.timeout(60)
def test_a_pipe_among_the_files_is_left_out(tmp_path: Path) -> None:
    """Whoever opens it waits for somebody who writes to it."""
    os.mkfifo(tmp_path / "a.csv")
    storage = STORAGES.get("files")(tmp_path.as_uri())
    with pytest.raises(MetadataUnavailable, match="matches 0 files") as caught:
        storage.describe("*.csv")
    assert not isinstance(caught.value, NoSuchTable)
    (tmp_path / "b.csv").write_text("id\n1\n")
    assert [column.name for column in storage.describe("*.csv").columns] == ["id"]
    table = storage.table("*.csv")
    assert isinstance(table, Files)
    assert [path.name for path in local_files(table)] == ["b.csv"]


def test_a_glob_cannot_leave_its_folder(tmp_path: Path) -> None:
    with pytest.raises(MetadataUnavailable, match="leaves the folder"):
        STORAGES.get("files")(tmp_path.as_uri()).describe("../*.csv")


def test_a_folder_that_is_not_a_hudi_table_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "flights").mkdir()
    with pytest.raises(NoSuchTable, match="flights is not a Hudi table"):
        STORAGES.get("hudi")(tmp_path.as_uri()).describe("flights")


PG = "postgresql+psycopg://u:hunter2@db/ops"
WHERE: list[tuple[str, str, str, Location, StoredTable, tuple[str, str], str]] = [
    (
        "sql",
        PG,
        "planes",
        ServerDatabase("db", "5432", "ops"),
        SqlTable(PG, "planes"),
        ("postgres://db:5432", "ops.public.planes"),
        "planes",
    ),
    (
        "sql",
        "mysql+pymysql://DB:3307/ops",
        "planes",
        ServerDatabase("db", "3307", "ops"),
        SqlTable("mysql+pymysql://DB:3307/ops", "planes"),
        ("mysql://db:3307", "ops.planes"),
        "planes",
    ),
    (
        "mysql",
        "mysql://u:hunter2@DB/ops",
        "planes",
        ServerDatabase("db", "3306", "ops"),
        SqlTable("mariadb+pymysql://u:hunter2@DB/ops", "planes"),
        ("mysql://db:3306", "ops.planes"),
        "planes",
    ),
    (
        "schemaless",
        "mysql://u:hunter2@DB/ops",
        "cells?row_key=k&text=notes",
        ServerDatabase("db", "3306", "ops"),
        CellTable("mariadb+pymysql://u:hunter2@DB/ops", "cells"),
        ("mysql://db:3306", "ops.cells"),
        "cells",
    ),
    (
        "sql",
        "sqlite:////data/%23/ops.db",
        "planes",
        LocalPath(Path("/data/#/ops.db"), is_folder=False),
        SqlTable("sqlite:////data/%23/ops.db", "planes"),
        ("file", "/data/#/ops.db"),
        "",  # OpenLineage has no name for it
    ),
    (
        "kafka",
        "kafka://u:hunter2@DB,db2:9093/planes*?registry=https://registry.example.org",
        "planes",
        ServerDatabase("db", "9092", "planes*", (), ("db2", "registry.example.org")),
        KafkaTopic("kafka:db2:9093,db:9092", "planes"),
        ("kafka://db:9092", "planes"),
        "planes",
    ),
    (
        "files",
        "file:///data/a%20b",
        "planes/*.csv",
        LocalPath(Path("/data/a b")),
        Files("file:///data/a%20b/planes/*.csv", "csv"),
        ("file", "/data/a b/planes"),
        "planes",
    ),
    (
        "hudi",
        "file:///lake/dc1/",
        "planes",
        LocalPath(Path("/lake/dc1")),
        HudiCopy("file:///lake/dc1/planes"),
        ("file", "/lake/dc1/planes"),
        "planes",
    ),
]


def test_each_storage_says_where_it_is() -> None:
    assert {plugin for plugin, *_ in WHERE} == set(STORAGES)


@pytest.mark.parametrize(("plugin", "url", "table", "location", "stored", "named", "types"), WHERE)
def test_where_it_is_and_how_its_table_is_read_and_named(
    plugin: str,
    url: str,
    table: str,
    location: Location,
    stored: StoredTable,
    named: tuple[str, str],
    types: str,
) -> None:
    storage = STORAGES.get(plugin)(url)
    assert storage.location() == location
    assert storage.table(table) == stored
    assert storage.table_in_lineage(*named) == types
    assert storage.table_in_lineage("kafka", named[1]) == ""
    assert storage.table_in_lineage(named[0], "/elsewhere/planes") == ""


def test_a_storage_that_does_not_say_where_it_is_cannot_be_made() -> None:
    assert "location" in Storage.__abstractmethods__


@pytest.mark.parametrize(
    ("plugin", "url"),
    [
        ("sql", "hunter2"),
        ("kafka", "kafka://u:hunter2@a:x/y"),
        ("kafka", "kafka://u:p@a:1?registry=hunter2"),
        ("sql", "postgresql://u:p@hunter2:x@h/x"),
        ("sql", "postgresql://u:p@hunter2@h/x"),
        ("sql", "postgresql://u:p@hunter2/w@h/x"),
        ("sql", "sqlite://"),
        ("sql", "sqlite:///:memory:"),
        ("sql", "sqlite:///relative.db"),
        ("sql", "sqlite:///file:/data/ops.db?uri=true"),
        ("sql", "sqlite:////data/ops.db?mode=rwc"),
        ("sql", "sqlite:////data/ops.db%00x"),
        ("sql", "sqlite://host//data/ops.db"),
        ("sql", "sqlite+aiosqlite:////data/ops.db"),
        ("sql", "sqlite+pysqlcipher://:hunter2@//data/ops.db"),
        ("sql", "SQLITE:////data/ops.db"),
        ("sql", "duckdb:////data/ops.duckdb"),
        ("sql", "duckdb://host//data/ops.duckdb"),
        ("sql", "access+pyodbc:///?odbc_connect=x"),
        ("sql", "mysql+pyodbc://u:hunter2@dsn/x"),
        ("sql", "postgresql:///x"),
        ("sql", "postgresql://h"),
        ("sql", "postgresql:///x?host=127.0.0.1"),
        ("sql", "postgresql://h/x?host=127.0.0.1"),
        ("sql", "postgresql://h/x?hostaddr=127.0.0.1"),
        ("sql", "postgresql://h/x?service=own"),
        ("sql", "postgresql://h/x?dbname=lakehub"),
        ("sql", "postgresql://h/x?port=5432"),
        ("sql", "postgresql://h/x?passfile=/etc/passwd"),
        ("sql", "postgresql://h/x?sslmode=require&sslmode=disable"),
        ("sql", "postgresql://h/x?plugin=x"),
        ("sql", "postgresql://h/host%3D127.0.0.1"),
        ("sql", "postgresql://h/postgresql:%2F%2F127.0.0.1"),
        ("sql", "postgresql://h1,127.0.0.1/x"),
        ("sql", "postgresql://h1:1,127.0.0.1:2/x"),
        ("sql", "postgresql://%2Ftmp/x"),
        ("sql", "postgresql://h:99999/x"),
        ("sql", "postgresql://h:0x/x"),
        ("sql", "mysql+pymysql://h/x?unix_socket=/run/mysql"),
        ("sql", "mysql+pymysql://h/x?local_infile=1"),
        ("sql", "mysql+pymysql://h/x?read_default_file=/etc/my.cnf"),
        ("sql", "bigquery://project/x?credentials_path=/etc/passwd"),
        ("mysql", "mysql://u:hunter2@h"),
        ("mysql", "mysql://u:hunter2@h/x?unix_socket=/run/mysql"),
        ("mysql", "postgresql://u:hunter2@h/x"),
        ("mysql", "sqlite:////data/ops.db"),
        ("schemaless", "mysql://u:hunter2@h"),
        ("schemaless", "postgresql://u:hunter2@h/x"),
        ("files", "/data"),
        ("files", "file:data"),
        ("files", "file://[hunter2"),
        ("files", "file://host/data"),
        ("files", "file:///data#/../../home"),
        ("files", "file:///data?/../../home"),
        ("files", "file:///data#"),
        ("files", "file:///da\tta"),
        ("files", "file:///data%00"),
        ("files", "s3://bucket/data"),
        ("hudi", "s3a://key:hunter2@bucket/lake"),
    ],
)
def test_a_url_of_which_it_is_not_certain_where_it_leads_is_refused(plugin: str, url: str) -> None:
    """To the operator too: nothing that is not listed reaches a driver."""
    with pytest.raises(MetadataUnavailable) as unavailable:
        STORAGES.get(plugin)(url).location()
    assert "hunter2" not in str(unavailable.value)
    assert unavailable.value.__cause__ is None


def test_what_does_not_say_where_it_leads_is_the_operators_to_connect() -> None:
    place = UncertainLocation("Its storage does not say.")
    refuse_guarded_location(place, by_operator=True, lake_uris=[])
    with pytest.raises(Refused, match="The operator makes other connections"):
        refuse_guarded_location(place, by_operator=False, lake_uris=[])


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////allowed/#/../../home/lakehub.db",
        "sqlite:////allowed/;x?",
        "sqlite+pysqlite:////allowed/a%2F..%2Fb",
        "sqlite:////a@b/c",
    ],
)
def test_the_path_of_a_database_is_the_one_that_sqlalchemy_opens(url: str) -> None:
    place = STORAGES.get("sql")(url).location()
    assert isinstance(place, LocalPath)
    assert str(place.path) == sa.make_url(url).database


PG = "postgresql+psycopg://ann:secret@localhost"
ONE_TABLE = [
    (f"{PG}/ops", "ops.flights", f"{PG.replace('localhost', '127.0.0.1')}:5432/ops", "ops.flights"),
    (f"{PG}/ops", "x.flights", "postgresql://ben@LOCALHOST/ops?connect_timeout=3", "x.flights"),
    ("mysql+pymysql://localhost/ops", "flights", "mariadb+pymysql://ann:x@localhost:3306/other", "ops.FLIGHTS"),
    ("trino://localhost:8080/lake/ops", "flights", "trino://localhost:8080/lake", "ops.flights"),
    ("trino://localhost:8080/lake/ops", "flights", "trino://localhost:8080", "lake.ops.Flights"),
    ("sqlite:////data/ops.db", "flights", "sqlite:////data/x/../ops.db", "main.Flights"),
]
TWO_TABLES = [
    (f"{PG}/ops", "x.flights", f"{PG}/ops", "y.flights"),
    (f"{PG}/ops", "x.flights", f"{PG}/ops", "x.Flights"),  # PostgreSQL tells them apart
    (f"{PG}/ops", "x.flights", f"{PG}:5433/ops", "x.flights"),
    (f"{PG}/ops", "x.flights", f"{PG}/ops2", "x.flights"),
    ("mysql+pymysql://localhost/ops", "flights", "mysql+pymysql://localhost/other", "flights"),
    ("trino://localhost:8080/lake/ops", "flights", "trino://localhost:8080/lake/raw", "flights"),
    ("sqlite:////data/ops.db", "flights", "sqlite:////data/ops2.db", "flights"),
    ("sqlite:////data/ops.db", "flights", f"{PG}/ops", "x.flights"),
]


@pytest.mark.parametrize(
    ("pair", "same"), [(pair, True) for pair in ONE_TABLE] + [(pair, False) for pair in TWO_TABLES]
)
def test_two_ways_to_one_table_are_known_for_one(pair: tuple[str, str, str, str], same: bool) -> None:
    url, table, other_url, other_table = pair
    first, second = (STORAGES.get("sql")(url), table), (STORAGES.get("sql")(other_url), other_table)
    places = [storage.table_location(name) for storage, name in (first, second)]
    assert is_same_table(*places) is same
    assert is_same_table(*reversed(places)) is same
    assert "secret" not in repr(places)


def test_a_table_of_a_lake_is_its_files(tmp_path: Path) -> None:
    (tmp_path / "dc1" / "flights" / "2026").mkdir(parents=True)
    (tmp_path / "dc1" / "flights" / "2026" / "a.parquet").touch()
    lake = STORAGES.get("hudi")((tmp_path / "dc1").as_uri())
    files = STORAGES.get("files")(tmp_path.as_uri())
    assert is_same_table(lake.table_location("flights"), files.table_location("dc1/flights/*/*.parquet"))
    assert not is_same_table(lake.table_location("flights"), lake.table_location("flights-2"))
    assert is_same_table(files.table_location("dc2/*.csv"), files.table_location("./dc2/*.csv"))

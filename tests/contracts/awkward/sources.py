"""Writes the rows of a shape as a source that people have, and reads back with a library of its own what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from tests.contracts.awkward.shape import HUDI, MARIADB, PARQUET, POSTGRESQL, SQLITE, Shape
from tests.hudi_tables import hudi_table

DRIVERS = {POSTGRESQL: "postgresql+psycopg", MARIADB: "mariadb+pymysql"}


@dataclass(frozen=True)
class Written:
    """A connection and a table as onboarding is told of them, and the rows as they were read back."""

    plugin: str
    url: str
    table: str
    rows: pa.Table


def query(sql: str) -> pa.Table:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        return db.sql(sql).to_arrow_table()


class Sources:
    """One kind of source for one test: a folder, or a schema of a server that goes away."""

    def __init__(self, kind: str, folder: Path, server: str = "") -> None:
        self.kind, self.folder = kind, folder
        self._database = Database(server, kind) if server else None

    def write(self, shape: Shape, rows: pa.Table, place: str) -> Written:
        """`place`: the data center, or `upstream`."""
        folder = self.folder / place
        folder.mkdir(parents=True, exist_ok=True)
        if self.kind == PARQUET:
            return _parquet(shape, rows, folder)
        if self.kind == HUDI:
            return _hudi(shape, rows, folder)
        if self.kind == SQLITE:
            return Database(f"sqlite:///{folder / 'ops.db'}", SQLITE).write(shape, rows, "")
        assert self._database is not None
        return self._database.write(shape, rows, f"{place}_{uuid4().hex[:8]}")

    def close(self) -> None:
        if self._database is not None:
            self._database.close()


def _parquet(shape: Shape, rows: pa.Table, folder: Path) -> Written:
    with duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'").register("written", rows)
        if shape.folders:
            db.execute(f"COPY written TO '{folder}/t' (FORMAT parquet, PARTITION_BY ({', '.join(shape.folders)}))")
            table = f"t/{'/'.join('*' * len(shape.folders))}/*.parquet"
        else:
            table = f"{shape.table}.parquet"
            db.execute(f"COPY written TO '{str(folder / table).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")
        files = [str(file) for file in folder.rglob("*.parquet")]
        hive = bool(shape.folders)
        read = "SELECT * FROM read_parquet(?, hive_partitioning = ?, hive_types_autocast = false)"
        back = db.sql(read, params=[files, hive]).to_arrow_table()
    return Written("files", folder.as_uri(), table, back)


def _hudi(shape: Shape, rows: pa.Table, folder: Path) -> Written:
    """Partitioned as the lake is: by the names that the column holds."""
    parts: dict[str | None, pa.Table] = {None: rows}
    if shape.column:
        with duckdb.connect() as db:
            db.execute("SET TimeZone = 'UTC'").register("written", rows)
            values = [value for (value,) in db.execute(f'SELECT DISTINCT "{shape.column}" FROM written').fetchall()]
            select = f'SELECT * FROM written WHERE "{shape.column}" IS NOT DISTINCT FROM ?'
            parts = {value: db.sql(select, params=[value]).to_arrow_table() for value in values}
    hudi_table(folder / shape.table, parts, column=shape.column)
    with duckdb.connect() as db:
        files = [str(file) for file in folder.rglob("*.parquet")]
        read = "SELECT * EXCLUDE (SELECT) FROM read_parquet(?, union_by_name = true)".replace(
            "EXCLUDE (SELECT)",
            "EXCLUDE (_hoodie_commit_time, _hoodie_commit_seqno, _hoodie_record_key, _hoodie_partition_path, _hoodie_file_name)",
        )
        back = db.sql(read, params=[files]).to_arrow_table()
    return Written("hudi", folder.as_uri(), shape.table, back)


class Database:
    """SQLite's file, or a schema of a server."""

    def __init__(self, url: str, kind: str) -> None:
        self.kind, self.schema = kind, ""
        if kind in DRIVERS:
            self.schema = f"awkward_{uuid4().hex[:12]}"
            base = sa.make_url(url).set(drivername=DRIVERS[kind])
            self._server = sa.create_engine(base, poolclass=sa.NullPool)
            with self._server.begin() as connection:
                connection.exec_driver_sql(f"CREATE SCHEMA {self.schema}")
            # On loopback a certificate store that is read for each connection costs more than the tests.
            options = {"options": f"-csearch_path={self.schema}"} if kind == POSTGRESQL else {"ssl_disabled": "true"}
            database = base.database if kind == POSTGRESQL else self.schema
            url = base.set(database=database, query=options).render_as_string(hide_password=False)
        self.url = url
        self.engine = sa.create_engine(url, poolclass=sa.NullPool)

    def write(self, shape: Shape, rows: pa.Table, suffix: str) -> Written:
        name = shape.table if suffix.startswith("dc1") or not suffix else f"{shape.table}_{suffix}"
        names = [_type(field.type, self.kind) for field in rows.schema]
        columns = [
            sa.Column(field.name, kind, quote=True, key=f"c{number}")
            for number, (field, kind) in enumerate(zip(rows.schema, names, strict=True))
        ]
        table = sa.Table(
            sa.quoted_name(name, True),
            metadata := sa.MetaData(),
            *columns,
            mysql_charset="utf8mb4",
            mariadb_charset="utf8mb4",
        )
        metadata.create_all(self.engine)
        keys = [column.key for column in columns]
        batches = (batch.to_pylist() for batch in _unique_names(rows, keys).to_batches(max_chunksize=2_000))
        with self.engine.begin() as connection:
            for batch in batches:
                if batch:
                    connection.execute(table.insert(), batch)
        with self.engine.connect() as connection:
            back = [dict(zip(keys, row, strict=True)) for row in connection.execute(sa.select(*columns))]
        schema = pa.schema([pa.field(key, field.type) for key, field in zip(keys, rows.schema, strict=True)])
        return Written("sql", self.url, name, pa.Table.from_pylist(back, schema).rename_columns(rows.column_names))

    def close(self) -> None:
        self.engine.dispose()
        with self._server.begin() as connection:
            cascade = " CASCADE" if self.kind == POSTGRESQL else ""
            connection.exec_driver_sql(f"DROP SCHEMA {self.schema}{cascade}")
        self._server.dispose()


def _unique_names(rows: pa.Table, keys: list[str]) -> pa.Table:
    """SQLAlchemy binds by name, and names may be anything."""
    return rows.rename_columns(keys)


def _type(kind: pa.DataType, database: str) -> sa.types.TypeEngine[object]:
    made: Callable[[], sa.types.TypeEngine[object]] | None = next(
        (make for is_kind, make in _TYPES if is_kind(kind)), None
    )
    if made is None:
        raise TypeError(f"{kind} has no type in {database}")
    if pa.types.is_decimal(kind):
        return sa.Numeric(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return sa.DateTime(timezone=kind.tz is not None).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    return made()


_TEXT = sa.Text().with_variant(mysql.LONGTEXT(collation="utf8mb4_bin"), "mysql", "mariadb")
_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[], sa.types.TypeEngine[object]]], ...] = (
    (pa.types.is_boolean, sa.Boolean),
    (pa.types.is_int64, sa.BigInteger),
    (pa.types.is_integer, sa.Integer),
    (pa.types.is_floating, sa.Double),
    (pa.types.is_decimal, sa.Numeric),
    (pa.types.is_timestamp, sa.DateTime),
    (pa.types.is_date, sa.Date),
    (pa.types.is_binary, sa.LargeBinary),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), lambda: _TEXT),
)

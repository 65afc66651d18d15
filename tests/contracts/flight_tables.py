"""A few flights and planes, wherever an engine can read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from lakehub.catalog.metadata.tables import Files, HudiCopy, SqlTable, StoredTable
from quality.domain.language.measures import ROWS, Measure
from quality.domain.language.tree.nodes import Name
from quality.engines import Engine
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.parts import Part
from quality.engines.scans.scan import Limits, Scan
from quality.engines.sqlalchemy import SqlAlchemyEngine
from tests.hudi_tables import hudi_table

DAY = "flight_date"
ROWS_OF_FLIGHTS = [
    {
        "id": 1,
        "tailnum": "N1",
        "delay": 2.5,
        "seats": 10,
        DAY: "2026-11-15",
        "at": datetime(2026, 11, 15, 6, tzinfo=UTC),
    },
    {
        "id": 2,
        "tailnum": "N2",
        "delay": None,
        "seats": 20,
        DAY: "2026-11-15",
        "at": datetime(2026, 11, 15, 7, tzinfo=UTC),
    },
    {
        "id": 2,
        "tailnum": "N2",
        "delay": -1.0,
        "seats": 30,
        DAY: "2026-11-15",
        "at": datetime(2026, 11, 15, 8, tzinfo=UTC),
    },
    {
        "id": 3,
        "tailnum": None,
        "delay": 4.0,
        "seats": None,
        DAY: "2026-11-16",
        "at": datetime(2026, 11, 16, 9, tzinfo=UTC),
    },
    {
        "id": 3,
        "tailnum": None,
        "delay": 4.0,
        "seats": 40,
        DAY: "2026-11-16",
        "at": datetime(2026, 11, 16, 9, tzinfo=UTC),
    },
    {
        "id": 4,
        "tailnum": "N9",
        "delay": 4.0,
        "seats": 2**40,
        DAY: "2026-11-16",
        "at": datetime(2026, 11, 16, 5, tzinfo=UTC),
    },
]
PLANES = [{"tailnum": "N1", "year": 1999}, {"tailnum": "N2", "year": 2004}, {"tailnum": "N2", "year": 2005}]
PLANES_NAME = Name("planes")

DISTINCT_ID = Measure("distinct", ("id",))
DISTINCT_TAIL = Measure("distinct", ("tailnum",))
DISTINCT_BOTH = Measure("distinct", ("id", "tailnum"))
UNMATCHED = Measure("unmatched", ("tailnum",), PLANES_NAME, ("tailnum",))
NULLS, FILLED, SUM = Measure("nulls", ("delay",)), Measure("filled", ("delay",)), Measure("sum", ("delay",))
SEATS, LEAST, MOST = Measure("sum", ("seats",)), Measure("minimum", ("delay",)), Measure("maximum", ("delay",))
MEASURES = (ROWS, DISTINCT_ID, DISTINCT_TAIL, DISTINCT_BOTH, UNMATCHED, NULLS, FILLED, SUM, SEATS, LEAST, MOST)
LATEST = Measure("maximum", ("at",))


@dataclass(frozen=True)
class Place:
    """An engine with the two tables where it can read them; `bad` is a target of its kind that is not there."""

    engine: Engine
    flights: StoredTable
    planes: StoredTable
    bad: StoredTable

    def answers(self, part: Part, *measures: Measure) -> dict[Measure, Any]:
        scan = Scan(self.flights, measures, part, {PLANES_NAME: self.planes})
        return dict(self.engine.measure(scan, Limits()).answers)


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    types = {"seats": pa.int64(), "delay": pa.float64(), "tailnum": pa.string(), "at": pa.timestamp("us", "UTC")}
    table = pa.Table.from_pylist(rows)
    return table.cast(pa.schema([(field.name, types.get(field.name, field.type)) for field in table.schema]))


def hudi(folder: Path) -> tuple[StoredTable, StoredTable, StoredTable]:
    days: dict[str | None, pa.Table] = {
        day: arrow([row for row in ROWS_OF_FLIGHTS if row[DAY] == day]) for day in ("2026-11-15", "2026-11-16")
    }
    flights = hudi_table(folder / "flights", days, column=DAY)
    planes = hudi_table(folder / "planes", {None: arrow(PLANES)}, key="tailnum")
    return HudiCopy(flights), HudiCopy(planes), HudiCopy((folder / "nowhere").as_uri())


def duckdb_over_hudi(folder: Path) -> Place:
    return Place(DuckDbEngine(), *hudi(folder))


def duckdb_over_files(folder: Path) -> Place:
    for name, rows in (("flights", ROWS_OF_FLIGHTS), ("planes", PLANES)):
        (folder / name).mkdir()
        pq.write_table(arrow(rows), folder / name / "1.parquet")
    targets = [Files(f"{folder.as_uri()}/{name}/*.parquet", "parquet") for name in ("flights", "planes", "nowhere")]
    return Place(DuckDbEngine(), *targets)


def sqlite(folder: Path) -> Place:
    url = f"sqlite:///{folder / 'ops.db'}"
    engine = sa.create_engine(url)
    fill(engine)
    engine.dispose()
    return Place(SqlAlchemyEngine(), *(SqlTable(url, name) for name in ("flights", "planes", "nowhere")))


def fill(engine: sa.Engine, schema: str | None = None) -> None:
    """The two tables in a database; the partition column is a real date there."""
    meta = sa.MetaData(schema=schema)
    types = {
        "id": sa.Integer(),
        "tailnum": sa.String(40),
        "delay": sa.Float(),
        "seats": sa.BigInteger(),
        DAY: sa.Date(),
        "at": sa.DateTime(),
    }
    flights = sa.Table("flights", meta, *(sa.Column(name, kind) for name, kind in types.items()))
    planes = sa.Table("planes", meta, sa.Column("tailnum", sa.String(40)), sa.Column("year", sa.Integer))
    meta.create_all(engine)
    with engine.begin() as connection:
        connection.execute(flights.insert(), [{**row, DAY: date.fromisoformat(row[DAY])} for row in ROWS_OF_FLIGHTS])
        connection.execute(planes.insert(), PLANES)

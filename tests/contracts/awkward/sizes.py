"""Tables that are empty, tiny, wide, long, cut very fine, or made of nulls."""

from __future__ import annotations

from tests.contracts.awkward.losses import BY_DAY, ROWS, without
from tests.contracts.awkward.shape import EVERYWHERE, FILES, LAKE, PARQUET, POSTGRESQL, SQLITE, Shape, grid, series

WIDE = ", ".join(f"(n + {number})::INTEGER AS column_{number}" for number in range(498))
FIVE_MB = "repeat('ü', 2500000)"
FAT = "SELECT n AS id, '2026-11-' || (14 + n) AS ds, {text} AS note FROM range(3) AS r(n)"
TEN_THOUSAND = series("1999-07-02", "2026-11-16", "1 day")

SHAPES = {
    "empty": Shape(without("true"), kinds=EVERYWHERE),
    "empty, by day": Shape(without("true"), **BY_DAY, kinds=EVERYWHERE),
    "empty against an upstream": Shape(without("true"), upstream=ROWS, **BY_DAY, kinds=EVERYWHERE),
    "empty upstream": Shape(ROWS, upstream=without("true"), **BY_DAY, kinds=EVERYWHERE),
    "empty in dc2": Shape(ROWS, other=without("true"), **BY_DAY, kinds=(PARQUET, SQLITE)),
    "one row": Shape("SELECT 1 AS id, 'x' AS v", kinds=EVERYWHERE),
    "one row, by day": Shape("SELECT 1 AS id, '2026-11-16' AS ds", **BY_DAY, kinds=LAKE),
    "one row, years ago": Shape("SELECT 1 AS id, '2001-02-28' AS ds", **BY_DAY, kinds=EVERYWHERE),
    "all nulls": Shape("SELECT NULL::INTEGER AS id, NULL::VARCHAR AS ds, NULL::DATE AS d FROM range(50)", key=(), kinds=EVERYWHERE),
    "all nulls, by day": Shape("SELECT NULL::INTEGER AS id, NULL::VARCHAR AS ds FROM range(50)", key=(), **BY_DAY, kinds=EVERYWHERE),
    "one column": Shape("SELECT n AS id FROM range(20) AS r(n)", kinds=EVERYWHERE),
    "no key": Shape(without("ds = '2026-11-12'"), key=(), **BY_DAY, kinds=EVERYWHERE),
    "500 columns": Shape(f"SELECT n AS id, '2026-11-' || (10 + n % 7) AS ds, {WIDE} FROM range(70) AS r(n)", **BY_DAY, kinds=EVERYWHERE),
    "500 columns in two places": Shape(
        f"SELECT n AS id, '2026-11-' || (10 + n % 7) AS ds, {WIDE} FROM range(70) AS r(n)",
        other=f"SELECT n AS id, '2026-11-' || (10 + n % 7) AS ds, {WIDE.replace('(n + 497)', '(n + 497 + (n = 9)::INTEGER)')} FROM range(70) AS r(n)",
        **BY_DAY, kinds=FILES,
    ),
    "10,000 partitions": Shape(grid(TEN_THOUSAND, "strftime(ts, '%Y-%m-%d') AS ds", lost="2025-03-01", rows=1), **BY_DAY, kinds=(PARQUET, SQLITE)),
    "rows of 5 MB": Shape(FAT.format(text=FIVE_MB), **BY_DAY, kinds=EVERYWHERE),
    "rows of 5 MB that differ in the last letter": Shape(
        FAT.format(text=FIVE_MB), other=FAT.format(text=f"{FIVE_MB} || (CASE WHEN n = 1 THEN 'u' ELSE '' END)"), **BY_DAY, kinds=(PARQUET, SQLITE, POSTGRESQL),
    ),
    "ended in 2001": Shape(
        grid(series("2001-01-01", "2001-07-01", "1 day"), "strftime(ts, '%Y-%m-%d') AS ds", lost="2001-03-01", doubled="2001-05-05"), **BY_DAY, kinds=LAKE,
    ),
    "one row of 1950 before": Shape(
        f"SELECT id, ds FROM ({ROWS}) UNION ALL SELECT 1, '1950-01-01'", **BY_DAY, kinds=(PARQUET, SQLITE),
    ),
}  # fmt: skip

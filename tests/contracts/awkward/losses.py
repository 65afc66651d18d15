"""Rows that are lost, too many, doubled, late, early, or nowhere."""

from __future__ import annotations

from tests.contracts.awkward.shape import EVERYWHERE, FILES, LAKE, Shape

DAYS = "FROM generate_series(DATE '2026-11-10', DATE '2026-11-16', INTERVAL 1 DAY) AS d(day), range(100) AS r(n)"
ROWS = f"SELECT (n + 1000 * day(day))::BIGINT AS id, strftime(day, '%Y-%m-%d') AS ds, n % 7 AS airport {DAYS}"
"""A week of 100 rows a day up to yesterday, by names of days."""
BY_DAY = {"column": "ds", "grain": "day", "local": "TRY_CAST(ds AS TIMESTAMP)"}


def without(condition: str, rows: str = ROWS) -> str:
    return f"SELECT * FROM ({rows}) WHERE NOT ({condition})"


def with_rows(*more: str, rows: str = ROWS) -> str:
    return " UNION ALL ".join([f"SELECT * FROM ({rows})", *more])


CHANGED = ROWS.replace("n % 7", "CASE WHEN n = 44 AND day(day) = 13 THEN 9 ELSE n % 7 END")
LOST_DAY = "ds = '2026-11-13'"

SHAPES = {
    "all well": Shape(ROWS, **BY_DAY, kinds=LAKE),
    "a lost day": Shape(without(LOST_DAY), **BY_DAY, kinds=LAKE),
    "two lost days apart": Shape(without("ds IN ('2026-11-12', '2026-11-15')"), **BY_DAY, kinds=EVERYWHERE),
    "a lost day that upstream has": Shape(without(LOST_DAY), upstream=ROWS, **BY_DAY, kinds=LAKE),
    "lost rows": Shape(without("ds = '2026-11-13' AND id % 100 < 3"), upstream=ROWS, **BY_DAY, kinds=EVERYWHERE),
    "surplus rows": Shape(
        with_rows("SELECT id + 500, ds, airport FROM (" + ROWS + ") WHERE ds = '2026-11-13' AND id % 100 < 3"),
        upstream=ROWS, **BY_DAY, kinds=EVERYWHERE,
    ),
    "doubles within a day": Shape(
        with_rows(f"SELECT * FROM ({ROWS}) WHERE ds = '2026-11-13' AND id % 100 < 3"), **BY_DAY, kinds=LAKE
    ),
    "stale front": Shape(without("ds > '2026-11-14'"), **BY_DAY, kinds=LAKE),
    "stale front against upstream": Shape(without("ds > '2026-11-14'"), upstream=ROWS, **BY_DAY, kinds=EVERYWHERE),
    "old hole behind the front": Shape(without("ds = '2026-11-11'"), upstream=ROWS, **BY_DAY, kinds=EVERYWHERE),
    "a row of 2031": Shape(with_rows("SELECT 1, '2031-01-01', 0"), **BY_DAY, kinds=LAKE),
    "a row of 2031 and a stale front": Shape(
        with_rows("SELECT 1, '2031-01-01', 0", rows=without("ds > '2026-11-14'")), **BY_DAY, kinds=EVERYWHERE
    ),
    "unreadable values": Shape(
        with_rows("SELECT id, ds, 0 FROM (VALUES (1, 'garbage'), (2, 'garbage'), (3, NULL), (4, '2026-11-31'), (5, ' 2026-11-13')) AS v(id, ds)"),
        column="ds", grain="day", local="CASE WHEN ds[1] <> ' ' THEN TRY_CAST(ds AS TIMESTAMP) END", kinds=EVERYWHERE,
    ),
    "values with spaces behind": Shape(
        with_rows("SELECT 1, '2026-11-13 ', 0 UNION ALL SELECT 2, '', 0"), column="ds", grain="day",
        local="CASE WHEN length(ds) = 10 THEN TRY_CAST(ds AS TIMESTAMP) END", kinds=EVERYWHERE,
    ),
    "lost in dc2": Shape(ROWS, other=without(LOST_DAY), **BY_DAY, kinds=EVERYWHERE),
    "lost in both": Shape(without(LOST_DAY), other=without(LOST_DAY), **BY_DAY, kinds=FILES),
    "changed in dc2": Shape(ROWS, other=CHANGED, **BY_DAY, kinds=LAKE),
    "each lacks what the other has": Shape(
        without("ds = '2026-11-13' AND id % 100 < 5"), other=without("ds = '2026-11-13' AND id % 100 > 94"), **BY_DAY, kinds=EVERYWHERE
    ),
    "one lost and one doubled": Shape(
        with_rows(f"SELECT * FROM ({ROWS}) WHERE ds = '2026-11-13' AND id % 100 = 8", rows=without("ds = '2026-11-13' AND id % 100 = 7")),
        other=ROWS, **BY_DAY, kinds=LAKE,
    ),
    "a group that vanished": Shape(without("ds = '2026-11-13' AND airport = 3"), upstream=ROWS, by="airport", **BY_DAY, kinds=LAKE),
    "a group that nobody has upstream": Shape(ROWS, upstream=without("ds = '2026-11-13' AND airport = 3"), by="airport", **BY_DAY, kinds=EVERYWHERE),
    "half of a group": Shape(without("ds = '2026-11-13' AND airport = 3 AND id % 2 = 0"), upstream=ROWS, by="airport", **BY_DAY, kinds=FILES),
}  # fmt: skip

"""Tables that say their partitions as people do: texts, numbers, dates, times, several columns, folders; from hours to years."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.contracts.awkward.shape import EVERYWHERE, FILES, KNOWING_ZONES, LAKE, PARQUET, SQLITE, Shape, grid, series

LOCAL_AND_LITE = (PARQUET, SQLITE)
DAYS = series("2026-11-08", "2026-11-16", "1 day")
HOURS = series("2026-11-16 20:00", "2026-11-17 16:00", "1 hour")
WEEKS = series("2026-08-31", "2026-11-09", "7 days")
MONTHS = series("2025-12-01", "2026-10-01", "1 month")
QUARTERS = series("2024-01-01", "2026-07-01", "3 months")
YEARS = series("2015-01-01", "2025-01-01", "1 year")
MIDDLES = {
    "day": (DAYS, "2026-11-11", "2026-11-13"),
    "hour": (HOURS, "2026-11-17 02:00", "2026-11-17 05:00"),
    "week": (WEEKS, "2026-10-05", "2026-10-26"),
    "month": (MONTHS, "2026-03-01", "2026-08-01"),
    "quarter": (QUARTERS, "2025-01-01", "2025-10-01"),
    "year": (YEARS, "2019-01-01", "2022-01-01"),
}
"""Of each grain a run of partitions, the one that is lost and the one with a doubled key."""


def cut(
    grain: str,
    column: str,
    values: str,
    form: str = "",
    local: str = "",
    kinds: tuple[str, ...] = EVERYWHERE,
    **more: Any,
) -> Shape:
    """`values` are SQL over `ts`, the start of a partition, and `n`, the number of a row; `local` reads them back."""
    starts, lost, doubled = MIDDLES[grain]
    rows = grid(starts, values, lost=lost, doubled=doubled)
    return Shape(rows, column=column, form=form, grain=grain, local=local, kinds=kinds, **more)


INSIDE = "ts + to_hours((n * 2)::INTEGER)"
"""Within a day, at each second hour."""

SHAPES = {
    "pattern": cut("day", "ds", "strftime(ts, '%d.%m.%Y') AS ds", "%d.%m.%Y", "strptime(ds, '%d.%m.%Y')"),
    "pattern of slashes": cut("day", "ds", "strftime(ts, '%Y/%m/%d') AS ds", "%Y/%m/%d", "strptime(ds, '%Y/%m/%d')", LOCAL_AND_LITE),
    "pattern of the year's day": cut("day", "ds", "strftime(ts, '%Y%j') AS ds", "%Y%j", "strptime(ds, '%Y%j')", LOCAL_AND_LITE),
    "pattern of two digits": cut("day", "ds", "strftime(ts, '%y%m%d') AS ds", "%y%m%d", "strptime(ds, '%y%m%d')", FILES),
    "pattern of words": cut("day", "ds", "strftime(ts, '%d-%b-%Y') AS ds", "%d-%b-%Y", "strptime(ds, '%d-%b-%Y')"),
    "integer": cut("day", "ds", "strftime(ts, '%Y%m%d')::INTEGER AS ds", "", "strptime(ds::VARCHAR, '%Y%m%d')"),
    "integer in a decimal": cut("day", "ds", "strftime(ts, '%Y%m%d')::DECIMAL(12, 0) AS ds", "%Y%m%d", "strptime(ds::BIGINT::VARCHAR, '%Y%m%d')"),
    "integer in a decimal with places": cut("day", "ds", "strftime(ts, '%Y%m%d')::DECIMAL(12, 2) AS ds", "%Y%m%d", "strptime(ds::BIGINT::VARCHAR, '%Y%m%d')"),
    "date": cut("day", "ds", "ts::DATE AS ds", "", "ds::TIMESTAMP"),
    "timestamp": cut("day", "ts", f"{INSIDE} AS ts", "", "ts"),
    "timestamp with a zone": cut("day", "ts", f"timezone('America/New_York', {INSIDE}) AS ts", "", "timezone('America/New_York', ts)", KNOWING_ZONES, zone="America/New_York"),
    "timestamp in UTC": cut("day", "ts", f"timezone('UTC', timezone('Asia/Kolkata', {INSIDE})) AS ts", "time in UTC", "timezone('Asia/Kolkata', timezone('UTC', ts))", zone="Asia/Kolkata"),
    "epoch days": cut("day", "ds", "epoch(ts)::BIGINT // 86400 AS ds", "epoch days", "TIMESTAMP '1970-01-01' + to_days(ds::INTEGER)"),
    "epoch seconds": cut("day", "ds", "epoch(ts)::BIGINT AS ds", "epoch seconds", "to_timestamp(ds)::TIMESTAMP"),
    "epoch milliseconds": cut("hour", "ds", "epoch_ms(ts) AS ds", "epoch milliseconds", "epoch_ms(ds)", offset="0"),
    "day and hour": cut("hour", "ds, hr", "strftime(ts, '%Y%m%d') AS ds, hour(ts)::INTEGER AS hr", "%Y%m%d, %H", "strptime(ds, '%Y%m%d') + to_hours(hr::INTEGER)"),
    "year, month and day": cut("day", "year, month, day", "year(ts)::INTEGER AS year, month(ts)::INTEGER AS month, day(ts)::INTEGER AS day", "%Y, %m, %d", "make_timestamp(year, month, day, 0, 0, 0)"),
    "day beside a region": cut("day", "ds", "strftime(ts, '%Y%m%d') AS ds, 'r' || (n % 3) AS region", "%Y%m%d", "strptime(ds, '%Y%m%d')"),
    "folders of a day": cut("day", "dt", "strftime(ts, '%Y-%m-%d') AS dt", "", "dt::TIMESTAMP", FILES, folders=("dt",)),
    "folders of three": cut("day", "year, month, day", "year(ts) AS year, strftime(ts, '%m') AS month, strftime(ts, '%d') AS day", "%Y, %m, %d", "strptime(year || month || day, '%Y%m%d')", FILES, folders=("year", "month", "day")),
    "folders of a day and an hour": cut("hour", "dt, hr", "strftime(ts, '%Y-%m-%d') AS dt, strftime(ts, '%H') AS hr", "%Y-%m-%d, %H", "dt::TIMESTAMP + to_hours(hr::INTEGER)", FILES, folders=("dt", "hr")),
    "folders of a region and a day": cut("day", "dt", "'r' || (n % 3) AS region, strftime(ts, '%Y-%m-%d') AS dt", "", "dt::TIMESTAMP", FILES, folders=("region", "dt")),
    "hours by name": cut("hour", "h", "strftime(ts, '%Y-%m-%dT%H') AS h", "", "(h || ':00:00')::TIMESTAMP", LAKE),
    "hours of times": cut("hour", "ts", "ts + to_minutes((n * 5)::INTEGER) AS ts", "", "ts"),
    "weeks by name": cut("week", "w", "strftime(ts, '%G-W%V') AS w", "", "strptime(w || '-1', '%G-W%V-%u')", LAKE),
    "weeks as numbers": cut("week", "w", "strftime(ts, '%G%V')::INTEGER AS w", "%G%V", "strptime(w::VARCHAR || '1', '%G%V%u')", LOCAL_AND_LITE),
    "weeks of times": cut("week", "ts", "ts + to_days((n % 7)::INTEGER) AS ts", "", "ts"),
    "weeks by their Mondays": cut("week", "w", "ts::DATE AS w", "", "w::TIMESTAMP"),
    "months as numbers": cut("month", "m", "strftime(ts, '%Y%m')::INTEGER AS m", "", "strptime(m::VARCHAR, '%Y%m')"),
    "months in words": cut("month", "m", "strftime(ts, '%b %Y') AS m", "%b %Y", "strptime(m, '%b %Y')", LOCAL_AND_LITE),
    "months by name": cut("month", "m", "strftime(ts, '%Y-%m') AS m", "", "strptime(m, '%Y-%m')", LAKE),
    "months of times": cut("month", "ts", "ts + to_days((n * 3)::INTEGER) AS ts", "", "ts"),
    "quarters by name": cut("quarter", "q", "year(ts) || '-Q' || quarter(ts) AS q", "", "make_timestamp(q[:4]::INTEGER, q[7:]::INTEGER * 3 - 2, 1, 0, 0, 0)", LAKE),
    "quarters by pattern": cut("quarter", "q", "year(ts) || 'Q' || quarter(ts) AS q", "%YQ%q", "make_timestamp(q[:4]::INTEGER, q[6:]::INTEGER * 3 - 2, 1, 0, 0, 0)", LOCAL_AND_LITE),
    "quarters of times": cut("quarter", "ts", "ts + to_days((n * 9)::INTEGER) AS ts", "", "ts"),
    "years as numbers": cut("year", "y", "year(ts)::INTEGER AS y", "", "make_timestamp(y, 1, 1, 0, 0, 0)"),
    "years of times": cut("year", "ts", "ts + to_days((n * 36)::INTEGER) AS ts", "", "ts"),
    "days of an upstream by the hour": Shape(
        grid(DAYS, "strftime(ts, '%Y-%m-%d') AS ds", rows=9), column="ds", grain="day", local="ds::TIMESTAMP", kinds=LOCAL_AND_LITE,
        upstream=grid(DAYS, f"{INSIDE} AS ts"), upstream_cut=("ts", "time", "hour", "ts"), key=(),
    ),
    "days of an upstream by the hour, whole": Shape(
        grid(DAYS, "strftime(ts, '%Y-%m-%d') AS ds"), column="ds", grain="day", local="ds::TIMESTAMP", kinds=LOCAL_AND_LITE,
        upstream=grid(DAYS, f"{INSIDE} AS ts"), upstream_cut=("ts", "time", "hour", "ts"), key=(),
    ),
}  # fmt: skip
_TEXT = SHAPES["pattern"]
REFUSED = {
    "a partition of floats": (replace(_TEXT, rows=grid(DAYS, "random() AS ds"), form=""), "partition_form", "says no partition"),
    "a partition of booleans": (replace(_TEXT, rows=grid(DAYS, "n > 5 AS ds"), form=""), "partition_form", "Column `ds` is boolean and says no partition"),
    "values of another form": (replace(_TEXT, form="%Y%m%d"), "partition_form", "None of the 8 values looked at says a day, such as '16.11.2026'"),
    "hours of a date": (replace(_TEXT, rows=grid(DAYS, "ts::DATE AS ds"), form="", grain="hour"), "partition_form", "says no hours"),
    "a partition without a grain": (replace(_TEXT, grain="none"), "grain", "By its values it is day and the form %d.%m.%Y: 16.11.2026 = 16 November 2026"),
    "a zone that does not exist": (replace(_TEXT, zone="Europe/Atlantis"), "partition_tz", "There is no time zone `Europe/Atlantis`"),
    "a partition that is not there": (replace(_TEXT, column="dss"), "partition_column", "There is no column `dss`. Did you mean `ds`"),
    "a pattern without the day": (replace(_TEXT, form="%m.%Y"), "partition_form", "does not say which day"),
    "a list for a partition": (replace(_TEXT, rows=grid(DAYS, "[ts] AS ds"), form=""), "partition_form", "says no partition"),
}  # fmt: skip
SHAPES |= {
    name: replace(shape, refused=(field, sentence), kinds=FILES if "list" in name else LOCAL_AND_LITE)
    for name, (shape, field, sentence) in REFUSED.items()
}

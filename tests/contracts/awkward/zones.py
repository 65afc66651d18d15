"""Clocks that are put forward and back, over midnight, by half an hour, or that skip a whole date."""

from __future__ import annotations

from typing import Any

from tests.contracts.awkward.shape import EVERYWHERE, KNOWING_ZONES, PARQUET, SQLITE, Shape, grid, series

HALF_HOURS, QUARTERS = "30 minutes", "15 minutes"


def instants(
    zone: str,
    first: str,
    last: str,
    grain: str = "hour",
    *,
    lost: str = "false",
    step: str = HALF_HOURS,
    kinds: tuple[str, ...] = KNOWING_ZONES,
    **more: Any,
) -> Shape:
    """A row at each step from `first` to `last` in UTC, but where `lost`, SQL over the local time `here` and the instant `ts`."""
    rows = f"""SELECT (1 + row_number() OVER (ORDER BY ts))::BIGINT AS id, timezone('UTC', ts) AS ts FROM
        (SELECT ts, timezone('{zone}', timezone('UTC', ts)) AS here FROM ({series(first, last, step)})) WHERE NOT ({lost})"""
    offset = f"(epoch(timezone('{zone}', ts)) - epoch(timezone('UTC', ts)))::BIGINT"
    local = f"timezone('{zone}', ts)"
    return Shape(rows, column="ts", grain=grain, zone=zone, local=local, offset=offset, kinds=kinds, **more)  # fmt: skip


def in_utc(zone: str, first: str, last: str, grain: str = "hour", lost: str = "false", step: str = HALF_HOURS) -> Shape:
    """The same in a column that knows no zones, and shows UTC."""
    shape = instants(zone, first, last, grain, lost=lost, step=step)
    rows = f"SELECT id, timezone('UTC', ts) AS ts FROM ({shape.rows})"
    local = f"timezone('{zone}', timezone('UTC', ts))"
    offset = f"(epoch({local}) - epoch(ts))::BIGINT"
    return Shape(
        rows, column="ts", form="time in UTC", grain=grain, zone=zone, local=local, offset=offset, kinds=EVERYWHERE
    )


LOCAL_HOURS = series("2026-03-28 20:00", "2026-03-29 09:00", "30 minutes")

SHAPES = {
    "Berlin, days over both changes": instants("Europe/Berlin", "2026-03-26 23:00", "2026-11-16 22:30", "day", lost="here::DATE = '2026-10-25' OR here::DATE = '2026-07-01'", step="2 hours"),
    "Berlin, the hour that comes twice": instants("Europe/Berlin", "2026-10-24 20:00", "2026-10-25 06:30"),
    "Berlin, the second of two hours is lost": instants("Europe/Berlin", "2026-10-24 20:00", "2026-10-25 06:30", lost="ts >= '2026-10-25 01:00' AND ts < '2026-10-25 02:00'"),
    "Berlin, the first of two hours is lost": in_utc("Europe/Berlin", "2026-10-24 20:00", "2026-10-25 06:30", lost="ts >= '2026-10-25 00:00' AND ts < '2026-10-25 01:00'"),
    "Berlin, the hour that is left out": instants("Europe/Berlin", "2026-03-28 20:00", "2026-03-29 06:30"),
    "Berlin, local times in the hour that is left out": Shape(
        grid(LOCAL_HOURS, "ts", rows=1), column="ts", grain="hour", zone="Europe/Berlin", kinds=(PARQUET, SQLITE),
        local="CASE WHEN ts NOT BETWEEN '2026-03-29 02:00' AND '2026-03-29 02:59' THEN ts END",
        offset="CASE WHEN ts < '2026-03-29 02:00' THEN 3600 ELSE 7200 END",
    ),
    "Sao Paulo, a day without midnight": instants("America/Sao_Paulo", "2018-10-30 12:00", "2018-11-09 12:00", "day", lost="here::DATE = '2018-11-04'"),
    "Sao Paulo, a day without midnight, in UTC": in_utc("America/Sao_Paulo", "2018-10-30 12:00", "2018-11-09 12:00", "day", "here::DATE = '2018-11-04'"),
    "Sao Paulo, an evening twice": instants("America/Sao_Paulo", "2018-02-15 12:00", "2018-02-20 12:00", lost="ts >= '2018-02-18 02:00' AND ts < '2018-02-18 03:00'"),
    "Havana, midnight twice": instants("America/Havana", "2026-10-29 12:00", "2026-11-05 12:00", "day", lost="here::DATE = '2026-11-01'"),
    "Apia, a date that was skipped": instants("Pacific/Apia", "2011-12-26 12:00", "2012-01-03 12:00", "day", lost="here::DATE = '2011-12-29'"),
    "Apia, a date that was skipped, in UTC": in_utc("Pacific/Apia", "2011-12-26 12:00", "2012-01-03 12:00", "day", lost="here::DATE = '2011-12-29'"),
    "Kolkata, hours": instants("Asia/Kolkata", "2026-11-16 18:30", "2026-11-17 20:00", lost="here >= '2026-11-17 09:00' AND here < '2026-11-17 10:00'"),
    "Kolkata, hours in UTC": in_utc("Asia/Kolkata", "2026-11-16 18:30", "2026-11-17 20:00", lost="here >= '2026-11-17 09:00' AND here < '2026-11-17 10:00'"),
    "Kathmandu, hours": in_utc("Asia/Kathmandu", "2026-11-16 18:15", "2026-11-17 20:00", lost="here >= '2026-11-17 09:00' AND here < '2026-11-17 10:00'", step=QUARTERS),
    "Lord Howe, half an hour back": instants("Australia/Lord_Howe", "2026-04-04 08:00", "2026-04-04 20:00", step=QUARTERS),
    "Lord Howe, half an hour that is lost": in_utc("Australia/Lord_Howe", "2026-04-04 08:00", "2026-04-04 20:00", lost="ts >= '2026-04-04 15:00' AND ts < '2026-04-04 15:30'", step=QUARTERS),
    "Lord Howe, half an hour forward": instants("Australia/Lord_Howe", "2026-10-03 08:00", "2026-10-03 20:00", step=QUARTERS),
    "Caracas, half an hour for good": instants("America/Caracas", "2016-05-01 01:00", "2016-05-01 14:00", step=QUARTERS, lost="ts >= '2016-05-01 09:00' AND ts < '2016-05-01 10:00'"),
    "Berlin, weeks": instants("Europe/Berlin", "2026-09-06 22:00", "2026-11-15 22:30", "week", lost="here >= '2026-10-19' AND here < '2026-10-26'", step="3 hours"),
    "Auckland, months": in_utc("Pacific/Auckland", "2025-12-31 12:00", "2026-10-31 10:30", "month", lost="here >= '2026-04-01' AND here < '2026-05-01'", step="6 hours"),
}  # fmt: skip

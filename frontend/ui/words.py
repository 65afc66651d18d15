"""How numbers, times and ranges are written. One place, so that a page never invents its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo

from lakehub.kernel.interval import BEGINNING, FOREVER, Interval
from lakehub.kernel.partitions import Grain

_STEPS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def duration(span: timedelta) -> str:
    """`3 h 32 min`: the two greatest units that count; below a minute in seconds."""
    seconds = abs(span.total_seconds())
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    left = int(seconds)
    for at, (unit, size) in enumerate(_STEPS):
        if left >= size:
            whole, rest = divmod(left, size)
            smaller = _STEPS[at + 1] if at + 1 < len(_STEPS) else None
            # Seconds beside minutes are noise, except while there are only a few of those.
            if smaller is None or rest < smaller[1] or (unit == "min" and whole >= 5):
                return f"{whole} {unit}"
            return f"{whole} {unit} {rest // smaller[1]} {smaller[0]}"
    return "0 s"


def relative(instant: datetime, *, now: datetime) -> str:
    """`1 h 52 min ago` or `in 27 min`."""
    if abs((instant - now).total_seconds()) < 1:
        return "now"
    words = duration(instant - now)
    return f"{words} ago" if instant < now else f"in {words}"


def clock(instant: datetime, *, zone: tzinfo, now: datetime) -> str:
    """Today: the hour only; this year: day and hour; else the year too."""
    local, today = instant.astimezone(zone), now.astimezone(zone)
    if local.date() == today.date():
        return f"{local:%H:%M}"
    if local.year == today.year:
        return f"{day(local.date())} {local:%H:%M}"
    return f"{day(local.date())} {local:%Y %H:%M}"


def day(which: date) -> str:
    """`16 Nov`."""
    return f"{which.day} {which:%b}"


def weekday(which: date) -> str:
    """`Mon 16 Nov`."""
    return f"{which:%a} {day(which)}"


def number(value: float) -> str:
    """Thousands with commas; a fraction keeps two decimals unless it is smaller."""
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 0.01 else f"{value:.3g}"


def count(value: int, singular: str, plural: str = "") -> str:
    """`1 row`, `2 rows`."""
    return f"{value:,} {singular if value == 1 else plural or singular + 's'}"


def percent(share: float, decimals: int = 2) -> str:
    """98.98%. A share that is not whole never reads as 100% (nor as 0%): it gets more decimals instead."""
    while decimals < 6 and share not in (0.0, 1.0) and float(f"{share * 100:.{decimals}f}") in (0.0, 100.0):
        decimals += 1
    return f"{share * 100:.{decimals}f}%"


def size(amount: float) -> str:
    """`1.2 MB`, in powers of a thousand."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= length:
            return f"{amount / length:,.1f} {unit}"
    return f"{amount:,.0f} B"


def audit_value(value: object) -> str:
    """What a change was set to: a list without brackets, true as yes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {audit_value(part)}" for name, part in value.items()) or "nothing"
    if isinstance(value, list):
        return ", ".join(audit_value(part) for part in value) or "nothing"
    return "nothing" if value in (None, "") else str(value)


def comparison(threshold: str) -> str:
    """`≤ 0%` for `<= 0%`."""
    return threshold.replace("<=", "≤").replace(">=", "≥")


def value_with_unit(value: float | None, unit: str) -> str:
    """A number observed or needed, with its unit; a dash where there is none."""
    if value is None:
        return "–"
    if unit in ("share", "%"):
        return percent(value)
    if unit == "s":
        return duration(timedelta(seconds=value))
    return f"{number(value)} {unit}".strip()


def data_range(span: Interval, grain: Grain, zone: tzinfo) -> str:
    """`[16 Nov, 17 Nov)`; whole days without the hour."""
    if span.is_everything:
        return "all data"
    start = "…" if span.start <= BEGINNING else _edge(span.start, grain, zone)
    end = "…" if span.end >= FOREVER else _edge(span.end, grain, zone)
    return f"[{start}, {end})"


def partition(span: Interval, grain: Grain, zone: tzinfo) -> str:
    """One partition by the name that people use: `Mon 16 Nov`."""
    if span.is_everything or grain is Grain.NONE:
        return "all data"
    local = span.start.astimezone(zone)
    if grain is Grain.HOUR:
        return f"{weekday(local.date())} {local:%H:%M}"
    wide = _WIDE_PARTITIONS.get(grain)
    return weekday(local.date()) if wide is None else wide(local)


_WIDE_PARTITIONS: dict[Grain, Callable[[datetime], str]] = {
    Grain.WEEK: lambda local: f"week {local:%V of %G}",
    Grain.MONTH: "{:%B %Y}".format,
    Grain.QUARTER: lambda local: f"Q{(local.month + 2) // 3} {local.year}",
    Grain.YEAR: "{:%Y}".format,
}


def _edge(instant: datetime, grain: Grain, zone: tzinfo) -> str:
    local = instant.astimezone(zone)
    midnight = (local.hour, local.minute) == (0, 0)
    return day(local.date()) if midnight and grain is not Grain.HOUR else f"{day(local.date())} {local:%H:%M}"


def utc(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"

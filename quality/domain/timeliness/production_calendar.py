"""When data is produced: a cron expression on the wall clock of a time zone, but for holidays.

A partition is expected where the calendar fires within it, on a day that is no holiday: `0 6 * * mon-fri` expects the days
from Monday to Friday, `0 9-17 * * *` the hours from nine to five. Wall clock means what the clock on the wall shows: an hour
that occurs twice is expected twice, and one that is left out is not missed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean

CALENDAR_OVERRIDES = ("calendar", "holidays")
"""What a dataset may override besides its SLAs: when it is produced."""
_EVERY_QUARTER_HOUR = "*/15 * * * *"
"""The clocks of all zones show the same quarters of an hour."""
_MAX_CLOCK_CHANGE = timedelta(hours=3)
_MAX_LOOKAHEAD = timedelta(days=366 * 5)
"""A calendar that names no time in so long names none."""
_DAY, _MINUTE = timedelta(days=1), timedelta(minutes=1)
_REFERENCE_TIME = datetime(2024, 1, 1)  # noqa: DTZ001 - on the wall


class BadCalendar(ValueError):
    """A calendar or holidays that cannot be understood, or leave nothing over; says what would do. `field` is which."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


@dataclass(frozen=True)
class ProductionCalendar:
    """`calendar` has five fields; empty: it is always time. `holidays`: countries (`US`, `US-NY`) and dates, by comma."""

    calendar: str
    holidays: str
    zone: ZoneInfo

    def expects(self, partition: Interval) -> bool:
        """Is the partition produced at all?"""
        if partition.is_everything or not (self.calendar or self.holidays):
            return True
        return _expects(self, partition)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first time after `instant` at which data is due to be produced; None where no calendar says."""
        if not self.calendar:
            return None
        local = instant.astimezone(self.zone).replace(tzinfo=None)
        times = self._times(local - _MAX_CLOCK_CHANGE, local + _MAX_LOOKAHEAD)
        return next((at for at in times if at > instant), None)

    def times_within(self, span: Interval) -> Iterator[datetime]:
        """The times in `span` at which data is due to be produced, in UTC; around a change of the clocks in its order."""
        start, end = (at.astimezone(self.zone).replace(tzinfo=None) for at in (span.start, span.end))
        wide = min(start, end) - _MAX_CLOCK_CHANGE, max(start, end) + _MAX_CLOCK_CHANGE
        return (at for at in self._times(*wide) if span.contains(at))

    def _times(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Fires between two times of the wall clock."""
        from cronsim import CronSim

        off, begin = holidays_of(self.holidays), start
        while True:
            # Naive times: what the library makes of changes of the clocks is meant for jobs, which never run twice.
            for wall in CronSim(self.calendar or _EVERY_QUARTER_HOUR, begin - _MINUTE):
                if wall > end:
                    return
                if any(wall.date() in days for days in off):
                    # On to the next day: minute by minute, years of holidays would take minutes.
                    begin = datetime.combine(wall.date() + _DAY, time())
                    break
                yield from self._instants(wall)
            else:
                return

    def _instants(self, wall: datetime) -> Iterator[datetime]:
        """When the clock on the wall shows `wall`: once, twice, or never."""
        for fold in (0, 1):
            at = wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC)
            shown = at.astimezone(self.zone)
            if shown.replace(tzinfo=None, fold=0) == wall and shown.fold == fold:
                yield at


def parse_calendar(calendar: str, holidays: str, zone: ZoneInfo) -> ProductionCalendar:
    """The calendar that these texts say. Raises BadCalendar."""
    from cronsim import CronSim, CronSimError

    calendar, holidays = " ".join(calendar.split()), holidays.strip()
    if calendar and len(calendar.split()) != 5:
        raise BadCalendar(
            "calendar",
            f"calendar={calendar!r} has {len(calendar.split())} fields; five are wanted: "
            "minute, hour, day of the month, month, day of the week, as in '0 6 * * mon-fri'.",
        )
    try:
        CronSim(calendar or _EVERY_QUARTER_HOUR, _REFERENCE_TIME)
    except CronSimError as problem:
        raise BadCalendar(
            "calendar", f"calendar={calendar!r} cannot be read ({problem}): write it as in '0 6 * * mon-fri'."
        ) from None
    production_calendar = ProductionCalendar(calendar, holidays, zone)
    if next(production_calendar._times(_REFERENCE_TIME, _REFERENCE_TIME + _MAX_LOOKAHEAD), None) is None:
        raise BadCalendar(
            "calendar",
            f"calendar={calendar!r} without the holidays of {holidays} never comes: no data would ever be late.",
        )
    return production_calendar


def calendar_of_overrides(overrides: Mapping[str, object], zone: ZoneInfo) -> ProductionCalendar | None:
    """What a dataset says of when it is produced; None: always. Raises BadCalendar."""
    calendar, holidays = (holidays_text(overrides.get(name, "")) for name in CALENDAR_OVERRIDES)
    return parse_calendar(calendar, holidays, zone) if calendar or holidays else None


def holidays_text(value: object) -> str:
    """Holidays as they are given, one text or a list of texts, as one text."""
    return ", ".join(str(holiday) for holiday in value) if isinstance(value, list | tuple) else str(value)


@lru_cache(maxsize=256)
def holidays_of(text: str) -> tuple[Collection[date], ...]:
    """The days that a text names. Raises BadCalendar with the nearest country or region."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    dates = frozenset(_dates(words))
    countries = [_country_holidays(word) for word in words if not word[0].isdigit()]
    return (dates, *countries)


def _dates(words: Iterable[str]) -> Iterator[date]:
    for word in words:
        if word[0].isdigit():
            try:
                yield date.fromisoformat(word)
            except ValueError:
                raise BadCalendar("holidays", f"holidays: {word!r} is no day; write it as in 2026-12-24.") from None


def _country_holidays(word: str) -> Collection[date]:
    """The public holidays of `US` or `US-NY`; each year is worked out when it is first asked for."""
    import holidays as world  # a quarter of a second, that most processes never need

    country, _, region = word.upper().partition("-")
    known_countries = world.list_supported_countries()
    if country not in known_countries:
        raise BadCalendar(
            "holidays",
            f"holidays: no country `{word}` is known; write its ISO code, as in US, or US-NY.{did_you_mean(country, known_countries)}",
        )
    if region and region not in known_countries[country]:
        raise BadCalendar(
            "holidays", f"holidays: {country} has no region `{region}`.{did_you_mean(region, known_countries[country])}"
        )
    return world.country_holidays(country, subdiv=region or None)


@lru_cache(maxsize=20_000)
def _expects(produced: ProductionCalendar, partition: Interval) -> bool:
    return any(True for _ in produced.times_within(partition))

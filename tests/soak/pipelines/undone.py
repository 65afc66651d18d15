"""Changes of the inputs that are undone before a run follows them. The follower's two ends, what it has read last and what is there now, do not show them; the rows that
they reach may have been made by a backfill, or by a run that read later than it noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.soak.pipelines.flights import Changes, place_of, with_value
from tests.spark.pipeline_lake import Row

_CARRIER, _DAY, _DEST, _ORIGIN, _TAIL, _TIME = (
    place_of("flights", column) for column in ("carrier", "flight_date", "dest", "origin", "tailnum", "time_hour")
)
_HOUR = place_of("weather", "time_hour")
_NEW_FLIGHTS, _LACKING = 4, 3
"""So many rows."""


@dataclass(frozen=True)
class UndoneChange:
    """`days`: the partitions that it reaches."""

    name: str
    days: tuple[str, ...]
    make: Callable[[], None]
    undo: Callable[[], None]


@dataclass(frozen=True)
class UndoneChanges:
    """By chance. Each of them is seen in the rows of the pipeline between `make` and `undo`."""

    changes: Changes

    def any_of(self, pipeline: str) -> UndoneChange:
        kinds = [self._flights]
        if pipeline == "flights-wide":
            kinds += [self._planes, self._planes_replaced, self._airports, self._weather]
        in_order = self.changes.random.sample(kinds, len(kinds))
        return next(change for kind in in_order if (change := kind()).days)  # no airport may be lacking

    def flights_beside_change(self, pipeline: str) -> UndoneChange:
        """New flights, once their planes or airlines have changed: a run that follows only that change makes their rows too."""
        name, column = ("planes", _TAIL) if pipeline == "flights-wide" else ("airlines", _CARRIER)
        named = self.changes.rows[name]
        among = [row for row in self._rows("flights") if (row[column],) in named]
        flights = self.changes.random.sample(among, _NEW_FLIGHTS)
        self.changes.rename(name, [named[key] for key in dict.fromkeys(row[column : column + 1] for row in flights)])
        return self._added("new flights", "flights", self.changes.new_flights(flights))

    def _flights(self) -> UndoneChange:
        flights = self.changes.random.sample(self._rows("flights"), _NEW_FLIGHTS)
        return self._added("new flights", "flights", self.changes.new_flights(flights))

    def _planes(self) -> UndoneChange:
        return self._added("planes that were lacking", "planes", self._lacking_planes())

    def _planes_replaced(self) -> UndoneChange:
        """The others are all written anew with what undoes it."""
        rows, others = self._lacking_planes(), self._rows("planes")
        return UndoneChange(
            "planes that were lacking, and again when all others come anew",
            self._days_of("planes", rows),
            lambda: self.changes.put("planes", rows),
            lambda: self.changes.replace_all("planes", others),
        )

    def _lacking_planes(self) -> list[Row]:
        return [(tail, "UNKNOWN", "?", self.changes.random.randrange(400)) for tail in self._lacking("planes", _TAIL)]

    def _airports(self) -> UndoneChange:
        rows: list[Row] = [(faa, f"Airport {faa}", "America/Puerto_Rico") for faa in self._lacking("airports", _DEST)]
        return self._added("airports that were lacking", "airports", rows)

    def _weather(self) -> UndoneChange:
        """An airport's latest report, which stays where an hour has several, moves to another hour, and from there to a third one, or back."""
        hours_flown = {(row[_ORIGIN], row[_TIME]) for row in self._rows("flights")}
        origin = self.changes.random.choice(sorted({origin for origin, _ in hours_flown}))
        reports = [row for row in self._rows("weather") if row[1] == origin]
        latest = max(reports)
        hours = sorted({row[_HOUR] for row in reports if (origin, row[_HOUR]) in hours_flown} - {latest[_HOUR]})
        hour, next_hour = self.changes.random.sample(hours, 2)
        next_hour = self.changes.random.choice((next_hour, latest[_HOUR]))
        moved = with_value(latest, _HOUR, hour)
        return UndoneChange(
            "a report of the weather for another hour, and then for a third or the first",
            self._days_of("weather", [moved]),
            lambda: self.changes.put("weather", [moved]),
            lambda: self.changes.put("weather", [with_value(latest, _HOUR, next_hour)]),
        )

    def _added(self, name: str, table: str, rows: Sequence[Row]) -> UndoneChange:
        return UndoneChange(
            f"{name}, removed again",
            self._days_of(table, rows),
            lambda: self.changes.put(table, rows),
            lambda: self.changes.remove(table, rows),
        )

    def _days_of(self, table: str, rows: Sequence[Row]) -> tuple[str, ...]:
        if table == "flights":
            return tuple(sorted({row[_DAY] for row in rows}))
        of_flight = {"planes": (_TAIL,), "airports": (_DEST,), "weather": (_ORIGIN, _TIME)}[table]
        named = {row[1:3] if table == "weather" else row[:1] for row in rows}
        reached = (row for row in self._rows("flights") if tuple(row[place] for place in of_flight) in named)
        return tuple(sorted({row[_DAY] for row in reached}))

    def _lacking(self, table: str, column: int) -> list[str]:
        named = {row[column] for row in self._rows("flights")} - {None}
        lacking = sorted(each for each in named if (each,) not in self.changes.rows[table])
        return self.changes.random.sample(lacking, min(_LACKING, len(lacking)))

    def _rows(self, table: str) -> list[Row]:
        return [*self.changes.rows[table].values()]

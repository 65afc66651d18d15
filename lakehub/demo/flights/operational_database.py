"""The operational database of the story, played from the tape up to any instant."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from lakehub.demo.flights import tape
from lakehub.demo.flights.replay_window import ReplayWindow

_STATIC_TABLES = ("airlines", "airports", "planes")

_PLAY_FLIGHTS = """
INSERT INTO flights
SELECT carrier, flight, origin, flight_date, year, month, day, hour, minute,
       sched_dep_time, iif(departed_at <= :upto, dep_time, NULL), iif(departed_at <= :upto, dep_delay, NULL),
       sched_arr_time, iif(landed_at <= :upto, arr_time, NULL), iif(landed_at <= :upto, arr_delay, NULL),
       tailnum, dest, iif(landed_at <= :upto, air_time, NULL), distance, time_hour,
       CASE WHEN landed_at <= :upto THEN 'landed' WHEN diverted_at <= :upto THEN 'diverted'
            WHEN cancelled_at <= :upto THEN 'cancelled' WHEN departed_at <= :upto THEN 'departed' ELSE 'scheduled' END,
       CASE WHEN landed_at <= :upto THEN landed_at WHEN diverted_at <= :upto THEN diverted_at
            WHEN cancelled_at <= :upto THEN cancelled_at WHEN departed_at <= :upto THEN departed_at ELSE scheduled_at END
FROM tape.flights
WHERE last_event_at > :since AND scheduled_at <= :upto
ON CONFLICT (carrier, flight, origin, flight_date) DO UPDATE
SET dep_time = excluded.dep_time, dep_delay = excluded.dep_delay, arr_time = excluded.arr_time,
    arr_delay = excluded.arr_delay, air_time = excluded.air_time, status = excluded.status,
    updated_at = excluded.updated_at
WHERE excluded.updated_at > flights.updated_at
"""
"""A flight's row is what its events up to `upto` make of it, whatever was played before: playing twice changes nothing."""

_PLAY_WEATHER = """
INSERT INTO weather
SELECT id, origin, year, month, day, hour, temp, dewp, humid, wind_dir, wind_speed, wind_gust, precip, pressure, visib,
       time_hour, recorded_at
FROM tape.weather
WHERE recorded_at > :since AND recorded_at <= :upto
"""


@dataclass(frozen=True)
class PlayedChanges:
    """How many rows of the operational database were added, and how many changed."""

    flights_new: int
    flights_changed: int
    weather_new: int

    def __str__(self) -> str:
        return f"{self.flights_new:,} flights put up, {self.flights_changed:,} changed, {self.weather_new:,} weather reports"


class OperationalDatabase:
    """`ops.db`, which sources read, and `tape.db`, which only the story knows."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "ops.db"
        self._tape = folder / "tape.db"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"

    def create(self, window: ReplayWindow) -> dict[str, int]:
        """Both files, with the tables that do not change filled; rows on the tape by table."""
        on_tape = tape.record_tape(self._tape, window)
        began_at = datetime.combine(window.first_day, datetime.min.time()).strftime(tape.INSTANT_FORMAT)
        with self._open() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(Path(__file__).with_name("schema.sql").read_text())
            for table in _STATIC_TABLES:
                db.execute(f"INSERT INTO {table} SELECT *, ? FROM tape.{table}", (began_at,))  # noqa: S608  our own names
            db.execute("CREATE TABLE tape.played (upto TEXT NOT NULL)")
            db.execute("INSERT INTO tape.played VALUES ('')")
        return on_tape

    def play(self, upto: datetime) -> PlayedChanges:
        """Everything that happened up to `upto`, and has not been played."""
        with self._open() as db:
            times = {"since": db.execute("SELECT upto FROM tape.played").fetchone()[0], "upto": _text(upto)}
            before = _count(db, "flights")
            touched = db.execute(_PLAY_FLIGHTS, times).rowcount
            weather_new = db.execute(_PLAY_WEATHER, times).rowcount
            db.execute("UPDATE tape.played SET upto = max(upto, :upto)", {"upto": times["upto"]})
            new = _count(db, "flights") - before
        return PlayedChanges(new, touched - new, weather_new)

    def rows(self, table: str) -> int:
        with self._open() as db:
            return _count(db, table)

    def query(self, query: str) -> list[tuple[object, ...]]:
        """What the story says about the data, it counts."""
        with self._open() as db:
            return db.execute(query).fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(self.database, timeout=30)
        try:
            db.execute("ATTACH DATABASE ? AS tape", (str(self._tape),))
            with db:
                yield db
        finally:
            db.close()


def _count(db: sqlite3.Connection, table: str) -> int:
    count: int = db.execute(f"SELECT count(*) FROM main.{table}").fetchone()[0]  # noqa: S608  our own names
    return count


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime(tape.INSTANT_FORMAT)

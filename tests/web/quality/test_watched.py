"""Tables that Lakehub does not ingest are monitored too, whatever keeps them: a new partition when it is due, and what
somebody writes later is seen and tested again.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa

from incidents.gate.answers import Question, ask
from lakehub.catalog.changes import change
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.catalog.onboarding import Application, onboard
from quality import baseline, execution, generator, watching
from quality.models import Lane, Unit, Watch
from tests import factories, lake
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.web.quality.conftest import DAYS, TODAY, rows

pytestmark = pytest.mark.django_db


@dataclass
class Kept:
    """A table of somebody else's. `add(day, many, first)` writes more rows to a day."""

    plugin: str
    url: str
    table: str
    add: Callable[[str, int, int], None]


def in_database(folder: Path) -> Kept:
    url = f"sqlite:///{folder / 'ops.db'}"
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as made:
        made.execute(sa.text("CREATE TABLE flights (id INTEGER, flight_date TEXT, tailnum TEXT)"))

    def add(day: str, many: int, first: int) -> None:
        with engine.begin() as connection:
            connection.execute(
                sa.text("INSERT INTO flights VALUES (:id, :day, 'N1')"),
                [{"id": number, "day": day} for number in range(first, first + many)],
            )

    return Kept("sql", url, "flights", add)


def in_files(folder: Path) -> Kept:
    (folder / "flights").mkdir()
    numbers = count(1)

    def add(day: str, many: int, first: int) -> None:
        with (folder / "flights" / f"{next(numbers)}.csv").open("w") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "flight_date", "tailnum"])
            writer.writerows([number, day, "N1"] for number in range(first, first + many))

    return Kept("files", folder.as_uri(), "flights/*.csv", add)


def in_lake(folder: Path) -> Kept:
    commits = count(1)

    def add(day: str, many: int, first: int) -> None:
        table = folder / "flights"
        if not table.exists():
            lake.hudi_table(table, {day: rows(day, many, first)}, column="flight_date")
        else:
            instant = f"202611170000{next(commits):02}000"
            lake.commit(table, {day: rows(day, many, first)}, column="flight_date", instant=instant)

    return Kept("hudi", folder.as_uri(), "flights", add)


@pytest.fixture(params=[in_database, in_files, in_lake])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    made: Kept = request.param(tmp_path)
    for name in DAYS:
        made.add(name, 10, 0)
    factories.data_center()
    factories.connection("theirs", url=made.url, plugin=made.plugin)
    application = Application(
        name="flights",
        team="flight-ops",
        tier=2,
        connection="theirs",
        table=made.table,
        data_centers=("dc1",),
        kind="append-only",
        primary_key=("id", "flight_date"),
        partition_column="flight_date",
        grain="day",
        partition_tz="America/New_York",
        ingested=False,
    )
    onboard(application, actor="ann", now=NOW)
    generator.generate_missing(now=NOW)
    assert baseline.start_missing(now=NOW) == 1
    execution.run_due(now=NOW, worker="test", most=100)
    return made


def units() -> dict[str, Unit]:
    found = Unit.objects.filter(test__key="duplicates", latest_at__isnull=False)
    return {name: unit for name in (*DAYS, TODAY) for unit in found.filter(start=day(name).start)}


def test_each_complete_partition_is_tested_and_the_newest_once_its_sla_has_passed(kept: Kept) -> None:
    assert {name: unit.latest_outcome for name, unit in units().items()} == dict.fromkeys(DAYS, "pass")
    waiting = Unit.objects.get(test__key="duplicates", start=day(TODAY).start)
    assert (waiting.due_at, waiting.lane) == (day(TODAY).end + 4 * HOUR, Lane.DUE)
    kept.add(TODAY, 10, 0)
    execution.run_due(now=waiting.due_at - MINUTE, worker="test", most=100)
    assert TODAY not in units()
    execution.run_due(now=waiting.due_at, worker="test", most=100)
    assert units()[TODAY].latest_outcome == "pass"


def test_late_rows_are_seen_and_their_day_alone_is_tested_again(kept: Kept) -> None:
    assert watching.look_due(now=NOW) == 0, "the first look remembers"
    kept.add(DAYS[1], 4, 0)  # the same keys once more
    assert watching.look_due(now=NOW + MINUTE) == 0, "not its turn"
    assert watching.look_due(now=NOW + HOUR) == 1
    changed = units()
    assert (changed[DAYS[1]].due_at, changed[DAYS[1]].lane) == (NOW + HOUR + 5 * MINUTE, Lane.LATE)
    assert {name for name, unit in changed.items() if unit.touched_at} == {DAYS[1]}
    execution.run_due(now=NOW + HOUR + 5 * MINUTE, worker="test", most=100)
    assert {name: unit.latest_outcome for name, unit in units().items()} == dict.fromkeys(DAYS, "pass") | {
        DAYS[1]: "fail"
    }
    assert watching.look_due(now=NOW + 2 * HOUR) == 0


def test_a_table_that_cannot_be_read_keeps_what_was_seen(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    watching.look_due(now=NOW)
    before = Watch.objects.get().seen
    copy = DatasetCopy.objects.get()
    type(copy.dataset.feed).objects.update(object="nowhere/*.csv")
    assert watching.look_due(now=NOW + DAY) == 0
    watch = Watch.objects.get()
    assert (watch.seen, watch.looked_at, watch.due_at) == (before, NOW, NOW + DAY + 30 * MINUTE)


def reasons(name: str, now: datetime) -> set[str]:
    return {cause.reason for cause in ask(Question("flights", day(name), "pricing"), now=now).answer.causes}


def test_nothing_is_known_of_a_weekend_before_the_first_look_and_after_the_last(kept: Kept) -> None:
    sunday, monday, saturday = DAYS[1], DAYS[2], "2026-11-21"
    workdays = {"overrides": {"calendar": "0 6 * * mon-fri"}}
    flights = change(DatasetCopy.objects.get().dataset, workdays, actor="ann", now=NOW)
    Unit.objects.filter(start__lt=day(monday).start).delete()  # as if the calendar alone had planned them
    generator.generate(flights, now=NOW)
    assert reasons(sunday, NOW) >= {"never_tested"}
    watching.look_due(now=NOW)
    execution.run_due(now=NOW, worker="test", most=100)
    assert units()[sunday].latest_outcome == "pass", "it holds rows: it is tested, whatever the calendar says"
    assert reasons(sunday, NOW).isdisjoint({"never_tested", "not_expected"})
    asked_at = day(saturday).end + 5 * HOUR
    assert reasons(saturday, asked_at).isdisjoint({"not_expected"})
    watching.look_due(now=asked_at)
    assert reasons(saturday, asked_at) >= {"not_expected"}


def test_overrides_that_cannot_be_read_are_looked_at_as_their_tier_says(kept: Kept) -> None:
    Dataset.objects.update(overrides={"cadence": "often"})
    assert watching.look_due(now=NOW) == 0
    watch = Watch.objects.get()
    assert (watch.looked_at, watch.due_at) == (NOW, NOW + 30 * MINUTE)

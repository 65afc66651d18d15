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

from incidents.gate.answer import CopyQuestion, ask_gate
from lakehub.catalog.datasets.changes import update_dataset
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from quality.execution import worker
from quality.generation import generate
from quality.models import ChangePoll, Lane, Unit
from quality.planning import baseline, change_polling
from tests import factories, hudi_tables
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
            hudi_tables.hudi_table(table, {day: rows(day, many, first)}, column="flight_date")
        else:
            instant = f"202611170000{next(commits):02}000"
            hudi_tables.commit(table, {day: rows(day, many, first)}, column="flight_date", instant=instant)

    return Kept("hudi", folder.as_uri(), "flights", add)


@pytest.fixture(params=[in_database, in_files, in_lake])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    made: Kept = request.param(tmp_path)
    for name in DAYS:
        made.add(name, 10, 0)
    factories.data_center()
    factories.connection("theirs", url=made.url, plugin=made.plugin)
    application = OnboardingRequest(
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
    onboard_dataset(application, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW)
    assert baseline.start_missing_baselines(now=NOW) == 1
    worker.run_due_units(now=NOW, worker="test", most=100)
    return made


def units() -> dict[str, Unit]:
    duplicate_units = Unit.objects.filter(test__key="duplicates", latest_at__isnull=False)
    return {name: unit for name in (*DAYS, TODAY) for unit in duplicate_units.filter(start=day(name).start)}


def test_each_complete_partition_is_tested_and_the_newest_once_its_sla_has_passed(kept: Kept) -> None:
    assert {name: unit.latest_outcome for name, unit in units().items()} == dict.fromkeys(DAYS, "pass")
    waiting = Unit.objects.get(test__key="duplicates", start=day(TODAY).start)
    assert (waiting.due_at, waiting.lane) == (day(TODAY).end + 4 * HOUR, Lane.DUE)
    kept.add(TODAY, 10, 0)
    worker.run_due_units(now=waiting.due_at - MINUTE, worker="test", most=100)
    assert TODAY not in units()
    worker.run_due_units(now=waiting.due_at, worker="test", most=100)
    assert units()[TODAY].latest_outcome == "pass"


def test_late_rows_are_seen_and_their_day_alone_is_tested_again(kept: Kept) -> None:
    assert change_polling.poll_due_copies(now=NOW) == 0, "the first look remembers"
    kept.add(DAYS[1], 4, 0)  # the same keys once more
    assert change_polling.poll_due_copies(now=NOW + MINUTE) == 0, "not its turn"
    assert change_polling.poll_due_copies(now=NOW + HOUR) == 1
    changed = units()
    assert (changed[DAYS[1]].due_at, changed[DAYS[1]].lane) == (NOW + HOUR + 5 * MINUTE, Lane.LATE)
    assert {name for name, unit in changed.items() if unit.touched_at} == {DAYS[1]}
    worker.run_due_units(now=NOW + HOUR + 5 * MINUTE, worker="test", most=100)
    assert {name: unit.latest_outcome for name, unit in units().items()} == dict.fromkeys(DAYS, "pass") | {
        DAYS[1]: "fail"
    }
    assert change_polling.poll_due_copies(now=NOW + 2 * HOUR) == 0


def test_a_table_that_cannot_be_read_keeps_what_was_seen(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    change_polling.poll_due_copies(now=NOW)
    before = ChangePoll.objects.get().partition_states
    copy = DatasetCopy.objects.get()
    type(copy.dataset.feed).objects.update(object="nowhere/*.csv")
    assert change_polling.poll_due_copies(now=NOW + DAY) == 0
    watch = ChangePoll.objects.get()
    assert (watch.partition_states, watch.polled_at, watch.due_at) == (before, NOW, NOW + DAY + 30 * MINUTE)


def reasons(name: str, now: datetime) -> set[str]:
    return {cause.reason for cause in ask_gate(CopyQuestion("flights", day(name), "pricing"), now=now).answer.causes}


def test_nothing_is_known_of_a_weekend_before_the_first_look_and_after_the_last(kept: Kept) -> None:
    sunday, monday, saturday = DAYS[1], DAYS[2], "2026-11-21"
    workdays = {"overrides": {"calendar": "0 6 * * mon-fri"}}
    flights = update_dataset(DatasetCopy.objects.get().dataset, workdays, actor="ann", now=NOW)
    Unit.objects.filter(start__lt=day(monday).start).delete()  # as if the calendar alone had planned them
    generate.generate_tests(flights, now=NOW)
    assert reasons(sunday, NOW) >= {"never_tested"}
    change_polling.poll_due_copies(now=NOW)
    worker.run_due_units(now=NOW, worker="test", most=100)
    assert units()[sunday].latest_outcome == "pass", "it holds rows: it is tested, whatever the calendar says"
    assert reasons(sunday, NOW).isdisjoint({"never_tested", "not_expected"})
    asked_at = day(saturday).end + 5 * HOUR
    assert reasons(saturday, asked_at).isdisjoint({"not_expected"})
    change_polling.poll_due_copies(now=asked_at)
    assert reasons(saturday, asked_at) >= {"not_expected"}


def test_overrides_that_cannot_be_read_are_looked_at_as_their_tier_says(kept: Kept) -> None:
    Dataset.objects.update(overrides={"cadence": "often"})
    assert change_polling.poll_due_copies(now=NOW) == 0
    watch = ChangePoll.objects.get()
    assert (watch.polled_at, watch.due_at) == (NOW, NOW + 30 * MINUTE)

"""The daily look at the tables of all datasets: what is gone, what is out of reach, and what is looked at again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from ingestion import tasks
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.lineage import daily, missing_tables
from lakehub.catalog.metadata import MetadataUnavailable, NoSuchTable, StorageUnreachable
from lakehub.catalog.models import Connection, Dataset, LineageDay
from lakehub.source_databases.timeouts import Timeouts
from quality.models import SLOW_SOURCES, ConcurrencySlot, SlowSource
from tests import factories as make
from tests.factories import DAY, HOUR, NOW
from tests.polling import scaled
from tests.tcp_forwarder import TcpForwarder
from tests.web.catalog.conftest import TABLES, known_edges

pytestmark = pytest.mark.django_db


def drop(ops: Path, table: str) -> None:
    with sqlite3.connect(ops) as db:
        db.execute(f"DROP TABLE {table}")


def test_a_column_that_came_is_taken_in(ops: Path) -> None:
    with sqlite3.connect(ops) as db:
        db.execute("ALTER TABLE flights ADD COLUMN tailnum TEXT")
    assert missing_tables.check_tables(offboard_after=None, now=NOW).changed == ["flights"]
    flights = Dataset.objects.get(name="flights")
    assert (flights.metadata_version, len(flights.columns)) == (2, 2)


def test_a_table_that_stays_gone_is_off_boarded_after_days_and_never_silently(ops: Path) -> None:
    drop(ops, "delays")
    first = missing_tables.check_tables(offboard_after=14 * DAY, now=NOW)
    assert "There is no table `delays`" in first.missing["delays"]
    assert missing_tables.check_tables(offboard_after=14 * DAY, now=NOW + 14 * DAY - HOUR).offboarded == {}
    last = missing_tables.check_tables(offboard_after=14 * DAY, now=NOW + 14 * DAY)
    assert last.offboarded == {"delays": "its table is gone since 2026-11-17 19:32 UTC"}
    entry = AuditEntry.objects.get(action="offboard")
    assert (entry.actor, entry.subject, entry.detail["why"]) == (
        "daily look",
        "dataset:delays",
        last.offboarded["delays"],
    )


def test_a_table_that_comes_back_is_forgiven(ops: Path) -> None:
    drop(ops, "delays")
    missing_tables.check_tables(offboard_after=DAY, now=NOW)
    with sqlite3.connect(ops) as db:
        db.execute("CREATE TABLE delays (id INTEGER PRIMARY KEY)")
    assert missing_tables.check_tables(offboard_after=DAY, now=NOW + 2 * DAY).found_again == ["delays"]
    drop(ops, "delays")
    assert missing_tables.check_tables(offboard_after=DAY, now=NOW + 3 * DAY).offboarded == {}


def test_a_database_that_is_out_of_reach_says_nothing_of_its_tables(ops: Path) -> None:
    ops.unlink()
    looked = missing_tables.check_tables(offboard_after=timedelta(), now=NOW)
    assert (set(looked.unreadable), looked.missing, looked.offboarded) == (set(TABLES), {}, {})


def looks(ops: Path, days: range) -> missing_tables.TableCheckReport:
    """One a day; the last of them."""
    return [missing_tables.check_tables(offboard_after=2 * DAY, now=NOW + day * DAY) for day in days][-1]


def test_a_look_that_could_not_reach_the_table_leaves_the_count_as_it_was(ops: Path) -> None:
    drop(ops, "delays")
    assert looks(ops, range(2)).missing.keys() == {"delays"}
    away = ops.rename(ops.with_suffix(".away"))
    assert looks(ops, range(2, 9)).unreadable.keys() == set(TABLES)
    assert Dataset.objects.get(name="delays").missing_checks == 2
    away.rename(ops)
    assert looks(ops, range(9, 10)).offboarded.keys() == {"delays"}


def test_a_look_that_was_answered_with_something_else_begins_the_count_anew(ops: Path) -> None:
    """The table may be there."""
    drop(ops, "delays")
    looks(ops, range(2))
    source = Falters(0.1)
    assert source.look().unreadable.keys() == set(TABLES)
    assert looks(ops, range(3, 5)).offboarded == {}
    assert looks(ops, range(5, 6)).offboarded.keys() == {"delays"}


def test_two_looks_far_apart_are_too_few(ops: Path) -> None:
    drop(ops, "delays")
    missing_tables.check_tables(offboard_after=14 * DAY, now=NOW)
    assert missing_tables.check_tables(offboard_after=14 * DAY, now=NOW + 60 * DAY).offboarded == {}


def test_where_all_tables_are_gone_it_is_the_storage_that_is_gone(ops: Path) -> None:
    for table_name in TABLES:
        drop(ops, table_name)
    refused = looks(ops, range(30)).refused["ops"]
    assert f"all of its {len(TABLES)} tables are gone" in refused
    assert "manage.py offboard" in refused
    assert not Dataset.objects.exclude(offboarded_at=None).exists()
    entry = AuditEntry.objects.filter(action="off-boarding refused").first()
    assert entry is not None
    assert (entry.subject, entry.detail["datasets"]) == ("connection:ops", sorted(TABLES))


@pytest.mark.parametrize(("dropped", "leave"), [(4, 0), (3, 3)])
def test_more_than_a_few_do_not_go_in_one_look(ops: Path, dropped: int, leave: int) -> None:
    more = [f"more{number}" for number in range(5)]
    for table_name in more:
        with sqlite3.connect(ops) as db:
            db.execute(f"CREATE TABLE {table_name} (id INTEGER PRIMARY KEY)")
        made = make.dataset(table_name, ingested=False, by_day=False)
        make.feed(made, connection=Connection.objects.get())
    for table_name in more[:dropped]:
        drop(ops, table_name)
    looked = looks(ops, range(5))
    assert Dataset.objects.exclude(offboarded_at=None).count() == leave
    assert bool(looked.refused) is not bool(leave)


def test_nothing_is_off_boarded_where_that_is_turned_off(ops: Path) -> None:
    drop(ops, "delays")
    for day in range(100):
        looked = missing_tables.check_tables(offboard_after=None, now=NOW + day * DAY)
    assert looked.offboarded == {}


# Once a day


def test_where_no_lineage_is_read_only_the_tables_are_looked_at(ops: Path) -> None:
    tasks.check_lineage()
    tasks.check_tables()
    assert [day.source for day in LineageDay.objects.all()] == [daily.TABLES]


# Sources that are silent


@pytest.fixture
def silent(ops: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpForwarder]:
    """A server that accepts and never answers, with three more tables; theirs are the first and the last names."""
    quick = Timeouts(connect=timedelta(seconds=1), silence=timedelta(seconds=1), cancel=timedelta(seconds=1))
    monkeypatch.setattr("lakehub.catalog.storages.sql.TIMEOUTS", quick)
    with TcpForwarder() as forwarder:
        url = f"postgresql+psycopg://reader@127.0.0.1:{forwarder.port}/ops"
        connection = make.connection("silent", url=url)
        for name in SILENT_TABLES:
            make.feed(make.dataset(name, ingested=False, by_day=False), connection=connection)
        yield forwarder


SILENT_TABLES = ("aircraft", "bookings", "zones")


def test_a_source_that_is_silent_is_asked_once_a_look_and_the_others_are_looked_at(
    ops: Path, silent: TcpForwarder
) -> None:
    for table_name in TABLES:
        drop(ops, table_name)
    looked = missing_tables.check_tables(offboard_after=None, now=NOW)
    assert (set(looked.unreadable), set(looked.missing)) == (set(SILENT_TABLES), set(TABLES))
    assert silent.accepted == 1


def test_a_source_that_is_silent_keeps_no_job_waiting(
    folder: Path, silent: TcpForwarder, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue of jobs has one process. What runs there reads no source."""
    settings.LAKEHUB_LINEAGE, settings.LAKEHUB_LINEAGE_URI = "file", folder.as_uri()
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    tasks.check_lineage()
    assert known_edges() == {"flights → delays one to one"}
    assert silent.accepted == 0
    tasks.check_tables()
    assert silent.accepted == 1


@pytest.mark.parametrize(("lineage", "queue"), [("", "default"), ("file", "default"), ("spark", "spark")])
def test_only_what_spark_does_is_in_the_queue_of_jobs(lineage: str, queue: str, tmp_path: Path) -> None:
    ask = (
        "from lakehub.processes.celery_app import app;"
        "print(*(app.amqp.router.route({}, f'ingestion.tasks.{name}')['queue'].name "
        "for name in ('run_job', 'check_lineage', 'check_tables')))"
    )
    environ = {**os.environ, "LAKEHUB_HOME": str(tmp_path), "LAKEHUB_LINEAGE": lineage}
    environ["DJANGO_SETTINGS_MODULE"] = "lakehub.settings"
    queues = subprocess.run(
        [sys.executable, "-c", ask], env=environ, capture_output=True, text=True, check=True, timeout=scaled(60)
    )
    assert queues.stdout.split() == ["spark", queue, "default"]


def test_a_source_that_is_known_to_be_slow_is_looked_at_later_that_day_where_a_worker_may_wait_for_it(
    ops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SlowSource.objects.create(resource="sqlalchemy:ops")
    lease = {"leased_by": "others", "leased_until": NOW.replace(year=2099)}
    number = settings.LAKEHUB_SLOW_SOURCES
    ConcurrencySlot.objects.bulk_create(
        [ConcurrencySlot(resource=SLOW_SOURCES, number=at, **lease) for at in range(number)]
    )
    drop(ops, "delays")
    Dataset.objects.filter(name="delays").update(missing_since=NOW - DAY, missing_checks=1)
    check_tables_at(NOW, monkeypatch)
    day = LineageDay.objects.get()
    assert (set(day.report["unreadable"]), day.report["missing"]) == (set(TABLES), {})
    assert "ops was not looked at: it was slow" in day.report["unreadable"]["delays"]
    assert day.error.startswith("ops: ops was not looked at: it was slow")
    assert Dataset.objects.get(name="delays").missing_checks == 1
    ConcurrencySlot.objects.update(leased_by="", leased_until=None)
    check_tables_at(NOW + timedelta(minutes=4), monkeypatch)
    assert LineageDay.objects.get() == day
    assert LineageDay.objects.get().attempt == 1
    check_tables_at(NOW + timedelta(minutes=5), monkeypatch)
    day = LineageDay.objects.get()
    assert (day.report["unreadable"], set(day.report["missing"])) == ({}, {"delays"})
    assert (day.error, day.attempt, day.ended_at) == ("", 2, NOW + timedelta(minutes=5))
    assert Dataset.objects.get(name="delays").missing_checks == 2
    assert not SlowSource.objects.exists()
    assert not ConcurrencySlot.objects.exclude(leased_by="").exists()


def check_tables_at(now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: now)
    tasks.check_tables()


class Stuck:
    """Sources of which these tables are never described."""

    def __init__(self, *tables: str) -> None:
        self.tables = tables
        self.asked: list[str] = []

    def turn(self, connection: Connection, table: str) -> AbstractContextManager[None]:
        self.asked.append(table)
        if table in self.tables:
            raise StorageUnreachable(f"{table} gave no answer")
        return nullcontext()

    def attempt(self, now: datetime) -> LineageDay:
        """What it came to; whom it asked is in `asked`."""
        self.asked.clear()
        day = daily.run_daily_tables(self.turn, offboard_after=DAY, now=now)
        assert day is not None
        return day


def test_only_tables_that_were_not_looked_at_are_looked_at_again_and_those_that_were_asked_in_vain_come_last(
    ops: Path,
) -> None:
    drop(ops, "delays")
    source = Stuck("airlines", "flights")
    first = source.attempt(NOW)
    assert (source.asked, set(first.report["unreadable"])) == (["airlines"], set(TABLES))
    asked_later = []
    for hours in (1, 2, 3):
        day = source.attempt(NOW + hours * HOUR)
        asked_later.append(list(source.asked))
    assert asked_later == [["delays", "flights"], ["airlines"], ["flights"]]
    assert (set(day.report["missing"]), set(day.report["unreadable"])) == ({"delays"}, {"airlines", "flights"})
    assert day.error == "ops: flights gave no answer"
    assert Dataset.objects.get(name="delays").missing_checks == 1


def test_a_day_is_tried_again_a_few_times_and_off_boards_at_its_end(ops: Path) -> None:
    """Else each attempt would off-board as many as may go in one look."""
    drop(ops, "delays")
    Dataset.objects.filter(name="delays").update(missing_since=NOW - 2 * DAY, missing_checks=2)
    make.feed(
        make.dataset("bookings", ingested=False, by_day=False), connection=make.connection("bus", url="file:///bus")
    )
    source, midnight = Stuck("bookings"), NOW.replace(hour=0)
    for attempt in range(daily.MAX_ATTEMPTS):
        assert not Dataset.objects.exclude(offboarded_at=None).exists()
        day = source.attempt(midnight + attempt * 3 * HOUR)
    assert (set(day.report["offboarded"]), day.error) == ({"delays"}, "bus: bookings gave no answer")
    assert day.ended_at is not None
    assert daily.run_daily_tables(source.turn, offboard_after=DAY, now=midnight + 23 * HOUR) is None


def test_a_network_that_is_gone_holds_a_worker_for_so_long_only(
    ops: Path, silent: TcpForwarder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(missing_tables, "MAX_WAIT", timedelta())
    looked = missing_tables.check_tables(offboard_after=None, now=NOW)
    assert set(looked.unreadable) == {*SILENT_TABLES, *TABLES}
    assert "others that are out of reach took too long" in looked.unreadable["flights"]


class Falters:
    """Sources that let in whoever looks, and fail after `takes_s` on a clock of their own."""

    def __init__(self, takes_s: float, problem: type[MetadataUnavailable] = MetadataUnavailable) -> None:
        self.takes_s, self.problem = takes_s, problem
        self.clock_s = 0.0
        self.asked: list[str] = []

    def turn(self, connection: Connection, table: str) -> AbstractContextManager[None]:
        self.asked.append(table)
        self.clock_s += self.takes_s
        raise self.problem(f"{table} gave no answer")

    def look(self) -> missing_tables.TableCheckReport:
        return missing_tables.check_tables(offboard_after=None, turn=self.turn, now=NOW, monotonic=lambda: self.clock_s)


@pytest.mark.parametrize(
    ("takes_s", "problem", "asked"),
    [
        (150.0, MetadataUnavailable, ["airlines"]),
        (missing_tables.SILENT_AFTER_S, MetadataUnavailable, ["airlines"]),
        (0.1, StorageUnreachable, ["airlines"]),
        (0.1, MetadataUnavailable, sorted(TABLES)),
        (150.0, NoSuchTable, sorted(TABLES)),
    ],
)
def test_a_source_that_falls_silent_after_it_let_somebody_in_is_asked_once_a_look(
    ops: Path, takes_s: float, problem: type[MetadataUnavailable], asked: list[str]
) -> None:
    """One that has answered, if slowly, that there is no such table is none of them."""
    source = Falters(takes_s, problem)
    looked = source.look()
    assert source.asked == asked
    assert {*looked.unreadable, *looked.missing} == set(TABLES)


@pytest.mark.parametrize(
    ("takes_s", "minutes", "asked"), [(150.0, 60, 10), (150.0, 20, 9), (4.0, 20, 30), (4.0, 1, 16)]
)
def test_sources_that_fall_silent_after_they_let_somebody_in_hold_a_worker_for_so_long_only(
    takes_s: float, minutes: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten connections with three tables each."""
    monkeypatch.setattr(missing_tables, "MAX_WAIT", timedelta(minutes=minutes))
    for number in range(10):
        connection = make.connection(f"source{number}", url=f"file:///source{number}")
        for at in range(3):
            make.feed(make.dataset(f"table{number}{at}", ingested=False, by_day=False), connection=connection)
    source = Falters(takes_s)
    source.look()
    assert len(source.asked) == asked

"""Of one connection no more jobs and looks are at work at once, and no more rows are read in a second, than may be; over all processes."""

from __future__ import annotations

import time
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from ingestion.models import Finding, JobKind, JobRun, JobState, SourcePlace
from ingestion.runs import leases, run_worker
from ingestion.runs.job_specs import job_spec_of
from ingestion.runs.source_use import source_limits
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.connection_limits import limit_connection
from lakehub.catalog.models import Connection, DatasetCopy, Feed
from lakehub.kernel.errors import Refused
from tests import factories as given
from tests.factories import HOUR, NOW
from tests.polling import wait_until
from tests.processes_at_once import CAN_BE_TAKEN, PAYS, overlaps, setup, work_at_once
from tests.web.ingestion.conftest import FakeLauncher, worker_at


def limit(places: int | None = None, rows: int | None = None) -> Connection:
    connection = Connection.objects.get(name="ops")
    limit_connection(connection, rows_per_s=rows, max_connections=places, actor="ana", now=NOW)
    return connection


def run_of(name: str, kind: str = JobKind.BOOTSTRAP) -> JobRun:
    """Another dataset of the same connection."""
    dataset = given.dataset(name)
    given.feed(dataset, connection=Connection.objects.get(name="ops"))
    run = given.run(given.copy_of(dataset), kind, JobState.QUEUED, started_at=None, ended_at=None, due_at=NOW)
    return fresh(run)


def turn(run: JobRun, *, waits: timedelta = timedelta()) -> source_limits.Crowded | None:
    """Of a look."""
    return source_limits.take_turn(run, "host:1:a", waits=waits)


def fresh(run: JobRun) -> JobRun:
    return JobRun.objects.select_related("copy__dataset__feed__connection", "copy__data_center").get(pk=run.pk)


@pytest.fixture
def planes(copy: DatasetCopy) -> JobRun:
    return run_of("planes")


@pytest.fixture
def crews(copy: DatasetCopy) -> JobRun:
    return run_of("crews")


def test_limits_are_checked_and_audited(copy: DatasetCopy) -> None:
    limit(2, 500)
    entry = AuditEntry.objects.get(action="limit connection")
    assert (entry.subject, entry.detail["becomes"]) == ("connection:ops", {"rows_per_s": 500, "max_connections": 2})
    for wrong in ({"places": 0}, {"places": 1001}):
        with pytest.raises(Refused, match="give a number from 1 to 1,000, or none"):
            limit(**wrong)
    for rows in (-1, 99, 10**10):
        with pytest.raises(Refused, match=f"`rows_per_s` is {rows}: give a number from 100 to 1,000,000,000, or none"):
            limit(rows=rows)
    out = StringIO()
    call_command("limit_connection", "ops", "--rows-per-s", "5000", stdout=out)
    assert out.getvalue() == "Connection ops: rows_per_s: 5,000, max_connections: no limit\n"
    with pytest.raises(CommandError, match="no connection `opps`"):
        call_command("limit_connection", "opps")


def test_without_a_limit_nothing_is_asked(planes: JobRun) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert turn(planes) is None
        source_limits.end_turn(planes, "host:1:a", 1_000)
    assert len(queries) == 0


def test_who_finds_no_place_waits_and_says_for_whom(planes: JobRun, crews: JobRun, launcher: FakeLauncher) -> None:
    limit(1)
    assert source_limits.take_place(fresh(planes), "host:9:b") is None
    JobRun.objects.filter(pk=planes.pk).update(state=JobState.RUNNING, leased_until=leases.lease_end())
    run_worker.run_next(worker_at(NOW, launcher))
    crews.refresh_from_db()
    assert (crews.state, crews.attempt, crews.due_at) == (JobState.QUEUED, 0, NOW + source_limits.RETRY_AFTER)
    assert crews.error == (
        f"waits for the connection `ops`: 1 of 1 places are taken: bootstrap run {planes.pk} on planes@dc1"
    )
    source_limits.release_place(planes, "host:9:b")
    run_worker.run_next(worker_at(crews.due_at, launcher))
    crews.refresh_from_db()
    assert (crews.state, crews.error, SourcePlace.objects.count()) == (JobState.SUCCEEDED, "", 0)


def test_a_load_takes_a_place_for_each_of_its_connections_as_far_as_there_are(
    planes: JobRun, crews: JobRun, launcher: FakeLauncher
) -> None:
    """Its job is told how many it has. Other jobs of the dataset have one."""
    Connection.objects.filter(name="ops").update(plugin="mysql")
    Feed.objects.filter(dataset__name__in=("planes", "crews")).update(options={"readers": 3})
    limit(4)
    granted = []
    for run in (planes, crews, run_of("trips"), run_of("days", JobKind.INCREMENTAL)):
        taken = source_limits.take_place(fresh(run), "host:9:b")
        granted.append((taken is None) and source_limits.readers_of(fresh(run)))
    assert granted == [3, 1, False, False]
    waits = source_limits.take_place(fresh(JobRun.objects.latest("pk")), "host:9:b")
    assert waits is not None
    assert "4 of 4 places are taken" in waits.why
    source_limits.release_all_places("host:9:b")
    assert source_limits.readers_of(fresh(planes)) == 3
    spec, _ = job_spec_of(fresh(planes), staging="file:///staging", ahead=timedelta(), now=NOW, readers=2)
    assert spec.source is not None
    assert spec.source.readers == 2
    limit()
    kinds = dict.fromkeys((JobKind.BOOTSTRAP, JobKind.INCREMENTAL))
    for kind in kinds:
        JobRun.objects.filter(pk=planes.pk).update(kind=kind)
        kinds[kind] = source_limits.readers_of(fresh(planes))
    assert [*kinds.values()] == [3, 1]


def test_who_waits_for_longer_than_its_deadline_fails_and_says_so(
    planes: JobRun, crews: JobRun, launcher: FakeLauncher
) -> None:
    limit(1)
    source_limits.take_place(fresh(planes), "host:9:b")
    JobRun.objects.filter(pk=planes.pk).update(state=JobState.RUNNING, leased_until=leases.lease_end())
    run_worker.run_next(worker_at(NOW, launcher))
    SourcePlace.objects.filter(run=crews).update(asked_at=F("asked_at") - HOUR)
    run_worker.run_next(worker_at(NOW + HOUR, launcher))
    crews.refresh_from_db()
    assert (crews.state, crews.attempt) == (JobState.QUEUED, 1)
    assert "has waited for 1:00:0" in crews.error
    assert "Raise `max_connections` of the connection" in crews.error
    assert not Finding.objects.exists(), "it is tried again first"


def test_places_are_given_in_the_order_in_which_they_were_asked_for(planes: JobRun, crews: JobRun) -> None:
    limit(1)
    other = run_of("gates")
    assert source_limits.take_place(fresh(other), "host:1:a") is None
    assert source_limits.take_place(fresh(crews), "host:2:b") is not None
    assert source_limits.take_place(fresh(planes), "host:3:c") is not None
    source_limits.release_place(other, "host:1:a")
    assert source_limits.take_place(fresh(planes), "host:3:c") is not None, "crews was first"
    assert source_limits.take_place(fresh(crews), "host:2:b") is None


def test_who_waits_and_is_silent_holds_up_nobody(planes: JobRun, crews: JobRun) -> None:
    limit(1)
    other = run_of("gates")
    source_limits.take_place(fresh(other), "host:1:a")
    source_limits.take_place(fresh(crews), "host:2:b")
    source_limits.release_place(other, "host:1:a")
    SourcePlace.objects.filter(run=crews).update(seen_at=F("seen_at") - source_limits.SILENCE)
    assert source_limits.take_place(fresh(planes), "host:3:c") is None


def test_the_place_of_a_process_that_died_is_free_again(planes: JobRun, crews: JobRun) -> None:
    limit(1)
    assert source_limits.take_place(fresh(planes), "host:999999999:a") is None
    assert leases.release_leases_of_dead_processes("host") == 0
    assert source_limits.take_place(fresh(crews), "host:2:b") is None
    SourcePlace.objects.update(leased_until=F("leased_until") - 2 * leases.LEASE_DURATION)
    assert source_limits.take_place(fresh(planes), "host:3:c") is None, "of another host when its lease has run out"


def test_another_limit_holds_for_who_asks_next(planes: JobRun, crews: JobRun) -> None:
    limit(1)
    source_limits.take_place(fresh(planes), "host:1:a")
    waiting = fresh(crews)
    assert source_limits.take_place(waiting, "host:2:b") is not None
    limit(2)
    assert source_limits.take_place(waiting, "host:2:b") is None


def test_a_limit_that_is_lifted_meanwhile_leaves_no_place_behind(planes: JobRun) -> None:
    limit(places=1)
    planes = fresh(planes)
    with source_limits.place_of(planes, "host:1:a"):
        assert SourcePlace.objects.count() == 1
        limit(places=None)
        planes.copy = fresh(planes).copy  # as a batch looks its copy up anew
    assert not SourcePlace.objects.exists()


def test_a_job_reads_in_pieces_that_suit_the_rows_per_second(planes: JobRun) -> None:
    def pieces() -> tuple[int, bool]:
        spec, _ = job_spec_of(fresh(planes), staging="file:///staging", ahead=timedelta(), now=NOW)
        assert spec.source is not None
        return spec.source.chunk_rows, spec.source.is_paid_for

    assert pieces() == (20_000, False)
    limit(rows=100)
    assert pieces() == (1000, True)
    Connection.objects.update(rows_per_s=50)  # as it may have been set before there was a least
    assert pieces() == (500, True)


def test_what_was_read_is_paid_for_by_all_who_read(planes: JobRun, crews: JobRun) -> None:
    limit(rows=100)
    first, second = source_limits.guidance_of(fresh(planes)), source_limits.guidance_of(fresh(crews))
    assert first.may_read_on(50), "a second may be caught up"
    assert not second.may_read_on(200)
    crowded = turn(fresh(crews))
    assert crowded is not None
    assert timedelta() < crowded.retry_after <= timedelta(seconds=1.5)
    began = time.monotonic()
    wait_until(lambda: second.may_read_on(200))
    assert time.monotonic() - began > 1.0
    limit(rows=None)
    assert second.may_read_on(10_000_000)


def test_a_look_that_read_a_large_table_whole_holds_the_others_up_for_a_minute(planes: JobRun, crews: JobRun) -> None:
    limit(rows=1_000)
    source_limits.end_turn(fresh(planes), "host:1:a", rows=10_000_000)
    crowded = turn(fresh(crews))
    assert crowded is not None
    assert timedelta(seconds=50) < crowded.retry_after <= source_limits.MAX_DEBT


def test_whether_a_look_has_to_wait_is_one_query_and_by_the_limit_as_it_is_now(planes: JobRun, crews: JobRun) -> None:
    limit(rows=1_000)
    source_limits.end_turn(fresh(planes), "host:1:a", rows=30_000)
    stale = fresh(crews)
    with CaptureQueriesContext(connection) as queries:
        crowded = turn(stale)
    assert len(queries) == 1
    assert crowded is not None
    assert timedelta(seconds=20) < crowded.retry_after <= timedelta(seconds=30)
    limit(rows=2_000)
    crowded = turn(stale)
    assert crowded is not None
    assert timedelta(seconds=10) < crowded.retry_after <= timedelta(seconds=15)
    limit(rows=None)
    assert turn(stale) is None


def test_a_job_that_read_too_much_at_once_holds_the_others_up_for_a_minute(planes: JobRun, crews: JobRun) -> None:
    """However often it fails, and pays for the same again."""
    limit(rows=1_000)
    assert not source_limits.guidance_of(fresh(planes)).may_read_on(50_000_000)
    crowded = turn(fresh(crews))
    assert crowded is not None
    assert timedelta(seconds=50) < crowded.retry_after <= source_limits.MAX_DEBT


def test_who_waits_until_rows_are_paid_for_says_since_when_and_what_to_do(planes: JobRun, crews: JobRun) -> None:
    limit(rows=1_000)
    source_limits.end_turn(fresh(planes), "host:1:a", rows=10_000_000)
    crowded = turn(fresh(crews), waits=HOUR)
    assert crowded is not None
    assert crowded.error_after(HOUR + source_limits.CATCH_UP) is None
    assert crowded.error_after(HOUR) == (
        "It waits for the connection `ops`: others use up its 1,000 rows a second, and has waited for 1:00:00. "
        "Raise `rows_per_s` of the connection, or load less at once."
    )


def test_a_limit_that_is_changed_holds_for_what_was_read_before(planes: JobRun, crews: JobRun) -> None:
    limit(rows=100)
    assert not source_limits.guidance_of(fresh(planes)).may_read_on(10_000)
    limit(rows=10_000)
    crowded = turn(fresh(crews))
    assert crowded is None or crowded.retry_after <= timedelta(seconds=1)
    # It is owed once: paying for more does not count the old rows at the old rate again.
    assert source_limits.pay_for_rows(Connection.objects.get(name="ops"), 20_000) < timedelta(seconds=4)


@pytest.mark.slow
def test_over_processes_no_more_are_at_work_at_once_than_there_are_places(tmp_path: Path) -> None:
    setup(tmp_path, places=2)
    held = work_at_once(tmp_path, CAN_BE_TAKEN, count=4)
    assert (len(held), max(overlaps(held))) == (4 * 10, 2)


@pytest.mark.slow
def test_over_processes_no_more_rows_are_read_in_a_second_than_may_be(tmp_path: Path) -> None:
    setup(tmp_path, rows=200)
    spent = work_at_once(tmp_path, PAYS, count=3)
    began, ended = min(at for at, _ in spent), max(at for _, at in spent)
    assert len(spent) == 3 * 10
    assert 200 * (ended - began + 1.0) >= 3 * 10 * 20


def of_server(name: str, url: str, *, places: int | None = None, rows: int | None = None) -> JobRun:
    """A run that reads a connection of its own."""
    connection = given.connection(f"to-{name}", url, plugin="mysql")
    limit_connection(connection, rows_per_s=rows, max_connections=places, actor="ana", now=NOW)
    dataset = given.dataset(name)
    given.feed(dataset, connection=connection)
    run = given.run(given.copy_of(dataset), JobKind.INCREMENTAL, JobState.QUEUED, started_at=None, ended_at=None)
    return fresh(run)


@pytest.mark.django_db
def test_connections_that_name_one_server_share_its_places() -> None:
    """Whoever logs in there, to whichever database; each goes by its own limit. Another port is another server."""
    first = of_server("first", "mysql://one:a@db.example.org/ops", places=2)
    second = of_server("second", "mysql://two:b@DB.example.org:3306/shop", places=2)
    narrow = of_server("narrow", "mysql://three:c@db.example.org:3306/shop", places=1)
    other = of_server("other", "mysql://one:a@db.example.org:3307/ops", places=1)
    assert source_limits.take_place(first, "host:1:a") is None
    crowded = source_limits.take_place(narrow, "host:2:b")
    assert crowded is not None
    assert "1 of 1 places are taken: incremental run" in crowded.why
    assert "first@dc1" in crowded.why
    assert source_limits.take_place(other, "host:3:c") is None
    assert source_limits.take_place(second, "host:4:d") is not None, "narrow was first"
    source_limits.release_place(narrow, "host:2:b")
    assert source_limits.take_place(second, "host:4:d") is None
    source_limits.release_place(first, "host:1:a")
    assert source_limits.take_place(narrow, "host:2:b") is not None


@pytest.mark.django_db
def test_connections_that_name_one_server_share_its_rows_per_second() -> None:
    first = of_server("first", "mysql://one:a@db.example.org:3306/ops", rows=1_000)
    second = of_server("second", "mysql://two:b@db.example.org/shop", rows=2_000)
    other = of_server("other", "mysql://one:a@another.example.org/ops", rows=1_000)
    assert not source_limits.guidance_of(first).may_read_on(10_000)
    waits = [turn(run) for run in (first, second, other)]
    seconds = [0 if each is None else round(each.retry_after.total_seconds()) for each in waits]
    assert seconds == [9, 5, 0] or seconds == [9, 4, 0], "the rows that are owed, at the rate of each"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("plugin", "url"), [("sql", "sqlite:////data/ops.db"), ("files", "file:///data"), ("sql", "no URL at all")]
)
def test_what_is_on_no_server_is_its_connections_alone(plugin: str, url: str) -> None:
    connections = [given.connection(name, url, plugin=plugin) for name in ("one", "two")]
    assert [source_limits.server_read_by(each) for each in connections] == [
        f"connection {each.pk}" for each in connections
    ]

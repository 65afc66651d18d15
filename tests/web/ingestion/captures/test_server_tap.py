"""One server that is tapped: what an idle minute costs, how failures are told and repeated, and who may go on."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from ingestion.capture.binlog.events import BinlogError
from ingestion.captures.records import begin_load
from ingestion.captures.servers import captures_by_server
from ingestion.changelog import ShutOut
from ingestion.models import Capture, Finding, TapServer
from ingestion.runs.leases import own_holder_name, release_leases_of_dead_processes
from ingestion.tapping import tap_leases
from ingestion.tapping.beginning import Untappable
from ingestion.tapping.moving import MovePending
from ingestion.tapping.server_tap import LeaseLost
from ingestion.tapping.session import PlanOutdated
from tests.factories import NOW
from tests.web.ingestion.captures.taps import HOLDER, SERVER, TapWorld, captured, row

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> TapWorld:
    return TapWorld()


def test_an_idle_minute_of_a_hundred_tables_is_an_update_in_ten_seconds(world: TapWorld) -> None:
    captured(*(f"table{number}" for number in range(100)))
    tap = world.tap()
    world.run(tap, 4)
    with CaptureQueriesContext(
        connection,
    ) as asked:
        world.run(tap, 60)
    assert all(query["sql"].startswith("UPDATE") for query in asked.captured_queries)
    assert len(asked) <= 6
    assert row().seen_at >= world.now() - timedelta(seconds=11)
    assert (row().captured, row().caught_up_at) == (100, row().seen_at)


def test_a_failure_is_told_and_repeated_ever_later_and_forgotten_once_the_server_sends(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.refuses = [BinlogError("The server is gone.")] * 9
    world.run(tap, 200)
    assert row().error == "The server is gone."
    waits = [round(after - before) for before, after in pairwise(world.opened_at)]
    assert waits[0] == 1
    assert waits == sorted(waits)
    assert waits[-1] == 60
    assert Finding.objects.count() == 0  # it may be back in a minute
    world.run(tap, 120)
    assert (len(world.sessions), row().error) == (1, "")


def test_a_session_that_opens_and_fails_at_once_is_no_success(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.fails = [BinlogError("The binlog broke off.")] * 20
    world.run(tap, 60)
    assert row().error == "The binlog broke off."
    assert len(world.sessions) < 10
    assert all(session.is_closed for session in world.sessions)


def test_a_failure_after_a_long_time_is_the_first_one_again(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.refuses = [BinlogError("gone")] * 9
    world.run(tap, 400)
    world.fails = [BinlogError("gone")]
    failed_at = world.at
    world.run(tap, 10)
    assert 0 < world.opened_at[-1] - failed_at < 4


def test_a_server_that_cannot_be_tapped_is_a_finding_of_each_dataset_that_is_not_stopped(world: TapWorld) -> None:
    trips, riders = captured("trips", "riders")
    Capture.objects.filter(feed__dataset=riders).update(stopped_load=1, stopped_why="It was truncated.")
    world.refuses = [Untappable("`binlog_format` is STATEMENT, and must be ROW.")]
    world.run(world.tap(), 0.5)
    messages = {finding.copy.dataset: finding.detail["message"] for finding in Finding.objects.filter(cleared_at=None)}
    assert messages == {trips: "`binlog_format` is STATEMENT, and must be ROW.", riders: "It was truncated."}
    assert row().error == "`binlog_format` is STATEMENT, and must be ROW."


def test_a_server_that_is_behind_is_told_and_is_no_finding(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.refuses = [MovePending("It does not have the transaction 0-1-7 yet.")] * 3
    world.run(tap, 2)
    assert row().error == "It does not have the transaction 0-1-7 yet."
    assert not Finding.objects.exists()
    world.run(tap, 30)
    assert row().error == ""


def test_what_nobody_expected_is_told_without_its_text(world: TapWorld, caplog: pytest.LogCaptureFixture) -> None:
    """It may hold anything, such as rows."""
    captured("trips")
    world.fails = [KeyError("hunter2")]
    world.run(world.tap(), 2.5)
    assert "KeyError" in row().error
    assert "hunter2" not in row().error


def test_another_plan_is_another_session_at_once_and_the_same_plan_is_none(world: TapWorld) -> None:
    trips, _ = captured("trips", "riders")
    tap = world.tap()
    world.run(tap, 4)
    tap.plan(captures_by_server()[SERVER])
    world.run(tap, 4)
    assert len(world.sessions) == 1
    begin_load(Capture.objects.get(feed__dataset=trips), uuid4())
    tap.plan(captures_by_server()[SERVER])
    world.refuses = [BinlogError("gone")]
    world.run(tap, 0.1)
    assert world.sessions[0].is_closed
    begin_load(Capture.objects.get(feed__dataset=trips), uuid4())
    tap.plan(captures_by_server()[SERVER])
    world.run(tap, 1)
    assert [each.spec.load for each in world.sessions[-1].plan] == [3, 1]


def test_a_plan_that_is_outdated_by_the_server_is_opened_again_at_once(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.fails = [PlanOutdated()]
    world.run(tap, 5)
    assert len(world.sessions) == 2
    assert row().error == ""


def test_who_has_lost_the_lease_ends(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.run(tap, 4)
    TapServer.objects.update(leased_until=NOW - timedelta(days=900))
    assert tap_leases.claim(SERVER, "host:2:b")
    with pytest.raises(LeaseLost):
        world.run(tap, 60)
    tap.close()
    assert world.sessions[-1].is_closed
    assert row().leased_by == "host:2:b"


def test_who_was_shut_out_of_the_changelog_ends(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.fails = [ShutOut("Another process writes.")]
    with pytest.raises(LeaseLost):
        world.run(tap, 60)
    assert row().error == ""


def test_a_database_that_fails_is_not_the_servers_fault(world: TapWorld) -> None:
    captured("trips")
    tap = world.tap()
    world.fails = [DatabaseError("locked")]
    with pytest.raises(DatabaseError):
        world.run(tap, 60)
    world.run(tap, 4)
    assert (len(world.sessions), row().error) == (2, "")


def test_a_lease_is_one_processes_until_it_runs_out_or_is_given_back() -> None:
    assert tap_leases.free_servers([SERVER, "other:1"]) == [SERVER, "other:1"]
    assert tap_leases.claim(SERVER, HOLDER)
    assert not tap_leases.claim(SERVER, "host:2:b")
    assert tap_leases.free_servers([SERVER, "other:1"]) == ["other:1"]
    tap_leases.give_back(SERVER, "host:2:b")
    assert not tap_leases.claim(SERVER, "host:2:b")
    tap_leases.give_back(SERVER, HOLDER)
    assert tap_leases.claim(SERVER, "host:2:b")


def test_servers_of_a_process_that_ended_are_free_at_once() -> None:
    own = own_holder_name()
    host = own.split(":")[0]
    for server, holder in ((SERVER, f"{host}:999999:a"), ("other:1", own), ("third:1", "elsewhere:999999:a")):
        tap_leases.free_servers([server])
        tap_leases.claim(server, holder)
    release_leases_of_dead_processes(host)
    assert tap_leases.free_servers([SERVER, "other:1", "third:1"]) == [SERVER]


def test_known_servers_cost_two_queries(django_assert_num_queries: Any) -> None:
    servers = [f"db{number}:3306" for number in range(20)]
    tap_leases.free_servers(servers)
    with django_assert_num_queries(2):
        tap_leases.free_servers(servers)

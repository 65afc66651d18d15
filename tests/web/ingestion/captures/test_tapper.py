"""Which servers a process taps: those that nobody taps, one after the other, with what is to be captured there at the moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from ingestion.captures.servers import PlannedCapture
from ingestion.models import Capture
from ingestion.tapping import tap_leases
from ingestion.tapping.tapper import Tapper
from tests import factories as make
from tests.web.ingestion.captures.taps import HOLDER, SERVER, captured

pytestmark = pytest.mark.django_db
OTHER = "other:3306"


@dataclass
class FakeTap:
    plans: list[list[str]]
    is_running: bool = True
    ended: list[bool] = field(default_factory=list)

    def plan(self, plan: Sequence[PlannedCapture]) -> None:
        self.plans.append(names(plan))

    def end(self, *, is_unused: bool = False) -> None:
        self.ended.append(is_unused)

    def join(self, timeout_s: float) -> None:
        pass


def names(plan: Sequence[PlannedCapture]) -> list[str]:
    return [each.spec.table for each in plan]


@dataclass
class World:
    at: float = 0.0
    mark: str = "1"
    freed: int = 0
    taps: dict[str, FakeTap] = field(default_factory=dict)

    def tapper(self, holder: str = HOLDER) -> Tapper:
        return Tapper(
            holder, mark=lambda: self.mark, free_leases=self.free, start=self.start, monotonic=lambda: self.at
        )

    def free(self) -> None:
        self.freed += 1

    def start(self, server: str, plan: Sequence[PlannedCapture]) -> FakeTap:
        self.taps[server] = FakeTap([names(plan)])
        return self.taps[server]

    def write(self) -> None:
        self.mark += "+"


@pytest.fixture
def world() -> World:
    return World()


def on_other(name: str) -> None:
    make.feed(make.dataset(name), connection=make.connection("more", "mysql://reader@other/ops", plugin="mysql"))


def test_servers_are_claimed_one_at_a_step(world: World) -> None:
    captured("trips", "riders")
    on_other("fares")
    tapper = world.tapper()
    tapper.step()
    assert {server: tap.plans for server, tap in world.taps.items()} == {SERVER: [["trips", "riders"]]}
    tapper.step()
    assert tapper.servers == [SERVER, OTHER]


def test_what_another_process_holds_is_left_to_it_until_the_lease_runs_out(world: World) -> None:
    captured("trips")
    tap_leases.free_servers([SERVER])
    tap_leases.claim(SERVER, "host:2:b")
    tapper = world.tapper()
    tapper.step()
    assert tapper.servers == []
    tap_leases.give_back(SERVER, "host:2:b")
    world.at += 5
    tapper.step()
    assert (tapper.servers, world.freed) == ([SERVER], 2)


def test_what_comes_while_a_server_is_tapped_is_handed_to_its_tap(world: World) -> None:
    captured("trips")
    tapper = world.tapper()
    tapper.step()
    captured("riders")
    tapper.step()
    assert world.taps[SERVER].plans == [["trips"]]
    world.write()
    tapper.step()
    assert world.taps[SERVER].plans[-1] == ["trips", "riders"]


def test_a_server_of_which_nothing_is_captured_any_more_is_let_go_and_its_captures_stop(world: World) -> None:
    (trips,) = captured("trips")
    Capture.objects.update(captured_load=1)
    tapper = world.tapper()
    tapper.step()
    trips.offboarded_at = make.NOW
    trips.save()
    world.write()
    tapper.step()
    assert world.taps[SERVER].ended == [True]
    assert "Load the dataset again" in Capture.objects.get().stopped_why
    assert Capture.objects.get().is_stopped


def test_a_tap_that_has_ended_is_begun_again(world: World) -> None:
    captured("trips")
    tapper = world.tapper()
    tapper.step()
    ended = world.taps[SERVER]
    ended.is_running = False
    tap_leases.give_back(SERVER, HOLDER)
    world.write()
    tapper.step()
    assert world.taps[SERVER] is not ended


def test_an_idle_minute_of_a_hundred_tables_is_bounded(world: World, settings: Any) -> None:
    captured(*(f"table{number}" for number in range(100)))
    tapper = world.tapper()
    tapper.step()
    with CaptureQueriesContext(connection) as asked:
        for _ in range(60):
            world.at += 1
            tapper.step()
    assert len(asked) <= 12 * 8
    assert {query["sql"].split()[0] for query in asked.captured_queries} == {"SELECT"}


def test_an_instance_without_captures_asks_for_its_connections_only(world: World) -> None:
    make.feed(make.dataset("by-cursor"))
    tapper = world.tapper()
    tapper.step()
    world.at += 5
    with CaptureQueriesContext(connection) as asked:
        tapper.step()
    assert len(asked) <= 3


def test_all_end_when_the_process_does(world: World) -> None:
    captured("trips")
    tapper = world.tapper()
    tapper.step()
    assert tapper.end() == [world.taps[SERVER]]
    assert world.taps[SERVER].ended == [False]

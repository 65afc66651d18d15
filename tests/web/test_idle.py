"""An instance that has nothing to do does next to nothing: by count, over a minute that takes no time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakehub.kernel.interval import EVERYTHING
from lakehub.management.commands.beat import Beat
from lakehub.processes.celery_app import app
from quality.models import Unit
from tests import factories as make
from tests.factories import DAY, HOUR, MINUTE, NOW

pytestmark = pytest.mark.django_db

app.loader.import_default_modules()

EVERY_TASK = {name for name in app.tasks if not name.startswith(("celery.", "tests."))}
SENT_BY_OTHERS = {"ingestion.tasks.run_job"}
MAX_TASKS, MAX_QUERIES = 16, 260
"""Of an idle minute. It was 460 tasks, with about 3,000 queries."""


class World:
    """The process `beat` with clocks that are set, and workers that run a task as soon as it is sent."""

    def __init__(self, run: Callable[[str], None]) -> None:
        self.now, self.uptime, self._run = NOW, 100.0, run
        self.sent: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        self.beat = Beat(now=lambda: self.now, monotonic=lambda: self.uptime, send=self._send)

    def _send(self, task: str, _expires: timedelta) -> None:
        self.sent[task] += 1
        self._run(task)

    def pass_seconds(self, seconds: int) -> Counter[str]:
        self.sent.clear()
        for _ in range(seconds):
            self.now += timedelta(seconds=1)
            self.uptime += 1
            self.beat.look()
        return Counter(self.sent)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], datetime]], None]:
    return lambda now: monkeypatch.setattr("lakehub.wiring.clock.now", now)


@pytest.fixture
def world(at: Callable[[Callable[[], datetime]], None]) -> World:
    world = World(lambda task: app.tasks[task]())
    at(lambda: world.now)
    return world


@pytest.fixture
def sender() -> World:
    """Without workers: what is sent is noted."""
    return World(lambda task: None)


def test_every_task_is_sent_at_the_first_look(world: World) -> None:
    """So nothing of what an earlier process was about to send is lost, and none is forgotten in the lists."""
    assert set(world.pass_seconds(1)) == EVERY_TASK - SENT_BY_OTHERS


def test_an_idle_minute_makes_few_tasks_and_queries_and_writes_nothing(world: World) -> None:
    world.pass_seconds(120)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        sent = world.pass_seconds(60)
    assert sent.total() <= MAX_TASKS, sent
    assert not [query["sql"] for query in queries if query["sql"].startswith("INSERT")]
    assert len(queries) <= MAX_QUERIES, Counter(query["sql"][:60] for query in queries)


def test_a_fleet_with_nothing_due_is_as_idle(sender: World) -> None:
    dataset = make.dataset("flights", onboarded_at=NOW - 90 * DAY)
    test = make.quality_test(dataset)
    make.unit(test, due_at=NOW + DAY)
    sender.pass_seconds(120)
    sent = sender.pass_seconds(60)
    assert sent["quality.tasks.run_due"] == 1, "its net"
    assert sent.total() <= MAX_TASKS + 6, sent


def test_what_becomes_due_is_sent_within_a_second(sender: World) -> None:
    unit = make.unit(make.quality_test(make.dataset("flights")), due_at=NOW + HOUR)
    sender.pass_seconds(30)
    Unit.objects.filter(pk=unit.pk).update(due_at=sender.now + 10 * timedelta(seconds=1))
    sender.beat._pacemaker.ask_again()  # the connection of the test is the one that wrote, which SQLite does not count
    assert sender.pass_seconds(9)["quality.tasks.run_due"] == 0
    assert sender.pass_seconds(1)["quality.tasks.run_due"] == 1


@pytest.mark.parametrize("seconds", [1, 40])
def test_a_clock_that_was_ahead_for_less_than_a_minute_is_put_right(sender: World, seconds: int) -> None:
    test = make.quality_test(make.dataset("flights"), cadence=HOUR)
    unit = make.unit(test, over=EVERYTHING, due_at=NOW + HOUR)
    sender.pass_seconds(5)
    sender.now += DAY
    sender.pass_seconds(seconds)
    Unit.objects.filter(pk=unit.pk).update(due_at=sender.now + HOUR, latest_at=sender.now, last_pass_at=sender.now)
    sender.now -= DAY
    assert sender.pass_seconds(2)["quality.tasks.run_due"] >= 1
    unit.refresh_from_db()
    assert unit.last_pass_at is not None
    assert unit.last_pass_at <= sender.now


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_after_a_clock_that_was_set_back_units_are_due_as_ever(sender: World, restart: bool) -> None:
    """The clock was a day ahead while a test ran: its cadence came round a day late, and its PASS hid all failures till then."""
    test = make.quality_test(make.dataset("flights"), cadence=HOUR)
    unit = make.unit(test, over=EVERYTHING, due_at=NOW - MINUTE)
    sender.now += DAY
    sender.pass_seconds(5)
    Unit.objects.filter(pk=unit.pk).update(due_at=sender.now + HOUR, latest_at=sender.now, last_pass_at=sender.now)
    sender.now -= DAY
    if restart:
        sender.start()
    assert sender.pass_seconds(2)["quality.tasks.run_due"] >= 1
    unit.refresh_from_db()
    assert unit.last_pass_at is not None
    assert unit.last_pass_at <= sender.now

"""Sources that go silent, more of them than there are workers: half of the workers wait for them, the others go on."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread, get_ident
from typing import Any

import pytest
import sqlalchemy as sa
from celery import signals
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection

from lakehub.kernel.interval import EVERYTHING
from lakehub.source_databases.timeouts import Timeouts
from quality.execution import worker
from quality.measuring import slow_sources
from quality.measuring.slow_sources import SourceDeferred, source_turn
from quality.models import SLOW_SOURCES, ConcurrencySlot, Result, SlowSource, Unit
from quality.planning import change_polling
from quality.tasks import run_due
from tests import factories
from tests.factories import NOW
from tests.polling import scaled, wait_until
from tests.tcp_forwarder import TcpForwarder

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS, MAY_WAIT, SILENT, HEALTHY = 4, 2, 6, 5
SLOW_AFTER_S = 0.5
UNTIL_LEFT_S = 8.0
"""From being slow to being left: the server is asked to cancel, then the connection ends, and the claim is given back."""


@pytest.fixture(autouse=True)
def patient(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the limit of slow sources ends the waiting within the test."""
    settings.LAKEHUB_SLOW_SOURCES = MAY_WAIT
    settings.LAKEHUB_ENGINE_LIMITS = {}
    monkeypatch.setattr(slow_sources, "SLOW_AFTER", timedelta(seconds=SLOW_AFTER_S))
    patience = Timeouts(connect=timedelta(minutes=5), silence=timedelta(minutes=10), cancel=timedelta(seconds=1))
    monkeypatch.setattr("quality.engines.backends.database_connection.DEFAULT_TIMEOUTS", patience)


@dataclass
class SilentServers:
    """Of two kinds: half never greet, half go silent in their first answers. `end` resets whoever waits for them."""

    urls: list[str]
    end: Callable[[], None]


@pytest.fixture
def silent_servers(postgresql_url: str) -> Iterator[SilentServers]:
    server = sa.make_url(postgresql_url)
    with ExitStack() as opened:
        urls = []
        for number in range(SILENT):
            if number % 2:
                forwarder = opened.enter_context(TcpForwarder())
                urls.append(f"mysql+pymysql://reader:secret@127.0.0.1:{forwarder.port}/ops")
            else:
                target = (server.host or "", server.port or 0)
                forwarder = opened.enter_context(TcpForwarder(target, silent_after=700))
                urls.append(f"postgresql+psycopg://{server.username}@127.0.0.1:{forwarder.port}/{server.database}")
        yield SilentServers(urls, opened.close)


def due_unit(name: str, url: str, tier: int) -> Unit:
    """Of a table that is only watched."""
    kept = factories.connection(name, url)
    dataset = factories.dataset(name, copies=(), by_day=False, tier=tier, ingested=False)
    copy = factories.copy(dataset, uri="", connection=kept, object="flights")
    test = factories.quality_test(dataset, expression="rows(this) > 0")
    return Unit.objects.create(
        test=test, copy=copy, start=EVERYTHING.start, end=EVERYTHING.end, due_at=NOW, resource=f"sqlalchemy:{name}"
    )


@pytest.fixture
def healthy(tmp_path: Path) -> list[Unit]:
    with sqlite3.connect(tmp_path / "ops.db") as database:
        database.execute("CREATE TABLE flights (id INTEGER)")
        database.execute("INSERT INTO flights VALUES (1)")
    return [due_unit(f"healthy{number}", f"sqlite:///{tmp_path / 'ops.db'}", tier=5) for number in range(HEALTHY)]


@dataclass
class Crew:
    """Workers at work, and since when each measures what it measures."""

    since: dict[int, float] = field(default_factory=dict)
    problems: list[BaseException] = field(default_factory=list)
    ended: Event = field(default_factory=Event)
    threads: list[Thread] = field(default_factory=list)

    def start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        measure = worker.measure_units

        def timed(*arguments: Any, **keywords: Any) -> Any:
            self.since[get_ident()] = time.monotonic()
            try:
                return measure(*arguments, **keywords)
            finally:
                del self.since[get_ident()]

        monkeypatch.setattr(worker, "measure_units", timed)
        self.threads = [Thread(target=self._work, args=(f"w{number}",)) for number in range(WORKERS)]
        for thread in self.threads:
            thread.start()

    def waiting(self) -> int:
        """How many keep waiting for longer than they may without a slot."""
        return sum(time.monotonic() - since > SLOW_AFTER_S + UNTIL_LEFT_S for since in list(self.since.values()))

    def _work(self, name: str) -> None:
        try:
            while not self.ended.wait(0.05):
                worker.run_due_units(now=NOW, worker=name, most=1)
        except BaseException as problem:
            self.problems.append(problem)
        finally:
            connection.close()


def slots_taken() -> int:
    return ConcurrencySlot.objects.filter(resource=SLOW_SOURCES).exclude(leased_by="").count()


def test_silent_sources_have_half_of_the_workers_and_everything_else_goes_on(
    silent_servers: SilentServers, healthy: list[Unit], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = [due_unit(f"silent{number}", url, tier=0) for number, url in enumerate(silent_servers.urls)]
    crew = Crew()
    crew.start(monkeypatch)
    try:
        wait_until(lambda: Result.objects.filter(unit__in=healthy).count() == HEALTHY, within_s=120)
        wait_until(lambda: crew.waiting() == MAY_WAIT, within_s=90)
        seen_until = time.monotonic() + 3
        wait_until(lambda: crew.waiting() > MAY_WAIT or time.monotonic() > seen_until)
        assert (crew.waiting(), slots_taken()) == (MAY_WAIT, MAY_WAIT)
        again = Unit.objects.filter(pk=healthy[0].pk)
        again.update(due_at=NOW)  # while half of the workers still wait
        wait_until(lambda: Result.objects.filter(unit=healthy[0]).count() == 2, within_s=60)
        assert not Result.objects.filter(unit__in=silent).exists()
        assert SlowSource.objects.count() >= WORKERS
    finally:
        crew.ended.set()
        Unit.objects.filter(pk__in=[unit.pk for unit in silent]).update(due_at=None)
        silent_servers.end()
        for thread in crew.threads:
            thread.join(scaled(60))
    assert not any(thread.is_alive() for thread in crew.threads)
    assert crew.problems == []
    assert set(Result.objects.filter(unit__in=healthy).values_list("outcome", flat=True)) == {"pass"}
    assert slots_taken() == 0


def test_a_task_that_its_watchdog_stops_leaves_results_and_a_line_of_the_log_in_words(
    healthy: list[Unit], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def hang(*_: Any, **__: Any) -> None:
        raise SoftTimeLimitExceeded  # as the pool does in the thread that works

    monkeypatch.setattr(worker, "measure_units", hang)
    assert worker.run_due_units(now=NOW, worker="w", most=1) == 1
    result = Result.objects.get()
    assert result.outcome == "error"
    assert "ran for longer than LAKEHUB_TASK_MINUTES" in result.detail["cause"]
    assert (result.unit.leased_by, slots_taken()) == ("", 0)
    signals.task_failure.send(sender=run_due, task_id="1", exception=SoftTimeLimitExceeded())
    assert "quality.tasks.run_due was stopped, as it ran for longer than LAKEHUB_TASK_MINUTES=60" in caplog.text


def test_a_source_that_answers_quickly_again_needs_no_slot_any_more(healthy: list[Unit]) -> None:
    SlowSource.objects.create(resource=healthy[0].resource)
    assert worker.run_due_units(now=NOW, worker="w") == HEALTHY
    assert not SlowSource.objects.exists()
    assert slots_taken() == 0


def test_a_source_that_is_known_to_be_slow_is_read_with_a_slot_only(healthy: list[Unit]) -> None:
    slow = healthy[0]
    SlowSource.objects.create(resource=slow.resource)
    slots = [ConcurrencySlot(resource=SLOW_SOURCES, number=number) for number in range(MAY_WAIT)]
    ConcurrencySlot.objects.bulk_create(slots)
    ConcurrencySlot.objects.update(leased_by="others", leased_until=NOW.replace(year=2099))
    assert worker.run_due_units(now=NOW, worker="w") == HEALTHY - 1
    assert not Result.objects.filter(unit=slow).exists()
    with pytest.raises(SourceDeferred, match="LAKEHUB_SLOW_SOURCES"), source_turn(slow.copy):
        pytest.fail("it has no turn")
    change_polling.poll_due_copies(now=NOW)
    slow.copy.refresh_from_db()
    assert slow.copy.watch.due_at == NOW + change_polling.DEFERRED_BY
    ConcurrencySlot.objects.update(leased_by="", leased_until=None)
    assert worker.run_due_units(now=NOW, worker="w") == 1

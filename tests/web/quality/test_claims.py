"""Claims: one worker at a time, the most urgent first, nothing lost with a worker that dies."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.outcome import Verdict
from quality.execution import claims, worker
from quality.models import Flip, Lane, Result, Unit
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW, day
from tests.query_plans import plans_of
from tests.web.quality.conftest import World

pytestmark = pytest.mark.django_db


def due_unit(due_at: datetime = NOW, lane: Lane = Lane.DUE, where: str = "dc1", **fields: object) -> Unit:
    dataset = factories.dataset(copies=(where,))
    made = factories.test(dataset, expression="gt(rows(this), 0)", cadence=HOUR)
    return factories.unit(made, over=EVERYTHING, verdict=Verdict.PASS, **{"due_at": due_at, "lane": lane, **fields})


def test_nothing_due_is_nothing_claimed() -> None:
    due_unit(NOW + MINUTE)
    assert claims.claim_due_units(now=NOW, worker="a") is None


def test_a_unit_is_claimed_once() -> None:
    unit = due_unit()
    first, second = claims.claim_due_units(now=NOW, worker="a"), claims.claim_due_units(now=NOW, worker="b")
    assert first is not None
    assert [claimed.pk for claimed in first.units] == [unit.pk]
    assert second is None


def test_a_dead_worker_s_units_are_claimed_again() -> None:
    unit = due_unit()
    claims.claim_due_units(now=NOW, worker="a")
    Unit.objects.update(leased_until=datetime(2000, 1, 1, tzinfo=NOW.tzinfo))
    again = claims.claim_due_units(now=NOW, worker="b")
    assert again is not None
    assert [claimed.pk for claimed in again.units] == [unit.pk]


def test_what_was_asked_for_goes_first_and_late_data_last() -> None:
    late, regular, asked = due_unit(NOW - DAY, Lane.LATE), due_unit(NOW - HOUR), due_unit(NOW, Lane.REQUESTED)
    order = []
    while claimed := claims.claim_due_units(now=NOW, worker="a"):
        order += [unit.pk for unit in claimed.units]
    assert order == [asked.pk, regular.pk, late.pk]


def test_units_of_one_copy_are_claimed_together(world: World) -> None:
    world.monitored()
    Unit.objects.filter(test__key="duplicates", copy=world.copy("dc1")).update(due_at=NOW)
    claimed = claims.claim_due_units(now=NOW, worker="a")
    assert claimed is not None
    assert len(claimed.units) == 4
    assert claims.claim_due_units(now=NOW, worker="b") is None


def test_a_worker_whose_lease_was_lost_stores_nothing(world: World) -> None:
    world.monitored()
    before = Result.objects.count()
    Unit.objects.filter(pk=world.unit("freshness").pk).update(due_at=NOW)
    claimed = claims.claim_due_units(now=NOW, worker="slow")
    assert claimed is not None
    Unit.objects.update(leased_by="someone else")
    assert worker.execute_claim(claimed, now=NOW) == []
    assert Result.objects.count() == before


def test_results_facts_and_flip_are_stored_together_or_not_at_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.monitored()
    unit = world.unit("freshness")
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW)
    counts = (Result.objects.count(), Flip.objects.count())

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("the disk is full")

    monkeypatch.setattr("quality.execution.store.apply_facts", fails)
    with pytest.raises(RuntimeError):
        world.run(NOW)
    assert (Result.objects.count(), Flip.objects.count()) == counts


def test_what_is_asked_for_during_a_run_is_run_again(world: World) -> None:
    world.monitored()
    unit = world.unit("freshness")
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW)
    claimed = claims.claim_due_units(now=NOW, worker="a")
    assert claimed is not None
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW + MINUTE, lane=Lane.REQUESTED)
    worker.execute_claim(claimed, now=NOW + timedelta(seconds=30))
    unit.refresh_from_db()
    assert (unit.due_at, unit.lane) == (NOW + MINUTE, Lane.REQUESTED)


def test_runs_of_a_unit_follow_each_other_whatever_the_workers_clocks_say(world: World) -> None:
    unit = world.monitored().unit("freshness")
    for clock in (NOW, NOW - MINUTE):
        Unit.objects.filter(pk=unit.pk).update(due_at=NOW - HOUR)
        world.run(clock)
    read_at = list(Result.objects.filter(unit=unit).order_by("pk").values_list("read_at", flat=True))
    assert read_at == [NOW + timedelta(microseconds=later) for later in range(3)]


def test_finding_what_is_due_uses_the_index() -> None:
    due_unit()
    _, looked, _, taken, _ = plans_of(lambda: claims.claim_due_units(now=NOW, worker="a"))
    for plan in (looked, taken):
        assert "unit_due" in plan
        assert "SCAN quality_unit" not in plan


def test_what_overlaps_a_range_is_found_by_the_index() -> None:
    copy = due_unit().copy
    overlapping = Unit.objects.filter(copy=copy, start__lt=NOW, end__gt=NOW - DAY)
    (plan,) = plans_of(lambda: list(overlapping))
    assert "unit_overlap" in plan


def test_a_claim_takes_as_many_queries_whatever_its_size(world: World) -> None:
    world.monitored()
    counts = []
    for where, size in (("dc1", 1), ("dc2", 13)):
        chosen = Unit.objects.filter(copy=world.copy(where)).values_list("pk", flat=True)[:size]
        Unit.objects.filter(pk__in=list(chosen)).update(due_at=NOW, lane=Lane.DUE, resource="")
        with CaptureQueriesContext(connection) as capture:
            claimed = claims.claim_due_units(now=NOW, worker="a")
        assert claimed is not None
        assert len(claimed.units) == size
        counts.append(len(capture.captured_queries))
    assert counts[0] == counts[1]


def test_storing_fifty_results_takes_as_many_writes_as_storing_one(world: World) -> None:
    """Results, units, flips and the partitions that follow are a statement each, and what shares a scan is read once."""
    world.monitored()
    test = world.test("duplicates")
    for number in range(60):
        over = day(f"2026-{8 + number // 30:02}-{1 + number % 30:02}")
        factories.unit(test, world.copy("dc1"), over, latest_at=None, last_pass_at=None)
    counts = []
    for size in (1, 50):
        chosen = list(Unit.objects.filter(test=test, end__lt=NOW - 40 * DAY).exclude(verdict="unknown")[:size])
        Unit.objects.filter(pk__in=[unit.pk for unit in chosen]).update(due_at=NOW, lane=Lane.LATE)
        claimed = claims.claim_due_units(now=NOW, worker="a")
        assert claimed is not None
        with CaptureQueriesContext(connection) as capture:
            stored = worker.execute_claim(claimed, now=NOW)
        assert len(stored) == size
        assert Flip.objects.filter(result__in=stored).count() == size
        counts.append(len(capture.captured_queries))
    assert counts[0] == counts[1]

"""Claims: one worker at a time, the most urgent first, nothing lost with a worker that dies."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.outcome import Verdict
from quality import execution, scheduling
from quality.models import Flip, Lane, Result, Unit
from tests import factories
from tests.factories import DAY, HOUR, MINUTE, NOW
from tests.plans import plans_of
from tests.web.quality.conftest import World

pytestmark = pytest.mark.django_db


def due_unit(due_at: datetime = NOW, lane: Lane = Lane.DUE, where: str = "dc1", **fields: object) -> Unit:
    dataset = factories.dataset(copies=(where,))
    made = factories.test(dataset, expression="gt(rows(this), 0)", cadence=HOUR)
    return factories.unit(made, over=EVERYTHING, verdict=Verdict.PASS, **{"due_at": due_at, "lane": lane, **fields})


def test_nothing_due_is_nothing_claimed() -> None:
    due_unit(NOW + MINUTE)
    assert scheduling.claim(now=NOW, worker="a") is None


def test_a_unit_is_claimed_once() -> None:
    unit = due_unit()
    first, second = scheduling.claim(now=NOW, worker="a"), scheduling.claim(now=NOW, worker="b")
    assert first is not None
    assert [one.pk for one in first.units] == [unit.pk]
    assert second is None


def test_a_dead_worker_s_units_are_claimed_again() -> None:
    unit = due_unit()
    scheduling.claim(now=NOW, worker="a")
    Unit.objects.update(leased_until=datetime(2000, 1, 1, tzinfo=NOW.tzinfo))
    again = scheduling.claim(now=NOW, worker="b")
    assert again is not None
    assert [one.pk for one in again.units] == [unit.pk]


def test_what_was_asked_for_goes_first_and_late_data_last() -> None:
    late, regular, asked = due_unit(NOW - DAY, Lane.LATE), due_unit(NOW - HOUR), due_unit(NOW, Lane.ASKED)
    order = []
    while claimed := scheduling.claim(now=NOW, worker="a"):
        order += [one.pk for one in claimed.units]
    assert order == [asked.pk, regular.pk, late.pk]


def test_units_of_one_copy_are_claimed_together(world: World) -> None:
    world.monitored()
    Unit.objects.filter(test__key="duplicates", copy=world.copy("dc1")).update(due_at=NOW)
    claimed = scheduling.claim(now=NOW, worker="a")
    assert claimed is not None
    assert len(claimed.units) == 4
    assert scheduling.claim(now=NOW, worker="b") is None


def test_a_worker_whose_lease_was_lost_stores_nothing(world: World) -> None:
    world.monitored()
    before = Result.objects.count()
    Unit.objects.filter(pk=world.unit("freshness").pk).update(due_at=NOW)
    claimed = scheduling.claim(now=NOW, worker="slow")
    assert claimed is not None
    Unit.objects.update(leased_by="someone else")
    assert execution.execute(claimed, now=NOW) == []
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

    monkeypatch.setattr(execution, "settle", fails)
    with pytest.raises(RuntimeError):
        world.run(NOW)
    assert (Result.objects.count(), Flip.objects.count()) == counts


def test_what_is_asked_for_during_a_run_is_run_again(world: World) -> None:
    world.monitored()
    unit = world.unit("freshness")
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW)
    claimed = scheduling.claim(now=NOW, worker="a")
    assert claimed is not None
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW + MINUTE, lane=Lane.ASKED)
    execution.execute(claimed, now=NOW + timedelta(seconds=30))
    unit.refresh_from_db()
    assert (unit.due_at, unit.lane) == (NOW + MINUTE, Lane.ASKED)


def test_runs_of_a_unit_follow_each_other_whatever_the_workers_clocks_say(world: World) -> None:
    unit = world.monitored().unit("freshness")
    for clock in (NOW, NOW - MINUTE):
        Unit.objects.filter(pk=unit.pk).update(due_at=NOW - HOUR)
        world.run(clock)
    read_at = list(Result.objects.filter(unit=unit).order_by("pk").values_list("read_at", flat=True))
    assert read_at == [NOW + timedelta(microseconds=later) for later in range(3)]


def test_finding_what_is_due_uses_the_index() -> None:
    due_unit()
    head, *_ = plans_of(lambda: scheduling.claim(now=NOW, worker="a"))
    assert "unit_due" in head
    assert "TEMP B-TREE" not in head


def test_a_claim_is_four_queries_whatever_its_size(world: World, django_assert_num_queries: object) -> None:
    world.monitored()
    Unit.objects.filter(copy=world.copy("dc1")).update(due_at=NOW, lane=Lane.DUE)
    with django_assert_num_queries(4):  # type: ignore[operator]
        claimed = scheduling.claim(now=NOW, worker="a")
    assert claimed is not None
    assert len(claimed.units) == 13


def test_a_result_costs_one_write_more(world: World) -> None:
    """One update for each unit; the results are one insert, and what shares a scan is read once."""
    world.monitored()
    counts = []
    for size in (2, 4):
        chosen = list(
            Unit.objects.filter(copy=world.copy("dc1"), test__key="duplicates")
            .order_by("start")
            .values_list("pk", flat=True)[:size]
        )
        Unit.objects.filter(pk__in=chosen).update(due_at=NOW, lane=Lane.LATE)
        claimed = scheduling.claim(now=NOW, worker="a")
        assert claimed is not None
        with CaptureQueriesContext(connection) as capture:
            execution.execute(claimed, now=NOW + timedelta(seconds=size))
        counts.append(len(capture.captured_queries))
    assert counts[1] - counts[0] == 2

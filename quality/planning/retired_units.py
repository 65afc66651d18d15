"""What happens to units when their test gets a new version or is retired."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import BEGINNING, EVERYTHING
from quality.domain.generation.definitions import runs_in
from quality.domain.language import parse
from quality.domain.verdicts.unit_verdict import Waiver, lift_waiver, waive
from quality.models import Lane, QualityTest, Unit
from quality.state.first_partition import first_tested_at
from quality.state.unit_state import apply_facts, save_units, unit_facts


def _before_first_tested(test: QualityTest, copies: Iterable[DatasetCopy]) -> Q:
    """The units of partitions that another version of the test had, and this one has no answer for."""
    condition = Q(pk__in=[])
    for copy in copies:
        if (first := first_tested_at(test, copy)) > (copy.monitored_from or BEGINNING):
            condition |= Q(copy=copy, start__lt=first) & ~Q(end=EVERYTHING.end)
    return condition


def drop_unanswerable(test: QualityTest, copy: DatasetCopy, *, now: datetime) -> None:
    """Those in front go where they never had an answer. What had one stays and counts no more: no incident stays open."""
    front = Unit.objects.filter(_before_first_tested(test, [copy]), test=test)
    front.filter(last_pass_at=None, first_fail_at=None).delete()
    answered = list(front.filter(waiver="").values_list("pk", flat=True))
    if answered:
        with transaction.atomic():
            stopped = Unit.objects.filter(pk__in=answered)
            stopped.update(leased_by="", leased_until=None)  # what is under way will not do
            _stop_and_waive(stopped, now=now, which=Q())


def reset_units_for_new_version(test: QualityTest, *, now: datetime) -> None:
    """What was measured under another version is measured again; waivers of it end."""
    front = _before_first_tested(test, test.dataset.copies.select_related("dataset"))
    counted = Unit.objects.filter(test=test).exclude(front)
    waived = counted.exclude(waiver="").order_by("pk")
    units = list(waived.select_for_update(of=("self",)).select_related("test__version"))
    save_units(units, [apply_facts(unit, lift_waiver(unit_facts(unit)), now=now) for unit in units])
    running = ~Q(leased_by="")  # under the version that was: its result will not do
    tested = counted.filter(Q(latest_at__isnull=False) | running)
    tested.filter(Q(due_at=None) | Q(due_at__gt=now) | running).update(due_at=now, lane=Lane.LATE)
    _stop_and_waive(Unit.objects.filter(test=test, copy__in=_copies_not_covered(test)), now=now)


def _copies_not_covered(test: QualityTest) -> list[int]:
    """The copies that the new version has nothing to say about."""
    assert test.version is not None
    expression = parse(test.version.flattened)
    copies = test.dataset.copies.values_list("pk", "data_center__name")
    return [copy for copy, center in copies if not runs_in(expression, center)]


def stop_units(test: QualityTest, *, now: datetime) -> None:
    """The units of a retired test are run no more."""
    _stop_and_waive(Unit.objects.filter(test=test), now=now)


_IS_FAILING = Q(first_fail_at__isnull=False)


def _stop_and_waive(stopped: QuerySet[Unit], *, now: datetime, which: Q = _IS_FAILING) -> None:
    """What failed (or `which`) is waived, so that its incident ends with the test."""
    stopped.update(due_at=None, reevaluate_at=None)
    waived = stopped.filter(which, waiver="").order_by("pk")
    units = list(waived.select_for_update(of=("self",)).select_related("test__version"))
    save_units(
        units, [apply_facts(unit, waive(unit_facts(unit), Waiver.FALSE_POSITIVE, at=now), now=now) for unit in units]
    )

"""What happens to units when their test gets a new version or is retired, or when the calendar expects their range no more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Value

from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.interval import BEGINNING, EVERYTHING, Interval, earlier
from lakehub.kernel.outcome import Verdict
from quality.domain.generation.definitions import runs_in
from quality.domain.parsed import parsed_or_blank
from quality.domain.verdicts.unit_verdict import Waiver, begin_anew, lift_waiver, waive
from quality.models import Flip, Lane, QualityTest, Unit
from quality.state.first_partition import first_tested_at
from quality.state.unit_state import apply_facts, save_units, unit_facts

NOT_EXPECTED = Q(waiver=Waiver.NOT_EXPECTED)
"""The units that a change of the calendar let go."""
_ANSWERED = Q(last_pass_at__isnull=False) | Q(first_fail_at__isnull=False)


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


def drop_not_expected(copy: DatasetCopy, partitions: Collection[Interval], *, now: datetime) -> None:
    """The units of partitions in which no rows are expected any more. Those without an answer go. Those that had one stay for
    the sake of their incidents, which end, and count no more."""
    starts = {partition.start for partition in partitions}
    live = Unit.objects.filter(copy=copy, start__in=starts, test__planned=True, test__retired_at=None)
    left = live.exclude(end=EVERYTHING.end).exclude(NOT_EXPECTED)
    has_history = _ANSWERED | Q(Exists(Flip.objects.filter(unit=OuterRef("pk"), becomes=Verdict.FAIL)))
    left.exclude(has_history).delete()
    left.update(leased_by="", leased_until=None, due_at=None)  # what is under way will not do
    units = list(left.order_by("pk").select_for_update(of=("self",)).select_related("test__version"))
    facts = (waive(unit_facts(unit), Waiver.NOT_EXPECTED, at=now) for unit in units)
    save_units(units, [apply_facts(unit, its_facts, now=now) for unit, its_facts in zip(units, facts, strict=True)])


def begin_units_anew(planned: Sequence[Unit], *, now: datetime) -> None:
    """Of what is planned, the units that a calendar let go: due as if they were new, since the calendar is another one now or
    something was written."""
    new = {(unit.test_id, unit.copy_id, unit.start): unit for unit in planned}
    if not new:
        return
    starts = [unit.start for unit in planned]
    within = Q(start__gte=min(starts), start__lte=max(starts), copy__in={unit.copy_id for unit in planned})
    let_go = Unit.objects.filter(NOT_EXPECTED, within, test__in={unit.test_id for unit in planned})
    with transaction.atomic():
        rows = let_go.order_by("pk").select_for_update(of=("self",)).select_related("test__version")
        units = [unit for unit in rows if (unit.test_id, unit.copy_id, unit.start) in new]
        for unit in units:
            planned_unit = new[unit.test_id, unit.copy_id, unit.start]
            unit.due_at, unit.lane, unit.attempt = planned_unit.due_at, planned_unit.lane, 0
        flips = [apply_facts(unit, begin_anew(unit_facts(unit)), now=now) for unit in units]
        save_units(units, flips, also=("due_at", "lane", "attempt"))


def reset_units_for_new_version(test: QualityTest, *, now: datetime) -> None:
    """What was measured under another version is measured again; waivers of it end."""
    front = _before_first_tested(test, test.dataset.copies.select_related("dataset"))
    counted = Unit.objects.filter(test=test, copy__removed_at=None).exclude(front).exclude(NOT_EXPECTED)
    waived = counted.exclude(waiver="").order_by("pk")
    units = list(waived.select_for_update(of=("self",)).select_related("test__version"))
    save_units(units, [apply_facts(unit, lift_waiver(unit_facts(unit)), now=now) for unit in units])
    running = ~Q(leased_by="")  # under the version that was: its result will not do
    tested = counted.filter(Q(latest_at__isnull=False) | running)
    tested.filter(Q(due_at=None) | Q(due_at__gt=now) | running).update(
        due_at=now, lane=Lane.LATE, leased_by="", leased_until=None
    )
    _stop_and_waive(Unit.objects.filter(test=test, copy__in=_copies_not_covered(test)), now=now)


def move_planned_units(test: QualityTest, *, now: datetime) -> None:
    """What was not run yet is due as the new version says: partitions that wait, and those that begin to be overdue."""
    assert test.version is not None
    if test.version.cadence is not None:
        return
    waiting = Unit.objects.filter(test=test, latest_at=None, leased_by="", due_at__isnull=False)
    planned = waiting.exclude(end=EVERYTHING.end).exclude(lane=Lane.REQUESTED)
    due_after = test.version.due_after
    due_at = ExpressionWrapper(F("end") + Value(due_after), output_field=DateTimeField())
    is_history = Q(end__lte=earlier(now, 2 * due_after))  # as where it is planned: it goes behind what is due now
    planned.filter(is_history).update(due_at=due_at, lane=Lane.LATE)
    planned.exclude(is_history).update(due_at=due_at, lane=Lane.DUE)


def _copies_not_covered(test: QualityTest) -> list[int]:
    """The copies that the new version has nothing to say about."""
    assert test.version is not None
    expression = parsed_or_blank(test.version.flattened)
    copies = test.dataset.copies.values_list("pk", "data_center__name")
    return [copy for copy, center in copies if not runs_in(expression, center)]


def stop_units(test: QualityTest, *, now: datetime) -> None:
    """The units of a retired test are run no more. What fails on a copy that was removed ends with the copy."""
    _stop_and_waive(Unit.objects.filter(test=test, copy__removed_at=None), now=now)


def stop_units_of_removed_copies(dataset: Dataset) -> None:
    """They are run no more. Incidents ends what is open there; nothing is waived."""
    left = Unit.objects.filter(copy__dataset=dataset, copy__removed_at__isnull=False)
    left.filter(Q(due_at__isnull=False) | Q(reevaluate_at__isnull=False)).update(due_at=None, reevaluate_at=None)


_IS_FAILING = Q(first_fail_at__isnull=False)


def _stop_and_waive(stopped: QuerySet[Unit], *, now: datetime, which: Q = _IS_FAILING) -> None:
    """What failed (or `which`) is waived, so that its incident ends with the test."""
    stopped.update(due_at=None, reevaluate_at=None)
    waived = stopped.filter(which, waiver="").order_by("pk")
    units = list(waived.select_for_update(of=("self",)).select_related("test__version"))
    save_units(
        units, [apply_facts(unit, waive(unit_facts(unit), Waiver.FALSE_POSITIVE, at=now), now=now) for unit in units]
    )

"""Which data was really bad: what baselines of anomalies leave out, from the verdicts that there were."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval, union
from lakehub.kernel.outcome import Verdict
from quality.domain.language.type_checker import window_function_calls
from quality.domain.parsed import is_parsable, parsed
from quality.domain.verdicts.unit_verdict import VerdictReason, Waiver
from quality.models import Flip, Unit


def baseline_exclusions_for(copy: DatasetCopy, units: Iterable[Unit]) -> tuple[Interval, ...]:
    """What the tests of these units leave out; nothing is looked up where none compares itself with the past."""
    tests = {unit.test.version.flattened for unit in units if unit.test.version is not None}
    return confirmed_bad_ranges(copy) if any(map(_compares_with_past, tests)) else ()


def confirmed_bad_ranges(copy: DatasetCopy) -> tuple[Interval, ...]:
    """The ranges of the copy that were FAIL, unless a person said that the alarm was wrong.

    Of partitions only: that a table was late as a whole says nothing about the values that it holds. That something is
    unusual is no proof that it is wrong: a level that has shifted for good becomes what is usual. So the failures of
    tests that compare with the past are left out only once they ended with a PASS, or were accepted as true.
    """
    failed = Flip.objects.filter(unit=OuterRef("pk"), becomes=Verdict.FAIL)
    taken_back = Flip.objects.filter(unit=OuterRef("pk"), reason=VerdictReason.FALSE_POSITIVE)
    units = Unit.objects.filter(Exists(failed), ~Exists(taken_back), copy=copy).exclude(end=EVERYTHING.end)
    unproven = Q(test__in=_tests_comparing_with_past(copy), first_fail_at__isnull=False) & ~Q(waiver=Waiver.ACCEPTED)
    ranges = units.exclude(waiver=Waiver.FALSE_POSITIVE).exclude(unproven).values_list("start", "end").distinct()
    return union(Interval(start, end) for start, end in ranges)


def _tests_comparing_with_past(copy: DatasetCopy) -> list[int]:
    """The tests that compare with the past."""
    texts = copy.dataset.tests.filter(retired_at=None).values_list("pk", "version__flattened")
    return [pk for pk, text in texts if text and _compares_with_past(text)]


def _compares_with_past(flattened: str) -> bool:
    """What is not understood compares nothing; its result says so."""
    return is_parsable(flattened) and any(window_function_calls(parsed(flattened)))

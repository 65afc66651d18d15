"""Which data was really bad: what baselines of anomalies leave out, from the verdicts that there were."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval, union
from lakehub.kernel.outcome import Verdict
from quality.domain.expression.checker import series_calls
from quality.domain.verdicts import Reason, Waiver
from quality.measuring import is_understood, understood
from quality.models import Flip, Unit


def left_out(copy: DatasetCopy, units: Iterable[Unit]) -> tuple[Interval, ...]:
    """What the tests of these units leave out; nothing is looked up where none compares itself with the past."""
    tests = {unit.test.version.flattened for unit in units if unit.test.version is not None}
    return confirmed(copy) if any(map(_compares, tests)) else ()


def confirmed(copy: DatasetCopy) -> tuple[Interval, ...]:
    """The ranges of the copy that were FAIL, unless a person said that the alarm was wrong.

    Of partitions only: that a table was late as a whole says nothing about the values that it holds. That something is
    unusual is no proof that it is wrong: a level that has shifted for good becomes what is usual. So the failures of
    tests that compare with the past are left out only once they ended with a PASS, or were accepted as true.
    """
    failed = Flip.objects.filter(unit=OuterRef("pk"), becomes=Verdict.FAIL)
    taken_back = Flip.objects.filter(unit=OuterRef("pk"), reason=Reason.FALSE_POSITIVE)
    units = Unit.objects.filter(Exists(failed), ~Exists(taken_back), copy=copy).exclude(end=EVERYTHING.end)
    unproven = Q(test__in=_of_the_usual(copy), first_fail_at__isnull=False) & ~Q(waiver=Waiver.ACCEPTED)
    ranges = units.exclude(waiver=Waiver.FALSE_POSITIVE).exclude(unproven).values_list("start", "end").distinct()
    return union(Interval(start, end) for start, end in ranges)


def _of_the_usual(copy: DatasetCopy) -> list[int]:
    """The tests that compare with the past."""
    texts = copy.dataset.tests.filter(retired_at=None).values_list("pk", "version__flattened")
    return [pk for pk, text in texts if text and _compares(text)]


def _compares(flattened: str) -> bool:
    """What is not understood compares nothing; its result says so."""
    return is_understood(flattened) and any(series_calls(understood(flattened)))

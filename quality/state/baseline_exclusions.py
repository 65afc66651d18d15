"""Which data was really bad: what baselines of anomalies leave out, from the verdicts that there were."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING, Interval, union
from lakehub.kernel.outcome import Verdict
from quality.domain.parsed import compares_with_past
from quality.domain.verdicts.unit_verdict import VerdictReason, Waiver
from quality.models import Flip, Unit

_TAKEN_BACK = (VerdictReason.FALSE_POSITIVE, VerdictReason.NOT_EXPECTED)
"""The reasons, and waivers, of what turned out to be no failure."""


def confirmed_bad_ranges(copy: DatasetCopy) -> tuple[Interval, ...]:
    """The ranges of the copy that were FAIL, unless a person said that the alarm was wrong.

    Of partitions only: that a table was late as a whole says nothing about the values that it holds. That something is
    unusual is no proof that it is wrong: a level that has shifted for good becomes what is usual. So the failures of
    tests that compare with the past are left out only once they ended with a PASS, or were accepted as true.
    """
    failed = Flip.objects.filter(unit=OuterRef("pk"), becomes=Verdict.FAIL)
    taken_back = Flip.objects.filter(unit=OuterRef("pk"), reason__in=_TAKEN_BACK)
    units = Unit.objects.filter(Exists(failed), ~Exists(taken_back), copy=copy).exclude(end=EVERYTHING.end)
    unproven = Q(test__in=_tests_comparing_with_past(copy), first_fail_at__isnull=False) & ~Q(waiver=Waiver.ACCEPTED)
    ranges = units.exclude(waiver__in=_TAKEN_BACK).exclude(unproven).values_list("start", "end").distinct()
    return union(Interval(start, end) for start, end in ranges)


def _tests_comparing_with_past(copy: DatasetCopy) -> list[int]:
    """The tests that compare with the past."""
    texts = copy.dataset.tests.filter(retired_at=None).values_list("pk", "version__flattened")
    return [pk for pk, text in texts if text and compares_with_past(text)]

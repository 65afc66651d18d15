"""Running tests on request: what is asked for goes ahead of everything else, within bounds (`quality.state.waivers.MAX_PRIORITY_UNITS`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound
from lakehub.kernel.interval import Interval
from lakehub.kernel.suggest import did_you_mean
from quality.models import Unit
from quality.state.waivers import request_rerun


@transaction.atomic
def request_tests(
    dataset: Dataset, *, tests: Sequence[str], data_center: str, over: Interval, actor: str, now: datetime
) -> int:
    """Makes the chosen units due now; partitions that are still going on are left out. The number of units."""
    units = Unit.objects.filter(test__dataset=dataset, test__retired_at=None, start__lt=over.end, end__gt=over.start)
    known_keys = set(dataset.tests.filter(retired_at=None).values_list("key", flat=True))
    for key in tests:
        if key not in known_keys:
            raise NotFound(f"{dataset.name} has no test `{key}`.{did_you_mean(key, known_keys)}")
    if tests:
        units = units.filter(test__key__in=tests)
    if data_center:
        centers = set(dataset.copies.values_list("data_center__name", flat=True))
        if data_center not in centers:
            raise NotFound(f"{dataset.name} has no copy in `{data_center}`.{did_you_mean(data_center, centers)}")
        units = units.filter(copy__data_center__name=data_center)
    over_by_now = units.filter(end__lte=now) | units.filter(test__version__cadence__isnull=False)
    return request_units(dataset, list(over_by_now.values_list("pk", flat=True)), tests=tests, actor=actor, now=now)


@transaction.atomic
def request_units(dataset: Dataset, units: Collection[int], *, tests: Sequence[str], actor: str, now: datetime) -> int:
    """Makes these units of a dataset due now, and says in the audit log who asked. The number that was not due already."""
    unit_count = request_rerun(units, now=now)
    audit_log.record(actor, "run tests", f"dataset:{dataset.name}", now=now, tests=list(tests), units=unit_count)
    return unit_count

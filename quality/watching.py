"""Tables that others write and Lakehub only reads: which of their partitions changed, so that those are tested again.

What Lakehub ingests says so with each commit. Here the table is looked at every `cadence` of its tier: of a Hudi table the
files of each partition, of any other table the rows of each partition and the newest values of the columns that grow.
"""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.apart import apart
from lakehub.kernel.calendar import Grain
from quality import units
from quality.described import slas_anyway
from quality.domain.expression import THIS, Name
from quality.domain.expression.measures import ROWS, Measure
from quality.domain.expression.values import Failed
from quality.engines import read
from quality.engines.scan import CannotRead, Each, HudiCopy, Limits, Scan
from quality.engines.slices import snapshot
from quality.held import named
from quality.models import Watch
from quality.places import Place, Places
from quality.retests import retest

log = logging.getLogger(__name__)


def look_due(*, now: datetime, limit: int = 5) -> int:
    """Looks at the tables whose turn it is; who waits longest first. The number of partitions that changed."""
    changed = 0
    for copy in _waiting(now, limit):
        with apart(f"Looking for changes of {copy}"):
            changed += _look_at(copy, now=now)
    return changed


def _waiting(now: datetime, limit: int) -> list[DatasetCopy]:
    ours = DatasetCopy.objects.filter(
        dataset__ingested=False, dataset__offboarded_at=None, monitored_from__isnull=False
    )
    cut = ours.exclude(dataset__grain=Grain.NONE).filter(Q(watch=None) | Q(watch__due_at__lte=now))
    related = cut.select_related("dataset__feed__connection", "data_center", "watch")
    return list(related.order_by("watch__due_at", "pk")[:limit])


def _look_at(copy: DatasetCopy, *, now: datetime) -> int:
    """The turn is claimed by putting it off: whoever dies at it loses this one look."""
    next_at = now + slas_anyway(copy.dataset).cadence
    watch, is_new = Watch.objects.get_or_create(copy=copy, defaults={"due_at": next_at})
    if not is_new and not Watch.objects.filter(pk=watch.pk, due_at=watch.due_at, due_at__lte=now).update(
        due_at=next_at
    ):
        return 0
    try:
        seen = dict(_states(Places(copy).of(Name(THIS)), copy))
    except CannotRead as problem:
        log.warning("%s cannot be looked at: %s", copy, problem)
        return 0
    # The baseline tests what was there before the first look; of what no calendar expects that is known from here on.
    before = seen if watch.looked_at is None else watch.seen
    changed = {name for name in seen.keys() | before.keys() if seen.get(name) != before.get(name)}
    with transaction.atomic():
        Watch.objects.filter(pk=watch.pk).update(seen=seen, looked_at=now)
        if watch.looked_at is None:
            units.plan_unexpected(copy, named(seen, copy), now=now)
        touched = [(over.start, over.end) for over in named(changed, copy)]
        if touched:
            retest(copy.pk, touched, now=now)
    return len(changed)


def _states(place: Place, copy: DatasetCopy) -> Iterator[tuple[str, str]]:
    """For each partition what changes where its rows do. Raises CannotRead."""
    if isinstance(place.target, HudiCopy):
        return _states_of_hudi(place.target.uri)
    return _states_of_rows(place, copy)


def _states_of_hudi(uri: str) -> Iterator[tuple[str, str]]:
    files: dict[str, list[str]] = defaultdict(list)
    for one in snapshot(uri, logs=True).slices:
        if one.partition is not None:
            files[one.partition] += [one.path, *one.logs]
    for partition, names in files.items():
        yield partition, hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def _states_of_rows(place: Place, copy: DatasetCopy) -> Iterator[tuple[str, str]]:
    grows = dict.fromkeys(column for column in (copy.dataset.reference_key, copy.dataset.event_time) if column)
    measures = (ROWS, *(Measure("maximum", (column,)) for column in grows))
    answers = read(place.engine, Scan(place.target, measures, Each(place.column)), Limits()).answers
    told = []
    for measure in measures:
        answer = answers[measure]
        if isinstance(answer, Failed):
            raise CannotRead(str(answer.cause))
        told.append(answer if isinstance(answer, Mapping) else {})
    for name in told[0]:
        if name is not None:
            yield name, " ".join(str(each.get(name)) for each in told)

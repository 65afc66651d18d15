"""Tables that others write and Lakehub only reads: which of their partitions changed, so that those are tested again.

What Lakehub ingests says so with each commit. Here the table is looked at every `cadence` of its tier: of a Hudi table the
files of each partition, of a table that does not say the rows of each partition and the newest values of the columns that grow.
Of a table without partitions only the columns are read again: its tests run on a cadence, whatever changed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import cast

from django.db import transaction
from django.db.models import Q, QuerySet

from ingestion.lake.misplaced_rows import report_misplaced_rows
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.error_isolation import log_and_continue
from lakehub.kernel.errors import Refused
from lakehub.kernel.partitions import Grain
from quality.domain.language import THIS, Name
from quality.domain.language.measures import ROWS, Answer, Measure
from quality.domain.language.values import Failed
from quality.engines import ENGINES, engine_for, run_scan
from quality.engines.scans.parts import CannotRead, EachPartition
from quality.engines.scans.scan import Limits, Scan
from quality.measuring.slow_sources import SourceDeferred, source_turn
from quality.measuring.table_bindings import TableBinding, TableBindings
from quality.models import ChangePoll
from quality.planning import units
from quality.planning.touched_partitions import partitions_without_units, retest
from quality.state.dataset_slas import slas_or_tier_defaults
from quality.state.populated_partitions import partitions_named

logger = logging.getLogger(__name__)
DEFERRED_BY = timedelta(seconds=30)


def poll_due_copies(*, now: datetime, limit: int = 5) -> int:
    """Looks at the tables whose turn it is; who waits longest first. The number of partitions that changed."""
    changed = 0
    for copy in _copies_due(now, limit):
        with log_and_continue(f"Looking for changes of {copy}"):
            changed += _poll_or_defer(copy, now=now)
    return changed


def _poll_or_defer(copy: DatasetCopy, *, now: datetime) -> int:
    """Where as many wait for slow sources as may, the table has its turn a little later."""
    try:
        with source_turn(copy):
            return _poll_copy(copy, now=now)
    except SourceDeferred as deferred:
        logger.info("%s is looked at later: %s", copy, deferred)
        ChangePoll.objects.update_or_create(copy=copy, defaults={"due_at": now + DEFERRED_BY})
        return 0


def polled_copies() -> QuerySet[DatasetCopy]:
    """The copies that others write, and that are tested."""
    return DatasetCopy.objects.filter(
        dataset__ingested=False, dataset__offboarded_at=None, monitored_from__isnull=False
    )


def _copies_due(now: datetime, limit: int) -> list[DatasetCopy]:
    due_copies = polled_copies().filter(Q(watch=None) | Q(watch__due_at__lte=now))
    related = due_copies.select_related("dataset__feed__connection", "connection", "data_center", "watch")
    return list(related.order_by("watch__due_at", "pk")[:limit])


def _poll_copy(copy: DatasetCopy, *, now: datetime) -> int:
    """The turn is claimed by putting it off: whoever dies at it loses this one look."""
    next_at = now + slas_or_tier_defaults(copy.dataset).cadence
    watch, is_new = ChangePoll.objects.get_or_create(copy=copy, defaults={"due_at": next_at})
    if not is_new and not ChangePoll.objects.filter(pk=watch.pk, due_at=watch.due_at, due_at__lte=now).update(
        due_at=next_at
    ):
        return 0
    _read_columns_again(copy, now=now)
    if copy.dataset.partition_grain is Grain.NONE:
        return 0
    try:
        states, rows = _partition_states(TableBindings(copy).binding_of(Name(THIS)), copy)
    except CannotRead as problem:
        logger.warning("%s cannot be looked at: %s", copy, problem)
        return 0
    # What names no partition is told as a finding, and is not kept: it may be long, or hold what no database takes.
    states = {name: state for name, state in states.items() if next(partitions_named((name,), copy), None) is not None}
    # The baseline tests what was there before the first look; of what no calendar expects that is known from here on.
    before = states if watch.polled_at is None else watch.partition_states
    changed = {name for name in states.keys() | before.keys() if states.get(name) != before.get(name)}
    with transaction.atomic():
        ChangePoll.objects.filter(pk=watch.pk).update(partition_states=states, polled_at=now)
        if missing := partitions_without_units(copy, partitions_named(states if watch.polled_at is None else (), copy)):
            units.plan_partitions(copy, missing, now=now)
        touched = [(over.start, over.end) for over in partitions_named(changed, copy)]
        if touched:
            retest(copy.pk, touched, now=now)
        report_misplaced_rows(copy, rows, now=now)
    return len(changed)


def _read_columns_again(copy: DatasetCopy, *, now: datetime) -> None:
    """A change of the columns is a finding; a source that is out of reach is told by what reads its rows."""
    if copy.dataset.feed_or_none is None:
        return
    try:
        changes.refresh_columns(copy.dataset, actor="watch", now=now)
    except Refused as problem:
        logger.warning("the columns of %s were not read again: %s", copy.dataset, problem)


def _partition_states(place: TableBinding, copy: DatasetCopy) -> tuple[dict[str, str], dict[str | None, int | None]]:
    """For each partition what changes where its rows do, and how many rows it has where the table says so. Raises CannotRead."""
    engine = engine_for(place.target)
    states = ENGINES.get(engine)().partition_states(place.target) if place.form is None else None
    if states is None:
        return _states_of_rows(engine, place, copy)
    return dict(states), dict.fromkeys(states)


def _states_of_rows(
    engine: str, place: TableBinding, copy: DatasetCopy
) -> tuple[dict[str, str], dict[str | None, int | None]]:
    grows = dict.fromkeys(column for column in (copy.dataset.reference_key, copy.dataset.event_time) if column)
    measures = (ROWS, *(Measure("maximum", (column,)) for column in grows))
    scan = Scan(place.target, measures, EachPartition(place.partition_column, place.form))
    answers = run_scan(engine, scan, Limits()).answers
    by_partition = [_partitioned(answers[measure]) for measure in measures]
    states = {
        name: " ".join(str(answer.get(name)) for answer in by_partition) for name in by_partition[0] if name is not None
    }
    return states, {name: cast("int", rows) for name, rows in by_partition[0].items()}


def _partitioned(answer: Answer | Failed) -> Mapping[str | None, object]:
    if isinstance(answer, Failed):
        raise CannotRead(str(answer.cause))
    return answer if isinstance(answer, Mapping) else {}

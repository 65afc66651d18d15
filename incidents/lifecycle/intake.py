"""Flips of verdicts become spans, incidents, events and messages: one transaction a dataset, so nothing is half done.

A flip is claimed in the transaction that handles it. A worker that is killed leaves it unclaimed; a second delivery
finds nothing to claim. Units of one dataset are handled one worker at a time, which keeps "join the earliest open
incident" true when many fail at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F

from incidents.lifecycle.correlate import Correlator
from incidents.models import Message, MessageState, Span
from lakehub.catalog.models import Dataset
from lakehub.kernel.error_isolation import log_and_continue
from quality.models import Category, Flip

BATCH_SIZE = 2000
"""Flips of one transaction. Each batch reads what is active of the dataset once."""


def process_flips(*, now: datetime) -> int:
    """Handles the flips that nobody has claimed. The number handled; call again while it is not 0."""
    waiting = Flip.objects.filter(claimed_at=None).values_list("unit__test__dataset_id", flat=True)
    handled = 0
    for dataset in waiting.distinct():
        with log_and_continue(f"Taking in the flips of dataset {dataset}"):
            handled += _process_dataset(dataset, now=now)
    return handled


def _process_dataset(dataset_id: int, *, now: datetime) -> int:
    with transaction.atomic():
        dataset = Dataset.objects.select_for_update(of=("self",)).select_related("team").get(pk=dataset_id)
        flips = _claim_flips(dataset, now)
        if not flips:
            return 0
        correlator = Correlator(dataset, {flip.unit_id for flip in flips}, now=now)
        for flip in flips:
            correlator.add_flip(flip)
        correlator.write_changes()
        if any(flip.unit.test.category == Category.FRESHNESS for flip in flips):
            _recheck_suppressed_messages(now)
    return len(flips)


def _claim_flips(dataset: Dataset, now: datetime) -> list[Flip]:
    """The unclaimed flips of the dataset, in the order in which they are taken in; now they are ours."""
    unclaimed = Flip.objects.filter(claimed_at=None, unit__test__dataset=dataset)
    flips = list(
        unclaimed.select_related("unit__test__version", "unit__copy__data_center", "result").order_by("pk")[:BATCH_SIZE]
    )
    claimed = Flip.objects.filter(claimed_at=None, pk__in=[flip.pk for flip in flips]).update(claimed_at=now)
    if claimed != len(flips):
        raise RuntimeError(
            f"{len(flips) - claimed} flips of {dataset} were claimed by another worker despite the lock."
        )
    return _oldest_data_first(flips)


def _oldest_data_first(flips: Sequence[Flip]) -> list[Flip]:
    """As they happened; of those of one instant the oldest data first: each day of a long hole then finds the day before it
    in an incident and joins, while days in the order of scans would open one incident after the other.

    The flips of one unit stay in their order, whatever the clocks of workers say.
    """
    happened, latest_of_unit = dict[int, datetime](), dict[int, datetime]()
    for flip in flips:
        happened[flip.pk] = latest_of_unit[flip.unit_id] = max(flip.at, latest_of_unit.get(flip.unit_id, flip.at))
    return sorted(flips, key=lambda flip: (happened[flip.pk], flip.unit.start, flip.pk))


def _recheck_suppressed_messages(now: datetime) -> None:
    """Freshness changed: what it held may go."""
    Message.objects.filter(state=MessageState.HELD, due_at__gt=now).update(due_at=now)


def update_stale_ranges() -> None:
    """While freshness fails, what is stale begins at the boundary as last seen; it freezes when the span ends."""
    moved = Span.objects.filter(ended_at=None, incident__category=Category.FRESHNESS, unit__affected_from__isnull=False)
    for span in moved.exclude(start=F("unit__affected_from")).select_related("unit"):
        Span.objects.filter(pk=span.pk, ended_at=None).update(start=span.unit.affected_from)

"""Which category holds the messages of which other one, for one dataset: changes of the default, never in a cycle."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from incidents.alerts import checked_category
from incidents.domain.precedence import DEFAULT, Pair, cycle_in
from incidents.messages.holding import pairs_of
from incidents.models import Message, MessageState, SuppressionRule
from lakehub.accounts import audit
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused


def put(dataset: Dataset, by: str, suppresses: str, *, counts: bool, actor: str, now: datetime) -> frozenset[Pair]:
    """From now on `by` holds the messages of `suppresses`, or does not. The pairs in force. Raises Refused, NotFound."""
    checked_category(by, "category to suppress by")
    checked_category(suppresses, "category to suppress")
    if by == suppresses:
        raise Refused.because({"suppresses": f"{by} cannot suppress itself: name another category."})
    with transaction.atomic():
        # Of two changes at once the second sees the first: together they could close a cycle.
        Dataset.objects.select_for_update(of=("self",)).get(pk=dataset.pk)
        _write(dataset, (by, suppresses), counts=counts, actor=actor, now=now)
        pairs = pairs_of(dataset)
        if cycle := cycle_in(pairs):
            raise Refused.because({"suppresses": _said(cycle)})
        words = {"by": by, "suppresses": suppresses, "counts": counts}
        audit.record(actor, "set suppression", f"dataset:{dataset.name}", now=now, **words)
        _look_again(dataset, now=now)
    return pairs


def reset(dataset: Dataset, *, actor: str, now: datetime) -> frozenset[Pair]:
    """The default counts again."""
    with transaction.atomic():
        removed, _ = SuppressionRule.objects.filter(dataset=dataset).delete()
        if removed:
            audit.record(actor, "reset suppression", f"dataset:{dataset.name}", now=now)
            _look_again(dataset, now=now)
    return pairs_of(dataset)


def _write(dataset: Dataset, pair: Pair, *, counts: bool, actor: str, now: datetime) -> None:
    by, suppressed = pair
    rows = SuppressionRule.objects.filter(dataset=dataset, by_category=by, suppresses=suppressed)
    if counts == (pair in DEFAULT):
        rows.delete()
        return
    SuppressionRule.objects.update_or_create(
        dataset=dataset,
        by_category=by,
        suppresses=suppressed,
        defaults={"enabled": counts, "set_by": actor, "set_at": now},
    )


def _said(cycle: tuple[str, ...]) -> str:
    way = " → ".join(cycle)
    return f"That is a cycle, in which nothing would ever be told: {way}. Take one of these away first."


def _look_again(dataset: Dataset, *, now: datetime) -> None:
    held = Message.objects.filter(incident__dataset=dataset, state=MessageState.HELD, due_at__gt=now)
    held.update(due_at=now)

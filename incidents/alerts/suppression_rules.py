"""Which category holds the messages of which other one, for one dataset: changes of the default, never in a cycle."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from incidents.alerts.generate import checked_category
from incidents.domain.alerting.suppression import DEFAULT_PAIRS, SuppressionPair, cycle_in
from incidents.models import Message, MessageState, SuppressionRule
from incidents.notifications.send_conditions import suppression_pairs
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused


def set_suppression(
    dataset: Dataset, by: str, suppresses: str, *, counts: bool, actor: str, now: datetime
) -> frozenset[SuppressionPair]:
    """From now on `by` holds the messages of `suppresses`, or does not. The pairs in force. Raises Refused, NotFound."""
    checked_category(by, "category to suppress by")
    checked_category(suppresses, "category to suppress")
    if by == suppresses:
        raise Refused.for_fields({"suppresses": f"{by} cannot suppress itself: name another category."})
    with transaction.atomic():
        # Of two changes at once the second sees the first: together they could close a cycle.
        Dataset.objects.select_for_update(of=("self",)).get(pk=dataset.pk)
        _write_rule(dataset, (by, suppresses), counts=counts, actor=actor, now=now)
        pairs = suppression_pairs(dataset)
        if cycle := cycle_in(pairs):
            raise Refused.for_fields({"suppresses": _cycle_text(cycle)})
        words = {"by": by, "suppresses": suppresses, "counts": counts}
        audit_log.record(actor, "set suppression", f"dataset:{dataset.name}", now=now, **words)
        _recheck_messages(dataset, now=now)
    return pairs


def reset_suppression(dataset: Dataset, *, actor: str, now: datetime) -> frozenset[SuppressionPair]:
    """The default counts again."""
    with transaction.atomic():
        removed, _ = SuppressionRule.objects.filter(dataset=dataset).delete()
        if removed:
            audit_log.record(actor, "reset suppression", f"dataset:{dataset.name}", now=now)
            _recheck_messages(dataset, now=now)
    return suppression_pairs(dataset)


def _write_rule(dataset: Dataset, pair: SuppressionPair, *, counts: bool, actor: str, now: datetime) -> None:
    by, suppressed = pair
    rows = SuppressionRule.objects.filter(dataset=dataset, by_category=by, suppresses=suppressed)
    if counts == (pair in DEFAULT_PAIRS):
        rows.delete()
        return
    SuppressionRule.objects.update_or_create(
        dataset=dataset,
        by_category=by,
        suppresses=suppressed,
        defaults={"enabled": counts, "set_by": actor, "set_at": now},
    )


def _cycle_text(cycle: tuple[str, ...]) -> str:
    way = " → ".join(cycle)
    return f"That is a cycle, in which nothing would ever be told: {way}. Take one of these away first."


def _recheck_messages(dataset: Dataset, *, now: datetime) -> None:
    held_messages = Message.objects.filter(incident__dataset=dataset, state=MessageState.HELD, due_at__gt=now)
    held_messages.update(due_at=now)

"""How long questions to the gate are kept (the query-level score of a window is computed from those within it), and how messages went."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from incidents.lifecycle.bulk.apply import UNDO_WITHIN
from incidents.models import BulkAction, Delivery, Digest, DigestState, GateQuestion, RepeatedQuestion
from lakehub.db.batch_delete import delete_old_rows


def prune_questions(*, now: datetime, retention: timedelta) -> int:
    """Deletes the times older than `retention`, and the questions that have no younger one. The number of questions deleted."""
    delete_old_rows(RepeatedQuestion.objects.all(), age="at", before=now - retention)
    return delete_old_rows(GateQuestion.objects.all(), age="at", before=now - retention, where=Q(again=None))


def prune_deliveries(*, now: datetime, retention: timedelta) -> int:
    """Deletes attempts to send that are older than `retention`; what became of each message stays with it. The number deleted."""
    return delete_old_rows(Delivery.objects.all(), age="at", before=now - retention)


def prune_digests(*, now: datetime, retention: timedelta) -> int:
    """Deletes digests older than `retention` that went out or were given up; the messages that they listed stay. The number deleted."""
    over = Digest.objects.exclude(state=DigestState.PENDING)
    return delete_old_rows(over, age="created_at", before=now - retention)


def prune_bulk_actions(*, now: datetime) -> int:
    """Deletes what an undo would restore, where it is too late for one; the timelines stay. The number deleted."""
    return delete_old_rows(BulkAction.objects.all(), age="at", before=now - UNDO_WITHIN)

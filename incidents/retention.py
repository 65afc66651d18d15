"""How long questions to the gate are kept (the query-level score of a window is computed from those within it), and how messages went."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q

from incidents.bulk import UNDO_WITHIN
from incidents.models import AskedAgain, BulkAction, Delivery, Digest, DigestState, GateQuestion
from lakehub.pruning import prune


def forget_questions(*, now: datetime, kept: timedelta) -> int:
    """Deletes the times older than `kept`, and the questions that have no younger one. The number of questions deleted."""
    prune(AskedAgain.objects.all(), age="at", before=now - kept)
    return prune(GateQuestion.objects.all(), age="at", before=now - kept, where=Q(again=None))


def forget_deliveries(*, now: datetime, kept: timedelta) -> int:
    """Deletes attempts to send that are older than `kept`; what became of each message stays with it. The number deleted."""
    return prune(Delivery.objects.all(), age="at", before=now - kept)


def forget_digests(*, now: datetime, kept: timedelta) -> int:
    """Deletes digests older than `kept` that went out or were given up; the messages that they listed stay. The number deleted."""
    over = Digest.objects.exclude(state=DigestState.PENDING)
    return prune(over, age="created_at", before=now - kept)


def forget_undos(*, now: datetime) -> int:
    """Deletes what an undo would restore, where it is too late for one; the timelines stay. The number deleted."""
    return prune(BulkAction.objects.all(), age="at", before=now - UNDO_WITHIN)

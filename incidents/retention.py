"""How long questions to the gate are kept: the query-level score of a window is computed from those within it."""

from __future__ import annotations

from datetime import datetime, timedelta

from incidents.models import GateQuestion
from lakehub.pruning import prune


def forget_questions(*, now: datetime, kept: timedelta) -> int:
    """Deletes the questions older than `kept`. The number deleted."""
    return prune(GateQuestion.objects.all(), age="at", before=now - kept)

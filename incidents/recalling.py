"""Messages about what was taken back: those that are not out yet stay in; of the others somebody must be told."""

from __future__ import annotations

from django.db.models import Subquery

from incidents.models import Incident, Message, MessageState

UNSENT = (MessageState.PENDING, MessageState.HELD, MessageState.COLLECTED)


def recall(incident: Incident, occasion: str, *, why: str) -> bool:
    """Drops the unsent messages of the last such occasion. Whether somebody has been told of it already."""
    told = Message.objects.filter(incident=incident, occasion=occasion)
    latest = told.filter(created_at=Subquery(told.order_by("-created_at").values("created_at")[:1]))
    latest.filter(state__in=UNSENT).update(state=MessageState.DROPPED, why=why[:200])
    return latest.filter(state=MessageState.SENT).exists()

"""Messages about what was taken back: those that are not out yet stay in; of the others somebody must be told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.db.models import Subquery

from incidents.models import NOT_LEASED, Incident, Message, MessageState

RETRACTING_OCCASIONS: Mapping[str, str] = MappingProxyType({"resolved": "reopened", "acknowledged": "released"})
"""By which occasion it is told that another one holds no more."""
UNSENT_STATES = (MessageState.PENDING, MessageState.HELD, MessageState.COLLECTED)
UNDELIVERED_STATES = (MessageState.DROPPED, MessageState.FAILED)


def retract(incident: Incident, occasion: str, *, why: str) -> bool:
    """Drops the unsent messages of the last such occasion. Whether somebody has been told of it, or is about to be.

    What a sender has in hand, or a digest that was written lists, is as good as sent.
    """
    messages = Message.objects.filter(incident=incident, occasion=occasion)
    latest = messages.filter(created_at=Subquery(messages.order_by("-created_at").values("created_at")[:1]))
    kept_in = latest.filter(NOT_LEASED, state__in=UNSENT_STATES, digest=None)
    kept_in.update(state=MessageState.DROPPED, why=why[:200])
    return latest.exclude(state__in=UNDELIVERED_STATES).exists()

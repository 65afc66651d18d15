"""The one way out: a note goes over its channel, and the attempt is kept, whatever came of it."""

from __future__ import annotations

import time
from datetime import datetime

from incidents.channels import Notification, channel, redacted_address
from incidents.models import Delivery, Message
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team

TEST_OCCASION = "test"


def deliver(
    note: Notification, name: str, address: str, *, team: Team, now: datetime, message: Message | None = None
) -> Delivery:
    """Raises what the channel raises: DeliveryError, or Refused. Never call it inside a transaction: it waits for others."""
    attempt, error = _attempt(note, name, address, team=team, now=now, message=message)
    if error is not None:
        raise error
    return attempt


def send_test_message(name: str, address: str, *, team: Team, actor: str, now: datetime) -> Delivery:
    """Sends a word to an address, so that a person sees whether it arrives. What came of it. Raises Refused."""
    channel(name).check(address)
    audit_log.record(
        actor, "test channel", f"team:{team.name}", now=now, channel=name, address=redacted_address(name, address)[:200]
    )
    body = f"{actor} tries whether messages for team {team.name} arrive here. Nothing is wrong."
    note = Notification(
        int(now.timestamp()), TEST_OCCASION, f"[test] Lakehub reaches {team.name}", body, {}, kind=TEST_OCCASION
    )
    attempt, _ = _attempt(note, name, address, team=team, now=now)
    return attempt


def _attempt(
    note: Notification, name: str, address: str, *, team: Team, now: datetime, message: Message | None = None
) -> tuple[Delivery, Exception | None]:
    """Whatever goes wrong, the log has it; the caller decides what follows."""
    began, status, failed = time.monotonic(), "", None
    try:
        status = channel(name).send(note, address, now=now)
    except Exception as error:
        status, failed = getattr(error, "status", ""), error
    delivery = Delivery.objects.create(
        team=team,
        message=message,
        occasion=note.occasion,
        channel=name,
        address=redacted_address(name, address)[:200],
        at=now,
        ok=failed is None,
        status=status[:20],
        error=" ".join(str(failed).split())[:500] if failed else "",
        ms=round((time.monotonic() - began) * 1000),
    )
    return delivery, failed

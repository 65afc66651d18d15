"""The one way out: a note goes over its channel, and the attempt is kept, whatever came of it."""

from __future__ import annotations

import time
from datetime import datetime

from incidents.channels import CannotSend, Note, channel, shown
from incidents.models import Delivery, Message
from lakehub.accounts.models import Team
from lakehub.kernel.errors import Refused

TRIAL = "test"


def deliver(
    note: Note, name: str, address: str, *, team: Team, now: datetime, message: Message | None = None
) -> Delivery:
    """Raises what the channel raises: CannotSend, or Refused. Never call it inside a transaction: it waits for others."""
    began = time.monotonic()
    attempt = Delivery(
        team=team,
        message=message,
        occasion=note.occasion,
        channel=name,
        address=shown(name, address)[:200],
        at=now,
        ok=False,
    )
    try:
        attempt.status = channel(name).send(note, address, now=now)[:20]
        attempt.ok = True
    except Exception as error:  # whatever it is, the log has it; the caller decides what follows
        attempt.error = " ".join(str(error).split())[:500]
        attempt.status = error.status[:20] if isinstance(error, CannotSend) else ""
        raise
    finally:
        attempt.ms = round((time.monotonic() - began) * 1000)
        attempt.save()
    return attempt


def try_out(name: str, address: str, *, team: Team, actor: str, now: datetime) -> Delivery:
    """Sends a word to an address, so that a person sees whether it arrives. What came of it. Raises Refused."""
    channel(name).check(address)
    said = f"{actor} tries whether messages for team {team.name} arrive here. Nothing is wrong."
    note = Note(int(now.timestamp()), TRIAL, f"[test] Lakehub reaches {team.name}", said, {}, kind=TRIAL)
    try:
        return deliver(note, name, address, team=team, now=now)
    except (CannotSend, Refused):
        return Delivery.objects.filter(team=team, occasion=TRIAL).latest("pk")

"""What a person does with an incident while it goes on. Each leaves an event; a conflict says who was faster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from incidents import annotating, moves, snoozing
from incidents.annotating import ANNOTATIONS as ANNOTATIONS
from incidents.domain.lifecycle import Move
from incidents.messages import mentions, outbox, reminding, subscriptions
from incidents.messages.recalling import recall
from incidents.models import Incident, IncidentEvent, Span
from incidents.snoozing import Snooze
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.suggest import did_you_mean
from quality import waivers


def acknowledge(number: int, *, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """Somebody has it; who did it is assigned where nobody was. Raises NotFound, Conflict."""
    with transaction.atomic():
        incident = moves.find(number)
        fields = {"acknowledged_at": now, "assignee": incident.assignee or actor}
        name = actor.get_username()
        moves.make(incident, Move.ACKNOWLEDGE, fields, now=now, actor=name, seen=seen)
        outbox.enqueue(incident, "acknowledged", outbox.spans_to_tell(incident), now=now, actor=name)
    return incident


def release(number: int, *, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """Takes an acknowledgement back: nobody has it."""
    with transaction.atomic():
        incident = moves.find(number)
        fields = {"acknowledged_at": None, "assignee": None}
        moves.make(incident, Move.RELEASE, fields, now=now, actor=actor.get_username(), seen=seen)
        tell_released(incident, actor=actor.get_username(), now=now)
    return incident


def tell_released(incident: Incident, *, actor: str, now: datetime) -> None:
    """Who was told that somebody has it is told that nobody has; of a report the producers are asked again."""
    if recall(incident, "acknowledged", why=f"released by {actor}"):
        outbox.enqueue(incident, "released", outbox.spans_to_tell(incident), now=now, actor=actor)
    if incident.reported:
        reminding.begin(incident, now=now)


def annotate(
    number: int, changes: Mapping[str, Any], *, actor: User, now: datetime, text: str = "", seen: int | None = None
) -> Incident:
    """What is known of recovery and cause, by the names of ANNOTATIONS. Consumers see it at the gate; a new ETA is told."""
    with transaction.atomic():
        incident = _open(number)
        changed = annotating.changes_of(incident, annotating.checked(changes, incident, now=now))
        if not changed and not text:
            return incident
        if changed:
            moves.update(incident, changed, seen=seen)
        name, said = actor.get_username(), annotating.said(changed)
        words = f"{said}. {text}".strip() if said else text
        run: dict[str, Any] = {"run": incident.backfill_run_id} if "backfill_run" in changed else {}
        moves.note(incident, "annotated", now=now, actor=name, text=words, fields=sorted(changed), **run)
        if "eta" in changed:
            outbox.enqueue(incident, "eta", outbox.spans_to_tell(incident), now=now, actor=name, text=words)
    return incident


def comment(number: int, text: str, *, actor: User, now: datetime) -> IncidentEvent:
    """Says something on the timeline, of open and resolved incidents alike; whoever is mentioned is told."""
    words = text.strip()
    if not words:
        raise Refused.because({"text": "A comment needs words."})
    with transaction.atomic():
        incident = moves.find(number)
        told, name = mentions.told(words, incident), actor.get_username()
        mentions.tell(incident, told, text=words, actor=name, now=now)
        return moves.note(incident, "commented", now=now, actor=name, text=words, mentioned=mentions.names_in(words))


def assign(number: int, username: str, *, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """Gives the incident to somebody who may acknowledge it; an empty name to nobody."""
    with transaction.atomic():
        incident = _open(number)
        assignee = _assignable(username, incident) if username else None
        moves.update(incident, {"assignee": assignee}, seen=seen)
        text = f"to {username}" if username else "to nobody"
        name = actor.get_username()
        moves.note(incident, "assigned", now=now, actor=name, text=text)
        if assignee is not None and assignee != actor:
            told = [subscriptions.person(assignee, "assigned to")]
            outbox.tell(incident, "assigned", told, now=now, actor=name, text=f"{name} assigned it to you.")
    return incident


def snooze(
    number: int,
    until: datetime | None,
    *,
    actor: User,
    now: datetime,
    seen: int | None = None,
    until_worse: bool = False,
    failures: int | None = None,
) -> Incident:
    """Holds the messages of the incident until the first of these. Verdict and gate stay."""
    wanted = Snooze(until, until_worse, failures)
    snoozing.check(wanted, now=now)
    with transaction.atomic():
        incident = _open(number)
        moves.update(incident, wanted.fields(now=now), seen=seen)
        moves.note(incident, "snoozed", now=now, actor=actor.get_username(), text=str(wanted))
        snoozing.look_again(incident, now=now)
    return incident


def wake(number: int, *, actor: User, now: datetime, seen: int | None = None) -> Incident:
    """Ends its snooze before its time."""
    with transaction.atomic():
        incident = _open(number)
        if not snoozing.is_snoozed(incident, now=now):
            raise Conflict(f"#{number} is not snoozed.")
        snoozing.wake(incident, "by hand", now=now, actor=actor.get_username(), seen=seen)
    return incident


def rerun(number: int, *, actor: User, now: datetime) -> int:
    """Runs the failing units now; a pass resolves the incident as rerun by hand. The number of units asked for."""
    with transaction.atomic():
        incident = _open(number)
        units = list(Span.objects.filter(incident=incident, ended_at=None).values_list("unit_id", flat=True))
        if not units:
            raise Conflict(f"#{number} has no failing unit to rerun.")
        asked = waivers.ask_rerun(units, now=now)
        text = f"{len(units)} {'unit' if len(units) == 1 else 'units'}"
        moves.note(incident, "rerun", now=now, actor=actor.get_username(), text=text)
    return asked


def _open(number: int) -> Incident:
    incident = moves.find(number)
    if incident.resolved_at is not None:
        raise Conflict(f"#{number} was resolved at {incident.resolved_at:%Y-%m-%d %H:%M} UTC. Comment on it instead.")
    return incident


def _assignable(username: str, incident: Incident) -> User:
    found = User.objects.filter(username=username, is_active=True).first()
    if found is None:
        known = User.objects.filter(memberships__team=incident.dataset.team).values_list("username", flat=True)
        raise Refused.because({"assignee": f"There is nobody called `{username}`.{did_you_mean(username, known)}"})
    if not can(found, "acknowledge", incident.dataset.team):
        raise Refused.because(
            {"assignee": f"{username} has no part in team {incident.dataset.team.name} that takes incidents."}
        )
    return found

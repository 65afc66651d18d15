"""What a person does with an incident while it goes on. Each leaves an event; a conflict says who was faster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from incidents.domain.incident.state_machine import Transition
from incidents.lifecycle import annotation_fields, snoozes
from incidents.lifecycle.annotation_fields import ANNOTATION_FIELDS as ANNOTATION_FIELDS
from incidents.models import Incident, IncidentEvent, Span
from incidents.notifications import mentions, outbox, recipients, reminders
from incidents.notifications.retract import retract
from incidents.record import transitions
from incidents.record.snooze import Snooze, check_snooze, is_snoozed
from lakehub.accounts.models import User
from lakehub.accounts.permissions import can
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.suggest import did_you_mean
from quality.state import waivers


def acknowledge(number: int, *, actor: User, now: datetime, expected_revision: int | None = None) -> Incident:
    """Somebody has it; who did it is assigned where nobody was. Raises NotFound, Conflict."""
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        fields = {"acknowledged_at": now, "assignee": incident.assignee or actor}
        name = actor.get_username()
        transitions.apply_transition(
            incident, Transition.ACKNOWLEDGE, fields, now=now, actor=name, expected_revision=expected_revision
        )
        outbox.enqueue(incident, "acknowledged", now=now, actor=name)
    return incident


def release(number: int, *, actor: User, now: datetime, expected_revision: int | None = None) -> Incident:
    """Takes an acknowledgement back: nobody has it."""
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        fields = {"acknowledged_at": None, "assignee": None}
        transitions.apply_transition(
            incident,
            Transition.RELEASE,
            fields,
            now=now,
            actor=actor.get_username(),
            expected_revision=expected_revision,
        )
        notify_released(incident, actor=actor.get_username(), now=now)
    return incident


def notify_released(incident: Incident, *, actor: str, now: datetime) -> None:
    """Who was told that somebody has it is told that nobody has; of a report the producers are asked again."""
    if retract(incident, "acknowledged", why=f"released by {actor}"):
        outbox.enqueue(incident, "released", now=now, actor=actor)
    if incident.reported:
        reminders.start_reminders(incident, now=now)


def annotate(
    number: int,
    changes: Mapping[str, Any],
    *,
    actor: User,
    now: datetime,
    text: str = "",
    expected_revision: int | None = None,
) -> Incident:
    """What is known of recovery and cause, by the names of ANNOTATION_FIELDS. Consumers see it at the gate; a new ETA is told."""
    with transaction.atomic():
        incident = _open_incident(number)
        changed = annotation_fields.changed_fields(
            incident, annotation_fields.checked_annotations(changes, incident, now=now)
        )
        if not changed and not text:
            return incident
        if changed:
            transitions.update_incident(incident, changed, expected_revision=expected_revision)
        name, changes_text = actor.get_username(), annotation_fields.annotation_text(changed)
        words = f"{changes_text}. {text}".strip() if changes_text else text
        run: dict[str, Any] = {"run": incident.backfill_run_id} if "backfill_run" in changed else {}
        transitions.add_event(incident, "annotated", now=now, actor=name, text=words, fields=sorted(changed), **run)
        if "eta" in changed:
            outbox.enqueue(incident, "eta", now=now, actor=name, text=words)
    return incident


def comment(number: int, text: str, *, actor: User, now: datetime) -> IncidentEvent:
    """Says something on the timeline, of open and resolved incidents alike; whoever is mentioned is told."""
    words = text.strip()
    if not words:
        raise Refused.for_fields({"text": "A comment needs words."})
    with transaction.atomic():
        incident = transitions.incident_by_number(number)
        mentioned, name = mentions.mentioned_recipients(words, incident), actor.get_username()
        mentions.notify_mentioned(incident, mentioned, text=words, actor=name, now=now)
        return transitions.add_event(
            incident, "commented", now=now, actor=name, text=words, mentioned=mentions.names_in(words)
        )


def assign(number: int, username: str, *, actor: User, now: datetime, expected_revision: int | None = None) -> Incident:
    """Gives the incident to somebody who may acknowledge it; an empty name to nobody."""
    with transaction.atomic():
        incident = _open_incident(number)
        assignee = _assignable_user(username, incident) if username else None
        transitions.update_incident(incident, {"assignee": assignee}, expected_revision=expected_revision)
        text = f"to {username}" if username else "to nobody"
        name = actor.get_username()
        transitions.add_event(incident, "assigned", now=now, actor=name, text=text)
        if assignee is not None and assignee != actor:
            assignee_recipients = [recipients.personal_recipient(assignee, "assigned to")]
            outbox.enqueue_to(
                incident, "assigned", assignee_recipients, now=now, actor=name, text=f"{name} assigned it to you."
            )
    return incident


def snooze(
    number: int,
    until: datetime | None,
    *,
    actor: User,
    now: datetime,
    expected_revision: int | None = None,
    until_worse: bool = False,
    failures: int | None = None,
) -> Incident:
    """Holds the messages of the incident until the first of these. Verdict and gate stay."""
    requested_snooze = Snooze(until, until_worse, failures)
    check_snooze(requested_snooze, now=now)
    with transaction.atomic():
        incident = _open_incident(number)
        transitions.update_incident(incident, requested_snooze.fields(now=now), expected_revision=expected_revision)
        transitions.add_event(incident, "snoozed", now=now, actor=actor.get_username(), text=str(requested_snooze))
        snoozes.recheck_messages(incident, now=now)
    return incident


def wake(number: int, *, actor: User, now: datetime, expected_revision: int | None = None) -> Incident:
    """Ends its snooze before its time."""
    with transaction.atomic():
        incident = _open_incident(number)
        if not is_snoozed(incident, now=now):
            raise Conflict(f"#{number} is not snoozed.")
        snoozes.end_snooze(
            incident, "by hand", now=now, actor=actor.get_username(), expected_revision=expected_revision
        )
    return incident


def rerun(number: int, *, actor: User, now: datetime) -> int:
    """Runs the failing units now; a pass resolves the incident as rerun by hand. The number of units asked for."""
    with transaction.atomic():
        incident = _open_incident(number)
        units = list(Span.objects.filter(incident=incident, ended_at=None).values_list("unit_id", flat=True))
        if not units:
            raise Conflict(f"#{number} has no failing unit to rerun.")
        rerun_count = waivers.request_rerun(units, now=now)
        text = f"{len(units)} {'unit' if len(units) == 1 else 'units'}"
        transitions.add_event(incident, "rerun", now=now, actor=actor.get_username(), text=text)
    return rerun_count


def _open_incident(number: int) -> Incident:
    incident = transitions.incident_by_number(number)
    if incident.resolved_at is not None:
        raise Conflict(f"#{number} was resolved at {incident.resolved_at:%Y-%m-%d %H:%M} UTC. Comment on it instead.")
    return incident


def _assignable_user(username: str, incident: Incident) -> User:
    user = User.objects.filter(username=username, is_active=True).first()
    if user is None:
        usernames = User.objects.filter(memberships__team=incident.dataset.team).values_list("username", flat=True)
        raise Refused.for_fields(
            {"assignee": f"There is nobody called `{username}`.{did_you_mean(username, usernames)}"}
        )
    if not can(user, "acknowledge", incident.dataset.team):
        raise Refused.for_fields(
            {"assignee": f"{username} has no part in team {incident.dataset.team.name} that takes incidents."}
        )
    return user

"""The one way in which an incident changes: a conditional update and an event row, in the caller's transaction.

What a person does is in the audit log too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db.models import F

from incidents.domain.incident.state_machine import IncidentState, InvalidTransition, Transition, next_state
from incidents.models import Incident, IncidentEvent
from ingestion.runs import blocked_inputs
from lakehub.accounts.audit import audit_log
from lakehub.kernel.errors import Conflict, NotFound

EVENT_KINDS = {
    Transition.ACKNOWLEDGE: "acknowledged",
    Transition.RELEASE: "released",
    Transition.RESOLVE: "resolved",
    Transition.REOPEN: "reopened",
    Transition.MATCH: "matched",
    Transition.UNMATCH: "unmatched",
    Transition.ASK_PRODUCER: "asked_producer",
    Transition.REJECT: "rejected",
    Transition.DISPUTE: "disputed",
}
AUDIT_ACTIONS: Mapping[str, str] = MappingProxyType(
    {kind: move.value for move, kind in EVENT_KINDS.items()}
    | {
        "annotated": "annotate",
        "assigned": "assign",
        "commented": "comment",
        "merged": "merge",
        "opened": "split off",
        "reported": "report",
        "rerun": "rerun",
        "snooze_ended": "wake",
        "snoozed": "snooze",
        "split": "split",
        "undone": "undo",
    }
)
"""What a line of the timeline is called in the audit log, where a person made it."""

NOT_SNOOZED: Mapping[str, object] = MappingProxyType(
    {"snoozed_until": None, "snoozed_at": None, "snoozed_until_worse": False, "snoozed_failures": None}
)
"""A snooze ends with the incident: what begins again is news."""


def incident_by_number(number: int) -> Incident:
    """The incident with its dataset and team. Raises NotFound."""
    incident = Incident.objects.select_related("dataset__team", "assignee").filter(pk=number).first()
    if incident is None:
        raise no_incident(number)
    return incident


def no_incident(number: int) -> NotFound:
    """What `incident_by_number` raises, for whoever looked for many at once."""
    return NotFound(f"There is no incident #{number}. The list of incidents has all that there are.")


def locked_incident(number: int) -> Incident:
    """The same, and nobody else changes it before the transaction ends. Raises NotFound."""
    Incident.objects.select_for_update().filter(pk=number).first()
    return incident_by_number(number)  # read after the wait: a join of the query that waits would be of before it


def apply_transition(
    incident: Incident,
    move: Transition,
    sets: Mapping[str, object] | None = None,
    *,
    now: datetime,
    actor: str = "",
    text: str = "",
    expected_revision: int | None = None,
    **detail: Any,
) -> Incident:
    """Makes the move, sets the fields that go with it, notes it. Raises Conflict where the table has no such move, or
    somebody was faster.

    `expected_revision` is the one that the caller decided on; None: the one that `incident` was read at. An empty actor is
    Lakehub itself.
    """
    was = incident.state
    try:
        becomes = next_state(IncidentState(was), move, reported=incident.reported)
    except InvalidTransition as error:
        raise Conflict(f"{error} {_last_change_text(incident)}") from None
    ended = NOT_SNOOZED if becomes is IncidentState.RESOLVED else {}
    update_incident(incident, {**ended, **(sets or {}), "state": becomes.value}, expected_revision=expected_revision)
    add_event(incident, EVENT_KINDS[move], now=now, actor=actor, text=text, was=was, becomes=becomes.value, **detail)
    if becomes is IncidentState.RESOLVED:
        blocked_inputs.wake_waiting_runs(incident.dataset_id, now=now)
    return incident


def update_incident(incident: Incident, sets: Mapping[str, object], *, expected_revision: int | None = None) -> None:
    """Changes the row if it is as the caller saw it. Raises Conflict that says who was faster."""
    revision = incident.revision if expected_revision is None else expected_revision
    as_seen = Incident.objects.filter(pk=incident.pk, revision=revision)
    if as_seen.update(**sets, revision=F("revision") + 1) != 1:
        raise Conflict(f"Incident #{incident.pk} is not as you saw it. {_last_change_text(incident)}")
    incident.refresh_from_db(fields=[*sets, "revision"])


def add_event(
    incident: Incident,
    kind: str,
    *,
    now: datetime,
    actor: str = "",
    text: str = "",
    was: str = "",
    becomes: str = "",
    **detail: Any,
) -> IncidentEvent:
    """One line of the timeline, and where somebody did it one of the audit log."""
    if actor:
        all_details = {"text": text, **detail}
        details = {name: value for name, value in all_details.items() if value not in ("", [])}
        audit_log.record(actor, AUDIT_ACTIONS.get(kind, kind), f"incident:{incident.pk}", now=now, **details)
    return IncidentEvent.objects.create(
        incident=incident, at=now, kind=kind, actor=actor, text=text, was=was, becomes=becomes, detail=detail
    )


def _last_change_text(incident: Incident) -> str:
    last = IncidentEvent.objects.filter(incident=incident).exclude(kind__in=("commented", "backfilled")).first()
    if last is None:
        return "Nothing was changed."
    who = last.actor or "Lakehub"
    return f"{who} was faster: {last.kind.replace('_', ' ')} at {last.at:%Y-%m-%d %H:%M} UTC. Nothing was changed."

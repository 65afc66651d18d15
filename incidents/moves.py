"""The one way in which an incident changes: a conditional update and an event row, in the caller's transaction.

What a person does is in the audit log too.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db.models import F

from incidents.domain.lifecycle import Move, NoSuchMove, State, after
from incidents.models import Incident, IncidentEvent
from ingestion import waiting
from lakehub.accounts import audit
from lakehub.kernel.errors import Conflict, NotFound

EVENTS = {
    Move.ACKNOWLEDGE: "acknowledged",
    Move.RELEASE: "released",
    Move.RESOLVE: "resolved",
    Move.REOPEN: "reopened",
    Move.MATCH: "matched",
    Move.UNMATCH: "unmatched",
    Move.ASK_PRODUCER: "asked_producer",
    Move.REJECT: "rejected",
    Move.DISPUTE: "disputed",
}
AUDITED: Mapping[str, str] = MappingProxyType(
    {kind: move.value for move, kind in EVENTS.items()}
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

AWAKE: Mapping[str, object] = MappingProxyType(
    {"snoozed_until": None, "snoozed_at": None, "snoozed_until_worse": False, "snoozed_failures": None}
)
"""A snooze ends with the incident: what begins again is news."""


def find(number: int) -> Incident:
    """The incident with its dataset and team. Raises NotFound."""
    found = Incident.objects.select_related("dataset__team", "assignee").filter(pk=number).first()
    if found is None:
        raise NotFound(f"There is no incident #{number}. The list of incidents has all that there are.")
    return found


def locked(number: int) -> Incident:
    """The same, and nobody else changes it before the transaction ends. Raises NotFound."""
    Incident.objects.select_for_update().filter(pk=number).first()
    return find(number)  # read after the wait: a join of the query that waits would be of before it


def make(
    incident: Incident,
    move: Move,
    sets: Mapping[str, object] | None = None,
    *,
    now: datetime,
    actor: str = "",
    text: str = "",
    seen: int | None = None,
    **detail: Any,
) -> Incident:
    """Makes the move, sets the fields that go with it, notes it. Raises Conflict where the table has no such move, or
    somebody was faster.

    `seen` is the revision that the caller decided on; None: the one that `incident` was read at. An empty actor is
    Lakehub itself.
    """
    was = incident.state
    try:
        becomes = after(State(was), move, reported=incident.reported)
    except NoSuchMove as error:
        raise Conflict(f"{error} {_who_moved_last(incident)}") from None
    ended = AWAKE if becomes is State.RESOLVED else {}
    update(incident, {**ended, **(sets or {}), "state": becomes.value}, seen=seen)
    note(incident, EVENTS[move], now=now, actor=actor, text=text, was=was, becomes=becomes.value, **detail)
    if becomes is State.RESOLVED:
        waiting.look_again(incident.dataset_id, now=now)
    return incident


def update(incident: Incident, sets: Mapping[str, object], *, seen: int | None = None) -> None:
    """Changes the row if it is as the caller saw it. Raises Conflict that says who was faster."""
    revision = incident.revision if seen is None else seen
    as_seen = Incident.objects.filter(pk=incident.pk, revision=revision)
    if as_seen.update(**sets, revision=F("revision") + 1) != 1:
        raise Conflict(f"Incident #{incident.pk} is not as you saw it. {_who_moved_last(incident)}")
    incident.refresh_from_db(fields=[*sets, "revision"])


def note(
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
        said = {"text": text, **detail}
        known = {name: value for name, value in said.items() if value not in ("", [])}
        audit.record(actor, AUDITED.get(kind, kind), f"incident:{incident.pk}", now=now, **known)
    return IncidentEvent.objects.create(
        incident=incident, at=now, kind=kind, actor=actor, text=text, was=was, becomes=becomes, detail=detail
    )


def _who_moved_last(incident: Incident) -> str:
    last = IncidentEvent.objects.filter(incident=incident).exclude(kind="commented").first()
    if last is None:
        return "Nothing was changed."
    who = last.actor or "Lakehub"
    return f"{who} was faster: {last.kind.replace('_', ' ')} at {last.at:%Y-%m-%d %H:%M} UTC. Nothing was changed."

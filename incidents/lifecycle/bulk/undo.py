"""Taking an action on many incidents back: each is set to what it was, unless somebody has changed it since.

A line of the action is there as long as it can be taken back: it goes in the transaction that does so. An undo that broke
off half way is thus repeated, and goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType

from django.db import transaction

from incidents.domain.incident.state_machine import IncidentState, Transition
from incidents.lifecycle import actions, resolution
from incidents.lifecycle.bulk.apply import (
    ACTION_TYPES,
    ERROR_CODES,
    UNDO_WITHIN,
    BulkReport,
    SkippedIncident,
    error_code_of,
)
from incidents.lifecycle.bulk.snapshots import values_for_update
from incidents.models import BulkAction, BulkActionItem
from incidents.record import transitions
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.kernel.errors import Conflict, NotFound


def undo_bulk_action(number: int, *, actor: User, now: datetime) -> BulkReport:
    """Takes back what `actor` did to many, within 10 minutes, each once; one that has changed since stays, and is named.

    Raises NotFound for what is not theirs, Conflict where it is too late.
    """
    bulk = _undoable_action(number, actor, now)
    report = BulkReport(bulk.action)
    lines = list(bulk.lines.select_related("incident__dataset__team").order_by("incident"))
    if not lines:
        raise Conflict("That was taken back already. Nothing was changed.")
    for line in lines:
        skipped = _undo_item(bulk, line, actor, now)
        if skipped is None:
            report.done.append(line.incident_id)
        else:
            report.skipped.append(skipped)
    return report


def _undoable_action(number: int, actor: User, now: datetime) -> BulkAction:
    bulk = BulkAction.objects.filter(pk=number, actor=actor).first()
    if bulk is None:
        raise NotFound(f"There is no action {number} of yours. What others did, they take back themselves.")
    if now >= bulk.at + UNDO_WITHIN:
        raise Conflict(
            f"It is too late to undo: that was possible until {bulk.at + UNDO_WITHIN:%Y-%m-%d %H:%M} UTC. "
            "Nothing was changed."
        )
    return bulk


def _undo_item(bulk: BulkAction, line: BulkActionItem, actor: User, now: datetime) -> SkippedIncident | None:
    try:
        with transaction.atomic():
            require(actor, ACTION_TYPES[bulk.action].right, line.incident.dataset.team)
            if BulkActionItem.objects.filter(pk=line.pk).delete()[0] != 1:
                raise Conflict(f"#{line.incident_id} was taken back already.")
            INVERSES[bulk.action](line, actor.get_username(), now)
    except tuple(ERROR_CODES) as error:
        return SkippedIncident(line.incident_id, error_code_of(error), str(error))
    return None


def _undo_acknowledge(line: BulkActionItem, actor: str, now: datetime) -> None:
    incident, sets = line.incident, values_for_update(line.previous_values)
    sets.pop("state", None)
    transitions.apply_transition(
        incident, Transition.RELEASE, sets, now=now, actor=actor, text="undone", expected_revision=line.revision
    )
    actions.notify_released(incident, actor=actor, now=now)


def _restore_fields(line: BulkActionItem, actor: str, now: datetime) -> None:
    transitions.update_incident(line.incident, values_for_update(line.previous_values), expected_revision=line.revision)
    transitions.add_event(line.incident, "undone", now=now, actor=actor, text=line.bulk.action)


def _undo_resolve(line: BulkActionItem, actor: str, now: datetime) -> None:
    incident, sets = line.incident, values_for_update(line.previous_values)
    was = IncidentState(sets.pop("state"))
    resolution.reopen_incident(incident, sets, actor=actor, now=now, why="undone", expected_revision=line.revision)
    if was is IncidentState.ACKNOWLEDGED:
        transitions.apply_transition(incident, Transition.ACKNOWLEDGE, now=now, actor=actor, text="as before")
    resolution.notify_reopened(incident, actor=actor, now=now, why="undone")


INVERSES: Mapping[str, Callable[[BulkActionItem, str, datetime], None]] = MappingProxyType(
    {
        "acknowledge": _undo_acknowledge,
        "snooze": _restore_fields,
        "wake": _restore_fields,
        "assign": _restore_fields,
        "resolve": _undo_resolve,
    }
)

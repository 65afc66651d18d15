"""Taking an action on many incidents back: each is set to what it was, unless somebody has changed it since.

A line of the action is there as long as it can be taken back: it goes in the transaction that does so. An undo that broke
off half way is thus repeated, and goes on with the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType

from django.db import transaction

from incidents import actions, moves, resolving
from incidents.bulk import CODES, KINDS, UNDO_WITHIN, Kept, Report, code_of
from incidents.domain.lifecycle import Move, State
from incidents.models import BulkAction, BulkLine
from incidents.snapshots import read
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.kernel.errors import Conflict, NotFound


def undo(number: int, *, actor: User, now: datetime) -> Report:
    """Takes back what `actor` did to many, within 10 minutes, each once; one that has changed since stays, and is named.

    Raises NotFound for what is not theirs, Conflict where it is too late.
    """
    bulk = _found(number, actor, now)
    report = Report(bulk.action)
    lines = list(bulk.lines.select_related("incident__dataset__team").order_by("incident"))
    if not lines:
        raise Conflict("That was taken back already. Nothing was changed.")
    for line in lines:
        kept = _one(bulk, line, actor, now)
        if kept is None:
            report.done.append(line.incident_id)
        else:
            report.kept.append(kept)
    return report


def _found(number: int, actor: User, now: datetime) -> BulkAction:
    bulk = BulkAction.objects.filter(pk=number, actor=actor).first()
    if bulk is None:
        raise NotFound(f"There is no action {number} of yours. What others did, they take back themselves.")
    if now >= bulk.at + UNDO_WITHIN:
        raise Conflict(
            f"It is too late to undo: that was possible until {bulk.at + UNDO_WITHIN:%Y-%m-%d %H:%M} UTC. "
            "Nothing was changed."
        )
    return bulk


def _one(bulk: BulkAction, line: BulkLine, actor: User, now: datetime) -> Kept | None:
    try:
        with transaction.atomic():
            require(actor, KINDS[bulk.action].right, line.incident.dataset.team)
            if BulkLine.objects.filter(pk=line.pk).delete()[0] != 1:
                raise Conflict(f"#{line.incident_id} was taken back already.")
            INVERSES[bulk.action](line, actor.get_username(), now)
    except tuple(CODES) as error:
        return Kept(line.incident_id, code_of(error), str(error))
    return None


def _release(line: BulkLine, actor: str, now: datetime) -> None:
    incident, sets = line.incident, read(line.was)
    sets.pop("state", None)
    moves.make(incident, Move.RELEASE, sets, now=now, actor=actor, text="undone", seen=line.revision)
    actions.tell_released(incident, actor=actor, now=now)


def _set_back(line: BulkLine, actor: str, now: datetime) -> None:
    moves.update(line.incident, read(line.was), seen=line.revision)
    moves.note(line.incident, "undone", now=now, actor=actor, text=line.bulk.action)


def _open_again(line: BulkLine, actor: str, now: datetime) -> None:
    incident, sets = line.incident, read(line.was)
    was = State(sets.pop("state"))
    resolving.take_back(incident, sets, actor=actor, now=now, why="undone", seen=line.revision)
    if was is State.ACKNOWLEDGED:
        moves.make(incident, Move.ACKNOWLEDGE, now=now, actor=actor, text="as before")
    resolving.tell_reopened(incident, actor=actor, now=now, why="undone")


INVERSES: Mapping[str, Callable[[BulkLine, str, datetime], None]] = MappingProxyType(
    {"acknowledge": _release, "snooze": _set_back, "wake": _set_back, "assign": _set_back, "resolve": _open_again}
)

"""One action on many incidents: what can be done is done, the rest is said one by one, and all of it can be taken back.

Each incident is changed in a transaction of its own, with the line that `undo` restores it from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from incidents import actions, moves, resolving, snoozing
from incidents.models import BulkAction, BulkLine, Incident
from incidents.snapshots import changed, snapshot
from incidents.snoozing import Snooze
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

UNDO_WITHIN = timedelta(minutes=10)
MOST = 200
"""Of one request."""


@dataclass(frozen=True)
class Ask:
    """What is to be done, and what that kind of action needs to know."""

    action: str
    until: datetime | None = None
    until_worse: bool = False
    failures: int | None = None
    assignee: str = ""
    resolution: str = ""
    false_positive: str = ""
    why: str = ""

    @property
    def snooze(self) -> Snooze:
        return Snooze(self.until, self.until_worse, self.failures)


@dataclass(frozen=True)
class Kept:
    """One incident that stays as it was, and why. `code` is that of the REST API: forbidden, refused, conflict, not_found."""

    incident: int
    code: str
    why: str


@dataclass
class Report:
    """What became of each. `bulk` takes it back until `undo_until`; None: nothing that an undo could restore."""

    action: str
    done: list[int] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    bulk: BulkAction | None = None
    undo_until: datetime | None = None


@dataclass(frozen=True)
class Kind:
    """`right` is that of lakehub.accounts.permissions; `act` calls the one use case that a single incident has."""

    right: str
    act: Callable[[int, Ask, User, datetime], object]
    can_be_undone: bool = True


def _acknowledge(number: int, ask: Ask, actor: User, now: datetime) -> object:
    return actions.acknowledge(number, actor=actor, now=now)


def _rerun(number: int, ask: Ask, actor: User, now: datetime) -> object:
    return actions.rerun(number, actor=actor, now=now)


def _snooze(number: int, ask: Ask, actor: User, now: datetime) -> object:
    return actions.snooze(number, ask.until, actor=actor, now=now, until_worse=ask.until_worse, failures=ask.failures)


def _wake(number: int, ask: Ask, actor: User, now: datetime) -> object:
    return actions.wake(number, actor=actor, now=now)


def _assign(number: int, ask: Ask, actor: User, now: datetime) -> object:
    return actions.assign(number, ask.assignee, actor=actor, now=now)


def _resolve(number: int, ask: Ask, actor: User, now: datetime) -> object:
    return resolving.resolve(
        number,
        resolution=ask.resolution,
        false_positive=ask.false_positive,
        why=ask.why,
        actor=actor.get_username(),
        now=now,
    )


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "acknowledge": Kind("acknowledge", _acknowledge),
        "rerun": Kind("rerun", _rerun, can_be_undone=False),
        "snooze": Kind("acknowledge", _snooze),
        "wake": Kind("acknowledge", _wake),
        "assign": Kind("acknowledge", _assign),
        "resolve": Kind("resolve", _resolve),
    }
)


def together(numbers: Collection[int], ask: Ask, *, actor: User, now: datetime) -> Report:
    """Does it to each of the incidents that `actor` may do it to. Raises Refused where nothing can be done at all."""
    kind = _checked(numbers, ask)
    if ask.action == "snooze":
        snoozing.check(ask.snooze, now=now)
    report = Report(ask.action)
    if kind.can_be_undone:
        report.bulk = BulkAction.objects.create(actor=actor, action=ask.action, at=now)
        report.undo_until = now + UNDO_WITHIN
    for number in sorted(set(numbers)):
        kept = _one(number, ask, kind, report.bulk, actor, now)
        if kept is None:
            report.done.append(number)
        else:
            report.kept.append(kept)
    if report.bulk is not None and not report.done:
        report.bulk.delete()
        report.bulk = report.undo_until = None
    return report


CODES: Mapping[type[Exception], str] = MappingProxyType(
    {PermissionDenied: "forbidden", Refused: "refused", Conflict: "conflict", NotFound: "not_found"}
)


def _one(number: int, ask: Ask, kind: Kind, bulk: BulkAction | None, actor: User, now: datetime) -> Kept | None:
    try:
        with transaction.atomic():
            before = moves.locked(number)
            require(actor, kind.right, before.dataset.team)
            kind.act(number, ask, actor, now)
            if bulk is not None:
                _remember(bulk, before)
    except tuple(CODES) as error:
        return Kept(number, code_of(error), str(error))
    return None


def code_of(error: Exception) -> str:
    return next(code for kind, code in CODES.items() if isinstance(error, kind))


def _remember(bulk: BulkAction, before: Incident) -> None:
    after = Incident.objects.get(pk=before.pk)
    was: dict[str, Any] = changed(snapshot(before), snapshot(after))
    BulkLine.objects.create(bulk=bulk, incident=after, revision=after.revision, was=was)


def _checked(numbers: Collection[int], ask: Ask) -> Kind:
    problems = {}
    if ask.action not in KINDS:
        problems["action"] = f"There is no action `{ask.action}` on many incidents.{did_you_mean(ask.action, KINDS)}"
    if not numbers:
        problems["incidents"] = "Choose at least one incident."
    if len(numbers) > MOST:
        problems["incidents"] = f"{len(numbers)} incidents are too many for one request; {MOST} at most."
    if problems:
        raise Refused.because(problems)
    return KINDS[ask.action]

"""One action on many incidents: what can be done is done, the rest is said one by one, and all of it can be taken back.

Each incident is changed in a transaction of its own, with the line that `undo` restores it from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from incidents.lifecycle import actions, resolution
from incidents.lifecycle.bulk.snapshots import changed_values, snapshot
from incidents.models import BulkAction, BulkActionItem, Incident, Resolution
from incidents.record import snooze, transitions
from incidents.record.snooze import Snooze
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import refusal, require, teams_permitting
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

UNDO_WITHIN = timedelta(minutes=10)
MAX_INCIDENTS = 200
"""Of one request."""


@dataclass(frozen=True)
class BulkRequest:
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
class SkippedIncident:
    """One incident that stays as it was, and why. `code` is that of the REST API: forbidden, refused, conflict, not_found."""

    incident: int
    code: str
    why: str


@dataclass
class BulkReport:
    """What became of each. `bulk` takes it back until `undo_until`; None: nothing that an undo could restore."""

    action: str
    done: list[int] = field(default_factory=list)
    skipped: list[SkippedIncident] = field(default_factory=list)
    bulk: BulkAction | None = None
    undo_until: datetime | None = None


@dataclass(frozen=True)
class BulkActionType:
    """`right` is that of lakehub.accounts.permissions; `act` calls the one use case that a single incident has."""

    right: str
    act: Callable[[int, BulkRequest, User, datetime], object]
    can_be_undone: bool = True


def _acknowledge(number: int, ask: BulkRequest, actor: User, now: datetime) -> object:
    return actions.acknowledge(number, actor=actor, now=now)


def _rerun(number: int, ask: BulkRequest, actor: User, now: datetime) -> object:
    return actions.rerun(number, actor=actor, now=now)


def _snooze(number: int, ask: BulkRequest, actor: User, now: datetime) -> object:
    return actions.snooze(number, ask.until, actor=actor, now=now, until_worse=ask.until_worse, failures=ask.failures)


def _wake(number: int, ask: BulkRequest, actor: User, now: datetime) -> object:
    return actions.wake(number, actor=actor, now=now)


def _assign(number: int, ask: BulkRequest, actor: User, now: datetime) -> object:
    return actions.assign(number, ask.assignee, actor=actor, now=now)


def _resolve(number: int, ask: BulkRequest, actor: User, now: datetime) -> object:
    return resolution.resolve_by_force(
        number,
        resolution=ask.resolution,
        false_positive=ask.false_positive,
        why=ask.why,
        actor=actor.get_username(),
        now=now,
    )


ACTION_TYPES: Mapping[str, BulkActionType] = MappingProxyType(
    {
        "acknowledge": BulkActionType("acknowledge", _acknowledge),
        "rerun": BulkActionType("rerun", _rerun, can_be_undone=False),
        "snooze": BulkActionType("acknowledge", _snooze),
        "wake": BulkActionType("acknowledge", _wake),
        "assign": BulkActionType("acknowledge", _assign),
        "resolve": BulkActionType("resolve", _resolve),
    }
)


def apply_to_many(numbers: Collection[int], ask: BulkRequest, *, actor: User, now: datetime) -> BulkReport:
    """Does it to each of the incidents that `actor` may do it to. Raises Refused where nothing can be done at all."""
    kind = _checked_action_type(numbers, ask)
    if ask.action == "snooze":
        snooze.check_snooze(ask.snooze, now=now)
    report, refusals = BulkReport(ask.action), _refused_beforehand(set(numbers), kind, actor)
    if kind.can_be_undone and len(refusals) < len(set(numbers)):
        report.bulk = BulkAction.objects.create(actor=actor, action=ask.action, at=now)
        report.undo_until = now + UNDO_WITHIN
    for number in sorted(set(numbers)):
        skipped = refusals.get(number) or _apply_to_one(number, ask, kind, report.bulk, actor, now)
        if skipped is None:
            report.done.append(number)
        else:
            report.skipped.append(skipped)
    if report.bulk is not None and not report.done:
        report.bulk.delete()
        report.bulk = report.undo_until = None
    return report


ERROR_CODES: Mapping[type[Exception], str] = MappingProxyType(
    {PermissionDenied: "forbidden", Refused: "refused", Conflict: "conflict", NotFound: "not_found"}
)


def _refused_beforehand(numbers: Set[int], kind: BulkActionType, actor: User) -> dict[int, SkippedIncident]:
    """The numbers for which the right or the incident is missing.

    Read at once and without a transaction: on SQLite each one holds up everybody who writes, also for somebody who may change nothing.
    """
    teams = dict(Incident.objects.filter(pk__in=numbers).values_list("pk", "dataset__team"))
    permitted = teams_permitting(actor, kind.right)
    forbidden = Team.objects.in_bulk({team for team in teams.values() if team not in permitted})
    problems: dict[int, Exception] = {number: transitions.no_incident(number) for number in numbers - teams.keys()}
    problems |= {number: refusal(actor, kind.right, forbidden[pk]) for number, pk in teams.items() if pk in forbidden}
    return {number: _skipped(number, problem) for number, problem in problems.items()}


def _apply_to_one(
    number: int, ask: BulkRequest, kind: BulkActionType, bulk: BulkAction | None, actor: User, now: datetime
) -> SkippedIncident | None:
    try:
        with transaction.atomic():
            before = transitions.locked_incident(number)
            require(actor, kind.right, before.dataset.team)
            kind.act(number, ask, actor, now)
            if bulk is not None:
                _save_previous_values(bulk, before)
    except tuple(ERROR_CODES) as error:
        return _skipped(number, error)
    return None


def _skipped(number: int, error: Exception) -> SkippedIncident:
    return SkippedIncident(number, error_code_of(error), str(error))


def error_code_of(error: Exception) -> str:
    return next(code for kind, code in ERROR_CODES.items() if isinstance(error, kind))


def _save_previous_values(bulk: BulkAction, before: Incident) -> None:
    after = Incident.objects.get(pk=before.pk)
    was: dict[str, Any] = changed_values(snapshot(before), snapshot(after))
    BulkActionItem.objects.create(bulk=bulk, incident=after, revision=after.revision, previous_values=was)


def _checked_action_type(numbers: Collection[int], ask: BulkRequest) -> BulkActionType:
    problems = {}
    if ask.action not in ACTION_TYPES:
        problems["action"] = (
            f"There is no action `{ask.action}` on many incidents.{did_you_mean(ask.action, ACTION_TYPES)}"
        )
    if not numbers:
        problems["incidents"] = "Choose at least one incident."
    if len(numbers) > MAX_INCIDENTS:
        problems["incidents"] = f"{len(numbers)} incidents are too many for one request; {MAX_INCIDENTS} at most."
    if problems:
        raise Refused.for_fields(problems)
    return ACTION_TYPES[ask.action]


def forced_resolution(how: str, why: str) -> BulkRequest:
    """`how` is a kind of false positive, or `accepted`."""
    if how == Resolution.ACCEPTED:
        return BulkRequest("resolve", resolution=Resolution.ACCEPTED.value, why=why)
    return BulkRequest("resolve", resolution=Resolution.FALSE_POSITIVE.value, false_positive=how, why=why)

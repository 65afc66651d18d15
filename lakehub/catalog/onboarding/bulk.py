"""Onboarding many at once. Each is all or nothing, with a line that says what became of it; one refused costs no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from django.core.exceptions import PermissionDenied
from django.db import transaction

from lakehub.catalog.lineage.edges import rebuild_edges, take_turn
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.suggest import HintBudget

MAX_REQUESTS = 500
"""Of one call: each reads its table."""
MAX_HINTS = 10
"""Of one call: so many unknown names are searched for among those that there are, the others are told without the nearest."""
LINEAGE_SOURCE = "lineage"


class OnboardingStatus(StrEnum):
    CREATED = "created"
    EXISTS = "exists"
    REFUSED = "refused"
    READY = "ready"
    """Only looked at: nothing speaks against it."""


@dataclass(frozen=True)
class OnboardingLine:
    """What became of one, or would. `why`: by field, as `onboard_dataset` says it. `notes`: what its rows showed, for people."""

    name: str
    result: OnboardingStatus
    why: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    table: str = ""
    """Of the connection; empty where the application could not be read."""


@dataclass(frozen=True)
class OnboardingSelection:
    """`requests` for what can be onboarded; `lines` for what is already, or cannot be."""

    requests: tuple[OnboardingRequest, ...]
    lines: tuple[OnboardingLine, ...]

    @property
    def preview(self) -> list[OnboardingLine]:
        """A line for each, before anything is onboarded."""
        ready = [OnboardingLine(each.name, OnboardingStatus.READY, table=each.table) for each in self.requests]
        return [*ready, *self.lines]


def onboard_many(
    applications: Sequence[OnboardingRequest],
    *,
    actor: str,
    may: Callable[[OnboardingRequest], None] = lambda application: None,
    now: datetime,
) -> list[OnboardingLine]:
    """In the order given, though an upstream of the list goes first. `may` raises PermissionDenied. Raises Refused."""
    if len(applications) > MAX_REQUESTS:
        raise Refused(f"{len(applications)} datasets are more than {MAX_REQUESTS} at once: split the list.")
    hints = HintBudget(MAX_HINTS)
    lines = {
        id(application): _onboard_alone(application, actor=actor, may=may, hints=hints, now=now)
        for application in _upstream_first(applications)
    }
    if any(line.result is OnboardingStatus.CREATED for line in lines.values()):
        with transaction.atomic():
            take_turn()
            rebuild_edges(source=LINEAGE_SOURCE, now=now)
    return [replace(lines[id(application)], table=application.table) for application in applications]


def _onboard_alone(
    application: OnboardingRequest,
    *,
    actor: str,
    may: Callable[[OnboardingRequest], None],
    hints: HintBudget,
    now: datetime,
) -> OnboardingLine:
    name = application.name
    try:
        may(application)
        if Dataset.objects.filter(name=name, offboarded_at=None).exists():
            return OnboardingLine(name, OnboardingStatus.EXISTS)
        onboarded = onboard_dataset(application, actor=actor, hints=hints, now=now)
    except Refused as problem:
        return OnboardingLine(name, OnboardingStatus.REFUSED, problem.fields or {"": str(problem)})
    except (Conflict, PermissionDenied) as problem:
        return OnboardingLine(name, OnboardingStatus.REFUSED, {"": str(problem)})
    return OnboardingLine(name, OnboardingStatus.CREATED, notes=onboarded.notes)


def _upstream_first(applications: Sequence[OnboardingRequest]) -> list[OnboardingRequest]:
    """A list whose datasets name each other in a circle stays as it is: the first of them is refused, and says why."""
    place = {application.name: at for at, application in enumerate(applications)}
    needs = {
        at: [place[up.dataset] for up in application.upstream if up.dataset in place]
        for at, application in enumerate(applications)
    }
    try:
        return [applications[at] for at in TopologicalSorter(needs).static_order()]
    except CycleError:
        return list(applications)

"""Onboarding many at once. Each is all or nothing, with a line that says what became of it; one refused costs no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter

from django.core.exceptions import PermissionDenied
from django.db import transaction

from lakehub.catalog.lineage.edges import connect
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding import Application, onboard
from lakehub.kernel.errors import Conflict, Refused

MOST = 500
"""Of one call: each reads its table."""
LINEAGE = "lineage"


class Result(StrEnum):
    CREATED = "created"
    EXISTS = "exists"
    REFUSED = "refused"


@dataclass(frozen=True)
class Line:
    """What became of one. `why`: by field, as `onboard` says it."""

    name: str
    result: Result
    why: Mapping[str, str] = field(default_factory=dict)


def onboard_many(
    applications: Sequence[Application],
    *,
    actor: str,
    may: Callable[[Application], None] = lambda application: None,
    now: datetime,
) -> list[Line]:
    """In the order given, though an upstream of the list goes first. `may` raises PermissionDenied. Raises Refused."""
    if len(applications) > MOST:
        raise Refused(f"{len(applications)} datasets are more than {MOST} at once: split the list.")
    lines = {id(one): _onboard(one, actor=actor, may=may, now=now) for one in _upstream_first(applications)}
    if any(line.result is Result.CREATED for line in lines.values()):
        with transaction.atomic():
            connect(source=LINEAGE, now=now)
    return [lines[id(one)] for one in applications]


def _onboard(application: Application, *, actor: str, may: Callable[[Application], None], now: datetime) -> Line:
    name = application.name
    try:
        may(application)
        if Dataset.objects.filter(name=name, offboarded_at=None).exists():
            return Line(name, Result.EXISTS)
        onboard(application, actor=actor, now=now)
    except Refused as problem:
        return Line(name, Result.REFUSED, problem.fields or {"": str(problem)})
    except (Conflict, PermissionDenied) as problem:
        return Line(name, Result.REFUSED, {"": str(problem)})
    return Line(name, Result.CREATED)


def _upstream_first(applications: Sequence[Application]) -> list[Application]:
    """A list whose datasets name each other in a circle stays as it is: the first of them is refused, and says why."""
    place = {one.name: at for at, one in enumerate(applications)}
    needs = {
        at: [place[up.dataset] for up in one.upstream if up.dataset in place] for at, one in enumerate(applications)
    }
    try:
        return [applications[at] for at in TopologicalSorter(needs).static_order()]
    except CycleError:
        return list(applications)

"""People let a range be read in spite of the gate's verdict: with a reason, for a while, and for everybody to see."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from incidents.models import GateOverride
from ingestion import waiting
from lakehub.accounts import audit
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.interval import Interval

LONGEST = timedelta(days=31)
LONGEST_REASON = 1_000


def override(
    dataset: Dataset,
    data: Interval,
    *,
    reason: str,
    expires_at: datetime,
    actor: User,
    now: datetime,
    copy: DatasetCopy | None = None,
    consumer: str = "",
) -> GateOverride:
    """From now on until `expires_at` nothing about `data` blocks the consumer (everybody, if none is named).

    Raises Refused by field.
    """
    _check(reason, expires_at, now)
    with transaction.atomic():
        made = GateOverride.objects.create(
            dataset=dataset,
            copy=copy,
            consumer=consumer,
            start=data.start,
            end=data.end,
            reason=reason,
            created_by=actor.get_username(),
            created_at=now,
            expires_at=expires_at,
        )
        _audit(made, "override gate", actor, now=now)
        waiting.look_again(dataset.pk, now=now)
    return made


def end(number: int, *, actor: User, now: datetime) -> GateOverride:
    """Before its time. Raises NotFound; Conflict where it has ended already."""
    with transaction.atomic():
        made = find(number)
        in_force = GateOverride.objects.filter(pk=number, ended_at=None, expires_at__gt=now)
        if not in_force.update(ended_at=now, ended_by=actor.get_username()):
            raise Conflict(f"Override {number} has ended already; nothing was changed.")
        made.refresh_from_db()
        _audit(made, "end gate override", actor, now=now)
    return made


def find(number: int) -> GateOverride:
    """Raises NotFound."""
    found = GateOverride.objects.select_related("dataset__team", "copy__data_center").filter(pk=number).first()
    if found is None:
        raise NotFound(f"There is no override {number}.")
    return found


def listed(*, now: datetime, dataset: str = "", ended: bool = False) -> QuerySet[GateOverride]:
    """Newest first: those in force, with `ended` the others too."""
    found = GateOverride.objects.select_related("dataset__team", "copy__data_center").order_by("-created_at", "-pk")
    if dataset:
        found = found.filter(dataset__name=dataset)
    return found if ended else found.filter(Q(ended_at=None, expires_at__gt=now))


def _check(reason: str, expires_at: datetime, now: datetime) -> None:
    problems = {}
    if not reason.strip():
        problems["reason"] = "Say why it may be read: everybody who asks will see it."
    elif len(reason) > LONGEST_REASON:
        problems["reason"] = f"A reason of {len(reason):,} characters: use {LONGEST_REASON:,} at most."
    if not now < expires_at <= now + LONGEST:
        problems["until"] = (
            f"It ends at {expires_at.isoformat()}: name a time after now, and within {LONGEST.days} days."
        )
    if problems:
        raise Refused.because(problems)


def _audit(made: GateOverride, action: str, actor: User, *, now: datetime) -> None:
    audit.record(
        actor.get_username(),
        action,
        f"dataset:{made.dataset.name}",
        now=now,
        override=made.pk,
        consumer=made.consumer,
        data_center=made.copy.data_center.name if made.copy else "",
        range=[made.start.isoformat(), made.end.isoformat()],
        reason=made.reason,
        until=made.expires_at.isoformat(),
    )

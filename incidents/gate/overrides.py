"""People let a range be read in spite of the gate's verdict: with a reason, for a while, and for everybody to see."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet

from incidents.models import GateOverride
from ingestion.runs import blocked_inputs
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import User
from lakehub.catalog.models import Dataset, DatasetCopy
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.interval import Interval

MAX_DURATION = timedelta(days=31)
MAX_REASON_LENGTH = 1_000


def create_override(
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
    _check_override(reason, expires_at, now)
    with transaction.atomic():
        override = GateOverride.objects.create(
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
        _audit(override, "override gate", actor, now=now)
        blocked_inputs.wake_waiting_runs(dataset.pk, now=now)
    return override


def end_override(number: int, *, actor: User, now: datetime) -> GateOverride:
    """Before its time. Raises NotFound; Conflict where it has ended already."""
    with transaction.atomic():
        override = override_by_number(number)
        in_force = GateOverride.objects.filter(pk=number, ended_at=None, expires_at__gt=now)
        if not in_force.update(ended_at=now, ended_by=actor.get_username()):
            raise Conflict(f"Override {number} has ended already; nothing was changed.")
        override.refresh_from_db()
        _audit(override, "end gate override", actor, now=now)
    return override


def override_by_number(number: int) -> GateOverride:
    """Raises NotFound."""
    override = GateOverride.objects.select_related("dataset__team", "copy__data_center").filter(pk=number).first()
    if override is None:
        raise NotFound(f"There is no override {number}.")
    return override


def list_overrides(*, now: datetime, dataset: str = "", ended: bool = False) -> QuerySet[GateOverride]:
    """Newest first: those in force, with `ended` the others too."""
    overrides = GateOverride.objects.select_related("dataset__team", "copy__data_center").order_by("-created_at", "-pk")
    if dataset:
        overrides = overrides.filter(dataset__name=dataset)
    return overrides if ended else overrides.filter(Q(ended_at=None, expires_at__gt=now))


def _check_override(reason: str, expires_at: datetime, now: datetime) -> None:
    problems = {}
    if not reason.strip():
        problems["reason"] = "Say why it may be read: everybody who asks will see it."
    elif len(reason) > MAX_REASON_LENGTH:
        problems["reason"] = f"A reason of {len(reason):,} characters: use {MAX_REASON_LENGTH:,} at most."
    if not now < expires_at <= now + MAX_DURATION:
        problems["until"] = (
            f"It ends at {expires_at.isoformat()}: name a time after now, and within {MAX_DURATION.days} days."
        )
    if problems:
        raise Refused.for_fields(problems)


def _audit(override: GateOverride, action: str, actor: User, *, now: datetime) -> None:
    audit_log.record(
        actor.get_username(),
        action,
        f"dataset:{override.dataset.name}",
        now=now,
        override=override.pk,
        consumer=override.consumer,
        data_center=override.copy.data_center.name if override.copy else "",
        range=[override.start.isoformat(), override.end.isoformat()],
        reason=override.reason,
        until=override.expires_at.isoformat(),
    )

"""Secrets of tools that report finished runs and cannot hold a token: made and shown once, used, revoked."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Team, User
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound, Refused
from quality.domain import request_signature
from quality.models import PipelineHook

_LAST_USED_STEP = timedelta(minutes=1)


def create_hook(name: str, team: Team, dataset: Dataset | None, *, created_by: User, now: datetime) -> PipelineHook:
    """A new hook; its `secret` is to be shown this once. Raises Refused."""
    if dataset is not None and dataset.team_id != team.pk:
        raise Refused.for_fields({"dataset": f"`{dataset.name}` is of team {dataset.team}, not of {team}."})
    with transaction.atomic():
        hook = PipelineHook.objects.create(
            key=f"ph_{secrets.token_hex(6)}",
            secret=secrets.token_urlsafe(32),
            name=name,
            team=team,
            dataset=dataset,
            created_by=created_by,
            created_at=now,
        )
        about = f"dataset:{dataset}" if dataset else f"team:{team}"
        audit_log.record(
            created_by.get_username(), "make pipeline hook", f"hook:{hook.key}", now=now, of=about, name=name
        )
    return hook


def revoke_hook(hook: PipelineHook, *, actor: str, now: datetime) -> None:
    """What is signed with it is refused from now on; a second time changes nothing."""
    with transaction.atomic():
        if PipelineHook.objects.filter(pk=hook.pk, revoked_at=None).update(revoked_at=now):
            audit_log.record(actor, "revoke pipeline hook", f"hook:{hook.key}", now=now)


def live_hook(key: str) -> PipelineHook:
    """Raises NotFound."""
    hook = PipelineHook.objects.select_related("team", "dataset", "created_by").filter(key=key, revoked_at=None).first()
    if hook is None:
        raise NotFound(f"There is no pipeline hook `{key}`, or it was revoked.")
    return hook


def authenticated_hook(
    key: str, *, timestamp: str, body: bytes, signed: str, now: datetime, wall: datetime
) -> PipelineHook | None:
    """The hook that vouches for the body; None where there is none, or who made it has left. Raises BadSignature.

    Senders go by the clock on the `wall`; its use is noted by ours, to the minute.
    """
    try:
        hook = live_hook(key)
    except NotFound:
        return None
    request_signature.verify_signature(hook.secret, timestamp=timestamp, body=body, signed=signed, now=wall)
    if not hook.created_by.is_active:
        return None
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _LAST_USED_STEP)
    PipelineHook.objects.filter(stale, pk=hook.pk).update(last_used_at=now)
    return hook


def may_report_on(hook: PipelineHook, dataset: Dataset) -> bool:
    return hook.dataset_id in (None, dataset.pk) and hook.team_id == dataset.team_id

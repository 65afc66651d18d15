"""Who may say what a consumer's jobs do with a verdict, and saying it.

A consumer belongs to the team that holds its name (`lakehub.accounts.tokens.consumers`): its admins set the policies. One that no team holds,
such as Lakehub's own jobs or a person, belongs to whoever runs the instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from incidents.models import GatePolicy
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import User
from lakehub.accounts.permissions import require
from lakehub.accounts.tokens import consumers
from lakehub.kernel.errors import NotFound, Refused


def require_policy_right(user: User, consumer: str, *, now: datetime) -> None:
    """Raises PermissionDenied."""
    teams = consumers.deciding_teams(consumer, now=now)
    for team in teams:
        require(user, "set policy", team)
    if not teams and not (user.is_superuser and user.token_team is None):
        raise PermissionDenied(
            f"No team holds the consumer `{consumer}`: only who runs the instance may set its policy."
        )


def set_policy(
    consumer: str, tier: int | None, *, preset: str, blocks: Sequence[str], shadow: bool, actor: User, now: datetime
) -> GatePolicy:
    """The policy of the consumer for a tier, or for every tier that has none. Raises Refused by field."""
    with transaction.atomic():
        row = GatePolicy.objects.select_for_update().filter(consumer=consumer, tier=tier).first()
        row = row or GatePolicy(consumer=consumer, tier=tier)
        row.preset, row.blocks, row.shadow = preset, list(blocks), shadow
        try:
            row.full_clean()
        except ValidationError as problem:
            raise Refused.for_fields({name: " ".join(texts) for name, texts in problem.message_dict.items()}) from None
        row.save()
        details = {"tier": tier, "preset": preset, "blocks": list(blocks), "shadow": shadow}
        audit_log.record(actor.get_username(), "set gate policy", f"consumer:{consumer}", now=now, **details)
    return row


def remove_policy(consumer: str, tier: int | None, *, actor: User, now: datetime) -> None:
    """Raises NotFound."""
    with transaction.atomic():
        gone, _ = GatePolicy.objects.filter(consumer=consumer, tier=tier).delete()
        if not gone:
            raise NotFound(f"`{consumer}` has no policy for {'every tier' if tier is None else f'tier {tier}'}.")
        audit_log.record(actor.get_username(), "remove gate policy", f"consumer:{consumer}", now=now, tier=tier)

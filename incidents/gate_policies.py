"""Who may say what a consumer's jobs do with a verdict, and saying it.

A consumer belongs to the teams whose tokens carry its name: an admin of all of them sets its policies. One without tokens, such
as Lakehub's own jobs or a person, belongs to whoever runs the instance.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from incidents.models import GatePolicy
from lakehub.accounts import audit
from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import can, require
from lakehub.kernel.errors import NotFound, Refused


def require_policy(user: User, consumer: str) -> None:
    """Raises PermissionDenied."""
    teams = list(Team.objects.filter(tokens__consumer=consumer).distinct())
    for team in teams:
        require(user, "set policy", team)
    if not teams and not (user.is_superuser and user.limited_to is None):
        raise PermissionDenied(f"No team has a token of `{consumer}`: only who runs the instance may set its policy.")


def may_set(user: User, consumer: str) -> bool:
    teams = list(Team.objects.filter(tokens__consumer=consumer).distinct())
    return all(can(user, "set policy", team) for team in teams) if teams else user.is_superuser


def put(
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
            raise Refused.because({name: " ".join(said) for name, said in problem.message_dict.items()}) from None
        row.save()
        said = {"tier": tier, "preset": preset, "blocks": list(blocks), "shadow": shadow}
        audit.record(actor.get_username(), "set gate policy", f"consumer:{consumer}", now=now, **said)
    return row


def remove(consumer: str, tier: int | None, *, actor: User, now: datetime) -> None:
    """Raises NotFound."""
    with transaction.atomic():
        gone, _ = GatePolicy.objects.filter(consumer=consumer, tier=tier).delete()
        if not gone:
            raise NotFound(f"`{consumer}` has no policy for {'every tier' if tier is None else f'tier {tier}'}.")
        audit.record(actor.get_username(), "remove gate policy", f"consumer:{consumer}", now=now, tier=tier)

"""The names under which programs ask the gate. Each is one team's: the first that has a token of it made.

So nobody asks under the policy of another team's jobs, or has a say in it. In the console a name is given to another team.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import chain

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from lakehub.accounts import audit
from lakehub.accounts.models import SLUG, Consumer, Team, Token, User
from lakehub.kernel.errors import Refused

INGESTION = "ingestion"
RESERVED = frozenset({INGESTION})
"""Lakehub's own jobs (`ingestion.ports.CONSUMER`): whoever runs the instance decides about them."""


def why_not(name: str, team: Team) -> str:
    """Why programs of the team may not ask under this name; empty: they may."""
    try:
        SLUG(name)
    except ValidationError as error:
        return " ".join(error.messages)
    if name in RESERVED:
        return f"Lakehub's own jobs ask as `{name}`: choose another name."
    holder = Consumer.objects.select_related("team").filter(name=name).first()
    if holder is not None:
        return "" if holder.team_id == team.pk else _taken(holder)
    if User.objects.filter(username=name).exists():
        return f"The person `{name}` asks the gate under that name: choose another."
    return ""


def hold(name: str, team: Team, *, actor: str, now: datetime) -> None:
    """From now on the name is the team's. Raises Refused where another team was faster."""
    held, is_new = Consumer.objects.get_or_create(name=name, defaults={"team": team})
    if held.team_id != team.pk:
        raise Refused.because({"consumer": _taken(held)})
    if is_new:
        audit.record(actor, "hold consumer", f"consumer:{name}", now=now, team=team.name)


def deciding(name: str, *, now: datetime) -> list[Team]:
    """The teams whose administrators decide together about the consumer; none: whoever runs the instance does.

    Beside the one that holds the name, those whose tokens of it are from before names were held, while they live.
    """
    if name in RESERVED:
        return []
    still = _living(now).filter(consumer=name).values("team")
    return list(Team.objects.filter(Q(consumers__name=name) | Q(pk__in=still)).distinct())


def all_deciding(*, now: datetime) -> dict[str, frozenset[int]]:
    """The same of every name that a team holds or has a living token of. Two queries."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    pairs = (Consumer.objects.values_list("name", "team"), _living(now).values_list("consumer", "team").distinct())
    for name, team in chain(*pairs):
        if name not in RESERVED:
            found[name].add(team)
    return {name: frozenset(teams) for name, teams in found.items()}


def _living(now: datetime) -> QuerySet[Token]:
    return Token.objects.filter(revoked_at=None, expires_at__gt=now, created_by__is_active=True)


def _taken(held: Consumer) -> str:
    return f"Programs of team `{held.team.name}` ask the gate as `{held.name}`: choose another name, or ask that team for a token."

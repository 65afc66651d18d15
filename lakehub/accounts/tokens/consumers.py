"""The names under which programs ask the gate. Each is one team's: the first that has a token of it made.

So nobody asks under the policy of another team's jobs, or has a say in it. In the console a name is given to another team.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from itertools import chain

from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import SLUG, Consumer, Team, Token, User
from lakehub.kernel.errors import Refused

INGESTION_CONSUMER = "ingestion"
RESERVED_NAMES = frozenset({INGESTION_CONSUMER})
"""Lakehub's own jobs (`ingestion.ports.GATE_CONSUMER`): whoever runs the instance decides about them."""


def refusal_reason(name: str, team: Team) -> str:
    """Why programs of the team may not ask under this name; empty: they may."""
    try:
        SLUG(name)
    except ValidationError as error:
        return " ".join(error.messages)
    if name in RESERVED_NAMES:
        return f"Lakehub's own jobs ask as `{name}`: choose another name."
    holder = Consumer.objects.select_related("team").filter(name=name).first()
    if holder is not None:
        return "" if holder.team_id == team.pk else _taken_message(holder)
    if User.objects.filter(username=name).exists():
        return f"The person `{name}` asks the gate under that name: choose another."
    return ""


def assign_to_team(name: str, team: Team, *, actor: str, now: datetime) -> None:
    """From now on the name is the team's. Raises Refused where another team was faster."""
    holder, is_new = Consumer.objects.get_or_create(name=name, defaults={"team": team})
    if holder.team_id != team.pk:
        raise Refused.for_fields({"consumer": _taken_message(holder)})
    if is_new:
        audit_log.record(actor, "hold consumer", f"consumer:{name}", now=now, team=team.name)


def deciding_teams(name: str, *, now: datetime) -> list[Team]:
    """The teams whose administrators decide together about the consumer; none: whoever runs the instance does.

    Beside the one that holds the name, those whose tokens of it are from before names were held, while they live.
    """
    if name in RESERVED_NAMES:
        return []
    still = _live_tokens(now).filter(consumer=name).values("team")
    return list(Team.objects.filter(Q(consumers__name=name) | Q(pk__in=still)).distinct())


def deciding_teams_by_consumer(*, now: datetime) -> dict[str, frozenset[int]]:
    """The same of every name that a team holds or has a living token of. Two queries."""
    teams_by_consumer: defaultdict[str, set[int]] = defaultdict(set)
    pairs = (Consumer.objects.values_list("name", "team"), _live_tokens(now).values_list("consumer", "team").distinct())
    for name, team in chain(*pairs):
        if name not in RESERVED_NAMES:
            teams_by_consumer[name].add(team)
    return {name: frozenset(teams) for name, teams in teams_by_consumer.items()}


def _live_tokens(now: datetime) -> QuerySet[Token]:
    return Token.objects.filter(revoked_at=None, expires_at__gt=now, created_by__is_active=True)


def _taken_message(holder: Consumer) -> str:
    return f"Programs of team `{holder.team.name}` ask the gate as `{holder.name}`: choose another name, or ask that team for a token."

"""To which team a subject belongs that a program registers without a word about it."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import require_in_some_team, teams_where
from lakehub.kernel.errors import Refused


def team_of_new_subject(user: User | AnonymousUser) -> Team:
    """The token's; of who is signed in, the only team in which they may onboard. Raises PermissionDenied, Refused."""
    require_in_some_team(user, "onboard")
    limit: Team | None = getattr(user, "token_team", None)
    if limit is not None:
        return limit
    teams = [*Team.objects.filter(teams_where(user, "onboard")).distinct().order_by("name")[:2]]
    if len(teams) == 1:
        return teams[0]
    raise Refused.for_fields(
        {"subject": "This subject is new, and you may onboard for several teams: register it with a token of its team."}
    )

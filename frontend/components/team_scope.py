"""Whose datasets a page is about: those of the viewer's teams, or with `?teams=all` everybody's."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q
from django.http import HttpRequest

from frontend.ui.form_actions import actor_of
from lakehub.accounts.models import Team

ALL_TEAMS = "all"
PARAMETER = "teams"


@dataclass(frozen=True)
class TeamScope:
    """`mine` may be empty: then there is nothing to narrow to, and the page is about everything."""

    mine: tuple[Team, ...]
    asked_for_all: bool

    @property
    def is_all(self) -> bool:
        return self.asked_for_all or not self.mine

    @property
    def suffix(self) -> str:
        """What keeps the choice in an address: `?view=open{{ scope.suffix }}`."""
        return f"&{PARAMETER}={ALL_TEAMS}" if self.asked_for_all and self.mine else ""

    @property
    def names(self) -> str:
        return ", ".join(team.name for team in self.mine)

    def where(self, path: str) -> Q:
        """A filter by the team at `path`, such as `dataset__team`."""
        return Q() if self.is_all else Q(**{f"{path}__in": [team.pk for team in self.mine]})


def team_scope(request: HttpRequest) -> TeamScope:
    """One query."""
    mine = Team.objects.filter(memberships__user=actor_of(request)).order_by("name")
    return TeamScope(tuple(mine), request.GET.get(PARAMETER) == ALL_TEAMS)

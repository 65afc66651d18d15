"""Who may onboard what: an owner of the team that will own the dataset, who may also use the connection."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser

from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import require
from lakehub.catalog.models import Connection


def require_onboarding(user: User | AnonymousUser, *, team: str, connection: str) -> None:
    """Raises PermissionDenied. An unknown team or connection is left to the check of the application, which names it."""
    owner = Team.objects.filter(name=team).first()
    source = Connection.objects.select_related("team").filter(name=connection).first()
    if owner is not None:
        require(user, "onboard", owner)
    if source is not None:
        require(user, "onboard", source.team)

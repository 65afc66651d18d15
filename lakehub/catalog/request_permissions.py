"""Whose right it takes where the body of a request says what it is about: the right comes before the rest of it is understood."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from rest_framework.request import Request

from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import field_of_body, require, require_in_named_team
from lakehub.catalog.models import Connection, Dataset


def require_onboarding(user: User | AnonymousUser, *, team: str, connection: str) -> None:
    """Of an owner of the team that will own the dataset, who may also use the connection. Raises PermissionDenied.

    An unknown team or connection is left to the check of the application, which names it.
    """
    source = Connection.objects.select_related("team").filter(name=connection).first()
    require_in_named_team(user, "onboard", Team.objects.filter(name=team).first())
    if source is not None:
        require(user, "onboard", source.team)


def require_on_named_dataset(request: Request, action: str) -> None:
    """On the dataset that the body names; one that is not there is left to the check of the body. Raises PermissionDenied."""
    live = Dataset.objects.select_related("team").filter(offboarded_at=None)
    dataset = live.filter(name=field_of_body(request, "dataset")).first()
    require_in_named_team(request.user, action, dataset.team if dataset else None)

"""Whose right it takes where the body of a request says what it is about: the right comes before the rest of it is understood."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import AnonymousUser
from rest_framework.request import Request

from lakehub.accounts.models import Team, User
from lakehub.accounts.permissions import field_of_body, require, require_in_named_team, teams_permitting
from lakehub.catalog.models import MAX_COPIES, Connection, Dataset


def require_onboarding(user: User | AnonymousUser, *, team: str, connections: Iterable[str]) -> None:
    """Of an owner of the team that will own the dataset, who may also use the connections. Raises PermissionDenied.

    An unknown team or connection is left to the check of the application, which names it.
    """
    require_in_named_team(user, "onboard", Team.objects.filter(name=team).first())
    require_connections(user, connections)


def require_connections(user: User | AnonymousUser, names: Iterable[str]) -> None:
    """Of somebody who may read tables through all of these. Raises PermissionDenied."""
    for source in Connection.objects.select_related("team").filter(name__in=list(names)):
        require(user, "onboard", source.team)


def without_rows(user: User | AnonymousUser, datasets: Iterable[Dataset]) -> list[Dataset]:
    """Those of which `user` may not see rows, and so may not make anything that hands them on. One query."""
    teams = teams_permitting(user, "see rows")
    return [dataset for dataset in datasets if dataset.team_id not in teams]


def require_change(request: Request, dataset: Dataset) -> None:
    """The rights that the change in the body of a request takes. Raises PermissionDenied."""
    require_named_in_change(
        request.user,
        dataset,
        team=field_of_body(request, "team"),
        connections=connections_of_body(request),
        names_table=bool(field_of_body(request, "table")),
    )


def require_named_in_change(
    user: User | AnonymousUser, dataset: Dataset, *, team: str, connections: Iterable[str], names_table: bool
) -> None:
    """Whoever changes a dataset may use the connections that the change names, and answer for the team that it names.

    What stays takes no right: the dataset may be read by another team's connection. Another table takes the connection that
    it is read by, also where that is not named. Raises PermissionDenied.
    """
    names, feed = list(connections), dataset.feed_or_none
    if names_table and feed is not None and feed.connection is not None:
        names.append(feed.connection.name)
    require_connections(user, names)
    new_owner = Team.objects.filter(name=team).first()
    if new_owner is not None:
        require(user, "onboard", new_owner)


def connections_of_body(request: Request) -> list[str]:
    """Those that an application for onboarding names, read as its serializer reads them."""
    return _named_connections(request.data) if isinstance(request.data, dict) else []


def _named_connections(body: Mapping[str, Any]) -> list[str]:
    copies = body.get("copies")
    of_copies = [copy for copy in copies if isinstance(copy, dict)] if isinstance(copies, list) else []
    return [str(named.get("connection", "")).strip() for named in (body, *of_copies[:MAX_COPIES])]


def require_on_named_dataset(request: Request, action: str) -> None:
    """On the dataset that the body names; one that is not there is left to the check of the body. Raises PermissionDenied."""
    live = Dataset.objects.select_related("team").filter(offboarded_at=None)
    dataset = live.filter(name=field_of_body(request, "dataset")).first()
    require_in_named_team(request.user, action, dataset.team if dataset else None)

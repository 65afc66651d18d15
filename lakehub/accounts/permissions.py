"""Authorization in one place: what a role may do to a team's objects, and what scope an API call needs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from lakehub.accounts.models import Membership, Role, Team, Token, User

ROLES_BY_ACTION: dict[str, tuple[Role, ...]] = {
    "annotate": (Role.OWNER, Role.ON_CALL, Role.ADMIN),
    "acknowledge": (Role.OWNER, Role.ON_CALL, Role.ADMIN),
    "see rows": (Role.VIEWER, Role.OWNER, Role.ON_CALL, Role.ADMIN),
    "rerun": (Role.OWNER, Role.ON_CALL, Role.ADMIN),
    "resolve": (Role.OWNER, Role.ON_CALL, Role.ADMIN),
    "onboard": (Role.OWNER, Role.ADMIN),
    "offboard": (Role.ADMIN,),
    "connect": (Role.ADMIN,),
    "issue": (Role.ADMIN,),
    "audit": (Role.ADMIN,),
    "set roles": (Role.ADMIN,),
    "override": (Role.OWNER, Role.ON_CALL, Role.ADMIN),
    "set policy": (Role.ADMIN,),
}
"""Everybody who is signed in may read; what shows rows of data, or changes something, needs one of these roles in the team that owns it."""


def can(user: User | AnonymousUser, action: str, team: Team) -> bool:
    if not user.is_active or not isinstance(user, User):
        return False
    if user.token_team not in (None, team):
        return False
    if user.is_superuser:
        return True
    return Membership.objects.filter(user=user, team=team, role__in=ROLES_BY_ACTION[action]).exists()


def role_names(action: str) -> str:
    """`owner or admin`: the roles that may do `action`."""
    return " or ".join(role.label.lower() for role in ROLES_BY_ACTION[action])


def require(user: User | AnonymousUser, action: str, team: Team) -> None:
    """Raises PermissionDenied that says which role would do."""
    if not can(user, action, team):
        raise refusal(user, action, team)


def refusal(user: User | AnonymousUser, action: str, team: Team) -> PermissionDenied:
    """What `require` raises, for whoever looked at `teams_permitting`."""
    limit = getattr(user, "token_team", None)
    within = f" This token acts for team {limit.name} only." if limit not in (None, team) else ""
    return PermissionDenied(f"To {action} here you need to be {role_names(action)} of team {team.name}.{within}")


def teams_where(user: User | AnonymousUser, action: str) -> Q:
    """A filter over Team: those in which `user` may do `action`."""
    if not user.is_active or not isinstance(user, User):
        return Q(pk__in=())
    within = Q() if user.token_team is None else Q(pk=user.token_team.pk)
    if user.is_superuser:
        return within
    return within & Q(memberships__user=user, memberships__role__in=ROLES_BY_ACTION[action])


def teams_permitting(user: User | AnonymousUser, action: str) -> frozenset[int]:
    """The keys of the teams in which `user` may do `action`: for lists, in one query."""
    return frozenset(Team.objects.filter(teams_where(user, action)).values_list("pk", flat=True))


def can_in_some_team(user: User | AnonymousUser, action: str) -> bool:
    """Whether there is a team in which `user` may do `action`: for what belongs to no team."""
    if isinstance(user, User) and user.is_active and user.is_superuser and user.token_team is None:
        return True
    return Team.objects.filter(teams_where(user, action)).exists()


def require_in_some_team(user: User | AnonymousUser, action: str) -> None:
    """Raises PermissionDenied that says which role would do."""
    if not can_in_some_team(user, action):
        raise PermissionDenied(f"To {action} here you need to be {role_names(action)} of a team.")


def is_operator(user: User | AnonymousUser) -> bool:
    """Of Lakehub as a whole: who adds what belongs to no team, such as teams, people and data centers."""
    return isinstance(user, User) and user.is_active and user.is_superuser and user.token_team is None


def require_operator(request: Request) -> None:
    """Raises PermissionDenied, also for a token of an operator."""
    if not is_operator(request.user) or request.auth is not None:
        raise PermissionDenied("To do this you need to be an administrator of Lakehub, signed in and not with a token.")


def field_of_body(request: Request, field: str) -> str:
    """What the body names, read as serializers read it: for the right, which comes before the rest of the body is understood."""
    value = request.data.get(field) if isinstance(request.data, dict) else None
    return str(value).strip() if isinstance(value, str | int | float) else ""


def require_in_named_team(user: User | AnonymousUser, action: str, team: Team | None) -> None:
    """In the team that was named, or, where there is none by that name, in some team. Raises PermissionDenied."""
    if team is None:
        require_in_some_team(user, action)
    else:
        require(user, action, team)


class HasScope(BasePermission):
    """A token must hold the scope that the view names: `scopes = {"GET": "gate:read", "POST": ...}`."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(request.user, User) or not request.user.is_active:
            return False
        if not isinstance(request.auth, Token):
            return True
        needed = getattr(view, "scopes", {}).get("GET" if request.method in ("HEAD", "OPTIONS") else request.method)
        self.message = f"This token lacks the scope {needed!r}." if needed else "Tokens may not be used here."
        return needed in request.auth.scopes

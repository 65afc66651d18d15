"""Teams, their members with a role, and new people. A team always keeps an admin."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.core.exceptions import ValidationError
from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Membership, Role, Team, User
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.suggest import did_you_mean

_MAX_SUGGESTIONS = 1000
_PASSWORD_BYTES = 15
_FIRST_PASSWORD_LASTS = timedelta(days=7)


def team_named(name: str) -> Team:
    """Raises NotFound with the nearest name."""
    team = Team.objects.filter(name=name).first()
    if team is None:
        raise NotFound(f"There is no team `{name}`.{did_you_mean(name, _names(Team, 'name'))}")
    return team


def person_named(username: str) -> User:
    """Raises NotFound with the nearest name."""
    person = User.objects.filter(username=username).first()
    if person is None:
        raise NotFound(f"There is no person `{username}`.{did_you_mean(username, _names(User, 'username'))}")
    return person


def add_team(*, name: str, email: str, actor: User, now: datetime) -> Team:
    """A team whose admin is `actor`. Raises Refused."""
    team = Team(name=name, email=email)
    with transaction.atomic():
        _save_validated(team)
        Membership.objects.create(user=actor, team=team, role=Role.ADMIN)
        audit_log.record(actor.get_username(), "add team", f"team:{name}", now=now, members=[f"{actor}:{Role.ADMIN}"])
    return team


def set_role(team: Team, username: str, role: str, *, actor: User, now: datetime) -> Membership:
    """Adds a person to the team, or gives a member another role. Raises Refused, Conflict."""
    problems = {}
    if role not in Role.values:
        problems["role"] = f"There is no role `{role}`.{did_you_mean(role, Role.values)}"
    person = User.objects.filter(username=username, is_active=True).first()
    if person is None:
        problems["username"] = f"There is no person `{username}`.{did_you_mean(username, _names(User, 'username'))}"
    if problems or person is None:
        raise Refused.for_fields(problems)
    with transaction.atomic():
        membership = Membership.objects.filter(team=team, user=person).first() or Membership(team=team, user=person)
        before, membership.role = membership.role if membership.pk else "", role
        if before == Role.ADMIN and role != Role.ADMIN:
            _keep_an_admin(team, person)
        membership.save()
        audit_log.record(
            actor.get_username(), "set role", f"team:{team.name}", now=now, person=username, before=before, role=role
        )
    return membership


def remove_member(team: Team, username: str, *, actor: User, now: datetime) -> None:
    """Raises NotFound, Conflict."""
    with transaction.atomic():
        membership = Membership.objects.filter(team=team, user__username=username).select_related("user").first()
        if membership is None:
            raise NotFound(f"`{username}` is not a member of team `{team.name}`.")
        if membership.role == Role.ADMIN:
            _keep_an_admin(team, membership.user)
        membership.delete()
        audit_log.record(actor.get_username(), "remove member", f"team:{team.name}", now=now, person=username)


def add_person(*, username: str, email: str, full_name: str, actor: User, now: datetime) -> tuple[User, str]:
    """Somebody who may sign in, and the first password, which is kept only as a hash: show it once.

    It opens for a week, and only the page that sets another. Raises Refused.
    """
    first, _, last = full_name.strip().partition(" ")
    person, password = User(username=username, email=email, first_name=first, last_name=last), _new_password()
    person.set_password(password)
    person.first_password_until = now + _FIRST_PASSWORD_LASTS
    with transaction.atomic():
        _save_validated(person)
        audit_log.record(actor.get_username(), "add person", f"person:{username}", now=now)
    return person, password


def _new_password() -> str:
    return secrets.token_urlsafe(_PASSWORD_BYTES)


def _keep_an_admin(team: Team, person: User) -> None:
    """Locks the team's admins, so that of two who leave at once one stays."""
    admins = Membership.objects.select_for_update().filter(team=team, role=Role.ADMIN)
    if all(membership.user_id == person.pk for membership in admins):
        raise Conflict(
            f"{person.get_username()} is the only admin of team {team.name}. Make somebody else admin first. "
            "Nothing was changed."
        )


def _save_validated(instance: Team | User) -> None:
    try:
        instance.full_clean()
    except ValidationError as error:
        raise Refused.for_fields({field: " ".join(why) for field, why in error.message_dict.items()}) from error
    instance.save()


def _names(model: type[Team] | type[User], field: str) -> Iterable[str]:
    return model._default_manager.values_list(field, flat=True)[:_MAX_SUGGESTIONS]

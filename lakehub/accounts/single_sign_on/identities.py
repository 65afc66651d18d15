"""Which person somebody is who comes from the provider: by issuer and subject, which are nobody else's.

A mail address alone makes nobody anybody: only where LAKEHUB_OIDC_LINK_MAIL says so, the provider says that it is verified, and
exactly one person here has it. A name never does: who has a name already keeps it, and the new person gets another.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import count
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Consumer, ExternalIdentity, Membership, Role, Team, User
from lakehub.kernel.errors import Refused

ACTOR = "single sign-on"
_NOT_OF_A_NAME = re.compile(r"[^\w.@+-]")
_MAX_NAME_LENGTH = 100
_RANK = {role: rank for rank, role in enumerate(Role.values)}
"""Each holds what the one before may."""
_MAX_GROUPS = 1_000
logger = logging.getLogger(__name__)


def person_of(claims: Mapping[str, Any], *, now: datetime) -> User:
    """Found, linked or made; with the roles of their groups. Raises Refused for somebody who is deactivated."""
    with transaction.atomic():
        person = _known_person(claims) or _link_by_mail(claims, now=now) or _new_person(claims, now=now)
        if not person.is_active:
            raise Refused("This account is deactivated. An administrator of Lakehub can let you in again.")
        _follow_groups(person, claims, now=now)
    return person


def _known_person(claims: Mapping[str, Any]) -> User | None:
    identity = (
        ExternalIdentity.objects.filter(issuer=claims["iss"], subject=claims["sub"]).select_related("user").first()
    )
    return identity.user if identity else None


def _link_by_mail(claims: Mapping[str, Any], *, now: datetime) -> User | None:
    """Not somebody who is another at this provider already, and never whoever runs the instance."""
    email = claims.get("email")
    if (
        not settings.LAKEHUB_OIDC_LINK_MAIL
        or claims.get("email_verified") is not True
        or not isinstance(email, str)
        or not email
    ):
        return None
    people = User.objects.filter(email__iexact=email).exclude(external_identities__issuer=claims["iss"])[:2]
    # PostgreSQL takes a dotless i for an i, which are two domains: both ways to fold letters must agree.
    if len(people) != 1 or people[0].email.lower() != email.lower() or people[0].is_superuser:
        return None
    _link(people[0], claims, now=now)
    return people[0]


def _new_person(claims: Mapping[str, Any], *, now: datetime) -> User:
    first, last = (_text(claims, name)[:150] for name in ("given_name", "family_name"))
    person = User(username=_free_name(claims), email=_email(claims), first_name=first, last_name=last)
    person.set_unusable_password()
    person.save()
    audit_log.record(ACTOR, "add person", f"person:{person.username}", now=now)
    _link(person, claims, now=now)
    return person


def _link(person: User, claims: Mapping[str, Any], *, now: datetime) -> None:
    ExternalIdentity.objects.create(user=person, issuer=claims["iss"], subject=claims["sub"], linked_at=now)
    facts = {"issuer": claims["iss"], "identity": claims["sub"]}
    audit_log.record(ACTOR, "link identity", f"person:{person.get_username()}", now=now, **facts)


def _free_name(claims: Mapping[str, Any]) -> str:
    """Nobody's: neither a person's nor one under which programs ask the gate, as people ask it under theirs."""
    for name in _names(claims):
        if not User.objects.filter(username__iexact=name).exists() and not Consumer.objects.filter(name=name).exists():
            return name
    raise AssertionError("count never ends")


def _names(claims: Mapping[str, Any]) -> Iterator[str]:
    wished = _text(claims, "preferred_username") or _email(claims).partition("@")[0] or "person"
    name = _NOT_OF_A_NAME.sub("", wished)[:_MAX_NAME_LENGTH] or "person"
    yield name
    yield from (f"{name}-{number}" for number in count(2))


def _email(claims: Mapping[str, Any]) -> str:
    """One that the provider does not call unverified, as mail for the person goes there."""
    email = _text(claims, "email")
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if claims.get("email_verified") is True and len(email) <= 254 else ""


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value.strip() if isinstance(value, str) and "\0" not in value else ""


def _follow_groups(person: User, claims: Mapping[str, Any], *, now: datetime) -> None:
    """Roles that groups give come and go with them; those that people gave stay as they are."""
    wanted = _wanted_roles(claims)
    held = {member.team.name: member for member in Membership.objects.filter(user=person).select_related("team")}
    for team in Team.objects.filter(name__in=wanted):
        membership = held.get(team.name)
        if membership is None:
            Membership.objects.create(user=person, team=team, role=wanted[team.name], by_groups=True)
        elif membership.by_groups and membership.role != wanted[team.name]:
            Membership.objects.filter(pk=membership.pk).update(role=wanted[team.name])
        else:
            continue
        _record_role(person, team, before=membership.role if membership else "", role=wanted[team.name], now=now)
    for name, membership in held.items():
        if membership.by_groups and name not in wanted:
            membership.delete()
            _record_role(person, membership.team, before=membership.role, role="", now=now)
    if unknown := wanted.keys() - set(Team.objects.filter(name__in=wanted).values_list("name", flat=True)):
        logger.warning("LAKEHUB_OIDC_TEAMS names teams that are not there: %s", ", ".join(sorted(unknown)))


def _wanted_roles(claims: Mapping[str, Any]) -> dict[str, str]:
    """The greatest role of each team that the person's groups give."""
    groups = claims.get(settings.LAKEHUB_OIDC_GROUPS_CLAIM)
    roles: dict[str, str] = {}
    for group in groups[:_MAX_GROUPS] if isinstance(groups, list) else ():
        for team, role in settings.LAKEHUB_OIDC_TEAMS.get(group, ()) if isinstance(group, str) else ():
            roles[team] = max(role, roles.get(team, role), key=_RANK.__getitem__)
    return roles


def _record_role(person: User, team: Team, *, before: str, role: str, now: datetime) -> None:
    facts = {"person": person.get_username(), "before": before, "role": role}
    audit_log.record(ACTOR, "set role" if role else "remove member", f"team:{team.name}", now=now, **facts)

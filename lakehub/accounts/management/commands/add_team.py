"""`manage.py add_team flight-ops --email ops@example.com --member ines:on_call`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from lakehub import wiring
from lakehub.accounts.audit import audit_log
from lakehub.accounts.models import Membership, Role, Team, User
from lakehub.kernel.suggest import did_you_mean


class Command(BaseCommand):
    help = "Adds a team, or members with a role to one that is there."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--email", default="")
        parser.add_argument("--webhook", default="", help="where messages about its incidents are posted")
        parser.add_argument("--member", action="append", default=[], metavar="USER:ROLE")

    @transaction.atomic
    def handle(self, *, name: str, email: str, webhook: str, member: list[str], **_: Any) -> None:
        team = Team.objects.filter(name=name).first() or Team(name=name)
        team.email, team.webhook_url = email or team.email, webhook or team.webhook_url
        try:
            team.full_clean()
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        team.save()
        for membership in member:
            self._join(team, *membership.partition(":")[::2])
        audit_log.record("manage.py", "add team", f"team:{name}", now=wiring.clock.now(), members=member)
        self.stdout.write(f"Team {name} with {team.memberships.count()} members")

    def _join(self, team: Team, username: str, role: str) -> None:
        if role not in Role.values:
            raise CommandError(f"There is no role `{role}`.{did_you_mean(role, Role.values)}")
        user = User.objects.filter(username=username).first()
        if user is None:
            names = User.objects.values_list("username", flat=True)[:1000]
            raise CommandError(f"There is no user `{username}`.{did_you_mean(username, names)}")
        Membership.objects.update_or_create(user=user, team=team, defaults={"role": role})

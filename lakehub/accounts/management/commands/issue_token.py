"""`manage.py issue_token airflow --team flight-ops --user ines --consumer etl --scope gate:read --data-center dc1`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.accounts.models import Team, User
from lakehub.accounts.tokens import api_tokens
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean


class Command(BaseCommand):
    help = "Makes a token for a program and shows it this once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--team", required=True)
        parser.add_argument("--user", required=True, help="the person who answers for it; its rights are theirs")
        parser.add_argument("--consumer", required=True, help="whose policy the gate goes by")
        parser.add_argument("--scope", action="append", required=True, help=", ".join(api_tokens.SCOPES))
        parser.add_argument("--data-center", default="", help="what the gate answers for where none is named")
        parser.add_argument("--days", type=int, default=90, help="it ends after so many")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, name: str, **options: Any) -> None:
        team = _one(Team, "team", "name", options["team"])
        user = _one(User, "user", "username", options["user"])
        now = wiring.clock.now()
        try:
            token, text = api_tokens.issue_token(
                name=name,
                consumer=options["consumer"],
                team=team,
                created_by=user,
                scopes=options["scope"],
                data_center=options["data_center"],
                now=now,
                expires_at=now + timedelta(days=options["days"]),
                actor="manage.py",
            )
        except Refused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({"token": text, "prefix": token.prefix}) if options["json"] else text)


def _one(model: Any, kind: str, by: str, value: str) -> Any:
    instance = model.objects.filter(**{by: value}).first()
    if instance is None:
        near = did_you_mean(value, model.objects.values_list(by, flat=True)[:1000])
        raise CommandError(f"There is no {kind} `{value}`.{near}")
    return instance

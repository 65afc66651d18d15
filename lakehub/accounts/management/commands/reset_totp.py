"""`manage.py reset_totp ines`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.accounts import teams
from lakehub.accounts.sign_in import second_step, sessions
from lakehub.kernel.errors import NotFound


class Command(BaseCommand):
    help = "Removes the second step of somebody who lost the authenticator and the recovery codes, and ends their sessions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **_: Any) -> None:
        try:
            person = teams.person_named(name)
        except NotFound as error:
            raise CommandError(str(error)) from error
        now = wiring.clock.now()
        second_step.reset(person, actor="manage.py", now=now)
        session_count = sessions.end_sessions(person, actor="manage.py", now=now)
        self.stdout.write(
            f"{name} signs in without a second step until a new one is set up; {session_count} sessions ended."
        )

"""`manage.py webhook_secret https://example.org/hook`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from incidents.channels.webhook import Webhook, signing_secret
from lakehub.kernel.errors import Refused


class Command(BaseCommand):
    help = "Shows the key that messages to a webhook are signed with, for its receiver."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("url")

    def handle(self, *, url: str, **_: Any) -> None:
        try:
            Webhook().check(url)
        except Refused as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(signing_secret(url))

"""`manage.py restore weather`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets import lookup, offboarding
from lakehub.kernel.errors import Conflict, NotFound, Refused


class Command(BaseCommand):
    help = "Onboards again what was off-boarded; its history goes on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **_: Any) -> None:
        try:
            offboarding.restore_dataset(lookup.any_dataset(name), actor="manage.py", now=wiring.clock.now())
        except (NotFound, Conflict, Refused) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Dataset {name} is onboarded again")

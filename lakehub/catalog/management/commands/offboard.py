"""`manage.py offboard weather`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets import lookup, offboarding
from lakehub.kernel.errors import Conflict, NotFound


class Command(BaseCommand):
    help = "Ends feeding, testing and gating a dataset. Its history and the lake's data stay."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *, name: str, **_: Any) -> None:
        try:
            offboarding.offboard_dataset(lookup.live_dataset(name), actor="manage.py", now=wiring.clock.now())
        except (NotFound, Conflict) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Dataset {name} is off-boarded; its open incidents are resolved as off-boarded")

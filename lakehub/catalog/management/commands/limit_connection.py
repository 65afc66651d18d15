"""`manage.py limit_connection ops --rows-per-s 5000 --max-connections 4`; what is left out has no limit from then on."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.connection_limits import limit_connection
from lakehub.catalog.datasets.connection_change import find_connection
from lakehub.kernel.errors import NotFound, Refused


class Command(BaseCommand):
    help = "Says how much of a source all jobs and looks may use together. What is left out has no limit."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--rows-per-s", type=int, help="rows read in a second")
        parser.add_argument("--max-connections", type=int, help="jobs and looks at work at once")

    def handle(self, *, name: str, rows_per_s: int | None, max_connections: int | None, **_: object) -> None:
        limits, now = {"rows_per_s": rows_per_s, "max_connections": max_connections}, wiring.clock.now()
        try:
            limit_connection(find_connection(name), **limits, actor="manage.py", now=now)
        except (Refused, NotFound) as error:
            raise CommandError(str(error)) from error
        shown = ", ".join(f"{name}: {'no limit' if value is None else f'{value:,}'}" for name, value in limits.items())
        self.stdout.write(f"Connection {name}: {shown}")

"""`manage.py connect ops sql --team flight-ops --url-from OPS_URL` reads the URL from that environment variable."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog import connections
from lakehub.catalog.storages import STORAGES
from lakehub.kernel.errors import Busy, Refused


class Command(BaseCommand):
    help = (
        "Adds a connection to a source. Its URL comes from the environment, so that no password is in a shell history."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("plugin", help=", ".join(STORAGES))
        parser.add_argument("--team", required=True)
        parser.add_argument("--url-from", required=True, metavar="VARIABLE")
        parser.add_argument("--test", action="store_true", help="only try it: nothing is kept")

    def handle(self, *, name: str, plugin: str, team: str, url_from: str, test: bool, **_: Any) -> None:
        url = os.environ.get(url_from)
        if not url:
            raise CommandError(f"The environment variable {url_from} is not set: put the URL of the source there.")
        source: dict[str, Any] = {"plugin": plugin, "url": url, "team": team, "actor": "manage.py", "by_operator": True}
        now = wiring.clock.now()
        try:
            if test:
                tested = connections.check_connection(**source, now=now)
                self.stdout.write(" ".join(filter(None, (tested.sentence, tested.role_warning))))
                return
            connection = connections.add_connection(name=name, **source, now=now)
        except (Refused, Busy) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Connection {name} ({plugin}) of team {team}")
        if connection.role_warning:
            self.stdout.write(connection.role_warning)

"""`manage.py change_connection ops --url-from OPS_URL --check` says what would come of it; without `--check` it is changed."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets.connection_change import change_connection, check_connection_change, find_connection
from lakehub.kernel.errors import Busy, Conflict, NotFound, Refused


class Command(BaseCommand):
    help = (
        "Gives a connection another URL: a password that was rotated, a server that moved. The URL comes from the "
        "environment, so that no password is in a shell history."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--url-from", required=True, metavar="VARIABLE")
        parser.add_argument("--check", action="store_true", help="say what would come of it, and change nothing")

    def handle(self, *, name: str, url_from: str, check: bool, **_: Any) -> None:
        url = os.environ.get(url_from)
        if not url:
            raise CommandError(f"The environment variable {url_from} is not set: put the URL of the source there.")
        try:
            act = check_connection_change if check else change_connection
            change = act(find_connection(name), url, actor="manage.py", now=wiring.clock.now(), by_operator=True)
        except (Refused, Busy, Conflict, NotFound) as error:
            raise CommandError(str(error)) from error
        self.stdout.writelines(f"{line.about:9}  {line.text}\n" for line in change.consequences)
        self.stdout.write("Nothing was changed." if check else f"Connection {name} has its new URL.")

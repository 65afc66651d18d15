from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from lakehub.setup.__main__ import main


class Command(BaseCommand):
    help = "Fetch what Spark needs besides the package, once: the table format's jar. Checks Java."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--hbase", action="store_true", help="also the client of HBase, for the index `hbase`")

    def handle(self, *, hbase: bool, **_: Any) -> None:
        if code := main(["--hbase"] if hbase else []):
            sys.exit(code)

"""`manage.py lineage`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.lineage import daily, lineage_source, missing_tables


class Command(BaseCommand):
    help = "Reads the newest lineage and looks at the tables of all datasets now, and prints what changed, as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--accept-loss", action="store_true", help="even where most of what was known is gone")

    def handle(self, *, accept_loss: bool, **options: Any) -> None:
        report, error = daily.run_check(
            lineage_source(),
            name=settings.LAKEHUB_LINEAGE,
            offboard_after=missing_tables.offboarding_delay(),
            accept_loss=accept_loss,
            now=wiring.clock.now(),
        )
        self.stdout.write(json.dumps(report, indent=1))
        if error:
            raise CommandError(error)

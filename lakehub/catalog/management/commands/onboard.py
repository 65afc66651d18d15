"""`manage.py onboard dataset.json` takes what `POST /api/v1/datasets` takes."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.onboarding import onboard
from lakehub.catalog.serializers import ApplicationSerializer
from lakehub.kernel.errors import Conflict, Refused


class Command(BaseCommand):
    help = "Onboards a dataset from a JSON file, or from standard input with -."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file")

    def handle(self, *, file: str, **_: Any) -> None:
        try:
            text = sys.stdin.read() if file == "-" else Path(file).read_text()
            asked = ApplicationSerializer(data=json.loads(text))
        except (OSError, ValueError) as error:
            raise CommandError(f"{file} cannot be read as JSON: {error}") from error
        if not asked.is_valid():
            raise CommandError(json.dumps(asked.errors, indent=2))
        try:
            made = onboard(asked.application(), actor="manage.py", now=wiring.clock.now())
        except (Refused, Conflict) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Dataset {made.dataset.name}, tier {made.dataset.tier}")

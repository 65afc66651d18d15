"""`manage.py resume flights`"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets import pausing
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Resumes the ingestion of a dataset: jobs go on where they were."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")

    def handle(self, *, dataset: str, **_: object) -> None:
        try:
            pausing.resume_ingestion(live_dataset(dataset), actor="manage.py", now=wiring.clock.now())
        except (Refused, NotFound, Conflict) as error:
            raise CommandError(printable(str(error))) from error
        self.stdout.write(f"Ingestion of {dataset} goes on.")

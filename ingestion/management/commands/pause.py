"""`manage.py pause flights --why "the database moves"`"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets import pausing
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Pauses the ingestion of a dataset: nothing reads its source until it is resumed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--why", required=True, help="kept with the dataset and in the audit log")

    def handle(self, *, dataset: str, why: str, **_: object) -> None:
        try:
            pausing.pause_ingestion(live_dataset(dataset), why=why, actor="manage.py", now=wiring.clock.now())
        except (Refused, NotFound, Conflict) as error:
            raise CommandError(printable(str(error))) from error
        self.stdout.write(
            f"Ingestion of {dataset} is paused. A load that is at work stops after the commit that it is in."
        )

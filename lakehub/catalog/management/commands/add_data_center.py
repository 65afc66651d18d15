"""`manage.py add_data_center dc1 file:///lake/dc1`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog import data_centers
from lakehub.kernel.errors import Refused


class Command(BaseCommand):
    help = "Adds a data center with the root of its lake."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("lake_uri", help="file:///folder, s3a://bucket/folder, hdfs://...")

    def handle(self, *, name: str, lake_uri: str, **_: Any) -> None:
        try:
            data_centers.add_data_center(name=name, lake_uri=lake_uri, actor="manage.py", now=wiring.clock.now())
        except Refused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Data center {name} at {lake_uri}")

"""`manage.py readers flights --data-center dc1 --set warehouse_load 20261116080000000`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.lake import readers
from ingestion.models import ReaderPosition
from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.output.terminal import printable

_ACTOR = "manage.py"


class Command(BaseCommand):
    help = "Shows who reads the increments of a copy and how far they are; says how far one is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--data-center", default="", help="may be left out where the dataset has one copy")
        parser.add_argument("--set", nargs=2, metavar=("NAME", "POSITION"), help="what this reader has read up to")
        parser.add_argument("--remove", metavar="NAME", help="this reader holds nothing any more")
        parser.add_argument("--json", action="store_true", help="one JSON object a reader")

    def handle(self, *, dataset: str, data_center: str, **options: Any) -> None:
        now = wiring.clock.now()
        try:
            copy = find_copy(live_dataset(dataset), data_center)
            if options["set"]:
                readers.note_position(copy, *options["set"], actor=_ACTOR, now=now)
            if options["remove"]:
                readers.forget_reader(copy, options["remove"], actor=_ACTOR, now=now)
        except (NotFound, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem
        known = [*ReaderPosition.objects.filter(copy=copy).order_by("position", "name")]
        lines = [_as_json(reader) if options["json"] else _as_line(reader) for reader in known]
        for line in lines or ([] if options["json"] else ["No reader has said how far it is."]):
            self.stdout.write(line)


def _as_json(reader: ReaderPosition) -> str:
    names = ("name", "position", "seen_at", "expires_at")
    return json.dumps({name: getattr(reader, name) for name in names}, default=str)


def _as_line(reader: ReaderPosition) -> str:
    return f"{reader.position}  {printable(reader.name)}, seen at {reader.seen_at:%Y-%m-%d %H:%M} UTC, until {reader.expires_at:%Y-%m-%d %H:%M} UTC"

"""`manage.py rebuild flights` shows how far a rebuild is; `--cancel`, `--accept` and `--drop` act on it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.runs import rebuilds
from ingestion.serializers import RebuildSerializer
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.rebuild import accept_fewer_rows, find_rebuild
from lakehub.kernel.errors import Conflict, NotFound
from lakehub.kernel.output.terminal import printable

ACTOR = "manage.py"


class Command(BaseCommand):
    help = "Shows the rebuild that another partition of a dataset started, and ends it. The partition itself: change_dataset."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        actions = parser.add_mutually_exclusive_group()
        actions.add_argument("--cancel", action="store_true", help="keep the present tables, and drop what was built")
        actions.add_argument("--accept", action="store_true", help="switch though the new tables hold fewer rows")
        actions.add_argument("--drop", action="store_true", help="remove the tables that were left after the switch")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, name: str, cancel: bool, accept: bool, drop: bool, json: bool, **_: Any) -> None:
        now = wiring.clock.now()
        try:
            dataset = live_dataset(name)
            if cancel:
                rebuilds.cancel(find_rebuild(dataset), actor=ACTOR, now=now)
            elif accept:
                accept_fewer_rows(find_rebuild(dataset), actor=ACTOR, now=now)
            elif drop:
                rebuilds.drop_left_tables(dataset, actor=ACTOR, now=now)
        except (Conflict, NotFound) as error:
            raise CommandError(printable(str(error))) from error
        self._write(dataset, as_json=json)

    def _write(self, dataset: Dataset, *, as_json: bool) -> None:
        progress = rebuilds.rebuild_progress(dataset)
        if progress is None:
            raise CommandError(f"`{dataset.name}` was never rebuilt: another partition starts a rebuild.")
        if as_json:
            self.stdout.write(json.dumps(RebuildSerializer(progress).data, default=str))
            return
        rebuild = progress.rebuild
        self.stdout.write(
            f"{rebuild.state}: {rebuild.partition_column} by {rebuild.grain}, asked by {rebuild.asked_by}"
        )
        for built in progress.copies:
            error = built.run.error if built.run else ""
            line = f"{built.copy.data_center.name:12} {built.state:8} {built.copy.uri}  {printable(error)}"
            self.stdout.write(line.rstrip())
        if progress.needs_decision:
            self.stdout.write(f"It does not switch: {printable(rebuild.problem)}. Use --accept or --cancel.")
        for copy in progress.left_tables:
            self.stdout.write(f"{copy.data_center.name:12} left     {copy.uri}")

"""`manage.py replay_errors flights --row KEY --values '{"amount": 1.5}'`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.runs import job_runs
from ingestion.runs.replays.row_choice import RowChoice, request_replay
from ingestion.runs.replays.values import parse_values
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import Busy, Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = (
        "Tries rejected rows again, as they are or with other values; a worker runs it. `manage.py errors` lists them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--data-center", default="", help="may be left out where the dataset has one copy")
        parser.add_argument("--row", action="append", default=[], dest="rows", help="the error_key of a row; repeat it")
        parser.add_argument("--kind", default="", help="all open rows of this kind of reason, with --column")
        parser.add_argument("--column", default="", help="the column that rejects the rows of --kind")
        parser.add_argument(
            "--values", default="", help="what takes the place of their own values, a JSON object by column"
        )
        parser.add_argument("--json", action="store_true", help="answer as JSON")

    def handle(
        self, *, dataset: str, data_center: str, rows: list[str], kind: str, column: str, values: str, **options: Any
    ) -> None:
        try:
            named = [{"error_key": key, "values": {}} for key in rows]
            choice = RowChoice.of(named, column, kind, parse_values(values))
            copy = job_runs.find_copy(live_dataset(dataset), data_center)
            run = request_replay(copy, choice, asked_by="manage.py", now=wiring.clock.now())
        except (Refused, NotFound, Conflict, Busy) as problem:
            raise CommandError(printable(str(problem))) from problem
        facts = {"run": run.pk, "key": str(run.key), "copy": str(copy), "rows": run.params["rows"]}
        text = f"Run {run.pk}: replay of {facts['rows']} rejected rows of {copy} is queued"
        self.stdout.write(json.dumps(facts) if options["json"] else text)

"""`manage.py ingest backfill flights --data-center dc2 --partition 2026-11-16`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.models import JobKind
from ingestion.runs import job_runs
from lakehub import wiring
from lakehub.catalog.datasets.lookup import any_dataset, live_dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable

_HAVE_COMMANDS = (JobKind.REPLAY, JobKind.SET_POSITION)
"""Of their own: `replay_errors` and `positions`."""


class Command(BaseCommand):
    help = "Asks for a job on a copy of a dataset; a worker runs it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("kind", choices=[kind for kind in JobKind.values if kind not in _HAVE_COMMANDS])
        parser.add_argument("dataset")
        parser.add_argument("--data-center", default="", help="needed where the dataset has several copies")
        parser.add_argument(
            "--partition", action="append", dest="partitions", help="of a backfill or delete; repeat it"
        )
        parser.add_argument(
            "--keys",
            type=json.loads,
            help="of a delete, or of a backfill of a captured table: record keys as JSON, such as '[[\"UA\", 17]]'",
        )
        parser.add_argument("--share", type=float, help="of a delete: how much of each partition, above 0, at most 1")
        parser.add_argument(
            "--replace", action="store_true", default=None, help="of a bootstrap: load everything again"
        )
        parser.add_argument(
            "--from-chunks",
            action="store_true",
            default=None,
            help="of a bootstrap with --replace: from the raw chunks of the last load, without the source",
        )
        parser.add_argument(
            "--sampled", type=float, help="of verify_index: which share of the keys is compared, above 0, at most 1"
        )
        parser.add_argument(
            "--repairs", action="store_true", default=None, help="of verify_index: put right what the index has wrong"
        )
        parser.add_argument("--json", action="store_true", help="answer as JSON")

    def handle(self, *, kind: str, dataset: str, data_center: str, **options: Any) -> None:
        names = ("partitions", "keys", "share", "replace", "from_chunks", "sampled", "repairs")
        params = {name: options[name] for name in names if options[name] is not None}
        try:
            copy = job_runs.find_copy(
                any_dataset(dataset) if kind == JobKind.DROP else live_dataset(dataset), data_center
            )
            run = job_runs.request_run(copy, kind, params, asked_by="manage.py", now=wiring.clock.now())
        except (Refused, NotFound, Conflict) as error:
            raise CommandError(printable(str(error))) from error
        run_facts = {"run": run.pk, "key": str(run.key), "kind": run.kind, "copy": str(copy)}
        instead = (
            ""
            if run.kind == kind
            else f", in place of the {kind}: the last one was given up, and there is no table yet"
        )
        text = f"Run {run.pk}: {run.kind} of {copy} is queued{instead}"
        self.stdout.write(json.dumps(run_facts) if options["json"] else text)

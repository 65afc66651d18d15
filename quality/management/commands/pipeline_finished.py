"""`manage.py pipeline_finished flights --from 2026-11-16 --to 2026-11-17 --run-id nightly-814 --dc dc1`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from quality.api.external_run_serializers import ExternalRunSerializer
from quality.planning import external_runs


class Command(BaseCommand):
    help = "Tells that a run of a pipeline has finished: the tests of what it wrote are due at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--run-id", required=True, help="names the run: told again, nothing happens")
        parser.add_argument("--from", default="", dest="start", help="2026-11-16 in the dataset's zone, or a time")
        parser.add_argument("--to", default="", dest="end", help="not included")
        parser.add_argument("--dc", default="", help="the data center; needed where there are several copies")
        parser.add_argument("--link", default="", help="where the run can be looked at")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, dataset: str, run_id: str, start: str, end: str, **options: Any) -> None:
        try:
            named_dataset = live_dataset(dataset)
            copy = find_copy(named_dataset, options["dc"])
            report = external_runs.ExternalRunReport(
                run_id, external_runs.written_range(start, end, named_dataset), options["link"]
            )
            run, is_new = external_runs.record_external_run(copy, report, actor="manage.py", now=wiring.clock.now())
        except (Conflict, NotFound, Refused) as problem:
            raise CommandError(str(problem)) from problem
        if options["json"]:
            self.stdout.write(json.dumps({**ExternalRunSerializer(run).data, "again": not is_new}))
        else:
            again = "" if is_new else ", as was told before: nothing was changed"
            self.stdout.write(f"{run}: {run.units_made_due} test runs are due{again}")

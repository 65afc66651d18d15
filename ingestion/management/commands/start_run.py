"""`manage.py start_run 12 --why "the hole is in columns that we drop"`"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from ingestion.models import JobRun
from ingestion.runs import blocked_inputs
from ingestion.runs.job_runs import with_details
from lakehub import wiring
from lakehub.kernel.errors import Conflict, Refused
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Starts a run that waits for an input, without asking the gate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--why", required=True, help="kept with the run and in the audit log")

    def handle(self, *, run: int, why: str, **_: object) -> None:
        job_run = with_details(JobRun.objects.filter(pk=run)).first()
        if job_run is None:
            raise CommandError(f"There is no run {run}. `manage.py runs` lists them.")
        try:
            blocked_inputs.start_regardless(job_run, why=why, actor="manage.py", now=wiring.clock.now())
        except (Conflict, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem
        self.stdout.write(f"Run {run}: {job_run.kind} of {job_run.copy} is queued, whatever the gate says")

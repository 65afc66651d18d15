"""`manage.py start_run 12 --why "the hole is in columns that we drop"`"""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from ingestion import waiting
from ingestion.models import JobRun
from ingestion.runs import described
from lakehub import wiring
from lakehub.kernel.errors import Conflict, Refused


class Command(BaseCommand):
    help = "Starts a run that waits for an input, without asking the gate."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--why", required=True, help="kept with the run and in the audit log")

    def handle(self, *, run: int, why: str, **_: object) -> None:
        found = described(JobRun.objects.filter(pk=run)).first()
        if found is None:
            raise CommandError(f"There is no run {run}. `manage.py runs` lists them.")
        try:
            waiting.start_regardless(found, why=why, actor="manage.py", now=wiring.clock.now())
        except (Conflict, Refused) as problem:
            raise CommandError(str(problem)) from problem
        self.stdout.write(f"Run {run}: {found.kind} of {found.copy} is queued, whatever the gate says")

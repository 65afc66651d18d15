"""`manage.py runs flights --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.domain.remaining import phase_amounts
from ingestion.models import JobKind, JobRun, JobState
from ingestion.runs.job_runs import time_left, with_details
from ingestion.serializers import SHOWS_KEYS, JobRunSerializer
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Shows the newest runs, of one dataset or of all."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset", nargs="?")
        parser.add_argument("--limit", type=int, default=20)
        parser.add_argument("--json", action="store_true")

    def handle(self, *, dataset: str | None, limit: int, json: bool, **_: Any) -> None:
        runs = with_details(JobRun.objects.order_by("-pk"))
        try:
            runs = runs.filter(copy__dataset=live_dataset(dataset)) if dataset else runs
        except NotFound as error:
            raise CommandError(printable(str(error))) from error
        for run in runs[:limit]:
            self.stdout.write(_as_json(run) if json else _as_line(run))


def _as_json(run: JobRun) -> str:
    return json.dumps(JobRunSerializer(run, context=SHOWS_KEYS).data, default=str)


def _as_line(run: JobRun) -> str:
    counts = run.report.get("counts", {})
    if run.kind == JobKind.FOLLOW:
        counts = {name: value for name, value in run.progress.items() if isinstance(value, int)}
    detail = run.error or ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if run.state == JobState.RUNNING:
        detail += _progress_text(run)
    if looked_at := run.progress.get("looked_at"):
        detail += f"; last look {looked_at:.19}, last commit {run.progress.get('committed_at') or 'none':.19}"
    if run.state == JobState.PAUSED:
        detail = run.copy.dataset.feed.pause_text
    if run.state == JobState.WAITING:
        numbers = sorted({number for blocked_input in run.blocked_by.all() for number in blocked_input.incidents})
        detail += f"{''.join(f', #{number}' for number in numbers)}; asks again at {run.due_at:%H:%M:%S}"
    return f"{run.pk:>6}  {run.due_at:%Y-%m-%d %H:%M:%S}  {run.kind:<11} {run.copy!s:<24} {run.state:<9} {printable(detail)}"


def _progress_text(run: JobRun) -> str:
    """`read: 1,000,000 of 3,000,000, 0:02:00 left`"""
    if "phase" not in run.progress:
        return ""
    (done, total), left = phase_amounts(run.progress), time_left(run)
    amount = f": {done:,}{f' of {total:,}' if total else ''}" if done else ""
    return (
        f"{run.progress['phase']}{amount}{f', {timedelta(seconds=round(left.total_seconds()))} left' if left else ''}"
    )

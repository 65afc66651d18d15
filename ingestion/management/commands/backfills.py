"""`manage.py backfills ask flights-by-day --first 2013-01-01 --last 2013-12-31`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.domain.backfills.chunks import DEFAULT_CHUNK_SIZE
from ingestion.domain.backfills.states import ACTIONS
from ingestion.models import Backfill, ChunkState
from ingestion.runs.backfills.progress import BackfillProgress, backfill_progress, failed_chunks
from ingestion.runs.backfills.requests import PartitionChoice, change_backfill, find_backfill, request_backfill
from ingestion.runs.backfills.serializers import ChunkedBackfillDetailSerializer
from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable

_ACTOR = "manage.py"
_SHOWN = 20


class Command(BaseCommand):
    help = "Recomputes partitions of a modelled table, chunk by chunk; shows how far that is; pauses, resumes, cancels a backfill, or tries again what failed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=["ask", "show", *ACTIONS])
        parser.add_argument("dataset")
        parser.add_argument("number", nargs="?", type=int, help="of the backfill; to show it alone, or to change it")
        parser.add_argument("--data-center", default="")
        parser.add_argument("--first", default="", help="the first partition of a range, such as 2013-01-01")
        parser.add_argument("--last", default="", help="the last one, which is included")
        parser.add_argument("--partition", action="append", dest="partitions", default=[], help="repeat it")
        parser.add_argument("--chunk-size", type=int, default=DEFAULT_CHUNK_SIZE, help="partitions of one run")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, action: str, dataset: str, number: int | None, json: bool, **options: Any) -> None:
        try:
            table = live_dataset(dataset)
            backfills = [self._ask(table, options)] if action == "ask" else _chosen(table, number, action)
        except (Conflict, NotFound, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem
        if not backfills and not json:
            self.stdout.write(f"{table} has no backfills.")
        for progress in backfill_progress(backfills):
            for line in [_as_json(progress)] if json else _lines(progress):
                self.stdout.write(printable(line))

    def _ask(self, table: Dataset, options: dict[str, Any]) -> Backfill:
        choice = PartitionChoice(options["first"], options["last"], options["partitions"])
        copy = find_copy(table, options["data_center"])
        return request_backfill(copy, choice, chunk_size=options["chunk_size"], actor=_ACTOR, now=wiring.clock.now())


def _chosen(table: Dataset, number: int | None, action: str) -> list[Backfill]:
    if action == "show" and number is None:
        newest = Backfill.objects.filter(copy__dataset=table).order_by("-pk")
        return list(newest.select_related("copy__dataset", "copy__data_center")[:_SHOWN])
    if number is None:
        raise CommandError(f"Say which backfill to {action}: `manage.py backfills show {table}` lists them.")
    backfill = find_backfill(table, number)
    if action != "show":
        change_backfill(backfill, action, actor=_ACTOR, now=wiring.clock.now())
    return [backfill]


def _as_json(progress: BackfillProgress) -> str:
    return json.dumps(ChunkedBackfillDetailSerializer(progress).data, default=str)


def _lines(progress: BackfillProgress) -> list[str]:
    """`3  flights-by-day@dc1  2013-01-01 to 2013-12-31  running: 40 of 365 partitions, 1,234 rows, 0:12:30 left`"""
    backfill, partitions = progress.backfill, progress.partitions
    amount = f"{partitions[ChunkState.SUCCEEDED]:,} of {progress.total:,} partitions, {progress.rows:,} rows"
    failed = f", {partitions[ChunkState.FAILED]:,} failed" if partitions[ChunkState.FAILED] else ""
    left = f", {timedelta(seconds=round(progress.time_left.total_seconds()))} left" if progress.time_left else ""
    error = f". {backfill.error}" if backfill.error else ""
    head = f"{backfill.pk:>6}  {backfill.copy}  {backfill.first} to {backfill.last}  {backfill.state}: {amount}{failed}{left}{error}"
    return [
        head,
        *(
            f"        chunk {chunk.number}, {chunk.partitions[0]} to {chunk.partitions[-1]}: {chunk.error}"
            for chunk in failed_chunks(backfill)
        ),
    ]

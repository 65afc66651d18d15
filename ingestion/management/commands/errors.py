"""`manage.py errors flights --data-center dc1 --column amount --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.lake.error_rows import MAX_ROWS, ErrorCounts, ErrorFilters, ErrorRow, count_errors, read_error_page
from ingestion.runs.job_runs import find_copy
from ingestion.runs.job_specs import error_table_uri
from ingestion.serializers import ErrorRowSerializer
from lakehub.catalog.datasets.lookup import any_dataset
from lakehub.kernel.errors import Busy, NotFound, Refused
from lakehub.kernel.output.terminal import printable

_MAX_LINE = 200


class Command(BaseCommand):
    help = "Shows the rows of a copy's error table, newest first, after how many each column rejects."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--data-center", default="", help="may be left out where the dataset has one copy")
        parser.add_argument("--column", default="", help="only rows that this column rejects")
        parser.add_argument("--reason", default="", help="only rows whose reason has this part")
        parser.add_argument("--limit", type=int, default=20, help=f"rows, {MAX_ROWS} at most")
        parser.add_argument("--json", action="store_true", help="one JSON object a row, and no counts")

    def handle(
        self, *, dataset: str, data_center: str, column: str, reason: str, limit: int, json: bool, **_: Any
    ) -> None:
        filters = ErrorFilters(column, reason)
        try:
            uri = error_table_uri(find_copy(any_dataset(dataset), data_center))
            counts = ErrorCounts() if json else count_errors(uri, filters)
            rows = read_error_page(uri, filters, limit=limit).rows
        except (NotFound, Refused, Busy) as problem:
            raise CommandError(printable(str(problem))) from problem
        if json:
            lines = [_as_json(row) for row in rows]
        else:
            lines = [*_count_lines(counts), *map(_as_line, rows)] or ["No row was rejected."]
        for line in lines:
            self.stdout.write(line)


def _as_json(row: ErrorRow) -> str:
    return json.dumps(ErrorRowSerializer(row).data, default=str)


def _count_lines(counts: ErrorCounts) -> list[str]:
    if not counts.rows:
        return []
    lines = [
        f"{group.rows:>10,}  {printable(group.column) or '(no row)'}: {printable(group.kind)}"
        for group in counts.groups
    ]
    hidden = counts.group_count - len(counts.groups)
    more = f", {hidden:,} smaller groups are not listed" if hidden else ""
    return [*lines, f"{counts.rows:>10,}  in all{more}", ""]


def _as_line(row: ErrorRow) -> str:
    raw = row.raw[:_MAX_LINE] + ("…" if row.raw_length > _MAX_LINE else "")
    return f"{row.read_at:%Y-%m-%d %H:%M:%S}  {printable(row.column) or '(no row)'}: {printable(row.reason)}  {printable(raw)}"

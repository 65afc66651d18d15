"""`manage.py run_tests flights --test duplicates --dc dc1 --from 2026-11-16 --json`"""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import NotFound
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.output.terminal import printable
from lakehub.kernel.partitions import Grain, parse_partition_name
from quality.execution import worker
from quality.models import Unit
from quality.planning import run_requests


class Command(BaseCommand):
    help = "Runs the tests of a dataset now, here, and prints what came out. Ends with 1 where anything is not a pass."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--test", action="append", default=[], help="the key of a test; all of them unless given")
        parser.add_argument("--dc", default="", help="a data center; all of them unless given")
        parser.add_argument("--from", dest="start", default="", help="the first partition, as 2026-11-16")
        parser.add_argument("--to", dest="end", default="", help="the partition after the last")
        parser.add_argument("--json", action="store_true")

    def handle(self, *, dataset: str, test: list[str], dc: str, start: str, end: str, **options: Any) -> None:
        now = wiring.clock.now()
        try:
            named_dataset = live_dataset(dataset)
            run_requests.request_tests(
                named_dataset,
                tests=test,
                data_center=dc,
                over=_parse_range(named_dataset, start, end),
                actor="manage.py",
                now=now,
            )
        except (NotFound, ValueError) as problem:
            raise CommandError(printable(str(problem))) from problem
        worker.run_due_units(now=now, worker=f"manage.py:{os.getpid()}", most=10_000)
        units = _tested_units(named_dataset, test, dc, now)
        lines = (
            [json.dumps([_unit_row(unit) for unit in units], indent=1)] if options["json"] else map(_unit_line, units)
        )
        for line in lines:
            self.stdout.write(line)
        if any(unit.latest_outcome != "pass" for unit in units):
            raise SystemExit(1)


def _parse_range(dataset: Dataset, start: str, end: str) -> Interval:
    grain, zone = dataset.partition_grain, dataset.zone
    if grain is Grain.NONE and (start or end):
        raise ValueError(f"{dataset.name} has no partitions: leave --from and --to away.")
    first = parse_partition_name(start, grain, zone).start if start else EVERYTHING.start
    return Interval(first, parse_partition_name(end, grain, zone).start if end else EVERYTHING.end)


def _tested_units(dataset: Dataset, keys: list[str], center: str, now: datetime) -> list[Unit]:
    units = Unit.objects.filter(test__dataset=dataset, latest_at__gte=now)
    units = units.filter(test__key__in=keys) if keys else units
    units = units.filter(copy__data_center__name=center) if center else units
    return list(units.select_related("test__dataset", "copy__data_center").order_by("test__key", "copy", "start"))


def _unit_row(unit: Unit) -> dict[str, Any]:
    return {
        "test": unit.test.key,
        "data_center": unit.copy.data_center.name,
        "partition": unit.test.dataset.partition_label(Interval(unit.start, unit.end))
        if unit.start > EVERYTHING.start
        else "",
        "outcome": unit.latest_outcome,
        "verdict": unit.verdict,
        "threshold": unit.threshold,
        **unit.detail,
    }


def _unit_line(unit: Unit) -> str:
    row = _unit_row(unit)
    observed = " ".join(str(row[name]) for name in ("observed", "threshold") if row.get(name))
    behind = f" ({row['behind']})" if row.get("behind") else ""
    detail = printable(f"{observed}{behind}{row.get('cause', '')}")
    return f"{row['outcome']:8} {row['test']:20} {row['data_center']:8} {row['partition']:12} {detail}"

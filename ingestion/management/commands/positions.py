"""`manage.py positions trips --data-center dc1 --time 2026-11-16T05:00:00Z --why "Rows were deleted by hand"`"""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingestion.models import TapServer
from ingestion.positions.listing import Positions, positions_of
from ingestion.positions.places import CopyPlace
from ingestion.positions.requests import WantedPlace, request_position
from ingestion.positions.serializers import PositionsSerializer
from ingestion.runs.job_runs import find_copy
from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Busy, Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Shows where the copies of a captured dataset stand in the changelog, and its tap in the binlog; sets where a copy reads on."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset")
        parser.add_argument("--data-center", default="", help="of the copy to set; may be left out where there is one")
        place = parser.add_mutually_exclusive_group()
        place.add_argument("--offset", action="append", type=_offset, metavar="PARTITION:OFFSET", help="repeat it")
        place.add_argument("--time", type=_time, help="the first messages logged then, such as 2026-11-16T05:00:00Z")
        place.add_argument("--earliest", action="store_true", help="the earliest place that is possible")
        parser.add_argument("--why", default="", help="kept in the audit log")
        parser.add_argument("--may-skip", action="store_true", help="changes are left out, and you know it")
        parser.add_argument("--json", action="store_true", help="answer as JSON")

    def handle(self, *, dataset: str, data_center: str, **options: Any) -> None:
        try:
            known = live_dataset(dataset)
            if options["offset"] or options["time"] or options["earliest"]:
                self._set(known, data_center, options)
            else:
                self._show(positions_of(known), is_json=options["json"])
        except (Busy, Conflict, NotFound, Refused) as problem:
            raise CommandError(printable(str(problem))) from problem

    def _set(self, dataset: Dataset, data_center: str, options: dict[str, Any]) -> None:
        requested = request_position(
            find_copy(dataset, data_center),
            WantedPlace(dict(options["offset"] or ()), options["time"], options["earliest"]),
            why=options["why"],
            may_skip=options["may_skip"],
            actor="manage.py",
            now=wiring.clock.now(),
        )
        facts = {"run": requested.run.pk, "skipped": requested.move.skipped, "read_again": requested.move.read_again}
        self.stdout.write(json.dumps(facts) if options["json"] else requested.sentence())

    def _show(self, positions: Positions, *, is_json: bool) -> None:
        if is_json:
            self.stdout.write(json.dumps(PositionsSerializer(positions).data, default=str))
            return
        lines = [_tap_line(positions.tap), *(line for place in positions.copies for line in _copy_lines(place))]
        for line in (*lines, *(f"{name}: {why}" for name, why in positions.problems.items())):
            self.stdout.write(printable(line))


def _tap_line(tap: TapServer | None) -> str:
    if tap is None:
        return "No tap has taken the dataset on yet."
    place = f", {tap.place['file']} at {tap.place['offset']:,}" if tap.place.get("file") else ""
    taken = ", ".join(f"{rows:,} rows of {topic}" for topic, rows in tap.place.get("taken", {}).items())
    begun = f", in {tap.place['begun']} after {taken or 'no row'}" if tap.place.get("begun") else ""
    error = f". {tap.error}" if tap.error else ""
    return f"The tap of {tap.address} has taken {tap.position or 'nothing'}{place}{begun}{error}"


def _copy_lines(place: CopyPlace) -> list[str]:
    oldest = f", the oldest logged at {place.oldest_at:%Y-%m-%d %H:%M:%S} UTC" if place.oldest_at else ""
    head = f"{place.copy.data_center.name}: {place.waiting:,} messages wait{oldest}"
    parts = (
        f"  {each.topic} {each.partition}: at {each.offset:,} of {each.end:,}, may be set from {each.least:,} on"
        for each in place.partitions
    )
    return [head, *parts]


def _offset(text: str) -> tuple[str, int]:
    partition, _, offset = text.partition(":")
    if not (partition and offset.isascii() and offset.isdigit()):
        raise ArgumentTypeError(f"{text!r} is not PARTITION:OFFSET, such as 0:1500")
    return partition, int(offset)


def _time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a time such as 2026-11-16T05:00:00Z") from None
    if time.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} has no offset: add one, as in {text}Z")
    return time

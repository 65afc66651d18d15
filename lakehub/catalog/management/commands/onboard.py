"""`manage.py onboard dataset.json`, `manage.py onboard --file list.yaml`, `manage.py onboard --lineage-of flights --direction up`"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog import bulk
from lakehub.catalog.along import Along, Direction, along
from lakehub.catalog.bulk import Line, Result
from lakehub.catalog.changes import live_dataset
from lakehub.catalog.serializers import read_list
from lakehub.kernel.errors import NotFound, Refused


class Command(BaseCommand):
    help = (
        "Onboards a dataset or a list of them from a JSON or YAML file (- is standard input), or all along a lineage."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", nargs="?", default="", metavar="file")
        parser.add_argument("--file", default="", help="the same")
        parser.add_argument("--lineage-of", default="", metavar="DATASET")
        parser.add_argument("--direction", choices=[one.value for one in Direction], default=Direction.BOTH.value)
        parser.add_argument("--tier", type=int, help="with --lineage-of: the dataset's own unless given")
        parser.add_argument("--team", default="", help="with --lineage-of: the dataset's own unless given")
        parser.add_argument("--check", action="store_true", help="say what would be onboarded, and onboard nothing")

    def handle(self, *, path: str, file: str, lineage_of: str, **options: Any) -> None:
        source = path or file
        if bool(source) == bool(lineage_of):
            raise CommandError("Name a file, or a dataset with --lineage-of: one of the two.")
        try:
            asked = _along(lineage_of, options) if lineage_of else Along(*read_list(_read(source)))
            lines = list(asked.lines) + ([] if options["check"] else self._onboard(asked))
        except (Refused, NotFound) as error:
            raise CommandError(str(error)) from error
        if options["check"]:
            self.stdout.writelines(
                f"would be  {one.name}: {one.connection} {one.table}\n" for one in asked.applications
            )
        for line in lines:
            self.stdout.write(_shown(line))
        refused = [line.name for line in lines if line.result is Result.REFUSED]
        if refused:
            raise CommandError(f"{len(refused)} of {len(lines)} were refused: {', '.join(refused[:10])}")

    def _onboard(self, asked: Along) -> list[Line]:
        return bulk.onboard_many(asked.applications, actor="manage.py", now=wiring.clock.now())


def _along(name: str, options: dict[str, Any]) -> Along:
    return along(live_dataset(name), Direction(options["direction"]), tier=options["tier"], team=options["team"])


def _read(source: str) -> list[Any]:
    """YAML holds JSON too."""
    try:
        found = yaml.safe_load(sys.stdin if source == "-" else Path(source).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise CommandError(f"{source} cannot be read as JSON or YAML: {error}") from error
    return found if isinstance(found, list) else [found]


def _shown(line: Line) -> str:
    why = "; ".join(f"{name}: {text}" if name else text for name, text in line.why.items())
    return f"{line.result:8}  {line.name}{f'  ({why})' if why else ''}"

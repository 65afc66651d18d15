"""`manage.py onboard dataset.json`, `manage.py onboard --file list.yaml`, `manage.py onboard --lineage-of flights --direction up`, `manage.py onboard --connection shop --tables 'sales_*' --team sales --tier 2`"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.onboarding import bulk
from lakehub.catalog.onboarding.along_lineage import Direction, requests_along_lineage
from lakehub.catalog.onboarding.bulk import OnboardingLine, OnboardingSelection, OnboardingStatus
from lakehub.catalog.onboarding.by_pattern import PatternRequest, requests_by_pattern
from lakehub.catalog.serializers.bulk import parse_requests
from lakehub.kernel.errors import NotFound, Refused


class Command(BaseCommand):
    help = (
        "Onboards a dataset or a list of them from a JSON or YAML file (- is standard input), all along a lineage, "
        "or the tables of a captured connection by a pattern of their names."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", nargs="?", default="", metavar="file")
        parser.add_argument("--file", default="", help="the same")
        parser.add_argument("--lineage-of", default="", metavar="DATASET")
        parser.add_argument(
            "--direction", choices=[direction.value for direction in Direction], default=Direction.BOTH.value
        )
        parser.add_argument("--connection", default="", help="with --tables: whose changes are captured")
        parser.add_argument("--tables", default="", metavar="PATTERN", help="such as 'sales_*', several with commas")
        parser.add_argument("--data-center", action="append", default=[], help="with --tables; repeat it")
        parser.add_argument(
            "--tier", type=int, help="needed with --tables; with --lineage-of the dataset's own unless given"
        )
        parser.add_argument(
            "--team", default="", help="needed with --tables; with --lineage-of the dataset's own unless given"
        )
        parser.add_argument("--check", action="store_true", help="say what would be onboarded, and onboard nothing")

    def handle(self, *, path: str, file: str, **options: Any) -> None:
        source = path or file
        if [bool(source), bool(options["lineage_of"]), bool(options["tables"])].count(True) != 1:
            raise CommandError("Name a file, a dataset with --lineage-of, or tables with --tables: one of the three.")
        try:
            selection = _selection(source, options)
            lines = list(selection.lines) + ([] if options["check"] else self._onboard(selection))
        except (Refused, NotFound) as error:
            raise CommandError(str(error)) from error
        if options["check"]:
            self.stdout.writelines(
                f"would be  {application.name}: {application.connection} {application.table}\n"
                for application in selection.requests
            )
        for line in lines:
            self.stdout.write(_shown(line))
        refused = [line.name for line in lines if line.result is OnboardingStatus.REFUSED]
        if refused:
            raise CommandError(f"{len(refused)} of {len(lines)} were refused: {', '.join(refused[:10])}")

    def _onboard(self, selection: OnboardingSelection) -> list[OnboardingLine]:
        return bulk.onboard_many(selection.requests, actor="manage.py", now=wiring.clock.now())


def _selection(source: str, options: dict[str, Any]) -> OnboardingSelection:
    if options["tables"]:
        return _by_pattern(options)
    if options["lineage_of"]:
        return _along(options["lineage_of"], options)
    return OnboardingSelection(*parse_requests(_read(source)))


def _by_pattern(options: dict[str, Any]) -> OnboardingSelection:
    facts = {name: options[name] for name in ("connection", "tables", "team", "tier")}
    return requests_by_pattern(PatternRequest(**facts, data_centers=options["data_center"]))


def _along(name: str, options: dict[str, Any]) -> OnboardingSelection:
    return requests_along_lineage(
        live_dataset(name), Direction(options["direction"]), tier=options["tier"], team=options["team"]
    )


def _read(source: str) -> list[Any]:
    """YAML holds JSON too."""
    try:
        parsed = yaml.safe_load(sys.stdin if source == "-" else Path(source).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise CommandError(f"{source} cannot be read as JSON or YAML: {error}") from error
    return parsed if isinstance(parsed, list) else [parsed]


def _shown(line: OnboardingLine) -> str:
    why = "; ".join(f"{name}: {text}" if name else text for name, text in line.why.items())
    return "\n".join(
        [f"{line.result:8}  {line.name}{f'  ({why})' if why else ''}", *(f"          {note}" for note in line.notes)]
    )

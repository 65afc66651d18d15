"""`manage.py change_dataset flights changes.json --check` says what would come of it; without `--check` it is changed."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from lakehub import wiring
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.catalog.onboarding.redefine import prepare_change
from lakehub.catalog.ports import preview_change
from lakehub.catalog.serializers.changes import DatasetChangeSerializer
from lakehub.kernel.errors import Conflict, NotFound, Refused
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Changes a dataset by a JSON or YAML file (- is standard input) of what PATCH /api/v1/datasets/{name} takes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("file")
        parser.add_argument("--check", action="store_true", help="say what would come of it, and change nothing")

    def handle(self, *, name: str, file: str, check: bool, **_: Any) -> None:
        changes, now = _read(file), wiring.clock.now()
        try:
            dataset = live_dataset(name)
            prepared = prepare_change(dataset, changes)
            tried = replace(prepared, dataset=copy(dataset))  # what is written to it is taken back
            lines = preview_change(dataset.pk, lambda: tried.write(actor="manage.py", now=now), now=now)
            if not check:
                prepared.write(actor="manage.py", now=now)
        except (Refused, Conflict, NotFound) as error:
            raise CommandError(printable(str(error))) from error
        self.stdout.writelines(f"{line.about:9}  {printable(line.text)}\n" for line in lines)
        self.stdout.write("Nothing was changed." if check else f"Dataset {name} is changed.")


def _read(file: str) -> dict[str, Any]:
    """YAML holds JSON too."""
    try:
        parsed = yaml.safe_load(sys.stdin if file == "-" else Path(file).read_text())
    except (OSError, yaml.YAMLError) as error:
        raise CommandError(f"{file} cannot be read as JSON or YAML: {error}") from error
    known = DatasetChangeSerializer().fields.keys()
    unknown = [name for name in parsed if name not in known] if isinstance(parsed, dict) else []
    if unknown:
        raise CommandError(f"`{unknown[0]}` is nothing that can be changed: {', '.join(known)} can.")
    serializer = DatasetChangeSerializer(data=parsed)
    if not serializer.is_valid():
        raise CommandError(f"{file} cannot be used: {serializer.errors}")
    return serializer.to_changes()

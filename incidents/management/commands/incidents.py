"""`manage.py incidents --all --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from incidents.api.serializers.incidents import IncidentSerializer
from incidents.models import Incident
from lakehub.catalog.datasets.lookup import live_dataset
from lakehub.kernel.errors import NotFound
from lakehub.kernel.output.terminal import printable


class Command(BaseCommand):
    help = "Shows what is open, newest first; --all shows resolved ones too."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dataset", nargs="?")
        parser.add_argument("--all", action="store_true")
        parser.add_argument("--limit", type=int, default=50)
        parser.add_argument("--json", action="store_true")

    def handle(self, *, dataset: str | None, all: bool, limit: int, json: bool, **_: Any) -> None:
        incidents = Incident.objects.select_related("dataset", "assignee").order_by("-opened_at", "-pk")
        try:
            incidents = incidents.filter(dataset=live_dataset(dataset)) if dataset else incidents
        except NotFound as error:
            raise CommandError(printable(str(error))) from error
        shown = incidents if all else incidents.filter(resolved_at=None)
        for incident in shown[:limit]:
            self.stdout.write(_as_json(incident) if json else _as_line(incident))


def _as_json(incident: Incident) -> str:
    return json.dumps(IncidentSerializer(incident).data)


def _as_line(incident: Incident) -> str:
    how = f" ({incident.resolution})" if incident.resolution else ""
    return f"#{incident.pk:<6} {incident.opened_at:%Y-%m-%d %H:%M}  {incident.state + how:<24} {incident.category:<12} {printable(incident.title)}"

"""`manage.py lifecycle --form mermaid`"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from incidents.domain.incident.state_machine import DETECTED_TRANSITIONS, REPORTED_TRANSITIONS, as_markdown, as_mermaid

FORMS = {"markdown": as_markdown, "mermaid": as_mermaid}


class Command(BaseCommand):
    help = "Shows the moves that an incident can make, as the table that the program goes by."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--form", choices=sorted(FORMS), default="markdown")

    def handle(self, *, form: str, **_: Any) -> None:
        for name, moves in (("Detected by tests", DETECTED_TRANSITIONS), ("Reported by users", REPORTED_TRANSITIONS)):
            self.stdout.write(f"{name}\n\n{FORMS[form](moves)}\n")

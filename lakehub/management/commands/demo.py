from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Tell the story on real flights, in an instance of its own in .demo, and serve it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-serve", action="store_true", help="End after the story.")

    def handle(self, *, no_serve: bool, **_: Any) -> None:
        # A process of its own: the demo's settings are not those of this one.
        arguments = ["--no-serve"] if no_serve else []
        os.execv(sys.executable, [sys.executable, "-m", "lakehub.demo", *arguments])  # noqa: S606

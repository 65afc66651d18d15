from __future__ import annotations

import os
from argparse import ArgumentParser
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from lakehub.logs import log_format
from lakehub.processes.commands import UnknownProcess, process_commands
from lakehub.processes.supervisor import instance_lock, run

SCHEDULER = "beat"
"""The process that runs once in an instance."""


class Command(BaseCommand):
    help = "Run the web application, the workers and the scheduler together, after bringing the database up to date."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("only", nargs="*", help="Names from the Procfile; all of them where none is given.")
        parser.add_argument(
            "--bind", default=os.environ.get("LAKEHUB_BIND", "127.0.0.1:8000"), help="Address and port."
        )
        parser.add_argument("--reload", action="store_true", help="Start a process again when the code changes.")
        parser.add_argument("--no-migrate", action="store_true", help="Leave the database's tables as they are.")

    def handle(self, *, only: list[str], bind: str, reload: bool, no_migrate: bool, **options: Any) -> None:
        if reload and find_spec("watchfiles") is None:
            raise CommandError("`--reload` needs watchfiles, which is not installed: pip install watchfiles")
        try:
            names = list(process_commands(only))
            # Two schedulers in one folder are a second start; two workers are one more.
            is_whole = SCHEDULER in names
            lock = instance_lock.take(settings.LAKEHUB_HOME, bind, now=datetime.now(UTC)) if is_whole else None
        except (UnknownProcess, instance_lock.AlreadyRunning) as problem:
            raise CommandError(str(problem)) from problem
        if not no_migrate:
            call_command("migrate", interactive=False, verbosity=0)
        as_json = log_format() == "json"
        if not as_json:
            self.stdout.write(f"http://{bind}", ending="\n")
            self.stdout.flush()
        run.become(names, bind, reload=reload, raw=as_json, lock=lock)

"""`manage.py verify_audit --head 214:9f2c...`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from lakehub.accounts.audit.verification import Anchor, verify_chain
from lakehub.kernel.errors import Refused


class Command(BaseCommand):
    help = (
        "Walks the audit log's chain, names the first line that was changed, removed or inserted, and prints the head."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--head",
            default="",
            metavar="NUMBER:DIGEST",
            help="a head that was printed before: the chain must still have it",
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *, head: str, **options: Any) -> None:
        try:
            report = verify_chain(Anchor.parse(head) if head else None)
        except Refused as error:
            raise CommandError(str(error)) from error
        facts = {"lines": report.line_count, "head": str(report.head), "waiting": report.waiting_count}
        if options["json"]:
            self.stdout.write(json.dumps(facts | {"broken_at": report.broken_at, "problem": report.problem}))
        elif not report.problem:
            self.stdout.write(
                f"{report.line_count} lines are as they were written; {report.waiting_count} wait to join them."
            )
            self.stdout.write(f"Head {report.head}")
        if report.problem:
            raise CommandError(report.problem)

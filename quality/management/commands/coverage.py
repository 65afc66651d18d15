"""`manage.py coverage --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from lakehub import wiring
from quality.coverage import HIGHEST, Coverage, coverage
from quality.domain.tiers import TIERS


class Command(BaseCommand):
    help = "How many datasets are tested as their metadata allows. Ends with 1 where one of these tiers is not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tier", type=int, action="append", choices=list(TIERS), help="0 and 1 unless given; may be repeated"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *, tier: list[int] | None, **options: Any) -> None:
        found = coverage(tier or HIGHEST, now=wiring.clock.now())
        for line in [json.dumps(_facts(found), indent=1)] if options["json"] else _lines(found):
            self.stdout.write(line)
        if not found.is_whole:
            raise SystemExit(1)


def _facts(found: Coverage) -> dict[str, Any]:
    return asdict(found) | {"covered": found.covered, "share": found.share}


def _lines(found: Coverage) -> list[str]:
    tiers = ", ".join(map(str, found.tiers))
    share = "there are none" if found.share is None else f"{found.share:.1%}"
    head = f"{found.covered} of {found.datasets} datasets of tier {tiers} are covered: {share}"
    return [head, *(f"  {one.dataset} (tier {one.tier}, {one.team}): {'; '.join(one.why)}" for one in found.uncovered)]

"""`manage.py coverage --json`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from lakehub import wiring
from quality.domain.slas import TIERS
from quality.generation.coverage import REQUIRED_TIERS, TierCoverage, coverage_of_tiers


class Command(BaseCommand):
    help = "How many datasets are tested as their metadata allows. Ends with 1 where one of these tiers is not."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--tier", type=int, action="append", choices=list(TIERS), help="0 and 1 unless given; may be repeated"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *, tier: list[int] | None, **options: Any) -> None:
        tier_coverage = coverage_of_tiers(tier or REQUIRED_TIERS, now=wiring.clock.now())
        for line in [json.dumps(_as_json(tier_coverage), indent=1)] if options["json"] else _lines(tier_coverage):
            self.stdout.write(line)
        if not tier_coverage.is_whole:
            raise SystemExit(1)


def _as_json(tier_coverage: TierCoverage) -> dict[str, Any]:
    return asdict(tier_coverage) | {"covered": tier_coverage.covered, "share": tier_coverage.share}


def _lines(tier_coverage: TierCoverage) -> list[str]:
    tiers = ", ".join(map(str, tier_coverage.tiers))
    share = "there are none" if tier_coverage.share is None else f"{tier_coverage.share:.1%}"
    head = f"{tier_coverage.covered} of {tier_coverage.datasets} datasets of tier {tiers} are covered: {share}"
    return [
        head,
        *(
            f"  {dataset.dataset} (tier {dataset.tier}, {dataset.team}): {'; '.join(dataset.reasons)}"
            for dataset in tier_coverage.uncovered
        ),
    ]

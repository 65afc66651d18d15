"""`manage.py tiers`"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from quality.domain.slas import TIERS, format_slas


class Command(BaseCommand):
    help = "Prints what each tier promises, as a dataset would override it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        table = {tier: format_slas(slas) for tier, slas in TIERS.items()}
        if options["json"]:
            self.stdout.write(json.dumps(table, indent=1))
            return
        names = list(table[0])
        width = max(map(len, names))
        self.stdout.write(f"{'tier':{width}}  " + "".join(f"{tier:<9}" for tier in table))
        for name in names:
            self.stdout.write(f"{name:{width}}  " + "".join(f"{slas[name]:9}" for slas in table.values()))

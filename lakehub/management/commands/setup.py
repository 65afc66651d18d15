from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from lakehub.setup.__main__ import main


class Command(BaseCommand):
    help = "Fetch what Spark needs besides the package, once: the table format's jar. Checks Java."

    def handle(self, **_: Any) -> None:
        if code := main():
            sys.exit(code)

"""What is counted in a round."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from django.db import DatabaseError, connection

from ingestion.models import Commit
from tests.soak.checks import arrivals
from tests.soak.stand.stage import Stage


class Tally(Counter[str]):
    @classmethod
    def of(cls, stage: Stage) -> Tally:
        arrived = arrivals(stage)
        return cls({
            "rows written": stage.source.written,
            "commits": _commits(),
            "starts": stage.instance.starts,
            "messages": len(arrived),
            "messages doubled": arrived.total() - len(arrived),
            "MB in home": _megabytes(stage.instance.home),
        })  # fmt: skip

    def since(self, before: Tally) -> dict[str, int]:
        """What has been added; of the size of the folder, what it is."""
        return {name: count if name.startswith("MB") else count - before[name] for name, count in self.items()}


def _commits() -> int:
    try:
        return Commit.objects.count()
    except DatabaseError:  # said by the checks
        return 0
    finally:
        connection.close()


def _megabytes(folder: Path) -> int:
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.lstat().st_size
        except FileNotFoundError:  # removed meanwhile
            continue
    return total >> 20

"""How well the fleet is tested: the number that must be whole, what keeps it from that, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from lakehub.catalog.models import TIERS, Dataset
from quality.coverage import HIGHEST, Coverage, Uncovered, coverage
from quality.models import SkippedCheck

MOST = 100
_STEPS = (
    ("not monitored yet", "ingestion", "See its jobs"),
    ("has no copy", "ingestion", "See its jobs"),
    ("could not be made", "settings", "Mend its settings"),
    ("no test of freshness", "settings", "Look at its settings"),
)
"""What a reason holds, and the tab of the dataset where it is mended."""


@dataclass(frozen=True)
class Lacking:
    """A dataset that is not covered, and where to go about it."""

    found: Uncovered
    tab: str
    step: str


@dataclass(frozen=True)
class TierCount:
    tier: int
    datasets: int
    covered: int

    @property
    def share(self) -> float:
        return self.covered / self.datasets

    @property
    def state(self) -> str:
        """Whole is what the highest tiers must be; below, it is for information."""
        if self.covered == self.datasets:
            return "pass"
        return "fail" if self.tier in HIGHEST else "none"


@dataclass(frozen=True)
class Fleet:
    must: Coverage
    """Of the tiers that must be whole."""
    tiers: list[TierCount]
    lacking: list[Lacking]
    skipped: list[SkippedCheck]
    skipped_count: int


def fleet(*, now: datetime) -> Fleet:
    """Of all tiers; the number of queries does not grow with the fleet."""
    whole = coverage(TIERS, now=now)
    live = Dataset.objects.filter(offboarded_at=None, onboarded_at__lte=now)
    counts = dict(live.values_list("tier").annotate(n=Count("pk")).order_by("tier"))
    skipped = SkippedCheck.objects.filter(mendable=True, dataset__offboarded_at=None).select_related("dataset__team")
    return Fleet(
        must=_of_tiers(whole, HIGHEST, sum(counts.get(tier, 0) for tier in HIGHEST)),
        tiers=_by_tier(whole, counts),
        lacking=[_lacking(one) for one in whole.uncovered[:MOST]],
        skipped=list(skipped.order_by("-mendable", "dataset__tier", "dataset__name", "check_name")[:MOST]),
        skipped_count=skipped.count(),
    )


def _of_tiers(whole: Coverage, tiers: Sequence[int], datasets: int) -> Coverage:
    return Coverage(tuple(tiers), datasets, tuple(one for one in whole.uncovered if one.tier in tiers))


def _by_tier(whole: Coverage, counts: dict[int, int]) -> list[TierCount]:
    lacking = Counter(one.tier for one in whole.uncovered)
    return [TierCount(tier, n, n - lacking[tier]) for tier, n in counts.items()]


def _lacking(found: Uncovered) -> Lacking:
    said = " ".join(found.why)
    tab, step = next(
        ((tab, step) for words, tab, step in _STEPS if words in said), ("", "Its tests are made by itself")
    )
    return Lacking(found, tab, step)

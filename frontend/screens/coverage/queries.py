"""How well the fleet is tested: the number that must be whole, what keeps it from that, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from frontend.components.team_scope import TeamScope
from lakehub.catalog.models import TIERS, Dataset
from quality.generation.coverage import REQUIRED_TIERS, TierCoverage, UncoveredDataset, coverage_of_tiers
from quality.models import SkippedCheck
from quality.state.unverified import (
    UnverifiedCount,
    UnverifiedTest,
    unverified_count,
    unverified_tests,
    unverified_units,
)

MAX_LISTED = 100
MAX_TESTS_LISTED = 5
"""Of one dataset; the page of the dataset has all."""
_NEXT_STEPS = (
    ("not monitored yet", "ingestion", "See its jobs"),
    ("has no copy", "ingestion", "See its jobs"),
    ("could not be made", "settings", "Mend its settings"),
    ("no test of freshness", "settings", "Look at its settings"),
)
"""What a reason holds, and the tab of the dataset where it is mended."""


@dataclass(frozen=True)
class UncoveredRow:
    """A dataset that is not covered, and where to go about it."""

    uncovered: UncoveredDataset
    tab: str
    step: str


@dataclass(frozen=True)
class TierRow:
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
        return "fail" if self.tier in REQUIRED_TIERS else "none"


@dataclass(frozen=True)
class FleetCoverage:
    required: TierCoverage
    """Of the tiers that must be whole."""
    tiers: list[TierRow]
    lacking: list[UncoveredRow]
    skipped: list[SkippedCheck]
    skipped_count: int


@dataclass(frozen=True)
class UnverifiedRow:
    """A dataset of which something should have been verified by now, and is not; `since` when the first of it is unknown."""

    dataset: Dataset
    tests: list[UnverifiedTest]
    more_tests: int
    ranges: int
    since: datetime


@dataclass(frozen=True)
class UnverifiedFleet:
    """The highest tiers first; `shown` are at most MAX_LISTED."""

    count: UnverifiedCount
    shown: list[UnverifiedRow]


def unverified_fleet(scope: TeamScope, *, now: datetime) -> UnverifiedFleet:
    """Of the scope's teams. Three queries."""
    concerned = unverified_units(now=now).filter(scope.where("test__dataset__team")).values("test__dataset")
    datasets = list(
        Dataset.objects.filter(pk__in=concerned).select_related("team").order_by("tier", "name")[:MAX_LISTED]
    )
    tests = unverified_tests(datasets, now=now)
    shown = [_unverified_row(dataset, tests[dataset.pk]) for dataset in datasets if dataset.pk in tests]
    return UnverifiedFleet(unverified_count(scope.where("test__dataset__team"), now=now), shown)


def _unverified_row(dataset: Dataset, tests: Sequence[UnverifiedTest]) -> UnverifiedRow:
    return UnverifiedRow(
        dataset,
        list(tests[:MAX_TESTS_LISTED]),
        max(0, len(tests) - MAX_TESTS_LISTED),
        sum(test.ranges for test in tests),
        min(test.since for test in tests),
    )


def fleet_coverage(*, now: datetime) -> FleetCoverage:
    """Of all tiers; the number of queries does not grow with the fleet."""
    whole = coverage_of_tiers(TIERS, now=now)
    live = Dataset.objects.filter(offboarded_at=None, onboarded_at__lte=now)
    counts = dict(live.values_list("tier").annotate(n=Count("pk")).order_by("tier"))
    skipped = SkippedCheck.objects.filter(mendable=True, dataset__offboarded_at=None).select_related("dataset__team")
    return FleetCoverage(
        required=_coverage_of_tiers(whole, REQUIRED_TIERS, sum(counts.get(tier, 0) for tier in REQUIRED_TIERS)),
        tiers=_coverage_by_tier(whole, counts),
        lacking=[_uncovered_dataset(uncovered) for uncovered in whole.uncovered[:MAX_LISTED]],
        skipped=list(skipped.order_by("-mendable", "dataset__tier", "dataset__name", "check_name")[:MAX_LISTED]),
        skipped_count=skipped.count(),
    )


def _coverage_of_tiers(whole: TierCoverage, tiers: Sequence[int], datasets: int) -> TierCoverage:
    return TierCoverage(
        tuple(tiers), datasets, tuple(uncovered for uncovered in whole.uncovered if uncovered.tier in tiers)
    )


def _coverage_by_tier(whole: TierCoverage, counts: dict[int, int]) -> list[TierRow]:
    lacking = Counter(uncovered.tier for uncovered in whole.uncovered)
    return [TierRow(tier, n, n - lacking[tier]) for tier, n in counts.items()]


def _uncovered_dataset(uncovered: UncoveredDataset) -> UncoveredRow:
    reasons_text = " ".join(uncovered.reasons)
    tab, step = next(
        ((tab, step) for words, tab, step in _NEXT_STEPS if words in reasons_text), ("", "Its tests are made by itself")
    )
    return UncoveredRow(uncovered, tab, step)

"""The weekly report to the owners of datasets: what is not tested and why, what was silent, what deserves a look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Q

from lakehub.accounts.models import Membership, Role, Team
from lakehub.catalog.lineage.missing_tables import offboarding_delay
from lakehub.catalog.models import TIERS, Dataset
from lakehub.kernel.outcome import Outcome, Verdict
from quality.domain.verdicts.unit_verdict import Waiver
from quality.generation.coverage import TierCoverage, coverage_of_tiers
from quality.models import Flip, QualityTest, SkippedCheck, Unit

WEEK = timedelta(days=7)
FLAPPING_FROM = 4
"""A test that began to fail so often in a week tells more of itself than of the data."""


@dataclass(frozen=True)
class SkippedTest:
    """A type of test that a dataset cannot have, and what is missing to have it."""

    dataset: str
    tier: int
    check: str
    missing: str


@dataclass(frozen=True)
class SilentTest:
    """A test that ended in error, or without data, for the whole week: `ranges` of it in one data center."""

    dataset: str
    test: str
    title: str
    data_center: str
    outcome: str
    ranges: int
    last_seen_at: datetime | None
    """When it passed or failed the last time; None: never."""
    cause: str


@dataclass(frozen=True)
class ReviewItem:
    """A test that its owners should look at, and why."""

    dataset: str
    test: str
    title: str
    why: str


@dataclass(frozen=True)
class MissingDataset:
    """A dataset whose table is gone. `offboards_at` None: it is not going to be; `offboarded_at`: it was this week."""

    dataset: str
    missing_since: datetime
    offboards_at: datetime | None
    offboarded_at: datetime | None


@dataclass(frozen=True)
class WeeklyReport:
    """About [start, end), for one team. `week` is the Monday that it is filed under."""

    team: str
    week: date
    start: datetime
    end: datetime
    addresses: tuple[str, ...]
    """Who it is mailed to; empty: nobody can be."""
    datasets: int
    coverage: TierCoverage
    skipped: tuple[SkippedTest, ...]
    without_contact: tuple[str, ...]
    """Datasets whose owners nobody can write to."""
    silent: tuple[SilentTest, ...]
    look_at: tuple[ReviewItem, ...]
    gone: tuple[MissingDataset, ...]

    @property
    def is_clean(self) -> bool:
        """Nothing is asked of the owners."""
        lists = (self.skipped, self.without_contact, self.silent, self.look_at, self.gone)
        return self.coverage.is_whole and not any(lists)


def week_of(now: datetime) -> date:
    """The week of `now`, in UTC."""
    return now.date() - timedelta(days=now.weekday())


def weekly_report(team: Team, *, now: datetime) -> WeeklyReport:
    """The week up to `now`."""
    start = now - WEEK
    live = Dataset.objects.filter(team=team, offboarded_at=None)
    addresses = contacts(team)
    names = tuple(live.order_by("name").values_list("name", flat=True))
    return WeeklyReport(
        team=team.name,
        week=week_of(now),
        start=start,
        end=now,
        addresses=addresses,
        datasets=len(names),
        coverage=coverage_of_tiers(TIERS, team=team, now=now),
        skipped=tuple(_skipped_tests(team)),
        without_contact=() if addresses else names,
        silent=tuple(_silent_tests(team, start)),
        look_at=tuple(_review_items(team, start)),
        gone=tuple(_missing_datasets(team, start)),
    )


def contacts(team: Team) -> tuple[str, ...]:
    """The team's own address; without one, those of its owners and administrators."""
    if team.email:
        return (team.email,)
    leading = Membership.objects.filter(team=team, role__in=(Role.OWNER, Role.ADMIN), user__is_active=True)
    return tuple(
        leading.exclude(user__email="").order_by("user__email").values_list("user__email", flat=True).distinct()
    )


def _skipped_tests(team: Team) -> Iterator[SkippedTest]:
    """The highest tiers first."""
    skipped_checks = SkippedCheck.objects.filter(
        mendable=True, dataset__team=team, dataset__offboarded_at=None
    ).select_related("dataset")
    for skipped_check in skipped_checks.order_by("dataset__tier", "dataset__name", "check_name"):
        yield SkippedTest(
            skipped_check.dataset.name, skipped_check.dataset.tier, skipped_check.check_name, skipped_check.reason
        )


def _silent_tests(team: Team, start: datetime) -> Iterator[SilentTest]:
    """Neither a pass nor a failure since `start`, though the test is older than that."""
    without = Unit.objects.filter(
        Q(last_pass_at=None) | Q(last_pass_at__lt=start),
        Q(last_fail_at=None) | Q(last_fail_at__lt=start),
        verdict=Verdict.UNKNOWN,
        latest_outcome__in=(Outcome.ERROR, Outcome.NO_DATA),
        latest_at__gte=start,
        test__dataset__team=team,
        test__retired_at=None,
        test__version__created_at__lte=start,
    )
    groups: dict[tuple[str, str, str], list[Unit]] = defaultdict(list)
    for unit in without.select_related("test__dataset", "copy__data_center").order_by("-latest_at")[:5000]:
        groups[unit.test.dataset.name, unit.test.key, unit.copy.data_center.name].append(unit)
    for (dataset, key, center), units in sorted(groups.items()):
        verdict_times = [at for unit in units for at in (unit.last_pass_at, unit.last_fail_at) if at is not None]
        newest = units[0]
        cause = str(newest.detail.get("cause", "")) if isinstance(newest.detail, dict) else ""
        title, outcome = newest.test.title, newest.latest_outcome
        yield SilentTest(dataset, key, title, center, outcome, len(units), max(verdict_times, default=None), cause)


def _review_items(team: Team, start: datetime) -> Iterator[ReviewItem]:
    whys: dict[int, list[str]] = defaultdict(list)
    of_team = {"test__dataset__team": team, "test__retired_at": None}
    waived = Unit.objects.filter(waiver=Waiver.FALSE_POSITIVE, waived_at__gte=start, **of_team)
    for test, count in Counter(waived.values_list("test_id", flat=True)).items():
        whys[test].append(f"{_times(count, 'failure was', 'failures were')} called a false positive")
    failures = Flip.objects.filter(at__gte=start, becomes=Verdict.FAIL, **{f"unit__{k}": v for k, v in of_team.items()})
    for test, count in failures.values_list("unit__test_id").annotate(n=Count("pk")).filter(n__gte=FLAPPING_FROM):
        whys[test].append(f"it began to fail {count} times")
    never = QualityTest.objects.filter(dataset__team=team, dataset__offboarded_at=None, retired_at=None)
    never = never.filter(version__created_at__lte=start).exclude(units__latest_at__isnull=False)
    for test in never.values_list("pk", flat=True):
        whys[test].append("it was never run")
    for quality_test in (
        QualityTest.objects.filter(pk__in=whys)
        .select_related("dataset")
        .order_by("dataset__tier", "dataset__name", "key")
    ):
        yield ReviewItem(
            quality_test.dataset.name, quality_test.key, quality_test.title, "; ".join(whys[quality_test.pk])
        )


def _times(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def _missing_datasets(team: Team, start: datetime) -> Iterator[MissingDataset]:
    left, after = Q(offboarded_at=None) | Q(offboarded_at__gte=start), offboarding_delay()
    for dataset in Dataset.objects.filter(left, team=team, missing_since__isnull=False).order_by(
        "missing_since", "name"
    ):
        since = dataset.missing_since
        assert since is not None  # filtered above
        at = None if after is None or dataset.offboarded_at else since + after
        yield MissingDataset(dataset.name, since, at, dataset.offboarded_at)

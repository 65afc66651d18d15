"""The weekly report to the owners of datasets: what is not tested and why, what was silent, what deserves a look."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.db.models import Count, Q

from lakehub.accounts.models import Membership, Role, Team
from lakehub.catalog.lineage.gone import patience
from lakehub.catalog.models import TIERS, Dataset
from lakehub.kernel.outcome import Outcome, Verdict
from quality.coverage import Coverage, coverage
from quality.domain.verdicts import Waiver
from quality.models import Flip, SkippedCheck, Test, Unit

WEEK = timedelta(days=7)
FLAPS_FROM = 4
"""A test that began to fail so often in a week tells more of itself than of the data."""


@dataclass(frozen=True)
class Skipped:
    """A type of test that a dataset cannot have, and what is missing to have it."""

    dataset: str
    tier: int
    check: str
    missing: str


@dataclass(frozen=True)
class Silent:
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
class LookAt:
    """A test that its owners should look at, and why."""

    dataset: str
    test: str
    title: str
    why: str


@dataclass(frozen=True)
class Gone:
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
    coverage: Coverage
    skipped: tuple[Skipped, ...]
    without_contact: tuple[str, ...]
    """Datasets whose owners nobody can write to."""
    silent: tuple[Silent, ...]
    look_at: tuple[LookAt, ...]
    gone: tuple[Gone, ...]

    @property
    def is_clean(self) -> bool:
        """Nothing is asked of the owners."""
        lists = (self.skipped, self.without_contact, self.silent, self.look_at, self.gone)
        return self.coverage.is_whole and not any(lists)


def monday(now: datetime) -> date:
    """The week of `now`, in UTC."""
    return now.date() - timedelta(days=now.weekday())


def weekly(team: Team, *, now: datetime) -> WeeklyReport:
    """The week up to `now`."""
    start = now - WEEK
    live = Dataset.objects.filter(team=team, offboarded_at=None)
    addresses = contacts(team)
    names = tuple(live.order_by("name").values_list("name", flat=True))
    return WeeklyReport(
        team=team.name,
        week=monday(now),
        start=start,
        end=now,
        addresses=addresses,
        datasets=len(names),
        coverage=coverage(TIERS, team=team, now=now),
        skipped=tuple(_skipped(team)),
        without_contact=() if addresses else names,
        silent=tuple(_silent(team, start)),
        look_at=tuple(_look_at(team, start)),
        gone=tuple(_gone(team, start)),
    )


def contacts(team: Team) -> tuple[str, ...]:
    """The team's own address; without one, those of its owners and administrators."""
    if team.email:
        return (team.email,)
    leading = Membership.objects.filter(team=team, role__in=(Role.OWNER, Role.ADMIN), user__is_active=True)
    return tuple(
        leading.exclude(user__email="").order_by("user__email").values_list("user__email", flat=True).distinct()
    )


def _skipped(team: Team) -> Iterator[Skipped]:
    """The highest tiers first."""
    found = SkippedCheck.objects.filter(mendable=True, dataset__team=team, dataset__offboarded_at=None).select_related(
        "dataset"
    )
    for one in found.order_by("dataset__tier", "dataset__name", "check_name"):
        yield Skipped(one.dataset.name, one.dataset.tier, one.check_name, one.reason)


def _silent(team: Team, start: datetime) -> Iterator[Silent]:
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
        seen = [at for unit in units for at in (unit.last_pass_at, unit.last_fail_at) if at is not None]
        newest = units[0]
        cause = str(newest.detail.get("cause", "")) if isinstance(newest.detail, dict) else ""
        title, outcome = newest.test.title, newest.latest_outcome
        yield Silent(dataset, key, title, center, outcome, len(units), max(seen, default=None), cause)


def _look_at(team: Team, start: datetime) -> Iterator[LookAt]:
    whys: dict[int, list[str]] = defaultdict(list)
    of_team = {"test__dataset__team": team, "test__retired_at": None}
    waived = Unit.objects.filter(waiver=Waiver.FALSE_POSITIVE, waived_at__gte=start, **of_team)
    for test, count in Counter(waived.values_list("test_id", flat=True)).items():
        whys[test].append(f"{_times(count, 'failure was', 'failures were')} called a false positive")
    failures = Flip.objects.filter(at__gte=start, becomes=Verdict.FAIL, **{f"unit__{k}": v for k, v in of_team.items()})
    for test, count in failures.values_list("unit__test_id").annotate(n=Count("pk")).filter(n__gte=FLAPS_FROM):
        whys[test].append(f"it began to fail {count} times")
    never = Test.objects.filter(dataset__team=team, dataset__offboarded_at=None, retired_at=None)
    never = never.filter(version__created_at__lte=start).exclude(units__latest_at__isnull=False)
    for test in never.values_list("pk", flat=True):
        whys[test].append("it was never run")
    for one in (
        Test.objects.filter(pk__in=whys).select_related("dataset").order_by("dataset__tier", "dataset__name", "key")
    ):
        yield LookAt(one.dataset.name, one.key, one.title, "; ".join(whys[one.pk]))


def _times(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _gone(team: Team, start: datetime) -> Iterator[Gone]:
    left, after = Q(offboarded_at=None) | Q(offboarded_at__gte=start), patience()
    for dataset in Dataset.objects.filter(left, team=team, missing_since__isnull=False).order_by(
        "missing_since", "name"
    ):
        since = dataset.missing_since
        assert since is not None  # filtered above
        at = None if after is None or dataset.offboarded_at else since + after
        yield Gone(dataset.name, since, at, dataset.offboarded_at)

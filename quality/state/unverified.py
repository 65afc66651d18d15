"""What is not verified: units whose verdict has been UNKNOWN for longer than their sustain period after they were due."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db.models import (
    Case,
    Count,
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    F,
    Max,
    Min,
    Q,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Coalesce, Least

from lakehub.catalog.models import Dataset
from lakehub.kernel.interval import Interval
from lakehub.kernel.outcome import Verdict
from lakehub.kernel.partitions import Grain, partition_at
from quality.domain.periods import MAX_PERIOD
from quality.models import Unit

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class UnverifiedTest:
    """A gating test of one copy, with how many of its ranges nobody can vouch for, from `start` to `end`, and why."""

    days: str = field(default="", kw_only=True)
    """From `start` to `end` in words."""
    test: str
    data_center: str
    reason: str
    ranges: int
    start: datetime
    end: datetime
    since: datetime
    """Since when the first of them has been unknown: it lost its verdict then, or was due."""

    def __str__(self) -> str:
        of_what = "" if self.ranges == 1 else f"{self.ranges:,} ranges of "
        return f"{of_what}`{self.test}` in {self.data_center}: {self.reason.replace('_', ' ') or 'never run'}"

    @property
    def sentence(self) -> str:
        """With the days: 3 ranges of `completeness` in dc1, 14 to 16 Nov: no data."""
        return str(replace(self, data_center=f"{self.data_center}, {self.days}"))


@dataclass(frozen=True)
class UnverifiedCount:
    """How many ranges nobody can vouch for, and of how many datasets they are."""

    ranges: int
    datasets: int


def unverified_units(*, now: datetime) -> QuerySet[Unit]:
    """Of gating tests that are live. A table as a whole is due since its test was made."""
    sustain, due_after = _bounded("test__version__sustain"), _bounded("test__version__due_after")
    late_by = ExpressionWrapper(Value(now) - due_after - sustain, DateTimeField())
    sustain_ago = ExpressionWrapper(Value(now) - sustain, DateTimeField())
    unknown = Unit.objects.filter(
        verdict=Verdict.UNKNOWN,
        test__retired_at=None,
        test__planned=True,
        test__gating=True,
        test__dataset__offboarded_at=None,
        copy__removed_at=None,
    )
    of_partition = Q(test__version__cadence=None, end__lt=late_by)
    of_whole = Q(test__version__cadence__isnull=False, test__version__created_at__lt=sustain_ago)
    return unknown.filter(of_partition | of_whole, Q(verdict_at=None) | Q(verdict_at__lt=sustain_ago))


def _bounded(period: str) -> Least:
    """A longer one, which an older version stored, would lead out of the database's calendar."""
    return Least(F(period), Value(MAX_PERIOD), output_field=DurationField())


def unverified_count(where: Q, *, now: datetime) -> UnverifiedCount:
    """Of the units that `where` leaves. One query."""
    counts = unverified_units(now=now).filter(where).aggregate(n=Count("pk"), of=Count("test__dataset", distinct=True))
    return UnverifiedCount(counts["n"], counts["of"])


_DUE_AT = Case(
    When(test__version__cadence=None, then=F("end") + _bounded("test__version__due_after")),
    default=F("test__version__created_at"),
    output_field=DateTimeField(),
)
_UNKNOWN_SINCE = Coalesce("verdict_at", _DUE_AT)


def unverified_tests(datasets: Collection[Dataset], *, now: datetime) -> dict[int, list[UnverifiedTest]]:
    """By dataset, the most ranges first; one query however many datasets there are."""
    rows = unverified_units(now=now).filter(test__dataset__in=datasets)
    grouped = rows.values_list("test__dataset", "test__key", "copy__data_center__name", "reason").annotate(
        ranges=Count("pk"), oldest=Min("start"), newest=Max("end"), since=Min(_UNKNOWN_SINCE)
    )
    by_dataset: dict[int, list[UnverifiedTest]] = defaultdict(list)
    by_key = {dataset.pk: dataset for dataset in datasets}
    for key, *facts in grouped.order_by("-ranges", "test__key", "copy__data_center__name"):
        test = UnverifiedTest(*facts)
        days = days_text(Interval(test.start, test.end), by_key[key], now=now)
        by_dataset[key].append(replace(test, days=days))
    return by_dataset


def days_text(span: Interval, dataset: Dataset, *, now: datetime) -> str:
    """`14 to 16 Nov` on the clocks of the dataset, with the year where it is not this one; other partitions by their names."""
    grain, zone = dataset.partition_grain, dataset.zone
    if span.is_everything or grain is Grain.NONE:
        return "the whole table"
    newest = partition_at(span.end - _TICK, grain, zone)
    if grain is not Grain.DAY:
        first, last = (dataset.partition_label(part) for part in (partition_at(span.start, grain, zone), newest))
        return first if first == last else f"{first} to {last}"
    begin, end, today = (at.astimezone(zone) for at in (span.start, newest.start, now))
    year = f" {end.year}" if {begin.year, end.year} != {today.year} else ""
    if begin.date() == end.date():
        return f"{end.day} {end:%b}{year}"
    if (begin.year, begin.month) == (end.year, end.month):
        return f"{begin.day} to {end.day} {end:%b}{year}"
    return f"{begin.day} {begin:%b}{f' {begin.year}' if begin.year != end.year else ''} to {end.day} {end:%b}{year}"

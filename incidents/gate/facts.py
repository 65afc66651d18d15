"""What is known of copies when the gate is asked: three queries for any number of copies and any range, prepared once.

One more where a dataset has open reports, one where its ingestion ever found something: the first query says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache, reduce
from operator import or_
from typing import Any, NamedTuple

from django.db.models import Exists, FilteredRelation, OuterRef, Q, QuerySet

from incidents.domain import gate
from incidents.domain.gate import CopyState, GatingTest, Report, UnitState
from incidents.models import GateOverride, Incident, State, UserReport
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy
from lakehub.kernel.calendar import Grain
from lakehub.kernel.interval import BEGINNING, EVERYTHING, FOREVER, Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.prepared import Parameter, Prepared, instant, number
from quality.described import produced
from quality.domain.definitions import runs_in
from quality.domain.production import Production
from quality.domain.tiers import BadOverride
from quality.domain.verdicts import UnitFacts, Waiver, judge
from quality.measuring import understood
from quality.models import Category, Test, Unit
from quality.units import first_tested_of

FINDING = "finding"
WIDEST = timedelta(days=32)
"""No partition is wider: a unit that meets a range starts at most so long before it, or with the beginning of time."""


@dataclass(frozen=True)
class Found:
    """A copy that can be asked about. What a flag denies need not be looked for."""

    copy: DatasetCopy
    reported: bool = True
    overridden: bool = True


@dataclass(frozen=True)
class Wanted:
    """A range of a copy. `metric`: asked for it, so that the tests of the dataset's other metrics do not count."""

    found: Found
    data: Interval
    metric: str = ""

    @property
    def copy(self) -> DatasetCopy:
        return self.found.copy


# Copies


# `from_db` takes values in the order of the model's fields.
_COPY = ("pk", "monitored_from")
_CENTER = ("data_center__pk", "data_center__name")
_DATASET = ("pk", "name", "team_id", "tier", "ingested", "grain", "partition_tz", "overrides", "grace_until")  # fmt: skip


def found_by_name(names: Iterable[str], *, now: datetime) -> dict[str, list[Found]]:
    """The copies of these live datasets, by the dataset's name."""
    wanted = list(dict.fromkeys(names))
    by_name: defaultdict[str, list[Found]] = defaultdict(list)
    parameters = {f"name{place}": name for place, name in enumerate(wanted)}
    for row in _copies(len(wanted)).rows(now=now, **parameters) if wanted else ():
        found = _found(row)
        by_name[found.copy.dataset.name].append(found)
    return by_name


@lru_cache(maxsize=128)
def _copies(count: int) -> Prepared:
    reports = Incident.objects.filter(dataset=OuterRef("dataset"), resolved_at=None, reported=True)
    overrides = GateOverride.objects.filter(dataset=OuterRef("dataset"), ended_at=None, expires_at__gt=instant("now"))

    def build() -> QuerySet[Any, Any]:
        named = [Parameter(f"name{place}") for place in range(count)]
        copies = DatasetCopy.objects.filter(dataset__name__in=named, dataset__offboarded_at=None)
        return copies.order_by("data_center__name").values_list(
            *_COPY, *_CENTER, "watch__looked_at", Exists(reports), Exists(overrides),
            *(f"dataset__{name}" for name in _DATASET),
        )  # fmt: skip

    return Prepared(build)


def _found(row: tuple[Any, ...]) -> Found:
    pk, monitored_from, center, center_name, looked_at, reported, overridden, *of_dataset = row
    dataset = Dataset.from_db("default", ["id", *_DATASET[1:]], of_dataset)
    copy = DatasetCopy.from_db(
        "default", ["id", "dataset_id", "data_center_id", "monitored_from"], [pk, dataset.pk, center, monitored_from]
    )
    copy.dataset = dataset
    copy.data_center = DataCenter.from_db("default", ["id", "name"], [center, center_name])
    copy.looked_at = looked_at  # type: ignore[attr-defined]  # carried along, see _looked_at
    return Found(copy, bool(reported), bool(overridden))


def _looked_at(copy: DatasetCopy) -> datetime:
    """What is ingested says itself what it writes; what is only watched is not known before the first look."""
    if copy.dataset.ingested:
        return FOREVER
    if not hasattr(copy, "looked_at"):
        watch = getattr(copy, "watch", None)
        return BEGINNING if watch is None or watch.looked_at is None else watch.looked_at
    return copy.looked_at or BEGINNING


# The state of copies


def states_of(wanted: Sequence[Wanted], *, now: datetime) -> list[CopyState]:
    """What the gate must know about each, in their order."""
    tests = _tests_of({one.copy.dataset_id for one in wanted})
    units = _units_of(wanted, tests, now)
    reports = _reports_of({one.copy.dataset_id for one in wanted if one.found.reported})
    return [_state(one, tests[one.copy.dataset_id], units, reports[one.copy.dataset_id]) for one in wanted]


class _Test(NamedTuple):
    """A gating test and its version in force."""

    pk: int
    key: str
    title: str
    category: str
    check: str
    flattened: str
    cadence: timedelta | None
    due_after: timedelta


class _Judged(NamedTuple):
    state: UnitState
    complete_to: datetime | None


_Units = Mapping[tuple[int, int], list[_Judged]]
"""By test and copy."""


def _tests_of(datasets: set[int]) -> Mapping[int, list[_Test]]:
    found: defaultdict[int, list[_Test]] = defaultdict(list)
    for dataset, *row in _tests(len(datasets)).rows(**_numbered("dataset", datasets)):
        found[dataset].append(_Test(*row))
    return found


@lru_cache(maxsize=128)
def _tests(count: int) -> Prepared:
    live = Q(gating=True, retired_at=None, version__isnull=False)

    def build() -> QuerySet[Any, Any]:
        return (
            Test.objects.filter(live & _one_of("dataset", count))
            .order_by("pk")
            .values_list(
                "dataset", "pk", "key", "title", "category", "check_name", "version__flattened", "version__cadence",
                "version__due_after",
            )
        )  # fmt: skip

    return Prepared(build)


def _units_of(wanted: Sequence[Wanted], tests: Mapping[int, list[_Test]], now: datetime) -> _Units:
    rows = _units(len(wanted)).rows(**_ranges(wanted))
    findings = [(one, test.pk) for one in wanted for test in tests[one.copy.dataset_id] if test.check == FINDING]
    if findings:
        ranges = _ranges([one for one, _ in findings])
        rows += _findings(len(findings)).rows(**ranges, **_numbered("test", [test for _, test in findings]))
    cadences = {test.pk: test.cadence for of_dataset in tests.values() for test in of_dataset}
    found: defaultdict[tuple[int, int], list[_Judged]] = defaultdict(list)
    for test, copy, *row in rows:
        if test in cadences:
            found[test, copy].append(_judged(row, cadences[test], now))
    return found


_UNIT = (
    "test", "copy", "start", "end", "affected_from", "due_at", "last_pass_at", "first_fail_at", "last_fail_at", "sustain",
    "latest_outcome", "latest_at", "touched_at", "retest_due_at", "waiver", "waived_at", "active__incident",
    "active__incident__eta",
)  # fmt: skip


def _with_incidents(units: QuerySet[Unit]) -> QuerySet[Any, Any]:
    active = FilteredRelation("spans", condition=Q(spans__ended_at=None))
    return units.annotate(active=active).values_list(*_UNIT)


@lru_cache(maxsize=128)
def _units(count: int) -> Prepared:
    """The units of gating tests that meet each range: of partitions, and of tables as a whole."""

    def build() -> QuerySet[Any, Any]:
        counted = Unit.objects.filter(test__gating=True, test__retired_at=None)
        meeting = reduce(or_, (_meets(place) & Q(start__gt=instant(f"low{place}")) for place in range(count)))
        near = _with_incidents(counted.filter(meeting))
        whole = _with_incidents(counted.filter(_one_of("copy", count), start=BEGINNING))
        return near.union(whole, all=True)

    return Prepared(build)


@lru_cache(maxsize=128)
def _findings(count: int) -> Prepared:
    """Findings have ranges of any width: those that the other query leaves out."""

    def build() -> QuerySet[Any, Any]:
        far = (
            _meets(place) & Q(test=number(f"test{place}"), start__gt=BEGINNING, start__lte=instant(f"low{place}"))
            for place in range(count)
        )
        return _with_incidents(Unit.objects.filter(reduce(or_, far)))

    return Prepared(build)


def _meets(place: int) -> Q:
    return Q(copy=number(f"copy{place}"), start__lt=instant(f"end{place}"), end__gt=instant(f"start{place}"))


def _ranges(wanted: Sequence[Wanted]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for place, one in enumerate(wanted):
        values[f"copy{place}"] = one.copy.pk
        values[f"start{place}"], values[f"end{place}"] = one.data.start, one.data.end
        values[f"low{place}"] = max(BEGINNING, max(BEGINNING, one.data.start) - WIDEST)
    return values


def _one_of(name: str, count: int) -> Q:
    """The field `name` is one of so many parameters `name0`, `name1` and so on."""
    return reduce(or_, (Q(**{name: number(f"{name}{place}")}) for place in range(count)))


def _numbered(name: str, values: Iterable[int]) -> dict[str, int]:
    return {f"{name}{place}": value for place, value in enumerate(values)}


_OUTCOMES: Mapping[str, Outcome | None] = {"": None, **{one.value: one for one in Outcome}}


def _judged(row: Sequence[Any], cadence: timedelta | None, now: datetime) -> _Judged:
    """From a row of _UNIT without its first two."""
    start, end, complete_to, due_at, passed, first, last, sustain, outcome, *more, incident, eta = row
    latest_at, touched_at, retest_due_at, waiver, waived_at = more
    facts = UnitFacts(
        last_pass_at=passed,
        first_fail_at=first,
        last_fail_at=last,
        sustain=sustain or timedelta(),
        latest_outcome=_OUTCOMES[outcome],
        latest_at=latest_at,
        cadence=cadence,
        touched_at=touched_at,
        retest_due_at=retest_due_at,
        waiver=Waiver(waiver) if waiver else None,
        waived_at=waived_at,
    )
    judged = judge(facts, now=now)
    streak = facts.is_failing and facts.waiver is None
    next_run_at = due_at if judged.verdict is not Verdict.PASS else None
    state = UnitState(_range(start, end), judged.verdict, judged.reason.value, streak, next_run_at, incident, eta)
    return _Judged(state, complete_to)


_range = lru_cache(maxsize=4096)(Interval)
"""Partitions are the same for all tests of a dataset, and for the next question."""


# Reports


_LIVE = (State.REPORTED, State.WAITING, State.ACKNOWLEDGED)


def _reports_of(datasets: set[int]) -> Mapping[int, list[tuple[int | None, Report]]]:
    """By dataset, with the copy that each is about; None: all of them."""
    found: defaultdict[int, list[tuple[int | None, Report]]] = defaultdict(list)
    if not datasets:
        return found
    live = UserReport.objects.filter(incident__dataset__in=datasets, incident__state__in=_LIVE)
    columns = ("incident__dataset", "copy", "incident", "start", "end", "incident__state", "incident__eta")
    for dataset, copy, incident, start, end, state, eta in live.values_list(*columns):
        report = Report(incident, Interval(start, end), state == State.ACKNOWLEDGED, eta)
        found[dataset].append((copy, report))
    return found


# Put together


def _state(
    wanted: Wanted, tests: Iterable[_Test], units: _Units, reports: Iterable[tuple[int | None, Report]]
) -> CopyState:
    copy, dataset = wanted.copy, wanted.copy.dataset
    concerned = (
        test
        for test in tests
        if _concerns(test.flattened, copy.data_center.name) and not _of_another_metric(test.key, wanted.metric)
    )
    return CopyState(
        grain=dataset.partition_grain,
        zone=dataset.zone,
        monitored_from=copy.monitored_from,
        tests=tuple(_gating(test, copy, units.get((test.pk, copy.pk), ())) for test in concerned),
        reports=tuple(report for about, report in reports if about in (None, copy.pk)),
        grace_until=dataset.grace_until,
        produced=_produced(dataset),
        looked_at=_looked_at(copy),
    )


def _produced(dataset: Dataset) -> Production | None:
    """A calendar that cannot be read excuses nothing."""
    try:
        return produced(dataset)
    except BadOverride:
        return None


def _of_another_metric(key: str, metric: str) -> bool:
    return bool(metric) and key.startswith("metric:") and not key.startswith(f"metric:{metric}.")


@lru_cache(maxsize=4096)
def _concerns(flattened: str, data_center: str) -> bool:
    """A comparison with a data center says nothing about that one's own copy."""
    return runs_in(understood(flattened), data_center)


def _gating(test: _Test, copy: DatasetCopy, units: Sequence[_Judged]) -> GatingTest:
    whole = next((unit for unit in units if unit.state.data == EVERYTHING), None)
    if test.category == Category.FRESHNESS:
        unit, complete_to = (whole.state, whole.complete_to) if whole else (None, None)
        return gate.FreshnessTest(test.title, test.due_after, unit, complete_to)
    states = tuple(unit.state for unit in units)
    if test.check == FINDING:
        return gate.FindingTest(test.title, test.category, states)
    grain = copy.dataset.partition_grain
    if test.cadence is not None or whole or grain is Grain.NONE:
        return gate.WholeTest(test.title, test.category, whole.state if whole else None)
    monitored = copy.monitored_from or BEGINNING
    since = first_tested_of(test.flattened, monitored, grain, copy.dataset.partition_tz)
    return gate.PartitionTest(
        test.title, test.category, test.due_after, states, since if since > monitored else BEGINNING
    )

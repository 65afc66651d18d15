"""The rows of a fleet with a past: datasets, tests, units by day, incidents of which one in fifty is open, tokens."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from incidents.models import Incident, IncidentState, Span
from lakehub.accounts.models import Team, User
from lakehub.accounts.tokens import api_tokens
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy, DatasetKind
from lakehub.kernel.interval import EVERYTHING, Interval
from lakehub.kernel.outcome import Outcome, Verdict
from lakehub.kernel.partitions import Grain, partition_at, partitions_within
from quality.models import Category, QualityTest, QualityTestVersion, Unit

TEAMS, CONSUMERS, DAYS = 20, 20, 30
ZONE = ZoneInfo("America/New_York")
WHOLE_TABLE_TESTS = {"freshness": Category.FRESHNESS, "planes known": Category.OTHERS}
DAILY_TESTS = {
    "duplicates": Category.DUPLICATES,
    "rows": Category.COMPLETENESS,
    "rows as in dc2": Category.CONSISTENCY,
    "null tailnum": Category.OTHERS,
    "shortest": Category.OTHERS,
}
OPEN_EVERY = 50
HOUR = timedelta(hours=1)


def build(datasets: int, incidents: int, *, now: datetime) -> list[str]:
    """Everything; the texts of the consumers' tokens."""
    person = User.objects.create_user("bench")
    teams = Team.objects.bulk_create([Team(name=f"team-{number:02}") for number in range(TEAMS)])
    center = DataCenter.objects.create(name="dc1", lake_uri="file:///lake/dc1")
    dataset_rows = Dataset.objects.bulk_create(
        [_dataset(number, teams, now) for number in range(datasets)], batch_size=500
    )
    copies = DatasetCopy.objects.bulk_create(
        [
            DatasetCopy(
                dataset=dataset, data_center=center, uri=f"/{dataset.name}", monitored_from=now - 90 * 24 * HOUR
            )
            for dataset in dataset_rows
        ],
        batch_size=500,
    )
    days = _days(now)
    per_dataset = -(-incidents // datasets)
    for begin in range(0, datasets, 100):
        chosen = slice(begin, begin + 100)
        left = incidents - begin * per_dataset
        _tests(dataset_rows[chosen], copies[chosen], days, min(left, per_dataset * 100), per_dataset, now)
    return [_token(number, teams, person, now) for number in range(CONSUMERS)]


def _days(now: datetime) -> list[Interval]:
    """The whole days before today, the newest last."""
    today = partition_at(now, Grain.DAY, ZONE).start
    return list(partitions_within(Interval(today - DAYS * 24 * HOUR, today), Grain.DAY, ZONE))


def _dataset(number: int, teams: list[Team], now: datetime) -> Dataset:
    return Dataset(
        name=f"flights_{number:04}",
        team=teams[number % TEAMS],
        tier=number % 6,
        kind=DatasetKind.APPEND_PLUS_UPDATE,
        columns=[{"name": "id", "type": "bigint", "nullable": False}],
        partition_column="flight_date",
        grain=Grain.DAY,
        partition_tz=ZONE.key,
        onboarded_at=now - 90 * 24 * HOUR,
    )


def _tests(
    datasets: list[Dataset],
    copies: list[DatasetCopy],
    days: list[Interval],
    incidents: int,
    per_dataset: int,
    now: datetime,
) -> None:
    named = {**WHOLE_TABLE_TESTS, **DAILY_TESTS}
    tests = QualityTest.objects.bulk_create(
        QualityTest(dataset=dataset, key=key, title=key.capitalize(), category=category, check_name="custom")
        for dataset in datasets
        for key, category in named.items()
    )
    versions = QualityTestVersion.objects.bulk_create([_version(test, now) for test in tests], batch_size=500)
    for test, version in zip(tests, versions, strict=True):
        test.version = version
    QualityTest.objects.bulk_update(tests, ["version"], batch_size=200)
    copy_of = {copy.dataset_id: copy for copy in copies}
    units = Unit.objects.bulk_create(
        (
            _unit(test, copy_of[test.dataset_id], over, now)
            for test in tests
            for over in ([EVERYTHING] if test.key in WHOLE_TABLE_TESTS else days)
        ),
        batch_size=2000,
    )
    _incidents(units, incidents, per_dataset, now)


def _version(test: QualityTest, now: datetime) -> QualityTestVersion:
    return QualityTestVersion(
        test=test,
        number=1,
        expression="rows(this) > 0",
        flattened="rows(this) > 0",
        sustain=2 * HOUR,
        cadence=HOUR if test.key in WHOLE_TABLE_TESTS else None,
        due_after=HOUR,
        rerun_base=HOUR / 12,
        rerun_cap=HOUR,
        created_at=now - 90 * 24 * HOUR,
    )


def _unit(test: QualityTest, copy: DatasetCopy, over: Interval, now: datetime) -> Unit:
    passed_at = now - HOUR / 2
    return Unit(
        test=test,
        copy=copy,
        start=over.start,
        end=over.end,
        verdict=Verdict.PASS,
        reason="passing",
        latest_outcome=Outcome.PASS,
        latest_at=passed_at,
        last_pass_at=passed_at,
        affected_from=partition_at(now, Grain.DAY, ZONE).start if test.key == "freshness" else None,
    )


def _incidents(units: list[Unit], count: int, per_dataset: int, now: datetime) -> None:
    """Of units by day, evenly over the datasets; the open ones are of units that fail now."""
    by_dataset: dict[int, list[Unit]] = {}
    for unit in units:
        if unit.end != EVERYTHING.end:
            by_dataset.setdefault(unit.test.dataset_id, []).append(unit)
    chosen = [unit for own in by_dataset.values() for unit in islice(reversed(own), per_dataset)][:count]
    rows = [_incident(unit, unit.pk % OPEN_EVERY == 0, now) for unit in chosen]
    for begin in range(0, len(rows), 2000):
        incidents = Incident.objects.bulk_create(rows[begin : begin + 2000])
        incident_units = chosen[begin : begin + 2000]
        Span.objects.bulk_create(
            [_span(incident, unit) for incident, unit in zip(incidents, incident_units, strict=True)]
        )
    failing = [unit for unit in chosen if unit.pk % OPEN_EVERY == 0]
    for unit in failing:
        unit.first_fail_at, unit.last_fail_at, unit.sustain = now - 5 * HOUR, now - HOUR / 2, 2 * HOUR
        unit.last_pass_at, unit.latest_outcome, unit.due_at = now - 9 * HOUR, Outcome.FAIL, now + HOUR
    fields = ["first_fail_at", "last_fail_at", "sustain", "last_pass_at", "latest_outcome", "due_at"]
    Unit.objects.bulk_update(failing, fields, batch_size=200)


def _incident(unit: Unit, is_open: bool, now: datetime) -> Incident:
    opened_at = unit.end + 3 * HOUR
    ended: dict[str, Any] = {"state": IncidentState.RESOLVED, "resolved_at": opened_at + HOUR, "resolution": "auto"}
    return Incident(
        dataset_id=unit.test.dataset_id,
        category=unit.test.category,
        title=f"{unit.test.title} fails",
        opened_at=now - 3 * HOUR if is_open else opened_at,
        **({} if is_open else ended),
    )


def _span(incident: Incident, unit: Unit) -> Span:
    return Span(
        incident=incident,
        unit=unit,
        copy_id=unit.copy_id,
        start=unit.start,
        end=unit.end,
        began_at=incident.opened_at - HOUR,
        ended_at=incident.resolved_at,
    )


def _token(number: int, teams: list[Team], person: User, now: datetime) -> str:
    _, text = api_tokens.issue_token(
        name=f"jobs {number}",
        consumer=f"jobs-{number}",
        team=teams[number % TEAMS],
        created_by=person,
        scopes=["gate:read"],
        data_center="dc1",
        now=now,
    )
    return text

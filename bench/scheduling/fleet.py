"""The rows of a fleet: teams, datasets with one copy each, nine tests a dataset, a unit a test."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from django.db.models import QuerySet

from bench.scheduling.tables import COLUMNS, KEY, NEWEST
from ingestion.models import Commit
from lakehub.accounts.models import Team
from lakehub.catalog.models import DataCenter, Dataset, DatasetCopy, DatasetKind
from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.partitions import Grain, parse_partition_name, partition_at
from quality.domain.language import THIS, Scope, flattened, understand
from quality.models import Category, Lane, QualityTest, QualityTestVersion, Unit

TEAMS, TIERS = 20, 6
PARTITION_ZONE = ZoneInfo("UTC")
CADENCE = timedelta(hours=6)
TEST_EXPRESSIONS = {
    "freshness": (Category.FRESHNESS, "freshness(this) < 1d"),
    "duplicates": (Category.DUPLICATES, "duplicates(this) < 1%"),
    "rows": (Category.OTHERS, "rows(this) > 100"),
    "tailnum": (Category.OTHERS, "null_share(this.tailnum) < 10%"),
    "delay": (Category.OTHERS, "null_share(this.dep_delay) < 20%"),
    "shortest": (Category.OTHERS, "minimum(this.distance) > 0"),
    "longest": (Category.OTHERS, "maximum(this.distance) < 10000"),
    "average": (Category.OTHERS, "sum(this.distance) / rows(this) > 100"),
    "far": (Category.OTHERS, "mean(this.distance) < 5000 and rows(this) < 5000"),
}
"""Of the newest day, but for the first, which goes by the commits of the whole table."""


def build(lake: Path, datasets: int, *, now: datetime) -> list[Path]:
    """Everything, onboarded and due long ago. Returns the folders of the copies' tables, which are not there yet."""
    center = DataCenter.objects.create(name="dc1", lake_uri=lake.as_uri())
    teams = Team.objects.bulk_create([Team(name=f"team-{number:02}") for number in range(TEAMS)])
    dataset_rows = Dataset.objects.bulk_create(
        [_dataset(number, teams[number % TEAMS], now) for number in range(datasets)], batch_size=500
    )
    folders = [lake / dataset.name for dataset in dataset_rows]
    copies = DatasetCopy.objects.bulk_create(
        [
            DatasetCopy(
                dataset=dataset, data_center=center, uri=folder.as_uri(), monitored_from=now - timedelta(days=30)
            )
            for dataset, folder in zip(dataset_rows, folders, strict=True)
        ]
    )
    for begin in range(0, datasets, 200):
        _tests(dataset_rows[begin : begin + 200], copies[begin : begin + 200], now)
    return folders


def _dataset(number: int, team: Team, now: datetime) -> Dataset:
    return Dataset(
        name=f"flights_{number:04}",
        team=team,
        tier=number // TEAMS % TIERS,
        kind=DatasetKind.APPEND_PLUS_UPDATE,
        columns=[{"name": name, "type": kind, "nullable": True} for name, kind in COLUMNS.items()],
        primary_key=list(KEY),
        record_key=list(KEY),
        partition_column="flight_date",
        grain=Grain.DAY,
        partition_tz="UTC",
        onboarded_at=now - timedelta(days=30),
    )


def _tests(datasets: list[Dataset], copies: list[DatasetCopy], now: datetime) -> None:
    scope = Scope({THIS: frozenset({*COLUMNS, "flight_date"})}, primary_key=KEY)
    definitions = {
        key: (category, text, flattened(understand(text, scope))) for key, (category, text) in TEST_EXPRESSIONS.items()
    }
    tests = QualityTest.objects.bulk_create(
        [
            QualityTest(dataset=dataset, key=key, title=key, category=category, check_name="custom", generated=False)
            for dataset in datasets
            for key, (category, _, _) in definitions.items()
        ]
    )
    versions = QualityTestVersion.objects.bulk_create(
        [_version(test, *definitions[test.key][1:], now) for test in tests]
    )
    for test, version in zip(tests, versions, strict=True):
        test.version = version
    QualityTest.objects.bulk_update(tests, ["version"], batch_size=200)
    copy_of = {copy.dataset_id: copy for copy in copies}
    units = [_unit(test, copy_of[test.dataset_id]) for test in tests]
    coming = [_planned_unit(test, copy_of[test.dataset_id], now) for test in tests if not _is_whole_table(test)]
    Unit.objects.bulk_create([*units, *coming], batch_size=500)


def _version(test: QualityTest, expression: str, flat: str, now: datetime) -> QualityTestVersion:
    return QualityTestVersion(
        test=test,
        number=1,
        expression=expression,
        flattened=flat,
        sustain=timedelta(minutes=30),
        cadence=CADENCE if _is_whole_table(test) else None,
        due_after=timedelta(hours=2),
        rerun_base=timedelta(hours=2),
        rerun_cap=timedelta(hours=6),
        created_at=now - timedelta(days=30),
        because="bench",
    )


def _is_whole_table(test: QualityTest) -> bool:
    return test.key == "freshness"


def _unit(test: QualityTest, copy: DatasetCopy) -> Unit:
    over = EVERYTHING if _is_whole_table(test) else parse_partition_name(NEWEST, Grain.DAY, PARTITION_ZONE)
    return Unit(test=test, copy=copy, start=over.start, end=over.end, lane=Lane.DUE, resource="duckdb")


def _planned_unit(test: QualityTest, copy: DatasetCopy, now: datetime) -> Unit:
    """Of the day that is going on, which is planned long before it is due."""
    today = partition_at(now, Grain.DAY, PARTITION_ZONE)
    return Unit(test=test, copy=copy, start=today.start, end=today.end, due_at=today.end + timedelta(days=1))


def make_due(units: int, *, now: datetime) -> None:
    """The first so many, as if their time had come."""
    last = _tested_units().order_by("pk").values_list("pk", flat=True)[units - 1]
    _tested_units().filter(pk__lte=last).update(due_at=now, lane=Lane.DUE)


def _tested_units() -> QuerySet[Unit]:
    return Unit.objects.filter(resource="duckdb")


def create_commits(*, now: datetime) -> None:
    """What ingestion notes of a commit to each copy, without the partitions: `make_due` is in their place."""
    commits = [
        Commit(copy_id=copy, instant=f"{now:%Y%m%d%H%M%S%f}"[:17], completed_at=now, operation="insert")
        for copy in DatasetCopy.objects.values_list("pk", flat=True)
    ]
    Commit.objects.bulk_create(commits, batch_size=500)


def are_units_due(*, now: datetime) -> bool:
    return Unit.objects.filter(due_at__lte=now).exists()

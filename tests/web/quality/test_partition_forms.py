"""Tables that say their partitions in other ways than by name are tested by partition; what is none is a finding, and all else goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

from ingestion.models import Finding
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest, UpstreamRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.interval import Interval
from lakehub.kernel.partitions import parse_partition_name
from quality.execution import worker
from quality.execution.ingestion_findings import observe_findings
from quality.generation import generate
from quality.models import ChangePoll, Unit
from quality.planning import baseline, change_polling
from tests import factories
from tests.factories import NOW
from tests.web.quality.conftest import DAYS

pytestmark = pytest.mark.django_db
BAD_DAY = DAYS[1]


@dataclass(frozen=True)
class Shape:
    """A table with 10 rows on each of DAYS, of which one of BAD_DAY is doubled; `more` rows are written on top."""

    make: Callable[[Path, str], tuple[str, str, str]]
    column: str
    values: str
    """Of the columns, as SQL over `day` (a date) and `n` (the number of a row)."""
    form: str = ""
    grain: str = "day"
    zone: str = "America/New_York"


def parquet(folder: Path, rows: str) -> tuple[str, str, str]:
    duckdb.execute(f"COPY ({rows}) TO '{folder}/flights.parquet'")
    return "files", folder.as_uri(), "flights.parquet"


def folders(folder: Path, rows: str) -> tuple[str, str, str]:
    duckdb.execute(f"COPY ({rows}) TO '{folder}/flights' (FORMAT parquet, PARTITION_BY (year, month, day))")
    return "files", folder.as_uri(), "flights/*/*/*/*.parquet"


def sqlite(folder: Path, rows: str) -> tuple[str, str, str]:
    engine = sa.create_engine(f"sqlite:///{folder / 'ops.db'}", poolclass=sa.NullPool)
    values = [{"id": number, "at": str(at)} for number, at in duckdb.execute(rows).fetchall()]
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE flights (id INTEGER, at TIMESTAMP)"))
        connection.execute(sa.text("INSERT INTO flights VALUES (:id, :at)"), values)
    return "sql", str(engine.url), "flights"


SHAPES = {
    "integer": Shape(parquet, "ds", "strftime(day, '%Y%m%d')::INTEGER AS ds"),
    "whole numbers in decimals": Shape(parquet, "ds", "strftime(day, '%Y%m%d')::DECIMAL(12, 2) AS ds", "%Y%m%d"),
    "pattern": Shape(parquet, "ds", "strftime(day, '%d.%m.%Y') AS ds", "%d.%m.%Y"),
    "date": Shape(parquet, "ds", "day AS ds"),
    "zoned": Shape(parquet, "at", "timezone('America/New_York', day + to_hours((n * 2)::INTEGER)) AS at"),
    "local": Shape(parquet, "at", "day + to_hours((n * 2)::INTEGER) AS at"),
    "sqlite": Shape(sqlite, "at", "day + to_hours((n * 2)::INTEGER) AS at"),
    "two columns": Shape(parquet, "ds, hr", "strftime(day, '%Y%m%d') AS ds, 7 AS hr", "%Y%m%d, %H", grain="hour"),
    "beside a region": Shape(parquet, "ds", "strftime(day, '%Y%m%d') AS ds, n % 3 AS region", "%Y%m%d"),
    "folders": Shape(folders, "year, month, day", "year(day) AS year, strftime(day, '%m') AS month, strftime(day, '%d') AS day", "%Y, %m, %d"),
}  # fmt: skip


def rows_sql(values: str, days: tuple[str, ...] = DAYS) -> str:
    listed = ", ".join(f"DATE '{day}'" for day in days)
    every = f"SELECT CASE WHEN day = DATE '{BAD_DAY}' AND n = 9 THEN 8 ELSE n END AS id, {values} "
    return every + f"FROM (SELECT unnest([{listed}]) AS day), range(10) AS numbers(n)"


def onboarded(shape: Shape, folder: Path, sql: str = "", **given: Any) -> Dataset:
    plugin, url, table = shape.make(folder, sql or rows_sql(shape.values))
    factories.data_center()
    factories.connection("theirs", url=url, plugin=plugin)
    facts: dict[str, Any] = {
        "name": "flights",
        "team": "flight-ops",
        "tier": 2,
        "connection": "theirs",
        "table": table,
        "data_centers": ("dc1",),
        "kind": "append-only",
        "primary_key": ("id", *shape.column.split(", ")),
        "partition_column": shape.column,
        "partition_form": shape.form,
        "grain": shape.grain,
        "partition_tz": shape.zone,
        "ingested": False,
    }
    dataset = onboard_dataset(OnboardingRequest(**facts | given), actor="ann", now=NOW).dataset
    generate.generate_outdated(now=NOW)
    assert baseline.start_missing_baselines(now=NOW) == 1
    worker.run_due_units(now=NOW, worker="test", most=200)
    return dataset


def outcomes(dataset: Dataset, key: str = "duplicates") -> dict[str, str | None]:
    units = Unit.objects.filter(test__key=key, latest_at__isnull=False).order_by("start")
    return {dataset.partition_label(Interval(unit.start, unit.end)): unit.latest_outcome for unit in units}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_each_day_is_tested_by_itself(shape: Shape, tmp_path: Path) -> None:
    dataset = onboarded(shape, tmp_path, primary_key=("id",))
    hour = "T07" if shape.grain == "hour" else ""
    expected = {f"{day}{hour}": "fail" if day == BAD_DAY else "pass" for day in DAYS}
    tested = outcomes(dataset)
    assert {name: tested.get(name) for name in expected} == expected
    change_polling.poll_due_copies(now=NOW)
    assert not Finding.objects.exists()


def test_an_event_time_that_is_the_partition_is_read_on_the_clock_of_the_dataset(tmp_path: Path) -> None:
    """11 at night in Tokyo, read as UTC, is the next day: what lacked a day was fresh."""
    evenings = Shape(parquet, "at", "day + INTERVAL 23 HOUR AS at", zone="Asia/Tokyo")
    onboarded(evenings, tmp_path, rows_sql(evenings.values), event_time="at")
    late = Unit.objects.get(test__key="freshness")
    assert (late.latest_outcome, late.affected_from) == ("fail", datetime(2026, 11, 16, 15, tzinfo=UTC))


def test_what_is_no_partition_is_a_finding_and_all_else_goes_on(tmp_path: Path) -> None:
    shape = SHAPES["pattern"]
    odd = "SELECT 1 AS id, unnest(['garbage', 'garbage', NULL, '2026-11-16', '16.11.2031']) AS ds"
    dataset = onboarded(shape, tmp_path, f"{rows_sql(shape.values)} UNION ALL {odd}", primary_key=("id",))
    assert [outcomes(dataset)[day] for day in DAYS] == ["pass", "fail", "pass"]
    change_polling.poll_due_copies(now=NOW)
    change_polling.poll_due_copies(now=NOW + timedelta(hours=12))
    unreadable, ahead = Finding.objects.order_by("-kind")
    assert (unreadable.kind, unreadable.detail["values"], unreadable.detail["rows"]) == ("partition_unreadable", 3, 4)
    assert unreadable.detail["sample"][0] == {"value": "garbage", "rows": 2}
    assert "`ds` holds values that are no day: 'garbage' (2 rows)" in unreadable.detail["message"]
    day = parse_partition_name("2031-11-16", dataset.partition_grain, dataset.zone)
    assert (ahead.kind, ahead.start, ahead.end) == ("partition_ahead", day.start, day.end)
    assert "2031-11-16 (1 row) lies in the future by more than one day" in ahead.detail["message"]
    assert observe_findings(now=NOW) == 2
    tests = {unit.test.key: unit for unit in Unit.objects.filter(test__key__startswith="finding:")}
    assert {key: (unit.verdict, unit.test.gating) for key, unit in tests.items()} == {
        "finding:partition_unreadable": ("fail", False),
        "finding:partition_ahead": ("fail", False),
    }


def test_findings_of_partitions_are_cleared_where_the_rows_are_gone(tmp_path: Path) -> None:
    shape = SHAPES["pattern"]
    onboarded(shape, tmp_path, f"{rows_sql(shape.values)} UNION ALL SELECT 1, 'garbage'", primary_key=("id",))
    change_polling.poll_due_copies(now=NOW)
    parquet(tmp_path, rows_sql(shape.values))
    change_polling.poll_due_copies(now=NOW + timedelta(hours=12))
    (finding,) = Finding.objects.all()
    assert finding.cleared_at == NOW + timedelta(hours=12)


@pytest.mark.parametrize(
    ("column", "grain", "form", "field", "problem"),
    [
        ("at", "day", "%Y%m%d", "partition_form", "Column `at` is timestamp: write the form `time`"),
        ("day", "hour", "", "partition_form", "Column `day` is date, which says no hours."),
        (
            "share",
            "day",
            "",
            "partition_form",
            "Column `share` is float and says no partition. Choose a column of text",
        ),
        ("ds", "day", "%Y-%m-%d", "partition_form", "None of the 3 values looked at says a day, such as '20261116'."),
        ("ds", "day", "YYYYMMDD", "partition_form", "'YYYYMMDD' is not a form of a partition. Write a pattern"),
        ("ds", "hour", "%Y%m%d", "partition_form", "does not say which hour it is"),
        ("ds, day", "day", "", "partition_form", "write a pattern for each"),
        ("ds", "fortnight", "", "grain", "There is no grain `fortnight`."),
        (
            "ds",
            "none",
            "",
            "grain",
            "By its values it is day and the form %Y%m%d: 20261116 = 16 November 2026, America/New_York.",
        ),
        ("dz", "day", "", "partition_column", "There is no column `dz`. There are: `at`, `day`, `ds`"),
    ],
)
def test_what_cannot_be_supported_is_refused_by_name_with_the_remedy(
    tmp_path: Path, column: str, grain: str, form: str, field: str, problem: str
) -> None:
    values = "strftime(day, '%Y%m%d') AS ds, day AS day, day + to_hours(3) AS at, 0.5::DOUBLE AS share"
    shape = Shape(parquet, column, values, form, grain)
    with pytest.raises(Refused) as refused:
        onboarded(shape, tmp_path)
    assert problem in refused.value.fields[field]


def test_hours_are_those_of_the_clock_in_the_zone_of_the_dataset(tmp_path: Path) -> None:
    """Kolkata is half an hour off UTC."""
    sql = "SELECT n AS id, TIMESTAMPTZ '2026-11-17 10:00Z' + to_minutes((n * 15)::INTEGER) AS at FROM range(8) AS r(n)"
    shape = Shape(parquet, "at", "", "", "hour", "Asia/Kolkata")
    dataset = onboarded(shape, tmp_path, sql, primary_key=("id",))
    starts = Unit.objects.filter(test__key="duplicates", latest_outcome="pass").order_by("start")
    assert starts.first().start == datetime(2026, 11, 17, 9, 30, tzinfo=UTC)  # type: ignore[union-attr]
    assert list(outcomes(dataset))[:2] == ["2026-11-17T15", "2026-11-17T16"]


def compared(folder: Path, *, upstream: Shape, hourly_rows: int) -> Dataset:
    """`daily` against `flights`, of which each row gives one row: 24 hours with 10 rows each, of which `daily` has some."""
    hours = "(DATE '2026-11-15' + to_days(((n // 10) // 24)::INTEGER)) + to_hours(((n // 10) % 24)::INTEGER)"
    theirs = f"SELECT n AS id, {upstream.values.format(at=hours)} FROM range(480) AS r(n)"
    first = onboarded(upstream, folder, theirs, primary_key=("id",))
    (folder / "daily").mkdir()
    own = f"SELECT n AS id, strftime({hours}, '%Y-%m-%d') AS day FROM range(480) AS r(n) WHERE n % 10 < {hourly_rows}"
    factories.connection("ours", url=parquet(folder / "daily", own)[1], plugin="files")
    request = OnboardingRequest(
        name="daily",
        team="flight-ops",
        tier=2,
        connection="ours",
        table="flights.parquet",
        data_centers=("dc1",),
        kind="append-only",
        partition_column="day",
        grain="day",
        partition_tz="America/New_York",
        ingested=False,
        upstream=[UpstreamRequest(first.name, one_to_one=True)],
    )
    dataset = onboard_dataset(request, actor="ann", now=NOW).dataset
    generate.generate_outdated(now=NOW)
    baseline.start_missing_baselines(now=NOW)
    worker.run_due_units(now=NOW, worker="test", most=200)
    return dataset


HOURLY = {
    "text": Shape(parquet, "h", "strftime({at}, '%Y-%m-%dT%H') AS h", "", "hour"),
    "integer": Shape(parquet, "h", "strftime({at}, '%Y%m%d%H')::INTEGER AS h", "", "hour"),
    "time": Shape(parquet, "h", "{at} AS h", "", "hour"),
    "two columns": Shape(parquet, "ds, h", "strftime({at}, '%Y%m%d') AS ds, hour({at}) AS h", "%Y%m%d, %H", "hour"),
}


@pytest.mark.parametrize("upstream", HOURLY.values(), ids=HOURLY)
def test_an_upstream_by_the_hour_is_summed_for_a_table_by_the_day(upstream: Shape, tmp_path: Path) -> None:
    """90% used to be 2,160%: a day's rows against those of its first hour."""
    dataset = compared(tmp_path, upstream=upstream, hourly_rows=9)
    units = Unit.objects.filter(test__dataset=dataset, test__key="completeness", latest_at__isnull=False)
    assert [(unit.latest_outcome, unit.observed) for unit in units.order_by("start")] == [("fail", 0.9), ("fail", 0.9)]
    (late,) = Unit.objects.filter(test__dataset=dataset, test__key="freshness")
    assert late.latest_outcome == "fail"


def test_an_upstream_by_the_hour_that_is_all_there_passes(tmp_path: Path) -> None:
    dataset = compared(tmp_path, upstream=HOURLY["integer"], hourly_rows=10)
    for key in ("completeness", "freshness"):
        units = Unit.objects.filter(test__dataset=dataset, test__key=key, latest_at__isnull=False)
        assert {unit.latest_outcome for unit in units} == {"pass"}, key


@pytest.mark.parametrize(
    ("upstream", "why"),
    [
        (Shape(parquet, "m", "strftime({at}, '%Y-%m') AS m", "", "month"), "its partitions are by month, which do not add up"),
        (Shape(parquet, "d", "strftime({at}, '%Y-%m-%d') AS d", "", "day", "UTC"), "by day in UTC, and these are by day in America/New_York"),
        (Shape(parquet, "", "1 AS x", "", "none"), "it has no partitions, and these are by day"),
    ],
)  # fmt: skip
def test_an_upstream_that_does_not_add_up_is_not_compared_and_the_reason_is_told(
    upstream: Shape, why: str, tmp_path: Path
) -> None:
    dataset = compared(tmp_path, upstream=upstream, hourly_rows=10)
    assert not dataset.tests.filter(key="completeness").exists()
    assert why in dataset.skipped_checks.get(check_name="completeness").reason


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/New_York"])
@pytest.mark.parametrize("values", ["day", "strftime(day, '%Y-%m-%d')"], ids=["date", "named"])
def test_days_that_stand_for_never_are_a_finding_and_all_else_goes_on(values: str, zone: str, tmp_path: Path) -> None:
    """9999-12-31 and 0001-01-01: the ends of the calendars of databases, which have no day after or before them."""
    never = "SELECT 1 AS id, unnest([DATE '9999-12-31', DATE '0001-01-01', DATE '0001-01-01']) AS day"
    rows = f"{rows_sql(f'{values} AS ds')} UNION ALL SELECT id, {values} AS ds FROM ({never})"
    dataset = onboarded(Shape(parquet, "ds", "", zone=zone), tmp_path, rows, primary_key=("id",))
    assert [outcomes(dataset)[day] for day in DAYS] == ["pass", "fail", "pass"]
    for hours in (0, 12):
        change_polling.poll_due_copies(now=NOW + timedelta(hours=hours))
    finding = Finding.objects.get()
    assert (finding.kind, finding.detail["rows"]) == ("partition_unreadable", 3)
    assert finding.detail["sample"] == [{"value": "0001-01-01", "rows": 2}, {"value": "9999-12-31", "rows": 1}]


def test_values_of_any_size_and_kind_are_kept_short_and_storable(tmp_path: Path) -> None:
    """Megabytes, and a NUL, which PostgreSQL does not take: as sample, as what is remembered of the last look, and beside it."""
    shape = SHAPES["pattern"]
    odd = "SELECT 1 AS id, unnest([repeat('x', 1000000), 'a' || chr(0) || 'b', repeat('é', 300)]) AS ds"
    dataset = onboarded(shape, tmp_path, f"{rows_sql(shape.values)} UNION ALL {odd}", primary_key=("id",))
    change_polling.poll_due_copies(now=NOW)
    finding, watch = Finding.objects.get(), ChangePoll.objects.get()
    kept = json.dumps([finding.detail, watch.partition_states], ensure_ascii=False)
    assert finding.detail["values"] == 3
    assert {sample["value"] for sample in finding.detail["sample"]} == {f"{'x' * 200}…", "a\\x00b", f"{'é' * 200}…"}
    assert "\\u0000" not in kept
    assert len(kept) < 3_000
    assert sorted(watch.partition_states) == [dataset.partition_label(parse(dataset, day)) for day in DAYS]


def parse(dataset: Dataset, day: str) -> Interval:
    return parse_partition_name(day, dataset.partition_grain, dataset.zone)


EVENING = "TIMESTAMP '2026-11-15 20:00:00'"
"""On the clocks of Kolkata the day before last; as a time in UTC it would lie on the day after."""
LAST_EVENING = "TIMESTAMP '2026-11-17 23:00:00'"
EVENTS = {
    "local": (EVENING, {}, "fail"),
    "text": (f"CAST({EVENING} AS VARCHAR)", {}, "fail"),
    "instant": (f"timezone('UTC', {EVENING})", {}, "pass"),
    "text with a zone": ("'2026-11-15T20:00:00Z'", {}, "pass"),
    "local, just before midnight": (LAST_EVENING, {}, "pass"),
    "text, just before midnight": (f"CAST({LAST_EVENING} AS VARCHAR)", {}, "pass"),
    "said to be in UTC": (EVENING, {"overrides": {"event_time_zone": "UTC"}}, "pass"),
    "text said to be in UTC": (f"CAST({EVENING} AS VARCHAR)", {"overrides": {"event_time_zone": "UTC"}}, "pass"),
}


@pytest.mark.parametrize(("event", "given", "outcome"), EVENTS.values(), ids=EVENTS)
def test_event_times_without_a_zone_are_on_the_clocks_of_the_dataset(
    event: str, given: dict[str, Any], outcome: str, tmp_path: Path
) -> None:
    shape = Shape(parquet, "ds", f"day AS ds, {event} AS happened", zone="Asia/Kolkata")
    dataset = onboarded(shape, tmp_path, primary_key=("id",), event_time="happened", **given)
    assert Unit.objects.get(test__key="freshness", copy__dataset=dataset).latest_outcome == outcome


def test_what_a_form_in_utc_says_of_its_times_holds_for_event_times_too(tmp_path: Path) -> None:
    shape = Shape(parquet, "at", f"{EVENING} AS at", form="time in UTC", zone="Asia/Kolkata")
    onboarded(shape, tmp_path, primary_key=("id",), event_time="at")
    assert Unit.objects.get(test__key="freshness").latest_outcome == "pass"

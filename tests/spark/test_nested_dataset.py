"""A dataset with nested columns from its onboarding to its pages: loaded, changed, tested and shown."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from django.test import Client
from pyspark.sql import SparkSession

from ingestion.models import Commit
from ingestion.runs import feed_schedule, run_worker
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from lakehub.catalog.onboarding.onboard import onboard_dataset
from lakehub.catalog.onboarding.onboarding_request import OnboardingRequest
from lakehub.kernel.errors import Refused
from lakehub.kernel.outcome import Outcome
from quality.execution import worker
from quality.generation import generate
from quality.generation.rule_suggestions import suggest_rules
from quality.models import QualityTest, Result
from quality.planning import baseline
from tests import factories
from tests.factories import HOUR, NOW
from tests.following import follow_once
from tests.spark.test_rebuild import MortalJobs
from tests.spark.visits import Visits
from tests.web.ingestion.conftest import open_gate

pytestmark = pytest.mark.django_db(transaction=True)
ROWS = 40
"""Of fewer than thirty no rule is proposed."""
VISITS = OnboardingRequest(
    name="visits",
    team="flight-ops",
    tier=2,
    connection="inbox",
    table="*.parquet",
    data_centers=("dc1",),
    primary_key=("id", "day"),
    reference_key="at",
    partition_column="day",
    grain="day",
    partition_tz="UTC",
)


def visits_at(at: int, *, more: bool = False) -> pa.Table:
    """Forty visits; with `more` their structure has one more field."""
    who = pa.struct([("name", pa.string()), ("age", pa.int32()), *([("vip", pa.bool_())] if more else [])])
    vip = {"vip": True} if more else {}
    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": ["2026-11-16"] * ROWS,
            "at": [at] * ROWS,
            "who": pa.array([{"name": f"n{number}", "age": at, **vip} for number in range(ROWS)], who),
            "pages": pa.array([["a", None]] * ROWS, pa.list_(pa.string())),
            "counts": pa.array([[("x", at)]] * ROWS, pa.map_(pa.string(), pa.int64())),
            "clock": pa.array([at] * ROWS, pa.time64("us")),
            "big": pa.array([2**64 - 1] * ROWS, pa.uint64()),
        }
    )


@pytest.fixture
def visits(tmp_path: Path) -> Visits:
    made = Visits(tmp_path, "*.parquet")
    made.add_parquet("1.parquet", visits_at(1))
    factories.data_center("dc1", (tmp_path / "lake").as_uri())
    factories.connection("inbox", url=made.inbox.as_uri(), plugin="files")
    return made


def work(jobs: MortalJobs, visits: Visits, hours: int) -> Commit:
    """What beat, a worker and a follower do at that hour; the commit that was made last."""
    now = NOW + hours * HOUR
    feed_schedule.request_due_runs(now=now)
    staging = (visits.inbox.parent / "staging").as_uri()
    jobs_worker = run_worker.Worker("host:1:a", jobs, staging, lambda: now, timedelta, lambda: 0.0, open_gate)
    while run_worker.run_next(jobs_worker):
        pass
    follow_once(replace(jobs_worker, name="host:1:f"))
    generate.generate_outdated(now=now)
    baseline.start_missing_baselines(now=now)
    while worker.run_due_units(now=now, worker="test", most=200):
        pass
    return Commit.objects.latest("pk")


def test_it_is_loaded_changed_tested_and_shown(spark: SparkSession, visits: Visits, tmp_path: Path) -> None:
    dataset = onboard_dataset(replace(VISITS, partition_column="", grain="none"), actor="ines", now=NOW).dataset
    jobs = MortalJobs(spark, tmp_path)
    assert work(jobs, visits, 0).applied == ROWS
    visits.add_parquet("2.parquet", visits_at(2, more=True))
    assert work(jobs, visits, 1).applied == ROWS
    (newest, *_) = Timeline(factories.copy_of(dataset).uri).newest_first()
    assert newest.run["schema"]["widened"] == ["who"]
    assert visits.rows(spark, "who")[3] == {"name": "n3", "age": 2, "vip": True}
    outcomes = set(Result.objects.values_list("outcome", flat=True))
    assert QualityTest.objects.filter(dataset=dataset).count() > 3
    assert outcomes & {Outcome.PASS}
    assert Outcome.ERROR not in outcomes
    suggested = suggest_rules(dataset, now=NOW + HOUR)
    assert suggested.rows == ROWS
    rules = {(each.rule.kind, each.rule.column) for each in suggested.suggestions}
    assert ("nulls", "who") in rules
    assert not {kind for kind, column in rules if column in ("who", "pages", "counts")} - {"nulls"}
    assert_shown(dataset)


def assert_shown(dataset: Dataset) -> None:
    page = Client()
    page.force_login(factories.user(is_superuser=True))
    described = page.get("/api/v1/datasets/visits").json()
    types = {column["name"]: column["type"] for column in described["columns"]}
    assert types == {
        "id": "integer", "day": "string", "at": "integer", "who": "struct", "pages": "array", "counts": "map",
        "clock": "time", "big": "integer",
    }  # fmt: skip
    for address in ("", "?tab=ingestion", "?tab=columns", "/rejected", "/settings", "/new-test"):
        answer = page.get(f"/datasets/visits{address}")
        assert answer.status_code == 200, address
    for address in ("runs", "commits", "errors", "rules/proposals"):
        assert page.get(f"/api/v1/datasets/visits/{address}").status_code == 200, address
    again = changes.refresh_columns(dataset, actor="ines", now=NOW + 2 * HOUR)
    assert {column["name"]: column["type"] for column in again.columns} == types


@pytest.mark.parametrize("field", ["record_key", "reference_key", "partition_column"])
def test_a_nested_key_is_refused_at_onboarding(visits: Visits, field: str) -> None:
    value = ("who", "day") if field == "record_key" else "who"
    with pytest.raises(Refused) as refused:
        onboard_dataset(replace(VISITS, **{field: value}), actor="ines", now=NOW)
    assert "struct" in str(refused.value.fields)

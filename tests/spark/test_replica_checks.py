"""What the tests across data centers say of a replica that its job made: it lacks a commit, and then it reads as its source at that commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from ingestion.models import JobState
from ingestion.runs import feed_schedule, job_runs, run_worker
from ingestion.runs.replicas.setting import replicate
from ingestion.spark.tables.timeline import Timeline
from lakehub.catalog.models import DatasetCopy
from quality.generation.generate import generate_tests
from quality.models import Unit
from quality.planning.baseline import start_baseline
from tests import factories
from tests.contracts.awkward.product import watch
from tests.factories import HOUR, NOW
from tests.spark.order_shop import Orders
from tests.spark.shared_session import SharedSession
from tests.web.ingestion.conftest import open_gate

pytestmark = pytest.mark.django_db(transaction=True)
ACROSS = ("row_count@dc1", "bloom@dc1", "difference@dc1")
DAYS = ("2026-11-01", "2026-11-02", "2026-11-03")


@dataclass
class ReplicatedShop:
    """Orders that are loaded from a shop in dc1 and replicated to dc2."""

    orders: Orders
    spark: SparkSession
    source: DatasetCopy
    replica: DatasetCopy

    def run(self, now: datetime) -> list[str]:
        """What is asked for, until nothing is left; the kinds of the runs."""
        worker = run_worker.Worker(
            "host:1:a",
            SharedSession(self.spark),
            (self.orders.folder / "staging").as_uri(),
            lambda: now,
            lambda: now - datetime.now(UTC),
            lambda: 0.0,
            open_gate,
        )
        kinds = list[str]()
        while (run := run_worker.run_next(worker)) is not None:
            run.refresh_from_db()
            assert (run.state, run.error) == (JobState.SUCCEEDED, ""), run.kind
            kinds.append(run.kind)
        return kinds

    def outcomes(self) -> dict[str, dict[str, str]]:
        """Of the tests across data centers, by day: what the newest one said of the replica."""
        outcomes = dict[str, dict[str, str]]()
        for unit in self._units():
            outcomes.setdefault(unit.test.key, {})[unit.start.date().isoformat()] = unit.latest_outcome
        return outcomes

    def tested_instants(self) -> dict[str, str]:
        """By day: the commit of the replica that was read when its rows were counted. A test that compares keys or rows notes none."""
        counted = (unit for unit in self._units() if unit.test.key == "row_count@dc1")
        return {unit.start.date().isoformat(): unit.tested_instant for unit in counted}

    def newest_instant(self) -> str:
        """Of the source."""
        return Timeline(self.orders.table.uri).commits()[-1].instant

    def _units(self) -> list[Unit]:
        units = Unit.objects.filter(copy=self.replica, test__key__in=ACROSS).exclude(latest_outcome__in=("", "no_data"))
        return [*units.select_related("test").order_by("start")]


@pytest.fixture
def shop(spark: SparkSession, orders: Orders) -> ReplicatedShop:
    """Thirty orders, ten on each day, in both data centers."""
    orders.fill(30)
    for center, lake in {"dc1": "lake", "dc2": "lake2"}.items():
        factories.data_center(center, (orders.folder / lake).as_uri())
    types = {"id": "long", "day": "string", "amount": "double", "updated_at": "timestamp"}
    dataset = factories.dataset(
        "orders",
        copies=("dc1", "dc2"),
        tier=1,
        columns=[{"name": name, "type": type_, "nullable": True} for name, type_ in types.items()],
        primary_key=["id", "day"],
        record_key=["id", "day"],
        reference_key="updated_at",
        partition_column="day",
        partition_tz="UTC",
    )
    (url,) = orders.secrets.values()
    factories.feed(dataset, connection=factories.connection("shop", url))
    source, replica = dataset.copies.order_by("data_center__name")
    replicate(replica, source, mib_per_s=None, actor="ana", now=NOW)
    shop = ReplicatedShop(orders, spark, source, replica)
    job_runs.request_run(source, "bootstrap", asked_by="ana", now=NOW)
    job_runs.request_run(replica, "replicate", asked_by="ana", now=NOW)
    assert shop.run(NOW) == ["bootstrap", "replicate"]
    return shop


def test_a_replica_that_lacks_a_commit_fails_the_tests_across_data_centers_until_it_is_replicated(
    shop: ReplicatedShop,
) -> None:
    loaded = shop.newest_instant()
    shop.orders.add((100, DAYS[1], 1.0, "2026-11-16 09:00:00"))
    shop.orders.change(2, 1_000.0, "2026-11-16 09:00:00")
    job_runs.request_run(shop.source, "incremental", asked_by="ana", now=NOW + HOUR)
    assert shop.run(NOW + HOUR) == ["incremental"]
    generate_tests(shop.source.dataset, now=NOW + HOUR)
    for copy in (shop.source, shop.replica):
        start_baseline(copy, now=NOW + HOUR)
    watch(now=NOW + HOUR)
    of_keys = dict(zip(DAYS, ("pass", "fail", "pass"), strict=True))
    of_rows = dict(zip(DAYS, ("pass", "fail", "fail"), strict=True))
    assert shop.outcomes() == {"row_count@dc1": of_keys, "bloom@dc1": of_keys, "difference@dc1": of_rows}
    assert shop.tested_instants() == dict.fromkeys(DAYS, loaded)

    feed_schedule.request_due_runs(now=NOW + 2 * HOUR)
    assert shop.run(NOW + 2 * HOUR) == ["replicate"]
    for now in (NOW + 2 * HOUR, NOW + 3 * HOUR):  # what a commit touched is tested again after a pause
        watch(now=now)
    assert shop.outcomes() == dict.fromkeys(ACROSS, dict.fromkeys(DAYS, "pass"))
    assert shop.tested_instants() == {DAYS[0]: loaded, **dict.fromkeys(DAYS[1:], shop.newest_instant())}

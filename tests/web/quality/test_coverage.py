"""Coverage is a number that says what is missing; over the API, the command line and the metrics."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.core.cache.backends.locmem import LocMemCache
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from lakehub.catalog.datasets import changes
from lakehub.catalog.models import Dataset
from quality.generation import business_metrics, generate
from quality.generation.coverage import coverage_gaps, coverage_of_tiers, recent_coverage
from quality.models import GenerationStatus, QualityTest
from tests import factories
from tests.factories import MINUTE, NOW

pytestmark = pytest.mark.django_db


def watched(name: str, tier: int = 0, **fields: Any) -> Dataset:
    made = factories.dataset(name, ingested=False, by_day=False, tier=tier, **fields)
    factories.feed(made)
    return made


@pytest.fixture
def flights() -> Dataset:
    made = watched("flights")
    generate.generate_outdated(now=NOW)
    return made


def why() -> tuple[str, ...]:
    (uncovered,) = coverage_of_tiers(now=NOW + MINUTE).uncovered
    assert uncovered.reasons == coverage_gaps(Dataset.objects.get(name=uncovered.dataset), now=NOW + MINUTE)
    return uncovered.reasons


def test_what_is_tested_as_its_metadata_allows_is_covered(flights: Dataset) -> None:
    coverage = coverage_of_tiers(now=NOW)
    assert (coverage.tiers, coverage.datasets, coverage.covered, coverage.share, coverage.is_whole) == (
        (0, 1),
        1,
        1,
        1.0,
        True,
    )
    assert coverage_gaps(flights, now=NOW) == ()


def test_a_dataset_of_another_tier_does_not_count(flights: Dataset) -> None:
    watched("rest", tier=3)
    assert coverage_of_tiers(now=NOW).datasets == 1
    assert coverage_of_tiers([3], now=NOW).share == 0.0
    assert coverage_of_tiers([5], now=NOW).share is None


def _no_tests(flights: Dataset) -> None:
    GenerationStatus.objects.all().delete()


def _behind(flights: Dataset) -> None:
    changes.update_dataset(flights, {"tier": 1}, actor="ann", now=NOW)


def _lost(flights: Dataset) -> None:
    flights.tests.filter(key="duplicates").update(retired_at=NOW)


def _no_freshness(flights: Dataset) -> None:
    flights.tests.filter(key="freshness").update(retired_at=NOW)


def _problem(flights: Dataset) -> None:
    Dataset.objects.filter(pk=flights.pk).update(overrides={"sustin": "1m"}, metadata_version=F("metadata_version") + 1)
    generate.generate_outdated(now=NOW)


def _no_units(flights: Dataset) -> None:
    flights.tests.get(key="duplicates").units.all().delete()


def _unmonitored(flights: Dataset) -> None:
    factories.copy(flights, "dc2", monitored_from=None)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_no_tests, "its tests are not made yet"),
        (_behind, "its tests are of version 1 of its metadata, which is at 2"),
        (_lost, "the test `duplicates` (duplicates) is missing"),
        (_no_freshness, "it has no test of freshness"),
        (_problem, "Did you mean `sustain`?"),
        (_no_units, "the test `duplicates` (duplicates) is run nowhere"),
        (_unmonitored, "its copy in dc2 is not monitored yet"),
    ],
)
def test_what_is_missing_is_named(flights: Dataset, spoil: Callable[[Dataset], None], says: str) -> None:
    spoil(flights)
    assert any(says in reason for reason in why()), why()


def test_it_takes_as_many_queries_for_many_datasets() -> None:
    asked = []
    for number in range(3):
        for name in range(1 + 3 * number):
            watched(f"set{number}-{name}")
        generate.generate_outdated(now=NOW)
        with CaptureQueriesContext(connection) as queries:
            assert coverage_of_tiers(now=NOW).share == 1.0
        asked.append(len(queries))
    assert asked[0] == asked[1] == asked[2] < 15
    business_metrics.set_metric(
        Dataset.objects.get(name="set0-0"),
        business_metrics.MetricInput("rows", "SELECT count(*) FROM this", low=1),
        actor="ann",
        now=NOW,
    )
    Dataset.objects.filter(name="set0-0").update(overrides={"sustin": "1m"})
    with CaptureQueriesContext(connection) as queries:
        assert coverage_of_tiers(now=NOW).datasets == 12, "one that cannot be described"
    assert len(queries) <= asked[0] + 1, "the inputs of its metric"


def test_what_is_looked_at_all_the_time_is_counted_once_a_minute(
    flights: Dataset, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    # A cache set by the settings would outlive the test: the proxy keeps it for its thread.
    monkeypatch.setattr("quality.generation.coverage.cache", LocMemCache("coverage", {}))
    assert recent_coverage(now=NOW).share == 1.0
    _lost(flights)
    with django_assert_num_queries(0):
        assert (recent_coverage(now=NOW).share, recent_coverage(now=NOW).datasets) == (1.0, 1)
    assert (
        coverage_of_tiers(now=NOW).share
        == recent_coverage([0], now=NOW).share
        == recent_coverage(now=NOW + MINUTE).share
        == 0.0
    )


def test_the_command_ends_with_one_where_a_tier_is_not_whole(
    flights: Dataset, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    call_command("coverage", "--json")
    assert json.loads(capsys.readouterr().out)["share"] == 1.0
    _lost(flights)
    with pytest.raises(SystemExit) as ended:
        call_command("coverage")
    assert ended.value.code == 1
    assert "flights (tier 0, flight-ops): the test `duplicates`" in capsys.readouterr().out


def test_the_command_prints_the_tiers(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("tiers", "--json")
    assert json.loads(capsys.readouterr().out)["0"]["completeness"] == "99.99%"
    call_command("tiers")
    assert "completeness  99.99%   99.9%" in capsys.readouterr().out


# Over the API


@pytest.fixture
def client() -> Client:
    browser = Client()
    browser.force_login(factories.user("ann"))
    return browser


def test_the_api_says_it_too(flights: Dataset, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    _problem(flights)
    whole = client.get("/api/v1/coverage?tier=0").json()
    assert (whole["tiers"], whole["datasets"], whole["covered"], whole["share"]) == ([0], 1, 0, 0.0)
    assert whole["uncovered"][0]["dataset"] == "flights"
    status = client.get("/api/v1/datasets/flights/coverage").json()
    assert "Did you mean `sustain`?" in status["problem"]
    assert (status["covered"], status["metadata_version"], status["made_for_version"]) == (False, 2, 2)
    assert client.get("/api/v1/coverage?tier=9").status_code == 422
    assert client.get("/api/v1/tiers").json()[2] | {"slas": {}} == {"tier": 2, "slas": {}}


def test_prometheus_has_it_by_tier(flights: Dataset, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakehub.clock.now", lambda: NOW)
    _lost(flights)
    metrics = client.get("/metrics").content.decode()
    assert 'lakehub_coverage{tier="0"} 0.0' in metrics
    assert 'lakehub_coverage{tier="1"} 1.0' in metrics


def test_a_test_tells_what_changed_when_and_because_of_which_metadata(flights: Dataset, client: Client) -> None:
    changes.update_dataset(flights, {"tier": 3}, actor="ann", now=NOW + MINUTE)
    generate.generate_outdated(now=NOW + 2 * MINUTE)
    second, first = client.get("/api/v1/datasets/flights/tests/duplicates/versions").json()
    assert (first["number"], first["differences"]) == (1, [])
    assert (second["number"], second["metadata_version"]) == (2, 2)
    assert second["differences"] == [
        "threshold: <= 0% becomes < 0.5%",
        "sustain period: 15m becomes 2h",
        "cadence: 5m becomes 1h",
        "due after the end of a partition: 1h becomes 12h",
        "first rerun of a failure: 1m becomes 10m",
        "reruns at most apart: 15m becomes 2h",
        "because: tier 0, primary key id becomes tier 3, primary key id",
    ]
    assert QualityTest.objects.get(key="duplicates").versions.count() == 2

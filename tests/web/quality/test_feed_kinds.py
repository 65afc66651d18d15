"""`upstream` of a dataset without a source table is the dataset that lineage names one to one, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from ingestion.models import TouchedPartition
from lakehub.catalog.metadata.tables import HudiCopy, SqlTable
from lakehub.catalog.models import Dataset, DatasetCopy, FeedKind
from quality.domain.language import Name
from quality.engines.scans.parts import CannotRead
from quality.generation import generate
from quality.measuring.measure import measure_units
from quality.measuring.table_bindings import TableBindings
from quality.models import QualityTest, SkippedCheck, Unit
from quality.planning import baseline, touched_partitions
from tests import factories, hudi_tables
from tests.factories import MINUTE, NOW, day
from tests.web.quality.conftest import DAYS, World, rows

WITHOUT_CONNECTION = [FeedKind.CHANGELOG, FeedKind.PIPELINE]


def made_from_events(world: World) -> Dataset:
    """Flights are made row by row from `events`, which lies in both lakes too."""
    events = factories.dataset("events", copies=(), columns=world.flights.columns, primary_key=["id", "flight_date"])
    factories.feed(events)
    for center, root in world.lakes.items():
        days: dict[str | None, pa.Table] = {name: rows(name, 1000) for name in DAYS}
        hudi_tables.hudi_table(root / "events", days, column="flight_date")
        factories.copy(events, center)
    factories.edge(events, world.flights, one_to_one=True)
    return events


def live_keys(world: World) -> set[str]:
    generate.generate_tests(world.flights, now=NOW)
    return set(QualityTest.objects.filter(dataset=world.flights, retired_at=None).values_list("key", flat=True))


@pytest.mark.parametrize("kind", FeedKind)
def test_what_compares_with_upstream_is_made_where_there_is_a_table(world: World, kind: FeedKind) -> None:
    factories.feed_of_kind(world.flights, kind)
    compares = {"completeness", "sample"}
    assert live_keys(world) & compares == (compares if kind == FeedKind.CONNECTION else set())
    skipped = dict(SkippedCheck.objects.filter(dataset=world.flights).values_list("check_name", "reason"))
    if kind != FeedKind.CONNECTION:
        assert skipped["completeness"] == "no upstream whose rows map one to one"
        assert skipped["sampling"] == "no upstream outside the lake"
    freshness = world.test("freshness").version
    assert freshness is not None
    assert ("upstream" in freshness.flattened) == (kind == FeedKind.CONNECTION)


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_a_dataset_that_lineage_names_one_to_one_is_compared_with(world: World, kind: FeedKind) -> None:
    made_from_events(world)
    factories.feed_of_kind(world.flights, kind)
    assert live_keys(world) & {"completeness", "sample"} == {"completeness"}
    assert TableBindings(world.copy()).binding_of(Name("upstream")).target == HudiCopy(
        f"{world.lakes['dc1'].as_uri()}/events"
    )


def test_a_connection_is_upstream_whatever_lineage_names(world: World) -> None:
    made_from_events(world)
    assert isinstance(TableBindings(world.copy()).binding_of(Name("upstream")).target, SqlTable)


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_upstream_that_cannot_be_read_says_why(world: World, kind: FeedKind) -> None:
    world.planned()
    factories.feed_of_kind(world.flights, kind)
    unit = world.unit("completeness", DAYS[0])
    (_, upstream) = measure_units(world.copy(), [unit], now=NOW)[unit.pk].by_ask.values()
    assert f"flights comes from {kind} flights-changes, which is not a table" in str(upstream)
    world.run(NOW)
    assert set(world.outcomes("completeness").values()) == {"error"}
    assert set(world.outcomes("duplicates").values()) == {"pass"}


@pytest.mark.parametrize("kind", FeedKind)
def test_a_commit_upstream_retests_what_is_compared_with_it(world: World, kind: FeedKind) -> None:
    events = made_from_events(world)
    if kind != FeedKind.CONNECTION:
        factories.feed_of_kind(world.flights, kind)
    world.monitored()
    there, over = factories.copy_of(events), day(DAYS[1])
    commit = factories.commit(there, NOW)
    TouchedPartition.objects.create(commit=commit, copy=there, start=over.start, end=over.end, rows=1)
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    due = {name for name in DAYS if world.unit("completeness", name).due_at is not None}
    assert due == (set() if kind == FeedKind.CONNECTION else {DAYS[1]})


@pytest.mark.parametrize("kind", WITHOUT_CONNECTION)
def test_what_is_only_watched_and_has_no_table_cannot_be_read(
    world: World, kind: FeedKind, make_unit: Callable[[str], Unit]
) -> None:
    Dataset.objects.update(ingested=False)
    factories.feed_of_kind(world.flights, kind)
    with pytest.raises(CannotRead, match=f"flights comes from {kind} flights-changes, which is not a table"):
        TableBindings(world.copy()).binding_of(Name("this"))
    TableBindings(world.copy()).preload(["flights"])
    unit = make_unit("freshness(this) < 1h")
    answers = measure_units(world.copy(), [unit], now=NOW)[unit.pk].by_ask.values()
    assert any("which is not a table" in str(answer) for answer in answers)


@pytest.fixture
def make_unit(world: World) -> Callable[[str], Unit]:
    def make(expression: str) -> Unit:
        test = factories.test(world.flights, expression=expression)
        return factories.unit(test, world.copy(), day(DAYS[0]))

    return make


@pytest.mark.parametrize("kind", FeedKind)
def test_the_baseline_begins_with_the_bootstrap_or_where_there_is_none_with_the_first_commit(
    world: World, kind: FeedKind
) -> None:
    factories.feed_of_kind(world.flights, kind)
    generate.generate_tests(world.flights, now=NOW)
    assert baseline.start_missing_baselines(now=NOW) == 0
    factories.commit(world.copy())
    assert baseline.start_missing_baselines(now=NOW) == (0 if kind == FeedKind.CONNECTION else 1)
    factories.run(world.copy(), "bootstrap")  # type: ignore[arg-type]  # its value
    assert baseline.start_missing_baselines(now=NOW) == (1 if kind == FeedKind.CONNECTION else 0)
    assert DatasetCopy.objects.filter(monitored_from=day(DAYS[0]).start).count() == 1

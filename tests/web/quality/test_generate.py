"""Definitions follow the metadata, in versions that say what changed, when and why."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from lakehub.catalog.datasets import changes, offboarding
from lakehub.kernel.errors import Refused
from quality.domain.language import ExpressionError, understand
from quality.domain.verdicts.unit_verdict import Waiver
from quality.engines import Engine
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.engines.sqlalchemy import SqlAlchemyEngine
from quality.generation import custom_tests, generate
from quality.models import Flip, GenerationStatus, QualityTest, Unit
from quality.planning import baseline
from quality.state.dataset_facts import dataset_facts
from quality.state.waivers import waive_units
from tests import factories, hudi_tables
from tests.factories import HOUR, MINUTE, NOW
from tests.web.quality.conftest import DAYS, World, rows


def test_generating_again_changes_nothing(world: World) -> None:
    world.monitored()
    before = list(QualityTest.objects.values_list("pk", "version", "retired_at"))
    units = Unit.objects.count()
    generate.generate_tests(world.flights, now=NOW + HOUR)
    assert list(QualityTest.objects.values_list("pk", "version", "retired_at")) == before
    assert Unit.objects.count() == units


def test_a_change_of_tier_is_a_new_version_that_says_why(world: World) -> None:
    world.monitored()
    changes.update_dataset(world.flights, {"tier": 3}, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW + MINUTE)
    versions = list(world.test("duplicates").versions.order_by("number"))
    assert [(version.number, version.expression) for version in versions] == [
        (1, "duplicates(this) <= 0%"),
        (2, "duplicates(this) < 0.5%"),
    ]
    assert (versions[1].because, versions[1].created_at) == ("tier 3, primary key id, flight_date", NOW + MINUTE)


def test_a_new_version_is_measured_again_and_lifts_waivers(world: World) -> None:
    world.monitored()
    unit = world.unit("duplicates", DAYS[0])
    waive_units([unit.pk], Waiver.ACCEPTED, now=NOW)
    changes.update_dataset(world.flights, {"tier": 3}, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW + MINUTE)
    unit.refresh_from_db()
    assert (unit.waiver, unit.due_at) == ("", NOW + MINUTE)


def test_only_what_is_behind_is_generated(world: World) -> None:
    generate.generate_outdated(now=NOW)
    generate.generate_outdated(now=NOW + HOUR)
    assert GenerationStatus.objects.get(dataset=world.flights).generated_at == NOW


def test_a_test_that_loses_its_metadata_is_retired(world: World) -> None:
    world.monitored()
    changes.update_dataset(world.flights, {"primary_key": []}, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW + MINUTE)
    assert world.test("duplicates").retired_at == NOW + MINUTE
    assert not Unit.objects.filter(test=world.test("duplicates"), due_at__isnull=False).exists()


def test_what_fails_when_its_test_is_retired_fails_no_more(world: World) -> None:
    world.monitored()
    failing = factories.test(world.flights, key="mine", expression="gt(rows(this), 0)")
    unit = factories.unit(failing, world.copy(), verdict="fail")  # type: ignore[arg-type]
    custom_tests.retire_test(failing, now=NOW)
    assert Flip.objects.get(unit=unit).becomes == "pass"


def test_an_off_boarded_dataset_is_tested_no_more(world: World) -> None:
    world.monitored()
    offboarding.offboard_dataset(world.flights, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW)
    assert not Unit.objects.filter(due_at__isnull=False).exists()
    assert not QualityTest.objects.filter(retired_at=None).exists()


def test_a_bad_override_is_kept_as_the_problem_of_the_dataset(world: World) -> None:
    type(world.flights).objects.update(overrides={"sustin": "1m"})
    world.flights.refresh_from_db()
    generate.generate_tests(world.flights, now=NOW)
    assert "Did you mean `sustain`?" in GenerationStatus.objects.get().problem


def test_a_person_writes_a_test(world: World) -> None:
    world.monitored()
    test = custom_tests.write_custom_test(
        world.flights,
        key="tails",
        title="Tail numbers",
        expression="nulls(this.tailnum) / rows(this) < 1%",
        actor="ann",
        now=NOW,
    )
    assert (test.generated, test.category, test.version.because if test.version else "") == (
        False,
        "others",
        "written by ann",
    )
    world.run(NOW + MINUTE)
    assert world.outcomes("tails") == dict.fromkeys(DAYS, "pass")


def test_what_a_person_writes_survives_generating(world: World) -> None:
    custom_tests.write_custom_test(
        world.flights, key="tails", title="t", expression="rows(this) > 5", actor="ann", now=NOW
    )
    world.monitored()
    assert world.test("tails").retired_at is None


@pytest.mark.parametrize(
    ("key", "expression", "field", "says"),
    [
        ("mine", "nulls(this.tialnum) < 5", "expression", "Did you mean `tailnum`?"),
        ("mine", "rows(this) >> 5", "expression", "line 1, column 13"),
        ("mine", "rows(flihgts) > 5", "expression", "Did you mean `flights`?"),
        ("duplicates", "rows(this) > 5", "key", "is a generated test"),
        ("sampling", "rows(this) > 5", "key", "is kept for tests that are generated"),
        ("bloom@dc7", "rows(this) > 5", "key", "is kept for tests that are generated"),
    ],
)
def test_what_is_wrong_is_refused_by_field(world: World, key: str, expression: str, field: str, says: str) -> None:
    generate.generate_tests(world.flights, now=NOW)
    with pytest.raises(Refused) as caught:
        custom_tests.write_custom_test(world.flights, key=key, title="t", expression=expression, actor="ann", now=NOW)
    assert says in caught.value.fields[field]
    assert not QualityTest.objects.filter(generated=False).exists()


def test_a_test_that_a_person_wrote_is_not_taken_over(world: World) -> None:
    """As it may be called where it was written before the key was reserved."""
    written = {"key": "tails", "title": "Mine", "expression": "rows(this) > 5", "actor": "ann"}
    custom_tests.write_custom_test(world.flights, **written, now=NOW)
    QualityTest.objects.filter(key="tails").update(key="completeness")
    generate.generate_tests(world.flights, now=NOW)
    mine = world.test("completeness")
    assert (mine.generated, mine.title, mine.version.expression if mine.version else "") == (
        False,
        "Mine",
        "rows(this) > 5",
    )
    assert "completeness: a person's test has this key" in GenerationStatus.objects.get().problem
    assert world.test("freshness").generated

    changed = custom_tests.write_custom_test(
        world.flights, **{**written, "key": "completeness", "title": "Still mine"}, now=NOW
    )
    custom_tests.retire_test(changed, now=NOW)
    generate.generate_tests(world.flights, now=NOW)
    assert world.test("completeness").generated
    assert not GenerationStatus.objects.get().problem


def test_one_dataset_is_described_without_the_columns_of_the_others(world: World) -> None:
    columns = [{"name": "tailnum", "type": "string"}]
    for name in ("planes", "airlines"):
        factories.dataset(name, columns=columns)
    with CaptureQueriesContext(connection) as asked:
        scope = dataset_facts(world.flights).scope
    of_datasets = [query["sql"] for query in asked if query["sql"].startswith('SELECT "catalog_dataset"')]
    assert of_datasets
    assert not any('"columns"' in sql for sql in of_datasets)
    with CaptureQueriesContext(connection) as asked:
        understand("unmatched(this.tailnum, planes.tailnum) < 1", scope)
    assert len(asked) == 1
    with pytest.raises(ExpressionError, match="Did you mean `airlines`"):
        understand("rows(airlnes) > 1", scope)
    with pytest.raises(ExpressionError, match="Did you mean `tailnum`"):
        understand("unmatched(this.tailnum, planes.tialnum) < 1", scope)


def test_a_copy_that_was_not_bootstrapped_has_no_baseline_yet(world: World) -> None:
    generate.generate_tests(world.flights, now=NOW)
    assert baseline.start_missing_baselines(now=NOW) == 0


def test_a_copy_that_cannot_be_read_is_asked_again_and_says_why(world: World) -> None:
    """It is not taken for empty: its history would never be tested."""
    generate.generate_tests(world.flights, now=NOW)
    lost = factories.copy(world.flights, "dc3", monitored_from=None, uri="file:///nowhere/flights")
    factories.run(lost, kind="bootstrap")  # type: ignore[arg-type]
    baseline.start_missing_baselines(now=NOW)
    lost.refresh_from_db()
    assert lost.monitored_from is None
    assert "file:///nowhere/flights does not exist. Bootstrap the dataset" in lost.baseline_try.problem
    hudi_tables.hudi_table(
        world.lakes["dc1"].parent / "dc3" / "flights", {DAYS[0]: rows(DAYS[0], 5)}, column="flight_date"
    )
    lost.uri = (world.lakes["dc1"].parent / "dc3" / "flights").as_uri()
    lost.save()
    assert baseline.start_missing_baselines(now=NOW + HOUR) == 1
    lost.refresh_from_db()
    assert lost.monitored_from == factories.day("2026-11-14").start


def test_a_baseline_follows_the_bootstrap(world: World) -> None:
    generate.generate_tests(world.flights, now=NOW)
    for where in ("dc1", "dc2"):
        factories.run(world.copy(where), kind="bootstrap")  # type: ignore[arg-type]
    assert (baseline.start_missing_baselines(now=NOW), baseline.start_missing_baselines(now=NOW)) == (2, 0)


@pytest.mark.parametrize(("each_from", "scans"), [(2, 5), (100, 11)])
def test_the_baseline_reads_history_in_one_scan_a_table(
    world: World, monkeypatch: pytest.MonkeyPatch, each_from: int, scans: int
) -> None:
    """Of dc1: for freshness its own table and the source; for history those and dc2, where one scan counts for both."""
    monkeypatch.setattr("quality.measuring.scan_planner.MIN_PARTITIONS_FOR_GROUPED_SCAN", each_from)
    generate.generate_tests(world.flights, now=NOW)
    baseline.start_baseline(world.copy("dc1"), now=NOW)
    seen: list[Scan] = []
    for engine in (DuckDbEngine, SqlAlchemyEngine):
        monkeypatch.setattr(engine, "measure", _noted(engine.measure, seen))
    world.run(NOW)
    assert len(seen) == scans


def _noted(measure: Callable[..., ScanAnswers], seen: list[Scan]) -> Callable[..., ScanAnswers]:
    def noted(engine: Engine, scan: Scan, limits: Limits) -> ScanAnswers:
        seen.append(scan)
        return measure(engine, scan, limits)

    return noted


def test_each_partition_of_one_scan_gets_its_own_answer(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quality.measuring.scan_planner.MIN_PARTITIONS_FOR_GROUPED_SCAN", 2)
    world = make_world(counts=(1000, 900, 800)).monitored()
    seen = {day: world.unit("completeness", day).detail["behind"] for day in DAYS}
    assert list(seen.values()) == ["1,000 of 1,000", "900 of 900", "800 of 800"]
    # A day that no partition was written for is absent from the answer of such a scan.
    Unit.objects.filter(test__key="duplicates", start=factories.day("2026-11-17").start).update(due_at=NOW + MINUTE)
    Unit.objects.filter(test__key="duplicates", latest_at__isnull=False).update(due_at=NOW + MINUTE)
    world.run(NOW + MINUTE)
    assert world.unit("duplicates", "2026-11-17").latest_outcome == "no_data"


def test_grace_and_sla_come_from_the_dataset(world: World) -> None:
    changes.update_dataset(world.flights, {"freshness_sla": timedelta(hours=30)}, actor="ann", now=NOW)
    generate.generate_outdated(now=NOW)
    version = world.test("freshness").version
    assert version is not None
    assert (version.expression, version.due_after) == ("freshness(this) < 1d6h", timedelta(hours=30))

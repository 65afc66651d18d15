"""What is wrong with one dataset, one copy or one file costs no other its tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ingestion.models import Finding, TouchedPartition
from lakehub.catalog.models import Dataset
from quality import tasks
from quality.engines.duckdb import DuckDbEngine
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.execution import ingestion_findings, worker
from quality.generation import generate
from quality.models import GenerationStatus, QualityTest, Unit
from quality.planning import touched_partitions
from tests import factories, hudi_tables
from tests.factories import MINUTE, NOW, day
from tests.json_log import json_log
from tests.web.quality.conftest import DAYS, World, rows


@pytest.fixture
def broken(world: World) -> Dataset:
    """What it overrides is not even named."""
    return factories.dataset("weather", tier=0, overrides=["soon"])


def touched(dataset: Dataset, name: str) -> TouchedPartition:
    copy, over = factories.copy_of(dataset), day(name)
    return TouchedPartition.objects.create(
        commit=factories.commit(copy, NOW), copy=copy, start=over.start, end=over.end, rows=1
    )


def found(dataset: Dataset) -> Finding:
    copy, over = factories.copy_of(dataset), day(DAYS[1])
    return Finding.objects.create(copy=copy, kind="job_failing", start=over.start, end=over.end, raised_at=NOW)


def test_an_engine_that_fails_costs_only_the_tests_of_its_copy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = DuckDbEngine.measure

    def fail_in_dc1(self: DuckDbEngine, scan: Scan, limits: Limits) -> ScanAnswers:
        if "/dc1/" in str(scan.target):
            raise OSError("the disk is gone")
        return measure(self, scan, limits)

    world.planned()
    monkeypatch.setattr(DuckDbEngine, "measure", fail_in_dc1)
    world.run(NOW)
    assert set(world.outcomes("duplicates", "dc2").values()) == {"pass"}
    run = world.copy("dc1").units.filter(latest_at__isnull=False)
    measured = run.exclude(test__key__startswith="difference")  # it reads rows, and measures nothing
    assert set(measured.values_list("latest_outcome", flat=True)) == {"error"}
    assert not Unit.objects.exclude(leased_by="").exists()


def test_a_copy_that_cannot_be_retested_holds_up_no_other(world: World, broken: Dataset) -> None:
    world.monitored()
    theirs, _ = touched(broken, DAYS[1]), touched(world.flights, DAYS[1])
    assert touched_partitions.claim_touched_partitions(now=NOW + MINUTE) == 10
    assert list(TouchedPartition.objects.filter(claimed_at=None)) == [theirs]
    assert world.unit("duplicates", DAYS[1]).touched_at == NOW + MINUTE
    Dataset.objects.filter(pk=broken.pk).update(overrides={})
    touched_partitions.claim_touched_partitions(now=NOW + 2 * MINUTE)
    assert not TouchedPartition.objects.filter(claimed_at=None).exists()


def test_a_finding_that_cannot_be_taken_in_holds_up_no_other(world: World, broken: Dataset) -> None:
    theirs, _ = found(broken), found(world.flights)
    assert ingestion_findings.observe_findings(now=NOW) == 1
    assert list(Finding.objects.filter(raise_claimed_at=None)) == [theirs]
    assert world.unit("finding:job_failing").verdict == "fail"


def test_a_dataset_without_tests_holds_up_no_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.dataset("weather", tier=0)
    monkeypatch.setattr(generate, "generate_tests", _but("weather", generate.generate_tests))
    generate.generate_outdated(now=NOW)
    made = GenerationStatus.objects.exclude(generated_at=None)
    assert list(made.values_list("dataset__name", flat=True)) == ["flights"]
    assert GenerationStatus.objects.get(generated_at=None).problem == "LookupError: no such check"


def _but(name: str, generate: Callable[..., list[QualityTest]]) -> Callable[..., list[QualityTest]]:
    def failing(dataset: Dataset, *among: object, **known: object) -> list[QualityTest]:
        if dataset.name == name:
            raise LookupError("no such check")
        return generate(dataset, *among, **known)

    return failing


def test_each_part_of_taking_changes_in_goes_on_without_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def generate_missing(**known: object) -> None:
        raise LookupError("no such check")

    monkeypatch.setattr(generate, "generate_outdated", generate_missing)
    found(world.flights)
    tasks.claim_changes()
    assert "generate_missing failed" in caplog.text
    assert world.unit("finding:job_failing").verdict == "fail"


def test_a_partition_with_no_place_in_time_keeps_no_copy_from_its_baseline(world: World) -> None:
    hudi_tables.commit(
        world.table("dc1"), {"someday": rows("someday", 3)}, column="flight_date", instant="20261117110000000"
    )
    world.monitored()
    assert world.copy("dc1").monitored_from == day(DAYS[0]).start
    assert world.unit("duplicates", DAYS[0]).verdict == "pass"


def test_overrides_that_cannot_be_read_leave_the_promises_of_the_tier(world: World) -> None:
    """They came in before they were checked where they are written."""
    world.monitored()
    type(world.flights).objects.update(overrides={"debounce": "soon"}, metadata_version=2)
    touched(world.flights, DAYS[1])
    found(world.flights)
    assert touched_partitions.claim_touched_partitions(now=NOW + MINUTE) == 10
    assert world.unit("duplicates", DAYS[1]).due_at == NOW + 3 * MINUTE
    assert ingestion_findings.observe_findings(now=NOW) == 1
    assert world.unit("finding:job_failing").verdict == "fail"
    generate.generate_outdated(now=NOW)
    assert "debounce='soon' is not a duration" in GenerationStatus.objects.get().problem


def test_what_fails_in_a_claim_is_logged_on_one_line_with_its_token_and_copy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.planned()
    tokens: dict[str, str] = {}

    def fail(self: DuckDbEngine, scan: Scan, limits: Limits) -> ScanAnswers:
        claimed = Unit.objects.exclude(leased_by="").select_related("copy__dataset", "copy__data_center")
        tokens.update((unit.leased_by, str(unit.copy)) for unit in claimed)
        raise OSError("the disk is gone\nthe log is not")

    monkeypatch.setattr(DuckDbEngine, "measure", fail)
    with json_log() as lines:
        worker.run_due_units(now=NOW, worker="w")
    failures = [line for line in lines if line["logger"] == "quality.engines"]
    assert {line["claim"]: line["copy"] for line in failures} == tokens
    assert set(tokens.values()) == {"flights@dc1", "flights@dc2"}
    assert all(line["exception"].endswith("OSError: the disk is gone\nthe log is not") for line in failures)

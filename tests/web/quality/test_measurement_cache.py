"""An answer is kept for the state that it was measured in, and for no other."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quality import engines
from quality.engines.scans.scan import Limits, Scan, ScanAnswers
from quality.generation import business_metrics
from quality.measuring import cache, scan_planner
from quality.models import Lane, Unit
from quality.state import waivers
from quality.state.waivers import request_rerun
from tests import hudi_tables
from tests.factories import MINUTE, NOW
from tests.web.quality.conftest import DAYS, World, rows

LATER = "20261117120000000"


def run(world: World, test_key: str, number: int) -> Unit:
    """The unit of DAYS[1] at the `number`-th minute, and nothing else."""
    Unit.objects.update(due_at=None)
    Unit.objects.filter(pk=world.unit(test_key, DAYS[1]).pk).update(due_at=NOW)
    world.run(NOW + number * MINUTE)
    return world.unit(test_key, DAYS[1])


def short(world: World) -> None:
    hudi_tables.overwrite(world.table(), DAYS[1], rows(DAYS[1], 900, doubled=9), column="flight_date", instant=LATER)


def rolled_back(world: World) -> None:
    for file in world.table().rglob(f"*{LATER}*"):
        file.unlink()


def test_what_a_commit_changed_during_the_scan_is_not_kept_for_the_state_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.planned()
    landing = [short]

    def read(engine: str, scan: Scan, limits: Limits) -> ScanAnswers:
        if landing:
            landing.pop()(world)
        return engines.run_scan(engine, scan, limits)

    monkeypatch.setattr(scan_planner, "run_scan", read)
    assert run(world, "duplicates", 0).detail["behind"] == "9 of 900"
    rolled_back(world)
    again = run(world, "duplicates", 1)
    assert (again.detail["behind"], "reused_from" in again.detail) == ("0 of 1,000", False)
    assert "reused_from" in run(world, "duplicates", 2).detail


def test_an_answer_of_older_code_is_measured_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.planned()
    run(world, "duplicates", 0)
    monkeypatch.setattr(cache, "CACHE_FORMAT_VERSION", cache.CACHE_FORMAT_VERSION + 1)
    assert "reused_from" not in run(world, "duplicates", 1).detail
    assert "reused_from" in run(world, "duplicates", 2).detail


def test_the_answer_to_a_query_is_kept_unless_the_query_looks_at_the_clock(world: World) -> None:
    world.monitored()
    queries = {
        "still": "SELECT count(*) FROM this",
        "moving": "SELECT count(*) FROM this WHERE current_date > DATE '2020-01-01'",
    }
    for name, sql in queries.items():
        business_metrics.set_metric(world.flights, business_metrics.MetricInput(name, sql, low=1), actor="ann", now=NOW)
    for minute in (0, 1):
        units = {name: run(world, f"metric:{name}.bounds", minute) for name in queries}
    assert {name: unit.latest_outcome for name, unit in units.items()} == {"still": "pass", "moving": "pass"}
    # The other measure of both is how many rows there are.
    assert {name: unit.detail["reused_from"]["measures"] for name, unit in units.items()} == {"still": 2, "moving": 1}


def data_file(world: World) -> Path:
    (file,) = world.table().glob(f"*{DAYS[1]}*/*.parquet")
    return file


def cut_in_half(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def test_a_file_that_was_cut_in_half_is_an_error_that_names_it_on_schedule_and_on_request(world: World) -> None:
    world.planned()
    assert run(world, "duplicates", 0).latest_outcome == "pass"
    assert "reused_from" in run(world, "duplicates", 1).detail
    cut_in_half(data_file(world))
    unit = run(world, "duplicates", 2)
    assert unit.latest_outcome == "error"
    assert f"{data_file(world)} cannot be read: it was cut off" in str(unit.detail)
    request_rerun([unit.pk], now=NOW + 3 * MINUTE)
    world.run(NOW + 3 * MINUTE)
    assert world.unit("duplicates", DAYS[1]).latest_outcome == "error"


def test_a_file_of_the_same_size_and_another_time_is_read_anew(world: World) -> None:
    world.planned()
    run(world, "duplicates", 0)
    stat = data_file(world).stat()
    os.utime(data_file(world), ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert "reused_from" not in run(world, "duplicates", 1).detail
    assert "reused_from" in run(world, "duplicates", 2).detail


@pytest.mark.parametrize("most", [50, 0])
def test_what_a_person_asked_for_is_read_anew_in_whatever_lane_it_waits_and_once(
    world: World, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Behind the first units of a large request the others wait among the late ones."""
    monkeypatch.setattr(waivers, "MAX_PRIORITY_UNITS", most)
    world.planned()
    run(world, "duplicates", 0)
    Unit.objects.update(due_at=None)
    request_rerun([world.unit("duplicates", DAYS[1]).pk], now=NOW + MINUTE)
    world.run(NOW + MINUTE)
    assert "reused_from" not in world.unit("duplicates", DAYS[1]).detail
    assert "reused_from" in run(world, "duplicates", 2).detail


def test_what_was_due_already_is_read_anew_too_when_a_person_asks(world: World) -> None:
    world.planned()
    run(world, "duplicates", 0)
    unit = world.unit("duplicates", DAYS[1])
    Unit.objects.filter(pk=unit.pk).update(due_at=NOW, lane=Lane.REQUESTED)
    request_rerun([unit.pk], now=NOW + MINUTE)
    world.run(NOW + MINUTE)
    assert "reused_from" not in world.unit("duplicates", DAYS[1]).detail

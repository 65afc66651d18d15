"""Tests that look at earlier partitions, at groups and at other places, through the whole: measured, judged, stored, retested."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from incidents.domain.gate.copy_state import PartitionTest
from incidents.gate import load_state
from incidents.gate.answer import KnownCopy, RequestedRange
from ingestion.models import TouchedPartition
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import BEGINNING, Interval
from lakehub.kernel.outcome import Outcome
from quality.domain.language.functions import FUNCTIONS
from quality.execution import retention
from quality.generation import custom_tests, generate
from quality.generation.coverage import coverage_gaps
from quality.models import CachedMeasurement, Lane, Unit
from quality.planning import touched_partitions
from tests import factories, hudi_tables
from tests.factories import NOW
from tests.web.quality.conftest import DAYS, TODAY, World, rows

MINUTE = timedelta(minutes=1)


def ask(world: World, key: str, expression: str) -> None:
    custom_tests.write_custom_test(world.flights, key=key, title=key, expression=expression, actor="ann", now=NOW)


def run_only(world: World, *keys: str, day: str, where: str = "dc1", now: datetime = NOW) -> dict[str, Unit]:
    """Runs the tests with these keys on one day, and nothing else."""
    Unit.objects.update(due_at=None)
    chosen = Unit.objects.filter(test__key__in=keys, copy__data_center__name=where, start=factories.day(day).start)
    chosen.update(due_at=now)
    world.run(now)
    return {key: world.unit(key, day, where) for key in keys}


def watched_since(day: str) -> None:
    """There was nothing then."""
    DatasetCopy.objects.update(monitored_from=factories.day(day).start)


LOOKS = {
    "rows": "rows({0}) >= 0",
    "distinct": "distinct({0}, id) >= 0",
    "nulls": "nulls({0}.id) >= 0",
    "repeated": "repeated({0}, id) >= 0",
    "null_keys": "null_keys({0}.id) >= 0",
    "outside": "outside({0}.id, 0, 5) >= 0",
    "mismatched": "mismatched({0}.tailnum, 'N[0-9]') >= 0",
    "unexpected": "unexpected({0}.tailnum, 'N1') >= 0",
    "unmatched": "unmatched({0}.tailnum, flights.tailnum) >= 0",
    "sum": "sum({0}.id) >= 0",
    "mean": "mean({0}.id) >= 0",
    "minimum": "minimum({0}.id) >= 0",
    "maximum": "maximum({0}.id) >= 0",
    "drift": "drift({0}.id, this@dc2.id) >= 0%",
    "drift_then": "drift(this@dc2.id, {0}.id) >= 0%",
    "query": "query({0}, 'SELECT count(*) FROM this') >= 0",
    "matching": "matching({0}, this@dc2) >= 0%",
    "difference": "difference({0}, this@dc2) <= 100%",
    "sampled": "sampled({0}, upstream) >= 0%",
    "delay": "delay({0}) >= 0s",
    "deviation": "deviation(rows({0}), 8w) >= 0",
    "by": "rows({0}) >= 0 with by=tailnum, least=1",
}  # fmt: skip


def test_every_leaf_is_looked_at() -> None:
    assert set(FUNCTIONS) - {"findings", "freshness", "across_partitions"} <= set(LOOKS), (
        "the last is of the whole table"
    )


COUNTED = {"rows", "distinct", "repeated", "null_keys", "query", "deviation"}
"""What counts rows or keys: of none where some are expected it has a value, 0. On the other side there are none either."""
COUNTED_THEN = COUNTED - {"query"} | {"by"}
"""The groups are those of today; what was never written is not queried."""


def test_what_is_empty_or_absent_is_0_where_it_is_expected_here_and_looked_back_to(
    make_world: Callable[..., World],
) -> None:
    """DAYS[1] was written without a row, today and the day before DAYS[0] were never written; today is not due."""
    world = make_world(counts=(100, 0, 100)).planned()
    watched_since("2026-11-09")
    for key, look in LOOKS.items():
        ask(world, f"{key}-now", look.format("this"))
        ask(world, f"{key}-then", look.format("this[-1d]"))
    for day, when, counted in ((DAYS[1], "now", COUNTED), (TODAY, "now", set()), (DAYS[0], "then", COUNTED_THEN)):
        units = run_only(world, *(f"{key}-{when}" for key in LOOKS), day=day)
        known = {key: unit.detail for key, unit in units.items() if unit.latest_outcome != Outcome.NO_DATA}
        assert (day, set(known)) == (day, {f"{key}-{when}" for key in counted})


def test_a_commit_retests_the_partitions_that_look_back_to_it(world: World) -> None:
    world.planned()
    watched_since("2026-11-10")
    ask(world, "yesterday", "rows(this) / rows(this[-1d]) > 50%")
    ask(world, "named", "rows(flights) > 0 and rows(this) > 0")
    ask(world, "there", "rows(this) / rows(flights@dc1[-1d]) > 50% with dc=dc2")
    ask(world, "usual", "deviation(rows(this), 8w) < 4")
    world.run(NOW)
    outcomes = world.outcomes("yesterday")
    assert [outcomes[day] for day in DAYS] == ["no_data", "pass", "pass"]
    assert "2026-11-11" in outcomes
    assert "2026-11-10" not in outcomes
    Unit.objects.filter(latest_at__isnull=False).update(due_at=None)
    commit = factories.commit(world.copy("dc1"), NOW)
    there = factories.day(DAYS[1])
    TouchedPartition.objects.create(commit=commit, copy=commit.copy, start=there.start, end=there.end, rows=1)
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    late = {
        key: [day for day in (*DAYS, TODAY) if world.unit(key, day, where).due_at == NOW + 3 * MINUTE]
        for key, where in (("yesterday", "dc1"), ("named", "dc1"), ("named", "dc2"), ("there", "dc2"), ("usual", "dc1"))
    }
    assert late == {
        "yesterday": [DAYS[1], DAYS[2]],
        "named": [],
        "there": [DAYS[2]],
        "usual": [DAYS[1]],
    }
    assert world.unit("named", DAYS[1], "dc1").lane == Lane.LATE


def test_a_shift_on_a_table_without_partitions_is_an_error(world: World) -> None:
    factories.dataset("planes", copies=("dc1", "dc2"), by_day=False, columns=[])
    world.planned()
    version = world.test("duplicates").version
    assert version is not None
    version.flattened = "gt(div(rows(this), rows(planes[-1d])), 0%)"
    version.save()
    unit = run_only(world, "duplicates", day=DAYS[1])["duplicates"]
    assert (unit.latest_outcome, unit.detail["cause"]) == (
        "error",
        "rows(planes[-1d]): this table has no partitions, so none is earlier than another",
    )


def test_a_dimension_test_names_the_groups_that_fail(world: World) -> None:
    world.planned()
    doubled = pa.table(
        {
            "id": [*range(900), *[1] * 60],
            "flight_date": [DAYS[1]] * 960,
            "tailnum": [*["N1", "N2", "N3"] * 300, *["N4"] * 60],
        }
    )
    hudi_tables.overwrite(world.table(), DAYS[1], doubled, column="flight_date", instant="20261117120000000")
    ask(world, "by-tail", "duplicates(this, id) < 5% with by=tailnum, least=60, most=3, dc=dc1")
    ask(world, "by-four", "duplicates(this, id) < 5% with by=tailnum, least=60")
    units = run_only(world, "by-tail", "by-four", day=DAYS[1])
    assert (units["by-tail"].latest_outcome, units["by-four"].latest_outcome) == ("pass", "fail")
    assert units["by-tail"].detail["groups"] | {"failing": []} == {
        "by": "tailnum",
        "tested": 3,
        "failed": 0,
        "errors": 0,
        "no_data": 0,
        "too_small": 0,
        "over_cap": 1,
        "failing": [],
    }
    (failing,) = units["by-four"].detail["groups"]["failing"]
    assert (failing["name"], failing["rows"], failing["observed"]) == ("N4", 60, "98.33%")
    assert (units["by-four"].detail["observed"], units["by-four"].detail["behind"]) == ("98.33%", "N4: 59 of 60")


def test_a_group_that_is_whole_but_for_a_row_passes_however_many_groups_there_are(world: World) -> None:
    world.planned()
    tails = [f"s{number:03}" for number in range(102) for _ in range(50)]
    for where, kept in (("dc1", tails[1:]), ("dc2", tails)):
        table = pa.table({"id": [*range(len(kept))], "flight_date": [DAYS[1]] * len(kept), "tailnum": kept})
        hudi_tables.overwrite(world.table(where), DAYS[1], table, column="flight_date", instant="20261117120000000")
    ask(world, "by-tail", "rows(this) / rows(this@dc2) > 95% with by=tailnum, dc=dc1")
    unit = run_only(world, "by-tail", day=DAYS[1])["by-tail"]
    assert (unit.latest_outcome, unit.detail["observed"], unit.detail["behind"]) == ("pass", "98%", "s000: 49 of 50")
    assert (unit.detail["groups"]["tested"], unit.detail["groups"]["over_cap"]) == (100, 2)


def test_what_no_commit_has_changed_is_not_measured_again(world: World, settings: Any) -> None:
    world.planned()
    first = run_only(world, "duplicates", day=DAYS[1])["duplicates"]
    again = run_only(world, "duplicates", "row_count@dc2", day=DAYS[1], now=NOW + MINUTE)
    assert "reused_from" not in first.detail
    reused = again["duplicates"].detail["reused_from"]
    assert reused == {"read_at": NOW.isoformat(), "instant": hudi_tables.INSTANT, "measures": 2, "of": 2}
    assert (again["duplicates"].observed, again["duplicates"].tested_instant) == (first.observed, hudi_tables.INSTANT)
    # The rows here were counted for the duplicates; those of dc2 are counted now, and then known to dc2 too.
    assert again["row_count@dc2"].detail["reused_from"]["measures"] == 1
    there = run_only(world, "row_count@dc1", day=DAYS[1], where="dc2", now=NOW + 2 * MINUTE)["row_count@dc1"]
    assert there.detail["reused_from"]["measures"] == 2

    hudi_tables.overwrite(
        world.table(), DAYS[1], rows(DAYS[1], 900, doubled=9), column="flight_date", instant="20261117120000000"
    )
    changed = run_only(world, "duplicates", day=DAYS[1], now=NOW + 3 * MINUTE)["duplicates"]
    assert (changed.detail["behind"], "reused_from" in changed.detail) == ("9 of 900", False)
    other_day = run_only(world, "duplicates", day=DAYS[2], now=NOW + 4 * MINUTE)
    assert "reused_from" not in other_day["duplicates"].detail
    ask(world, "patient", "rows(this) > 900 with timeout=5m")
    ask(world, "hasty", "rows(this) > 900 with timeout=1m")
    both = run_only(world, "patient", "hasty", day=DAYS[0], now=NOW + 4 * MINUTE)
    assert [unit.latest_outcome for unit in both.values()] == ["pass", "pass"]
    assert all("reused_from" not in unit.detail for unit in both.values())
    both = run_only(world, "patient", "hasty", day=DAYS[0], now=NOW + 5 * MINUTE)
    assert all("reused_from" in unit.detail for unit in both.values())
    settings.LAKEHUB_REUSE_RESULTS = False
    anew = run_only(world, "duplicates", day=DAYS[1], now=NOW + 5 * MINUTE)["duplicates"]
    assert "reused_from" not in anew.detail
    assert retention.delete_old_measurements(now=NOW + 5 * MINUTE, retention=2 * MINUTE) >= 1
    assert not CachedMeasurement.objects.filter(read_at__lt=NOW + 3 * MINUTE).exists()


def test_the_records_that_are_missing_are_named(world: World) -> None:
    world.planned()
    hudi_tables.overwrite(world.table(), DAYS[1], rows(DAYS[1], 997), column="flight_date", instant="20261117120000000")
    ask(world, "there", "matching(this, this@dc2) > 99.9%")
    ask(world, "source", "sampled(this, upstream) > 99.9%")
    units = run_only(world, "there", "source", day=DAYS[1])
    for unit in units.values():
        assert (unit.latest_outcome, unit.detail["behind"]) == ("fail", "997 of 1,000")
        assert len(unit.detail["missing"]) == 3
    assert units["there"].detail["bloom"]["bytes_moved"] > 0


def test_a_version_that_names_its_data_center_leaves_the_others(world: World) -> None:
    world.planned()
    ask(world, "few", "rows(this) < 10")
    world.run(NOW)
    there = [world.unit("few", day, "dc2") for day in DAYS]
    assert {unit.latest_outcome for unit in there} == {"fail"}
    ask(world, "few", "rows(this) < 10 with dc=dc1")
    assert {world.unit("few", day, "dc2").waiver for day in DAYS} == {"false_positive"}
    span, commit = factories.day(DAYS[1]), factories.commit(world.copy("dc2"), NOW)
    TouchedPartition.objects.create(commit=commit, copy=commit.copy, start=span.start, end=span.end, rows=1)
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    assert {world.unit("few", day, "dc2").due_at for day in DAYS} == {None}
    assert {world.unit("few", day, "dc1").due_at for day in DAYS} == {NOW}


def test_no_unit_waits_for_a_past_that_there_never_was(world: World) -> None:
    """The copies are watched from DAYS[0] on."""
    world.planned()
    ask(world, "yesterday", "rows(this) / rows(this[-1d]) > 50%")
    ask(world, "week", "rows(this) / before(rows(this), 7d) > 50%")
    ask(world, "usual", "deviation(rows(this), 8w) < 4")
    for _ in range(2):
        world.run(NOW)
        assert days(world, "yesterday") == [*DAYS[1:], TODAY]
        assert (days(world, "week"), days(world, "usual")) == (["2026-11-21"], ["2026-11-18"])
        generate.generate_tests(world.flights, now=NOW)
    assert world.outcomes("yesterday") == dict.fromkeys(DAYS[1:], "pass")
    assert not Unit.objects.filter(latest_outcome="no_data").exists()
    assert coverage_gaps(world.flights, now=NOW) == (), "the first unit of each is planned long before"
    (state,) = load_state.copy_states([RequestedRange(KnownCopy(world.copy()), factories.day(DAYS[0]))], now=NOW)
    asked = state.tests
    since = {
        test.key: test.covers_from
        for test in asked
        if isinstance(test, PartitionTest) and test.covers_from != BEGINNING
    }
    assert since == {
        key: factories.day(day).start
        for key, day in (("yesterday", DAYS[1]), ("week", "2026-11-21"), ("usual", "2026-11-18"))
    }, "and the gate does not ask them"
    then = world.unit("week", "2026-11-21").due_at
    assert then is not None
    run_only(world, "week", day="2026-11-21", now=then)
    assert days(world, "week") == ["2026-11-21", "2026-11-22"]


def test_a_version_that_looks_back_leaves_the_first_partitions(world: World) -> None:
    world.planned()
    back, ahead = "rows(this) - rows(this[-1d]) >= 0", "rows(this) < 10"
    ask(world, "fails", ahead)
    ask(world, "waits", ahead)
    run_only(world, "fails", day=DAYS[0])
    Unit.objects.filter(test__key="fails").update(sustain=timedelta(), verdict="fail")
    for key in ("fails", "waits"):
        ask(world, key, back)
    first = world.unit("fails", DAYS[0])
    assert (first.waiver, first.verdict, first.due_at) == ("false_positive", "pass", None)
    assert first.flips.latest("pk").becomes == "pass"
    assert days(world, "waits") == [*DAYS[1:], TODAY]
    span, commit = factories.day(DAYS[0]), factories.commit(world.copy("dc1"), NOW)
    TouchedPartition.objects.create(commit=commit, copy=commit.copy, start=span.start, end=span.end, rows=1)
    touched_partitions.claim_touched_partitions(now=NOW + MINUTE)
    ask(world, "fails", f"{back} and rows(this) > 1")
    assert world.unit("fails", DAYS[0]).due_at is None
    assert world.unit("fails", DAYS[0]).waiver == "false_positive"
    for key in ("fails", "waits"):
        ask(world, key, ahead)
    assert days(world, "waits") == [*DAYS, TODAY]
    assert (world.unit("fails", DAYS[0]).waiver, world.unit("fails", DAYS[0]).due_at) == ("", NOW)


def days(world: World, key: str) -> list[str]:
    units = Unit.objects.filter(test__key=key, copy=world.copy()).order_by("start")
    return [world.flights.partition_label(Interval(unit.start, unit.end)) for unit in units]

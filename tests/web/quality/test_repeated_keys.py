"""Keys that come again in another partition, and rows without a key: told by tests of their own, and by nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from datetime import timedelta

import pyarrow as pa
import pytest

from lakehub.kernel.interval import EVERYTHING
from quality.models import FailingRows, Unit
from tests import hudi_tables
from tests.factories import DAY, NOW
from tests.web.quality.conftest import DAYS, World

pytestmark = pytest.mark.django_db
FIRST, SECOND, THIRD = DAYS


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world(where=("dc1",), primary_key=["id"], record_key=["id", "flight_date"])


def lay(world: World, ids: Mapping[str, list[int | None]]) -> World:
    shutil.rmtree(world.table())
    days: dict[str | None, pa.Table] = {
        day: pa.table(
            {"id": pa.array(of_day, pa.int64()), "flight_date": [day] * len(of_day), "tailnum": ["N1"] * len(of_day)}
        )
        for day, of_day in ids.items()
    }
    hudi_tables.hudi_table(world.table(), days, column="flight_date")
    return world


def whole(world: World) -> Unit:
    return world.unit("repeated_keys")


def test_a_key_of_two_partitions_is_told_and_named_with_them(world: World) -> None:
    """Each partition by itself is without a double: before, nothing told of it."""
    lay(world, {FIRST: [1, 2, 3], SECOND: [4, 5, 2], THIRD: [6, 7, 1]}).monitored()
    assert world.outcomes("duplicates") == dict.fromkeys(DAYS, "pass")
    unit = whole(world)
    assert (unit.latest_outcome, unit.observed, unit.start) == ("fail", 2, EVERYTHING.start)
    assert unit.detail["behind"] == "2 keys in more than one partition"
    assert unit.detail["bloom"] == {"searched": "grouped", "keys": 2}
    (sample,) = FailingRows.objects.get(unit=unit).samples
    assert sample["columns"] == ["id", "rows with this key", "first partition", "last partition"]
    assert sorted(sample["rows"]) == [["1", "2", FIRST, THIRD], ["2", "2", FIRST, SECOND]]


def test_a_larger_table_says_the_same_by_a_bloom_filter(world: World, settings: object) -> None:
    settings.LAKEHUB_GROUPED_KEYS = 3  # type: ignore[attr-defined]
    lay(world, {FIRST: [1, 2, 3], SECOND: [4, 5, 2], THIRD: [6, 6, 8]}).monitored()
    unit = whole(world)
    assert (unit.latest_outcome, unit.observed) == ("fail", 1)
    assert unit.detail["bloom"] == {"searched": "bloom", "keys": 1}
    assert FailingRows.objects.get(unit=unit).samples[0]["rows"] == [["2", "2", FIRST, SECOND]]


def test_what_repeats_within_a_partition_only_is_told_by_duplicates(world: World) -> None:
    lay(world, {FIRST: [1, 1, 2], SECOND: [3, 4, 5], THIRD: [6, 7, 8]}).monitored()
    assert whole(world).latest_outcome == "pass"
    assert world.outcomes("duplicates") == {FIRST: "fail", SECOND: "pass", THIRD: "pass"}


def test_snapshots_repeat_their_keys_and_that_is_right(world: World) -> None:
    lay(world, {day: [1, 2, 3] for day in DAYS}).monitored()
    unit = whole(world)
    assert unit.latest_outcome == ""  # skipped
    assert "each partition is taken for a snapshot" in unit.detail["cause"]
    assert world.outcomes("duplicates") == dict.fromkeys(DAYS, "pass")


def test_its_owners_say_that_keys_are_unique_within_a_partition(world: World) -> None:
    world.flights.overrides = {"unique_within": "partition"}
    world.flights.save()
    world.planned()
    assert not world.flights.tests.filter(key="repeated_keys").exists()
    assert "override unique_within" in world.flights.skipped_checks.get(check_name="repeated_keys").reason


def test_the_whole_table_is_searched_once_a_day_also_while_it_fails(world: World) -> None:
    lay(world, {FIRST: [1, 2, 3], SECOND: [4, 5, 2], THIRD: [6, 7, 8]}).monitored()
    sustained_at = NOW + timedelta(minutes=30)
    assert whole(world).due_at == sustained_at  # once more, before it is called a failure
    world.run(sustained_at)
    due_at = whole(world).due_at
    assert due_at is not None
    assert due_at >= sustained_at + DAY
    assert not whole(world).test.gating


def test_rows_without_a_key_repeat_none_and_are_counted_by_column(world: World) -> None:
    world.flights.record_key = ["tailnum"]  # no row is in the lake without its record key
    lay(world, {FIRST: [1, None, None], SECOND: [2, None, 3], THIRD: [4, 5, 6]}).monitored()
    assert world.outcomes("duplicates") == dict.fromkeys(DAYS, "pass")
    assert whole(world).latest_outcome == "pass"
    assert world.outcomes("null_keys") == {FIRST: "fail", SECOND: "fail", THIRD: "pass"}
    unit = world.unit("null_keys", FIRST)
    assert (unit.detail["behind"], unit.detail["facts"]["null_keys(this.id)"]) == ("2 of 3", "2")
    assert FailingRows.objects.get(unit=unit).samples[0]["rows"] == [[None], [None]]

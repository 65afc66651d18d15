"""What row counts cannot see: one record lost and another doubled. The copy that lacks it fails and names it; nothing is never a pass."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import quality.engines.backends.duckdb_parts
from quality.engines.scans.parts import Part
from quality.engines.storage.hudi_snapshot import FileSlice, TableSnapshot, read_part
from quality.models import Unit
from tests import hudi_tables
from tests.factories import DAY, NOW
from tests.web.quality.conftest import DAYS, World, rows

LATER = "20261117120000000"


def lose_and_double(world: World, where: str) -> None:
    """Flight 17 of the first day is lost, flight 4 is there twice."""
    whole = rows(DAYS[0], 1000)
    changed = pa.concat_tables([whole.slice(0, 17), whole.slice(18), whole.slice(4, 1)])
    hudi_tables.overwrite(world.table(where), DAYS[0], changed, column="flight_date", instant=LATER)


def outcome(unit: Unit) -> tuple[str, str, str]:
    return unit.latest_outcome, unit.detail["observed"], unit.detail["behind"]


def test_the_copy_that_lacks_a_record_fails_and_names_it(make_world: Callable[..., World]) -> None:
    world = make_world(overrides={"consistency": "99.95%", "completeness": "99.95%"})
    lose_and_double(world, "dc2")
    world.monitored()
    assert world.outcomes("row_count@dc1", "dc2")[DAYS[0]] == "pass"
    lacking, other = world.unit("bloom@dc1", DAYS[0], "dc2"), world.unit("bloom@dc2", DAYS[0], "dc1")
    assert outcome(lacking) == ("fail", "99.90%", "999 of 1,000")
    assert lacking.detail["missing"] == [{"id": "17", "flight_date": DAYS[0]}]
    assert (lacking.detail["bloom"]["missing_here"], lacking.detail["bloom"]["missing_there"]) == (1, 0)
    assert outcome(other) == ("pass", "100%", "1,000 of 1,000")
    assert other.detail["bloom"]["missing_there"] == 1
    sampled = world.unit("sample", DAYS[0], "dc2")
    assert outcome(sampled) == ("fail", "99.90%", "999 of 1,000")
    assert sampled.detail["missing"] == lacking.detail["missing"]
    assert world.outcomes("sample", "dc1")[DAYS[0]] == "pass"


def test_an_empty_or_absent_day_is_never_a_pass(make_world: Callable[..., World]) -> None:
    """Of no keys on the other side none can be missing; of those upstream all are."""
    world = make_world(counts=(1000, 0, 1000))
    for where in ("dc1", "dc2"):
        hudi_tables.overwrite(world.table(where), DAYS[2], rows(DAYS[2], 0), column="flight_date", instant=LATER)
    world.monitored()
    for day in DAYS[1:]:
        for key, where in (("bloom@dc2", "dc1"), ("bloom@dc1", "dc2"), ("sample", "dc1"), ("sample", "dc2")):
            unit = world.unit(key, day, where)
            lost = key == "sample" and day == DAYS[2]
            assert unit.latest_outcome == ("fail" if lost else "no_data"), (key, day)
            assert unit.verdict == ("warn" if lost else "unknown")


def test_a_failing_sample_looks_for_the_same_records_until_they_are_there(
    make_world: Callable[..., World], tmp_path: Path
) -> None:
    world = make_world(overrides={"sampled": "100"})
    overwrite = partial(hudi_tables.overwrite, world.table("dc2"), DAYS[0], column="flight_date")
    overwrite(rows(DAYS[0], 500), instant=LATER)
    world.monitored()

    def sample_again() -> tuple[str, str, object]:
        unit = world.unit("sample", DAYS[0], "dc2")
        Unit.objects.update(due_at=None)
        Unit.objects.filter(pk=unit.pk).update(due_at=NOW + DAY)
        world.run(NOW + DAY)
        unit.refresh_from_db()
        return unit.latest_outcome, unit.detail.get("bloom", {}).get("seed", ""), unit.detail.get("missing")

    first = world.unit("sample", DAYS[0], "dc2").detail
    failed = ("fail", first["bloom"]["seed"], first["missing"])
    assert sample_again() == failed
    database, away = tmp_path / "ops.db", tmp_path / "away.db"
    database.rename(away)
    assert sample_again() == ("error", "", None)
    away.replace(database)
    assert sample_again() == failed, "an error in between does not draw other records"
    overwrite(rows(DAYS[0], 1000), instant="20261117130000000")
    assert sample_again() == ("pass", failed[1], None)
    others = {sample_again()[1] for _ in range(3)}
    assert len(others | {failed[1]}) == 4, "each run after a PASS draws its own"


def test_it_heals_when_the_record_is_back(make_world: Callable[..., World]) -> None:
    world = make_world(overrides={"consistency": "99.95%"})
    lose_and_double(world, "dc2")
    world.monitored()
    hudi_tables.overwrite(
        world.table("dc2"), DAYS[0], rows(DAYS[0], 1000), column="flight_date", instant="20261117130000000"
    )
    unit = world.unit("bloom@dc1", DAYS[0], "dc2")
    world.run(unit.due_at or NOW)
    unit.refresh_from_db()
    assert (unit.latest_outcome, unit.detail.get("missing")) == ("pass", None)


def test_a_file_that_vanished_is_listed_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def once_gone(uri: str, part: Part) -> TableSnapshot:
        seen.append(uri)
        return read_part(uri, part) if len(seen) > 1 else TableSnapshot((FileSlice("/gone.parquet", None),), "", None)

    monkeypatch.setattr(quality.engines.backends.duckdb_parts, "read_part", once_gone)
    world.monitored()
    assert world.outcomes("bloom@dc2", "dc1") == dict.fromkeys(DAYS, "pass")


def test_whatever_an_exchange_raises_its_test_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quality.cross_source.methods.bloom_match._filter_shape", lambda rows, share: 1 / 0)
    world.monitored()
    unit = world.unit("bloom@dc2", DAYS[0], "dc1")
    assert (unit.latest_outcome, unit.verdict) == ("error", "unknown")
    assert "the exchange failed (ZeroDivisionError): see the worker's log" in unit.detail["cause"]
    assert world.outcomes("duplicates")[DAYS[0]] == "pass"

"""The story's operational database: the same after the same instant, however it was played."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakehub.demo.flights.operational_database import OperationalDatabase
from lakehub.demo.flights.replay_window import replay_window_at

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> OperationalDatabase:
    operations = OperationalDatabase(tmp_path_factory.mktemp("ops"))
    operations.create(replay_window_at(NOW))
    return operations


@pytest.fixture
def operations(recorded: OperationalDatabase, tmp_path: Path) -> OperationalDatabase:
    return copied(recorded, tmp_path)


def copied(operations: OperationalDatabase, folder: Path) -> OperationalDatabase:
    for file in operations.database.parent.glob("*.db"):
        (folder / file.name).write_bytes(file.read_bytes())
    return OperationalDatabase(folder)


def everything(operations: OperationalDatabase) -> list[tuple[object, ...]]:
    return operations.query("SELECT * FROM flights ORDER BY carrier, flight, origin, flight_date")


def test_playing_in_steps_gives_what_playing_at_once_gives(operations: OperationalDatabase, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    at_once = copied(operations, tmp_path / "other")
    for hours in (0, 1, 5, 6, 30):
        operations.play(NOW + timedelta(hours=hours))
    at_once.play(NOW + timedelta(hours=30))
    assert everything(operations) == everything(at_once)


def test_playing_twice_changes_nothing(operations: OperationalDatabase) -> None:
    operations.play(NOW)
    assert str(operations.play(NOW)) == "0 flights put up, 0 changed, 0 weather reports"


def test_nothing_is_known_before_it_happened(operations: OperationalDatabase) -> None:
    operations.play(NOW)
    assert operations.query("SELECT count(*) FROM flights WHERE updated_at > '2026-11-21 12:00:00.000000'") == [(0,)]
    assert operations.query("SELECT count(*) FROM flights WHERE status = 'scheduled' AND dep_time IS NOT NULL") == [
        (0,)
    ]


def test_a_flight_goes_from_scheduled_to_departed_to_landed(operations: OperationalDatabase) -> None:
    seen = []
    for hours in range(0, 24, 2):
        operations.play(NOW + timedelta(hours=hours))
        status = operations.query(
            "SELECT status FROM flights WHERE carrier = 'UA' AND flight_date = '2026-11-21' LIMIT 1"
        )
        seen += [row[0] for row in status if row[0] not in seen]
    assert seen[-1] == "landed"
    assert seen == [status for status in ("scheduled", "departed", "landed") if status in seen]


def test_the_real_defects_are_in_the_window(operations: OperationalDatabase) -> None:
    operations.play(NOW)
    twice = operations.query("SELECT 1 FROM weather GROUP BY origin, year, month, day, hour HAVING count(*) > 1")
    unknown_planes = operations.query("SELECT 1 FROM flights WHERE tailnum NOT IN (SELECT tailnum FROM planes)")
    assert len(twice) == 3
    assert len(unknown_planes) > 5000

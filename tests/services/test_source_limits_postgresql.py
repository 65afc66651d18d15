"""The limits of a connection on PostgreSQL, where transactions really run at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.processes_at_once import CAN_BE_TAKEN, PAYS, overlaps, setup, work_at_once


@pytest.fixture
def home(postgresql_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of processes on a new database."""
    name = f"limits_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(postgresql_url, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}".encode())
        monkeypatch.setenv("LAKEHUB_DATABASE_URL", f"{postgresql_url.rpartition('/')[0]}/{name}")
        yield tmp_path
        server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_no_more_are_at_work_at_once_than_there_are_places(home: Path) -> None:
    setup(home, places=2)
    held = work_at_once(home, CAN_BE_TAKEN, count=5)
    assert (len(held), max(overlaps(held))) == (5 * 10, 2)


def test_no_more_rows_are_read_in_a_second_than_may_be(home: Path) -> None:
    setup(home, rows=200)
    spent = work_at_once(home, PAYS, count=3)
    began, ended = min(at for at, _ in spent), max(at for _, at in spent)
    assert 200 * (ended - began + 1.0) >= 3 * 10 * 20

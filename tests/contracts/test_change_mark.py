"""The mark that says whether anything was written, on SQLite; tests/services has the same on PostgreSQL."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from lakehub.db import change_mark


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "lakehub.db"
    settings = connections["default"].settings_dict | {"NAME": str(file), "ENGINE": "django.db.backends.sqlite3"}
    settings["OPTIONS"] = {"init_command": "PRAGMA journal_mode=WAL"}
    own = DatabaseWrapper(settings, "own")
    own.inc_thread_sharing()
    monkeypatch.setattr(change_mark, "connection", own)
    return file


pytestmark = pytest.mark.django_db


def test_it_changes_with_every_commit_of_another_connection_and_with_nothing_else(file: Path) -> None:
    mark = change_mark.ChangeMark()
    first = mark()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("CREATE TABLE flights (id int)")
    second = mark()
    assert second != first
    other.execute("BEGIN IMMEDIATE")
    other.execute("UPDATE flights SET id = 1")
    other.execute("COMMIT")
    other.execute("SELECT * FROM flights").fetchall()
    assert mark() == second, "nothing was changed by it"
    other.execute("BEGIN IMMEDIATE")
    other.execute("INSERT INTO flights VALUES (1)")
    assert mark() == second, "not committed"
    other.execute("COMMIT")
    assert mark() != second
    other.close()


def test_a_new_connection_has_another_mark(file: Path) -> None:
    mark = change_mark.ChangeMark()
    first = mark()
    change_mark.connection.close()
    assert mark() != first

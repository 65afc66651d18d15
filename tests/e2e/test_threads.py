"""What lets a browser load a page and its parts at once."""

from __future__ import annotations

from django.db import connection


def test_each_thread_of_the_server_has_a_connection_of_its_own(db: None) -> None:
    assert not connection.is_in_memory_db()  # type: ignore[attr-defined]  # SQLite's own

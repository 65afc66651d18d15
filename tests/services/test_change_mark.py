"""The mark that says whether anything was written, on PostgreSQL; tests/contracts has the same on SQLite."""

from __future__ import annotations

from types import SimpleNamespace

import psycopg
import pytest

from lakehub.db import change_mark


def test_it_changes_when_a_write_is_committed_also_one_that_began_before_the_last_look(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        psycopg.connect(postgresql_url, autocommit=True) as own,
        psycopg.connect(postgresql_url) as other,
    ):
        wrapper = SimpleNamespace(vendor="postgresql", cursor=own.cursor, connection=own)
        monkeypatch.setattr(change_mark, "connection", wrapper)
        mark = change_mark.ChangeMark()
        other.execute("CREATE TABLE change_mark_probe (id int)")
        begun = mark()
        assert mark() == begun
        other.commit()
        committed = mark()
        assert committed != begun
        other.execute("UPDATE change_mark_probe SET id = 1")
        other.commit()
        assert mark() == committed, "no row was changed by it"
        other.execute("DROP TABLE change_mark_probe")
        other.commit()
        assert mark() != committed

"""Statements that are sent again and again, on PostgreSQL: the plan is kept, and nothing else differs from Django's cursors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import ConnectionHandler
from django.test.utils import CaptureQueriesContext

from lakehub import environment as env
from lakehub.db.repeated_statement import run_repeated
from tests.factories import NOW

SQL = "SELECT %(number)s::bigint + 1, %(at)s::timestamptz, '%%'"


@pytest.fixture(autouse=True)
def reachable(django_db_blocker: Any) -> Iterator[None]:
    """Databases of these tests are their own."""
    with django_db_blocker.unblock():
        yield


@contextmanager
def connected(url: str) -> Iterator[BaseDatabaseWrapper]:
    database = ConnectionHandler({"default": env.database(url)})["default"]
    try:
        yield database
    finally:
        database.close()


def prepared_statements(database: BaseDatabaseWrapper) -> int:
    with database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements")
        row: tuple[Any, ...] = cursor.fetchone()
    return int(row[0])


@pytest.mark.parametrize(("options", "kept"), [("", 1), ("?prepare_threshold=1", 1), ("?prepare_threshold=none", 0)])
def test_the_plan_is_kept_unless_the_url_says_otherwise(postgresql_url: str, options: str, kept: int) -> None:
    with connected(postgresql_url + options) as database:
        for number in range(env.PREPARE_THRESHOLD + 2):
            assert run_repeated(SQL, {"number": number, "at": NOW}, database) == [(number + 1, NOW, "%")]
        assert prepared_statements(database) == kept


def test_it_is_logged_and_its_errors_are_as_those_of_any_query(postgresql_url: str) -> None:
    with connected(postgresql_url) as database, CaptureQueriesContext(database) as asked:
        for _ in range(env.PREPARE_THRESHOLD + 2):
            run_repeated(SQL, {"number": 1, "at": NOW}, database)
        assert all("bigint" in query["sql"] for query in asked), "also where it is prepared"
        assert len(asked) == env.PREPARE_THRESHOLD + 2
        with pytest.raises(ProgrammingError, match="nothing_of_this_name"):
            run_repeated("SELECT 1 FROM nothing_of_this_name", {}, database)


def test_it_goes_on_after_an_error_and_with_a_new_connection(postgresql_url: str) -> None:
    with connected(postgresql_url) as database:
        with pytest.raises(ProgrammingError):
            run_repeated("SELECT 1 FROM nothing_of_this_name", {}, database)
        assert run_repeated(SQL, {"number": 1, "at": NOW}, database) == [(2, NOW, "%")]
        database.close()
        assert run_repeated(SQL, {"number": 2, "at": NOW}, database) == [(3, NOW, "%")]

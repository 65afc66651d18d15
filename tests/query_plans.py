"""How the database would run the queries of a piece of code: an index that is needed is an index that is used."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from django.test.utils import CaptureQueriesContext


def plans_of(code: Callable[[], object]) -> list[str]:
    """The plan of each SELECT that `code` sends, as text. PostgreSQL is told not to scan small tables for being small."""
    with CaptureQueriesContext(connection) as capture:
        code()
    selects = [query["sql"] for query in capture.captured_queries if query["sql"].startswith("SELECT")]
    return [_plan(sql) for sql in selects]


def _plan(sql: str) -> str:
    sqlite = connection.vendor == "sqlite"
    with connection.cursor() as cursor:
        if not sqlite:
            cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {'QUERY PLAN ' if sqlite else ''}{sql}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())

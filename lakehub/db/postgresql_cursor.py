"""A cursor that sends values beside the text, so that PostgreSQL keeps the plan of what it was asked some times."""

from __future__ import annotations

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import Cursor
from psycopg._queries import PostgresQuery
from psycopg.types.datetime import TimestamptzLoader

_KEPT = "_plan_keeping_cursor"


class PlanKeepingCursor(Cursor[Any]):
    """For connections of Django's."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        # Django's gives each instant its zone in Python; its sessions are in UTC already.
        self.adapters.register_loader("timestamptz", TimestamptzLoader)

    def _convert_query(self, query: Any, params: Any = None) -> PostgresQuery:
        # Where Django looks for what it logs; psycopg leaves it empty for what is prepared.
        self._query = super()._convert_query(query, params)
        return self._query


def cursor_of(database: BaseDatabaseWrapper) -> PlanKeepingCursor:
    """The one of this connection, which is of one thread. To make one takes as long as a good part of a query."""
    database.ensure_connection()
    kept: PlanKeepingCursor | None = getattr(database, _KEPT, None)
    if kept is None or kept.connection is not database.connection:
        with database.wrap_database_errors:
            kept = PlanKeepingCursor(database.connection)
        setattr(database, _KEPT, kept)
    return kept

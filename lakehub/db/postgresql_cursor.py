"""A cursor that sends values beside the text, so that PostgreSQL keeps the plan of what it was asked some times."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from psycopg import Connection, Cursor
from psycopg._queries import PostgresQuery
from psycopg.adapt import AdaptersMap
from psycopg.types.datetime import TimestamptzLoader

_adapters: WeakKeyDictionary[Connection[Any], AdaptersMap] = WeakKeyDictionary()
"""Made once for each connection: it takes as long as a tenth of a query."""


class PlanKeepingCursor(Cursor[Any]):
    """For connections of Django's."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        if connection not in _adapters:
            # Django's gives each instant its zone in Python; its sessions are in UTC already.
            self.adapters.register_loader("timestamptz", TimestamptzLoader)
            _adapters[connection] = self.adapters
        self._adapters = _adapters[connection]

    def _convert_query(self, query: Any, params: Any = None) -> PostgresQuery:
        # Where Django looks for what it logs; psycopg leaves it empty for what is prepared.
        self._query = super()._convert_query(query, params)
        return self._query

"""Was anything written to the database since the last look? One cheap question, whatever the tables are."""

from __future__ import annotations

from typing import Any

from django.db import connection


class ChangeMark:
    """Called, it is another text than before once any other connection has committed a write; this one's own may not show.

    SQLite counts commits by others in `data_version`, each connection from a number of its own. PostgreSQL's snapshot is of
    the whole server: other databases' writes change it too. Raises DatabaseError.
    """

    def __init__(self) -> None:
        self._connection: Any = None
        self._connections = 0

    def __call__(self) -> str:
        is_sqlite = connection.vendor == "sqlite"
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version" if is_sqlite else "SELECT pg_current_snapshot()::text")
            (value,) = cursor.fetchone()
        if connection.connection is not self._connection:
            self._connection, self._connections = connection.connection, self._connections + 1
        return f"{self._connections}: {value}"

"""Values as the server has them, where the driver would make less of them, or none at all."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from psycopg.abc import Loader


def keep_json_as_text(connection: sa.Connection) -> None:
    """What the driver decodes is another text when it is encoded again."""
    if connection.dialect.driver == "psycopg":
        from psycopg.types.json import set_json_loads

        set_json_loads(bytes.decode, context=connection.connection.driver_connection)  # type: ignore[arg-type]


def keep_bad_texts_as_bytes(connection: sa.Connection) -> None:
    """SQLite stores what it is given: a text that is not UTF-8 is rejected with its row. The driver raises, and one would stop the table."""
    if connection.dialect.driver == "pysqlite":
        raw: Any = connection.connection.driver_connection
        raw.text_factory = _text_or_bytes


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def keep_times_beyond_python(connection: sa.Connection) -> None:
    """`infinity`, years before 1 and after 9999: as texts, which are rejected where a time is wanted. The driver raises, and one would stop the table."""
    if connection.dialect.driver == "psycopg":
        from psycopg.pq import Format

        raw: Any = connection.connection.driver_connection
        for name in ("date", "timestamp", "timestamptz"):
            oid = raw.adapters.types[name].oid
            raw.adapters.register_loader(oid, _text_beyond(raw.adapters.get_loader(oid, Format.TEXT)))


@cache
def _text_beyond(usual: type[Loader]) -> type[Loader]:
    from psycopg import DataError
    from psycopg.adapt import Loader as BaseLoader

    class TextBeyondPython(BaseLoader):
        def __init__(self, oid: int, connection: Any = None) -> None:
            super().__init__(oid, connection)
            self._usual = usual(oid, connection)

        def load(self, data: Any) -> Any:
            try:
                return self._usual.load(data)
            except DataError:
                return bytes(data).decode()

    return TextBeyondPython

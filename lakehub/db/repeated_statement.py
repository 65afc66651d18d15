"""Running a text that is sent again and again, as each kind of database does it with the least work.

PostgreSQL plans a query anew each time it comes as a text with its values in it, as Django sends it: here the values go beside the
text, so that after a few times the server keeps the plan. With `prepare_threshold=none` in LAKEHUB_DATABASE_URL it keeps none.

SQLite lets other threads of the process run at every row, and each of them may keep the interpreter for a while: here all rows come in
one, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field

if TYPE_CHECKING:  # where the database is SQLite it is not imported
    from django.db.backends.utils import CursorWrapper

Row = Sequence[Any]
_EXACT_AS_JSON = (
    models.CharField,
    models.TextField,
    models.IntegerField,
    models.BooleanField,
    models.DateTimeField,
    models.DurationField,
    models.JSONField,
    models.ForeignKey,
)
"""Fields whose value in SQLite is a text or a whole number. A float would lose digits, and bytes cannot be written."""


def run_repeated(sql: str, values: Mapping[str, Any], database: BaseDatabaseWrapper) -> list[tuple[Any, ...]]:
    """All rows. `sql` has its values as `%(name)s`. Raises as Django's cursors."""
    if database.vendor == "postgresql":
        from lakehub.db.postgresql_cursor import cursor_of

        return _run(database._prepare_cursor(cursor_of(database)), sql, values)  # type: ignore[attr-defined]  # as Django does with its own
    with database.cursor() as cursor:
        return _run(cursor, sql, values)


def _run(cursor: CursorWrapper, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    cursor.execute(sql, values)
    rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def rows_in_one(
    sql: str, fields: Iterable[Field[Any, Any]], database: BaseDatabaseWrapper
) -> tuple[str, Callable[[list[tuple[Any, ...]]], list[Row]]]:
    """What to run instead of `sql`, and what makes the rows of `sql` from the answer to that."""
    columns = list(fields)
    if database.vendor != "sqlite" or not all(isinstance(field, _EXACT_AS_JSON) for field in columns):
        return sql, list
    names = ", ".join(f"c{place}" for place in range(len(columns)))
    return f"WITH found({names}) AS ({sql}) SELECT json_group_array(json_array({names})) FROM found", _rows_of_json  # noqa: S608 - our own


def _rows_of_json(answer: list[tuple[Any, ...]]) -> list[Row]:
    rows: list[Row] = json.loads(answer[0][0])
    return rows

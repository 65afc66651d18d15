"""Many rows of one table changed by one statement, on SQLite and on PostgreSQL alike.

Django's `bulk_update` writes a CASE with a branch for each row and field, which takes longer to make than to run, and
cuts it where 999 values are reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, Model

BATCH_SIZE = 500
"""Rows of one statement. With 60 fields that stays below the 32,766 values that SQLite takes."""


def bulk_update(rows: Sequence[Model], fields: Sequence[str]) -> None:
    """Writes `fields` of the rows, which are all of one model and stored already. As in `QuerySet.update`, nothing else happens."""
    for begin in range(0, len(rows), BATCH_SIZE):
        _update_batch(rows[begin : begin + BATCH_SIZE], fields)


def _update_batch(rows: Sequence[Model], names: Sequence[str]) -> None:
    meta = rows[0]._meta
    assert meta.pk is not None
    assert meta.pk.column is not None
    fields = [meta.pk, *(meta.get_field(name) for name in names)]
    values: list[Any] = [_db_value(field, row) for row in rows for field in fields]
    row_placeholders = f"({', '.join(['%s'] * len(fields))})"
    table, key = connection.ops.quote_name(meta.db_table), connection.ops.quote_name(meta.pk.column)
    sets = ", ".join(_set_clause(field, place) for place, field in enumerate(fields[1:], start=2))
    given = ", ".join([row_placeholders] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET {sets} FROM (VALUES {given}) AS given WHERE {table}.{key} = given.column1",  # noqa: S608  # names of our own models
            values,
        )


def _db_value(field: Any, row: Model) -> object:
    return field.get_db_prep_save(getattr(row, field.attname), connection)


def _set_clause(field: Any, place: int) -> str:
    """PostgreSQL takes a column of nulls for texts, and says so where they are stored as anything else."""
    name = connection.ops.quote_name(field.column)
    given = f"given.column{place}"
    return f"{name} = {given}" if connection.vendor == "sqlite" else f"{name} = CAST({given} AS {_column_type(field)})"


def _column_type(field: Field[Any, Any]) -> str:
    """Of an identity column the type of its values."""
    return (field.cast_db_type(connection) or "").partition(" GENERATED")[0]

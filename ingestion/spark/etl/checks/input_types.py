"""Columns of an input that have got another type. All rows of a target may be others by it, though no row has changed: as a text, 5 is `5.0` once it is a DOUBLE."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlglot import exp

from ingestion.spark.tables.avro_schema import schema_of, schemas_at
from ingestion.spark.tables.hudi import META_COLUMNS
from ingestion.spark.tables.timeline import Timeline
from lakehub.user_sql.sql_text import parse_statements


class TypesChanged(LookupError):
    """Changed rows do not say which rows of the target are others now. Says why."""


def check_types(name: str, uri: str, between: tuple[str, str], sql: str) -> None:
    """`name`: of the input; `between`: two completions. Raises TypesChanged for columns that `sql` may read."""
    before, now = schemas_at(Timeline(uri), between)
    if before and (changed := changed_types(before, now, sql)):
        raise TypesChanged(f"columns of the input `{name}` have another type: {', '.join(changed)}")


def changed_types(before: str, now: str, sql: str) -> list[str]:
    """In words, from two schemas of Avro, of the columns that `sql` may read. One that is new has no values in the rows that stay, and without one that is gone `sql` fails."""
    if before == now:
        return []
    named, (earlier, later) = _names_in(sql), _types(before, now)
    return [
        f"`{column}` ({earlier[column]} -> {type_})"
        for column, type_ in later.items()
        if earlier.get(column, type_) != type_ and (named is None or column.casefold() in named)
    ]


def _types(*schemas: str) -> list[Mapping[str, str]]:
    """By column; in Avro's words where one of the schemas has a type that Lakehub has none for."""
    read = [schema_of(each, without=META_COLUMNS) for each in schemas]
    known = [each.types for each in read if each is not None]
    if len(known) == len(schemas):
        return [*known]
    return [{field["name"]: json.dumps(field["type"]) for field in json.loads(each)["fields"]} for each in schemas]


def _names_in(sql: str) -> set[str] | None:
    """All that `sql` names, in small letters. None: it has a `*`, which is any column."""
    (tree,) = parse_statements(sql, "spark")
    if any(not isinstance(star.parent, exp.Count) for star in tree.find_all(exp.Star)):
        return None
    return {identifier.name.casefold() for identifier in tree.find_all(exp.Identifier)}

"""The columns of a table as its own commits say them: no Spark job, and no look into a data file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ingestion.domain.avro.types import AvroTypes
from ingestion.domain.column_types import StructOf
from ingestion.domain.schema import Schema, SchemaColumn
from ingestion.spark.tables.timeline import TABLE_SERVICES, CompletedFile, Timeline


class _OnlySparkKnows(ValueError):
    """A type of Avro that Lakehub writes nowhere."""


def schema_of(text: str, *, without: tuple[str, ...] = ()) -> Schema | None:
    """From Avro's JSON of a record. None where a column has a type that only Spark can name."""
    types = AvroTypes(lambda fields: StructOf(tuple(fields.items())), _refuse)
    try:
        columns = [(field["name"], types.type_of(field["type"])) for field in json.loads(text)["fields"]]
    except _OnlySparkKnows:
        return None
    return Schema(tuple(SchemaColumn(name, str(type_)) for name, type_ in columns if name not in without))


def schemas_at(timeline: Timeline, completions: Sequence[str]) -> list[str]:
    """Avro's JSON for each, as the newest commit up to it says that names the columns; empty where none does that is not archived."""
    files = [*reversed(timeline.completed())]
    return [_newest_schema(timeline, (file for file in files if file.completed <= each)) for each in completions]


def latest_schema(timeline: Timeline) -> str:
    """The same as the table is now."""
    return _newest_schema(timeline, reversed(timeline.completed()))


def _newest_schema(timeline: Timeline, files: Iterable[CompletedFile]) -> str:
    """`files`: the newest first; none is read after the one that names the columns."""
    commits = (timeline.read([file])[0] for file in files)
    return next((each.avro_schema for each in commits if each.avro_schema and each.operation not in TABLE_SERVICES), "")


def _refuse(avro: Any) -> NoReturn:
    raise _OnlySparkKnows(str(avro)[:200])

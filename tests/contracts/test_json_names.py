"""Names of JSON lines that the lake cannot hold: the rows that have them are rejected, and all others are loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingestion.domain.schema import Schema
from ingestion.sources import SOURCES, Source, SourceConfig, SourceReading
from ingestion.spark.loading.fitting import FitRules, fit_rows

OWNER = "The source of `orders`"


def write(file: Path, *rows: dict[str, object]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def source_of(folder: Path) -> Source:
    return SOURCES.get("files")(SourceConfig(folder.as_uri(), "*.jsonl"))


def read(reading: SourceReading) -> tuple[Schema, list[object], list[str]]:
    """The schema that the rows come with, the ids of those that fit it, and the columns of those that do not."""
    schema, ids, columns = Schema(()), [], []
    for batch in reading.batches:
        schema = batch.schema
        fitted = fit_rows(batch, FitRules(schema))
        ids += fitted.rows["id"].to_pylist()
        columns += [row.column for row in fitted.rejected]
    return schema, ids, columns


@pytest.mark.parametrize("name", ["a-b", "é", "", "2nd", "_hoodie_commit_time", "_lakehub_fate", "ID"])
def test_a_name_that_the_lake_cannot_hold_costs_its_own_row_only(tmp_path: Path, name: str) -> None:
    """It became a column, which no table can have, and the feed stopped for good."""
    write(tmp_path / "1.jsonl", {"id": 1}, {"id": 2, name: 7}, {"id": 3, name: None})
    schema, ids, columns = read(source_of(tmp_path).snapshot())
    schema.require_lake_names(OWNER)
    assert (schema.names, ids, columns) == (("id",), [1, 3], [name])


def test_the_spelling_of_the_files_before_it_is_the_columns(tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl", {"id": 1, "amount": 5})
    source = source_of(tmp_path)
    _, position = read(snapshot := source.snapshot()), snapshot.position()
    write(tmp_path / "2.jsonl", {"id": 2, "Amount": 6}, {"id": 3, "amount": 7})
    schema, ids, columns = read(source.changes(position))
    assert (schema.names, ids, columns) == (("id", "amount"), [3], ["Amount"])
    assert source.schema() == schema, "whoever reads all files from the beginning has the same columns"


def test_a_column_of_the_folders_is_spelt_as_they_are(tmp_path: Path) -> None:
    write(tmp_path / "dt=2026-11-16" / "1.jsonl", {"id": 1, "DT": "x"}, {"id": 2})
    schema, ids, columns = read(source_of(tmp_path).snapshot())
    assert (schema.names, ids, columns) == (("id", "dt"), [2], ["DT"])


def test_names_in_objects_stop_nothing(tmp_path: Path) -> None:
    """What the lake cannot hold as a structure is text, and what comes later fits the type that is there."""
    write(tmp_path / "1.jsonl", {"id": 1, "plain": {"a": 1}, "odd": {"a-b": 1}, "twice": {"a": 1, "A": 2}})
    source = source_of(tmp_path)
    schema, ids, _ = read(snapshot := source.snapshot())
    assert schema.types == {"id": "long", "plain": "struct<a:long>", "odd": "string", "twice": "string"}
    write(tmp_path / "2.jsonl", {"id": 2, "plain": {"A": 1}}, {"id": 3, "plain": {"a": 1}})
    later, more, columns = read(source.changes(snapshot.position()))
    later.require_lake_names(OWNER)
    assert (ids, more, columns) == ([1], [3], ["plain.A"])

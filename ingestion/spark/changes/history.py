"""The history of a captured table: every version of its rows, in a table of its own beside the lake's tables, in partitions by day.

It is written before the changes are merged: whoever dies in between writes no version twice, as those that are there are looked up in the partitions of
the batch. Each commit of the table says whether its changes are in the history; rows that another commit has written come into it with their next change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ingestion.domain.merging.history import (
    DAY_COLUMN,
    KEY_COLUMN,
    RowVersion,
    history_schema,
    oldest_day_kept,
    unknown_until,
    version_of_event,
    version_of_stored_row,
)
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN, reference_type_of
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.spark.changes.merging import Change, Merged
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups import direct_write
from ingestion.spark.file_groups.direct_write import PlacedRow
from ingestion.spark.file_groups.lookups import newest_base_files, partition_paths
from ingestion.spark.file_groups.stored_rows import KEY, PARTITION, read_stored_rows
from ingestion.spark.job import JobError
from ingestion.spark.loading.judging import StoredRow
from ingestion.spark.loading.small_batches import columns_to_write
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline

KEPT = "history"
"""In the run of a commit of the table: its changes are in the history."""
_KIND = "history"
_WITHOUT_CHANGES = frozenset({"schema", "cluster", "set_position", "rebuild_index", "drop_index"})
"""Kinds of commits that change no row, or none by an event."""
_OPTIONS = {"hoodie.metadata.enable": "false", "hoodie.index.type": "SIMPLE"}
_MOST_REMOVED = 50
"""Partitions of one commit."""


@dataclass(frozen=True)
class HistoryBatch:
    """What one commit of the table brings into its history. `target`: the columns of the table."""

    changes: Sequence[Change]
    stored_rows: Sequence[StoredRow]
    merged: Merged
    target: Schema
    columns_of: Callable[[int], Collection[str]]


@dataclass(frozen=True)
class _Known:
    """`since`: the instant of the newest commit of the table whose changes the history lacks. `upto`: until when its commits were looked at, by completion.
    `began`: when the history did, an ISO time; empty: it begins now."""

    since: str
    upto: str
    began: str = ""


def history_table_spec(table: TableSpec) -> TableSpec:
    return TableSpec(
        name=f"{table.name}_history",
        uri=table.history_uri,
        error_uri=table.history_uri,
        record_key=(KEY_COLUMN,),
        partition_column=DAY_COLUMN,
        index="simple",
        retention_hours=table.retention_hours,
        max_file_mib=table.max_file_mib,
        change_log=False,
    )


def write_history(spark: SparkSession, table: TableSpec, batch: HistoryBatch, *, run: str, now: datetime) -> None:
    """One commit, or none where all versions are there. `now`: aware UTC. The first one of a day removes the days that are not kept any more."""
    kept_for = timedelta(days=table.history_days) if table.history_days else None
    spec, known = history_table_spec(table), _known(table)
    is_first_of_day = not _was_written_on(spec.uri, now)
    before = unknown_until(known.since, now=now, kept_for=kept_for)
    versions = {(each.day, each.key): each for each in _versions(batch, before)}
    if not versions:
        return
    target, columns = _columns_to_write(spark, spec, batch.target)
    names = target.names
    rows = [
        PlacedRow(each.key, _path(each.day), None, {name: each.row.get(name) for name in names})
        for each in _missing(spark, spec.uri, versions)
    ]
    if not rows:
        return
    began = known.began or now.isoformat()
    facts = {"run_id": run, "kind": _KIND, "since": known.since, "upto": known.upto, "began": began}
    direct_write.write_rows(spark, spec, rows, columns, _OPTIONS, commit_metadata(run=facts, checkpoint=None))
    if kept_for is not None and is_first_of_day:
        _remove_days_before(spark, spec, target, oldest_day_kept(now=now, kept_for=kept_for))


def _versions(batch: HistoryBatch, before: str) -> Iterator[RowVersion]:
    day_of_first: dict[str, str] = {}
    for change in batch.changes:
        event = change.event
        is_whole = {*batch.columns_of(event.schema_version)} <= event.values.keys()
        version = version_of_event(event, change.row_key_text, change.facts, is_whole=is_whole)
        day_of_first.setdefault(change.key, version.day)
        yield version
    rewritten = {row.key for row in batch.merged.rows}
    for stored in batch.stored_rows:
        if stored.instant <= before and stored.key in rewritten:
            yield version_of_stored_row(_values(stored.row), stored.row[METADATA_COLUMN], day=day_of_first[stored.key])


def _values(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != METADATA_COLUMN}


def _known(table: TableSpec) -> _Known:
    """Of the table's commits only those are read that came after the newest one of the history."""
    timeline, history = Timeline(table.uri), Timeline(table.history_uri)
    upto = timeline.latest_completion()
    runs = (commit.run for commit in history.newest_first()) if history.exists else iter(())
    known = next((run for run in runs if run.get("kind") == _KIND), None)
    if known is not None:
        recent = timeline.commits_since(known["upto"])
        if recent.oldest <= known["upto"]:
            lacking = (commit.instant for commit in recent.commits if _lacks(commit.run))
            return _Known(max([known["since"], *lacking]), upto, known["began"])
    newest = next(timeline.newest_first(), None)
    since, began = "" if newest is None else newest.instant, "" if known is None else known["began"]
    return _Known(since, upto, began)


def _lacks(run: Mapping[str, Any]) -> bool:
    return not run.get(KEPT) and run.get("kind") not in _WITHOUT_CHANGES


def _columns_to_write(spark: SparkSession, spec: TableSpec, table_columns: Schema) -> tuple[Schema, str]:
    """The history's columns, and how they are written. New ones come by a commit of their own, as those of the table do."""
    reference_type = reference_type_of(table_columns.types[METADATA_COLUMN])
    arriving = Schema(tuple(column for column in table_columns if column.name != METADATA_COLUMN))
    wanted = history_schema(arriving, reference_type)
    if Timeline(spec.uri).completed():
        evolution = evolve_schema(hudi.stored_schema(spark, spec), wanted, fixed=(KEY_COLUMN, DAY_COLUMN))
        if evolution.conflicts:
            name, stored, arrives = evolution.conflicts[0]
            raise JobError(
                f"The history at {spec.uri} has the column `{name}` as {stored}, and the table has it as {arrives}. Nothing was written. Move that folder away; "
                "a new history begins then. Or set the feed's option `history` to false."
            )
        wanted = evolution.target
    columns = columns_to_write(spark, spec, wanted)
    if columns is None:
        marks = commit_metadata(run={"run_id": "", "kind": "schema"}, checkpoint=None)
        hudi.write_commit(hudi.empty_frame(spark, wanted), spec, "upsert", _OPTIONS, marks)
        columns = columns_to_write(spark, spec, wanted)
    if columns is None:
        raise JobError(
            f"The history at {spec.uri} does not have the columns of its table, or this Spark lacks the jar `hudi-java-client`. Nothing was written. "
            "Run `make setup`, or give Spark the jar."
        )
    return wanted, columns


def _missing(spark: SparkSession, uri: str, versions: Mapping[tuple[str, str], RowVersion]) -> list[RowVersion]:
    """Those that are not there yet: looked up in the partitions of the batch, and in files whose keys are not all smaller or greater."""
    keys_by_day: dict[str, set[str]] = defaultdict(set)
    for day, key in versions:
        keys_by_day[_path(day)].add(key)
    files = newest_base_files(spark, uri, [*keys_by_day])
    keys = {key for _, key in versions}
    rows = read_stored_rows(uri, files, keys, pa.schema([]))
    there = {*zip(rows[PARTITION].to_pylist(), rows[KEY].to_pylist(), strict=True)}
    return [version for (day, key), version in versions.items() if (_path(day), key) not in there]


def _path(day: str) -> str:
    return f"{DAY_COLUMN}={day}"


def _was_written_on(uri: str, now: datetime) -> bool:
    newest = next(iter(Timeline(uri).newest_first()), None)
    return newest is not None and newest.instant.startswith(f"{now:%Y%m%d}")


def _remove_days_before(spark: SparkSession, spec: TableSpec, columns: Schema, day: str) -> None:
    """Whole partitions, by a commit of Spark's which reads no row."""
    paths = [path for path in partition_paths(spark, spec.uri) if path < _path(day)]
    old = _oldest_with_files(spark, spec.uri, paths)
    if old:
        marks = commit_metadata(run={"run_id": "", "kind": "retention"}, checkpoint=None)
        options = {**_OPTIONS, "hoodie.datasource.write.partitions.to.delete": ",".join(old)}
        hudi.write_commit(hudi.empty_frame(spark, columns), spec, "delete_partition", options, marks)


def _oldest_with_files(spark: SparkSession, uri: str, paths: Iterable[str]) -> list[str]:
    """The folders of those that were removed stay."""
    with_files = {file.group.partition for file in newest_base_files(spark, uri, [*paths])}
    return sorted(with_files)[:_MOST_REMOVED]

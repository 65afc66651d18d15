"""Columns of the source that have got another name: what stored rows have under the old one they have under the new one, too.

One commit, which carries how far the renames are made: it is there as a whole, or not at all, and is made once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ingestion.domain.merging.column_renames import ColumnRename, renamed_columns
from ingestion.domain.merging.stored_metadata import METADATA_COLUMN
from ingestion.domain.schema import Schema, evolve_schema
from ingestion.sources import LogReading
from ingestion.spark.file_groups.record_locations import PREPPED, with_locations
from ingestion.spark.indexes import INDEXES, Index
from ingestion.spark.job import Job
from ingestion.spark.loading.rereading import ReadAgain, ReadingStart
from ingestion.spark.tables import hudi
from ingestion.spark.tables.checkpoint_metadata import commit_metadata
from ingestion.spark.tables.timeline import Timeline
from ingestion.spark.write_permit import hold_write_permit
from lakehub.kernel import failpoint

ColumnsOf = Mapping[int, Collection[str]]
"""By version of the schema the columns of a row, before any rename."""
_IS_FILLED = "_lakehub_is_filled"


def fill_renamed(job: Job, start: ReadingStart, reading: LogReading) -> None:
    """Raises ReadAgain: the table has other rows, and another checkpoint, after it."""
    with hold_write_permit(job):
        latest = Timeline(job.table.uri).checkpoint()
        if latest is not None and latest.position == start.checkpoint.position:
            job.check_deadline()
            _fill(job, start.stored, reading)
            failpoint.reach("ingestion.after_rename")
    raise ReadAgain("columns of its source were renamed, and its rows have them now")


def _fill(job: Job, stored: Schema, reading: LogReading) -> None:
    table, known = job.table, reading.renames
    evolution = evolve_schema(stored, known.columns)
    target = evolution.target
    rows = hudi.read_table(job.spark, table)
    rows = rows.select(
        "*",
        *(F.lit(None).cast(type_).alias(name) for name, type_ in target.types.items() if name not in rows.columns),
        F.lit(False).alias(_IS_FILLED),
    )
    before = known.made
    for rename in known.due:
        columns_of = {version: renamed_columns(names, before) for version, names in known.columns_of.items()}
        rows = filled(rows, rename, _fitting(rename, target), columns_of)
        before = (*before, rename)
    changed = rows.where(F.col(_IS_FILLED)).drop(_IS_FILLED)
    located = with_locations(changed, table)
    extra = [name for name in located.columns if name not in target.names and not name.startswith("_hoodie")]
    index: Index = INDEXES.get(table.index)()
    facts = {"added": [*evolution.added], "widened": [*evolution.widened]}
    marks = commit_metadata(run={"run_id": "", "kind": "schema", "schema": facts}, checkpoint=known.position)
    with job.phase("write"):
        hudi.write_commit(located.drop(*extra), table, "upsert", {**index.write_options(table), **PREPPED}, marks)


def _fitting(rename: ColumnRename, target: Schema) -> dict[str, str]:
    """Of columns that are there, in types that hold what the old ones held."""
    return {new: old for new, old in rename.origins.items() if new in target and old in target}


def filled(rows: DataFrame, rename: ColumnRename, origins: Mapping[str, str], columns_of: ColumnsOf) -> DataFrame:
    """`columns_of`: before this rename. Of each column the last change decides: where it was made before the rename, the new column gets its value and its place in the order of changes."""
    if not origins:
        return rows
    is_filled = {new: _is_filled(rename, new, old, columns_of) for new, old in origins.items()}
    flags = rows.select("*", *(flag.alias(_flag(new)) for new, flag in is_filled.items()))
    types = {field.name: field.dataType for field in rows.schema.fields}
    values = {
        new: F.when(F.col(_flag(new)), F.col(_quoted(old)).cast(types[new])).otherwise(F.col(_quoted(new)))
        for new, old in origins.items()
    }
    any_filled = reduce(or_, (F.col(_flag(new)) for new in origins), F.lit(False))
    metadata = F.when(any_filled, _renamed_metadata(rows, origins)).otherwise(F.col(METADATA_COLUMN))
    replaced = {
        **values,
        METADATA_COLUMN: metadata.cast(types[METADATA_COLUMN]),
        _IS_FILLED: F.col(_IS_FILLED) | any_filled,
    }
    return flags.select(*(replaced.get(name, F.col(_quoted(name))).alias(name) for name in rows.columns))


def _is_filled(rename: ColumnRename, new: str, old: str, columns_of: ColumnsOf) -> Column:
    was, becomes = (_reference_key(name, columns_of) for name in (old, new))
    before = F.lit(bytearray(rename.before))
    return F.coalesce(was < before, F.lit(False)) & F.coalesce(becomes < before, F.lit(True))


def _reference_key(name: str, columns_of: ColumnsOf) -> Column:
    """Of the change that gave the column its value; null: none did."""
    metadata = F.col(METADATA_COLUMN)
    versions = [version for version, names in columns_of.items() if name in names]
    is_of_version = metadata["schema_version"].isin(versions) if versions else F.lit(False)
    entries = metadata["changelog_columns"]

    def gives(entry: Column) -> Column:
        fields = entry["changed_fields"]
        return F.array_contains(fields, name) | ((F.size(fields) == 0) & is_of_version)

    of_entries = F.filter(entries, gives)
    return F.when(entries.isNull(), F.when(is_of_version, metadata["reference_key"])).when(
        F.size(of_entries) > 0, of_entries[0]["ref_key"]
    )


def _renamed_metadata(rows: DataFrame, origins: Mapping[str, str]) -> Column:
    """A row that one change wrote as a whole has the new columns by the version of its schema (`EventTopic.columns_of`). Of any other the
    new name stands where the old one does."""
    entries = F.col(METADATA_COLUMN)["changelog_columns"]

    def renamed(entry: Column) -> Column:
        fields = entry["changed_fields"]
        stays = F.filter(fields, lambda name: ~_is_filled_name(name, origins))
        moved = [
            F.when(F.col(_flag(new)) & F.array_contains(fields, old), F.array(F.lit(new))).otherwise(
                F.array().cast("array<string>")
            )
            for new, old in origins.items()
        ]
        return entry.withField("changed_fields", F.concat(stays, *moved))

    def is_left(entry: Column, before: Column) -> Column:
        return (F.size(before["changed_fields"]) == 0) | (F.size(entry["changed_fields"]) > 0)

    pairs = F.filter(
        F.transform(entries, lambda entry: F.struct(entry.alias("was"), renamed(entry).alias("becomes"))),
        lambda pair: is_left(pair["becomes"], pair["was"]),
    )
    return F.col(METADATA_COLUMN).withField("changelog_columns", F.transform(pairs, lambda pair: pair["becomes"]))


def _is_filled_name(name: Column, origins: Mapping[str, str]) -> Column:
    return reduce(or_, ((name == F.lit(new)) & F.col(_flag(new)) for new in origins), F.lit(False))


def _flag(name: str) -> str:
    return f"_lakehub_fill_{name}"


def _quoted(name: str) -> str:
    return f"`{name}`"

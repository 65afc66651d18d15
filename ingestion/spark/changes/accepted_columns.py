"""The columns of the newest version of the schema, in the table before a row has them.

Whoever may register versions may have registered what no table of the lake can follow. Then the table stays as it is, and the dataset goes on.
"""

from __future__ import annotations

from dataclasses import replace

from ingestion.domain.schema import Schema, SchemaEvolution, UnfitColumnName, UnknownColumn
from ingestion.sources import AcceptedColumns
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.loading import write_path


def with_accepted(evolution: SchemaEvolution, accepted: AcceptedColumns, table: TableSpec) -> SchemaEvolution:
    """`evolution`: what the events themselves mean for the table, which comes first."""
    if not accepted.version:
        return evolution
    if accepted.columns is None:
        return replace(evolution, refused=f"Version {accepted.version} is no schema of change events.")
    try:
        # Alone first: no version has a column of ours.
        accepted.columns.require_lake_names(f"Version {accepted.version}")
        further = write_path.plan_schema(_beside(evolution.target, accepted.columns), table, evolution.target)
    except (UnfitColumnName, UnknownColumn, write_path.UnfitKey) as problem:
        return replace(evolution, refused=f"Version {accepted.version} cannot be followed. {problem}")
    return replace(
        evolution,
        target=further.target,
        added=(*evolution.added, *further.added),
        widened=tuple(dict.fromkeys((*evolution.widened, *further.widened))),
        conflicts=tuple(dict.fromkeys((*evolution.conflicts, *further.conflicts))),
    )


def _beside(stored: Schema, accepted: Schema) -> Schema:
    """A column that the version has no more stays."""
    return Schema((*(column for column in stored if column.name not in accepted), *accepted))

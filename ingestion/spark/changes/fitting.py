"""Makes decoded events fit the table: their values in its types, as plain values, and those that do not fit put aside with the reason.

Events that carry the same columns are fitted together, whole columns at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ingestion.domain.merging.events import Operation
from ingestion.domain.merging.stored_metadata import LatestEvent
from ingestion.domain.schema import Schema
from ingestion.heatpipe.decoder import Decoded
from ingestion.heatpipe.row_keys import row_key_text
from ingestion.sources import Chunk
from ingestion.spark.changes.cells import complete_cells
from ingestion.spark.changes.merging import Change
from ingestion.spark.contract.spec import TableSpec
from ingestion.spark.file_groups.record_locations import key_text
from ingestion.spark.loading.fitting import FitRules, RejectedRow, fit_rows
from ingestion.spark.loading.judging import plain_rows
from lakehub.kernel.partitions.form import PartitionForm

_Shape = tuple[bool, tuple[str, ...]]
"""Is it a delete, and which columns does it carry?"""


@dataclass(frozen=True)
class FittedChanges:
    """`changes`: in the order of the log. `rejected`: by the place of the event in what was given. `nulled`: of changes, with null in place of values that
    do not fit."""

    changes: tuple[Change, ...]
    rejected: dict[int, RejectedRow]
    nulled: dict[int, RejectedRow] = field(default_factory=dict)


def fit_changes(
    decoded: Sequence[Decoded],
    table: TableSpec,
    columns: Schema,
    form: PartitionForm | None = None,
    *,
    nulls_misfits: bool = False,
) -> FittedChanges:
    """`columns`: of the table, without its metadata. `form`: how the partition is made from columns of the row. A delete needs its key only; any other
    event that carries the partition needs one."""
    shapes: dict[_Shape, list[int]] = defaultdict(list)
    decoded = complete_cells(decoded, columns.names)
    for place, each in enumerate(decoded):
        is_delete = each.event.operation is Operation.DELETE
        carried = table.record_key if is_delete else tuple(each.event.values)
        shapes[is_delete, carried].append(place)
    changes: dict[int, Change] = {}
    rejected: dict[int, RejectedRow] = {}
    nulled: dict[int, RejectedRow] = {}
    for (is_delete, carried), places in shapes.items():
        group = [decoded[place] for place in places]
        rules = replace(
            _rules(table, columns, carried, form, is_delete=is_delete), nulls_misfits=nulls_misfits and not is_delete
        )
        fitted, misfits, notes = _fit_group(group, rules, table, carried)
        changes |= {places[row]: change for row, change in fitted.items()}
        rejected |= {places[row]: misfit for row, misfit in misfits.items()}
        nulled |= {places[row]: note for row, note in notes.items() if row in fitted}
    return FittedChanges(tuple(changes[place] for place in sorted(changes)), rejected, nulled)


def _rules(
    table: TableSpec, columns: Schema, carried: tuple[str, ...], form: PartitionForm | None, *, is_delete: bool
) -> FitRules:
    names, partition = {*carried}, table.partition_column
    if form is not None and partition is not None and {*form.columns} <= names:
        names.add(partition)
    else:
        form = None
    if is_delete or partition not in names:
        partition = form = None
    required = tuple(name for name in (*table.record_key, partition) if name is not None)
    schema = Schema(tuple(column for column in columns if column.name in names))
    return FitRules(schema, required, partition, form, record_key=table.record_key, is_captured=True)


def _fit_group(
    group: Sequence[Decoded], rules: FitRules, table: TableSpec, carried: tuple[str, ...]
) -> tuple[dict[int, Change], dict[int, RejectedRow], dict[int, RejectedRow]]:
    """By place in the group: changes, what is rejected, and notes."""
    result = fit_rows(Chunk({name: [each.event.values.get(name) for each in group] for name in carried}), rules)
    rejected = {misfit.row: misfit for misfit in result.rejected if misfit.row is not None}
    kept = [row for row in range(len(group)) if row not in rejected]
    changes: dict[int, Change] = {}
    keys = _keys(result.rows, table)
    for row, key, values in zip(kept, keys, plain_rows(result.rows), strict=True):
        if key is None:
            reason = (
                "the record key cannot be looked up: one of its values is empty, or has the sign that separates them"
            )
            rejected[row] = RejectedRow(table.record_key[0], reason, str(group[row].event.row_key), row)
        else:
            changes[row] = _change(group[row], key, dict(values), table)
    return changes, rejected, {note.row: note for note in result.nulled if note.row is not None}


def _keys(rows: pa.Table, table: TableSpec) -> list[str | None]:
    """As Hudi writes them."""
    texts = zip(*(rows[name].cast(pa.string()).to_pylist() for name in table.record_key), strict=True)
    return [key_text(each, table) for each in texts]


def _change(decoded: Decoded, key: str, values: dict[str, object], table: TableSpec) -> Change:
    event = decoded.event
    row_key = tuple(values[name] for name in table.record_key)
    facts = LatestEvent(
        decoded.source,
        event.source_committed_at,
        decoded.schematised_at,
        event.schema_version,
        decoded.error_exception,
        force_update=event.force_update,
    )
    return Change(replace(event, row_key=row_key, values=values), key, row_key_text(event.row_key), facts)

"""difference(here, there): the records in which two copies differ, exactly. Sums of cells travel, and the records that differ.

Decided by what is wrong here: records that are missing, that have other values, or that are here more often than there. What only
this side has is missing on the other one, whose own test decides about it: one lost record fails the copy that lost it, and no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from quality.domain.difference.agreement import Agreement, CannotCompare, agree
from quality.domain.difference.reconcile import Reconciled, reconcile
from quality.domain.difference.records import Difference
from quality.domain.difference.sums import Kind
from quality.domain.language.measures import Measure
from quality.domain.language.values import Failed, no_data
from quality.engines.scans.parts import CannotRead
from quality.engines.scans.row_endpoint import RowEndpoint

DECIDING = (Kind.MISSING, Kind.CHANGED, Kind.DOUBLED)
"""What counts against this side."""
MAX_NAMED_OF_KIND = 2_000
MAX_ROWS_OF_EMPTY_SIDE = 5_000
"""Of more rows than that on one side, none is named where the other one is empty: all of them are missing there."""


def difference(
    measure: Measure, here: RowEndpoint, there: RowEndpoint, *, salt: str = ""
) -> Mapping[str, Any] | Failed:
    """`measure.columns` is the key, `measure.values` the columns that are not compared. Raises CannotRead."""
    rows_here, rows_there = here.count(), there.count()
    if not rows_here and not rows_there:
        return no_data("there are no rows on either side")
    agreement = _agreement(measure, here, there)
    rows = max(rows_here, rows_there)
    if not min(rows_here, rows_there) and rows > MAX_ROWS_OF_EMPTY_SIDE:
        reconciled = Reconciled(counts={Kind.SURPLUS if rows_here else Kind.MISSING: rows})
    else:
        reconciled = reconcile(here.side(agreement, rows), there.side(agreement, rows))
    differing = reconciled.count_against(DECIDING)
    if differing is None:
        return no_data(
            f"too many records differ, about {reconciled.estimate:,}, to say which of them are missing here or changed. "
            "Compare the other side first: what it lacks, its own test says."
        )
    return {
        "keys": rows,
        "differing": min(rows, differing),
        "differences": _named(reconciled.differences, agreement),
        "report": _report(reconciled, agreement, rows_here, rows_there),
    }


def _agreement(measure: Measure, here: RowEndpoint, there: RowEndpoint) -> Agreement:
    native = bool(here.native_hash) and here.native_hash == there.native_hash
    columns_here, columns_there = here.columns(), there.columns()
    known = columns_here or columns_there or {}
    try:
        return agree(
            measure.columns,
            known if columns_here is None else columns_here,
            known if columns_there is None else columns_there,
            native=native,
            excluded=[str(name) for name in measure.values],
        )
    except CannotCompare as unfit:
        raise CannotRead(str(unfit)) from unfit


def _named(differences: Iterable[Difference], agreement: Agreement) -> list[dict[str, Any]]:
    """By kind, those that decide first; of each kind the first by key."""
    by_kind: dict[Kind, list[dict[str, Any]]] = defaultdict(list)
    for record in differences:
        by_kind[record.kind].append(_named_record(record, agreement))
    order = sorted(by_kind, key=lambda kind: (kind not in DECIDING, list(Kind).index(kind)))
    return [
        named
        for kind in order
        for named in sorted(by_kind[kind], key=lambda named: str(named["key"]))[:MAX_NAMED_OF_KIND]
    ]


def _named_record(record: Difference, agreement: Agreement) -> dict[str, Any]:
    values = record.here or record.there or ()
    named: dict[str, Any] = {"kind": str(record.kind), "key": dict(zip(agreement.key, values, strict=False))}
    if record.here is not None and record.there is not None:
        columns = zip(agreement.names, record.here, record.there, strict=True)
        named["columns"] = {name: [mine, theirs] for name, mine, theirs in columns if mine != theirs}
    return named | ({"count": record.count} if record.count > 1 else {})


def _report(reconciled: Reconciled, agreement: Agreement, rows_here: int, rows_there: int) -> dict[str, Any]:
    """Only what there is of what is rare."""
    rare = {
        "estimated": reconciled.estimate,
        "unexplained": reconciled.unexplained,
        "left_out": [f"{name}: {reason}" for name, reason in agreement.left_out.items()],
    }
    return {
        "rows_here": rows_here,
        "rows_there": rows_there,
        **{kind.name.lower(): reconciled.count(kind) for kind in Kind},
        "columns": len(agreement.columns),
        "hashed_by": "engine" if agreement.native else "md5",
        "bytes_moved": reconciled.bytes_moved,
        **{name: value for name, value in rare.items() if value},
    }

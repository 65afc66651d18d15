"""The records that a run names: `missing` and `differences` of a result's detail, its only values of single rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from quality.domain.measurement_codec import storable_json

RECORD_FIELDS = ("missing", "differences")
"""Of a result's detail, what names records."""
MAX_RECORDS_OF_KIND = 200
MAX_BYTES = 64 * 1024
"""Of all records of a result, as JSON: they are stored with the unit, each result and each incident."""

LEFT_OUT = ["…", "…"]
"""In place of the two values of a column, where all of them are too large to keep."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class _Named:
    """One record: of which list, where it is among all, and among those of its kind."""

    list_name: str
    record: Record
    place: int
    place_in_kind: int


def bounded_records(records: Mapping[str, Sequence[Record]]) -> dict[str, list[Record]]:
    """Of each list the records that are kept, in their order: of each kind the first, in turn, so that no kind hides another,
    as many as MAX_RECORDS_OF_KIND and, together, MAX_BYTES allow."""
    kept = sorted(_within_bytes(_by_turns(records)), key=lambda named: named.place)
    return {name: [named.record for named in kept if named.list_name == name] for name in records}


def _by_turns(records: Mapping[str, Sequence[Record]]) -> list[_Named]:
    counts: Counter[tuple[str, Any]] = Counter()
    named: list[_Named] = []
    for name, of_list in records.items():
        for record in of_list:
            kind = (name, record.get("kind"))
            named.append(_Named(name, record, len(named), counts[kind]))
            counts[kind] += 1
    first = (record for record in named if record.place_in_kind < MAX_RECORDS_OF_KIND)
    return sorted(first, key=lambda record: (record.place_in_kind, record.place))


def _within_bytes(named_records: Iterable[_Named]) -> Iterator[_Named]:
    """One that does not fit keeps its key and the names of what differs; where not even that fits it is left out, and smaller
    ones after it may fit."""
    free = MAX_BYTES
    for named in named_records:
        for record in (named.record, _without_values(named.record)):
            size = len(json.dumps(storable_json(dict(record)), ensure_ascii=False).encode())
            if size <= free:
                free -= size
                yield replace(named, record=record)
                break


def _without_values(record: Record) -> Record:
    columns = record.get("columns")
    return {**record, "columns": dict.fromkeys(columns, LEFT_OUT)} if isinstance(columns, Mapping) else record

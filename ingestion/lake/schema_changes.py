"""Columns that came, went or changed their type: a finding on every copy, which a dataset's policy makes an incident or only shows.

The policy is the override `schema_changes`: `incident` for all changes, `breaking` (the usual one) for columns that are gone
or retyped, `show` for none. What is only shown is a warning for a week.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from django.db.models import Q

from ingestion.lake.findings import SCHEMA_CHANGED
from ingestion.models import Finding
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.interval import EVERYTHING

SHOWN_FOR = timedelta(days=7)
MAX_NAMED_COLUMNS = 50
_STEP = timedelta(microseconds=1)


def raise_schema_changed(
    dataset_id: int,
    overrides: Mapping[str, object],
    before: Mapping[str, str],
    after: Mapping[str, str],
    *,
    now: datetime,
) -> None:
    """The port `catalog.SchemaChangeObserver`. Columns that are back as they were clear what was raised.

    A later change that opens an incident is raised anew: who accepted the first one has not seen it.
    """
    live = Finding.objects.filter(
        Q(cleared_at=None) | Q(cleared_at__gt=now), copy__dataset=dataset_id, kind=SCHEMA_CHANGED
    )
    opened = live.filter(cleared_at=None).order_by("raised_at").values_list("detail", flat=True).first()
    base = dict(opened["before"]) if opened is not None else dict(before)
    shown_only = not _opens_incident(overrides, _changes(before, after))
    if base == dict(after) or not before:
        live.update(cleared_at=now)
    elif opened is None or not shown_only:
        live.update(cleared_at=now)
        _raise_on_copies(dataset_id, base, after, shown_only=shown_only, now=now)
    else:
        changes = _changes(base, after)
        live.filter(cleared_at=None).update(detail={**opened, "message": _message(changes), **changes})


def _opens_incident(overrides: Mapping[str, object], changes: Mapping[str, list[str]]) -> bool:
    policy = overrides.get("schema_changes", "breaking")
    return policy == "incident" or (policy == "breaking" and bool(changes["removed"] or changes["retyped"]))


def _raise_on_copies(
    dataset_id: int, before: Mapping[str, str], after: Mapping[str, str], *, shown_only: bool, now: datetime
) -> None:
    changes = _changes(before, after)
    if not any(changes.values()):
        return  # their order only, or whether nulls are allowed
    detail = {"message": _message(changes), "before": dict(before), "shown_only": shown_only, **changes}
    Finding.objects.bulk_create(
        Finding(
            copy=copy,
            kind=SCHEMA_CHANGED,
            start=EVERYTHING.start,
            end=EVERYTHING.end,
            detail=detail,
            raised_at=now + _STEP,  # after what it takes the place of was cleared
            cleared_at=now + SHOWN_FOR if shown_only else None,
        )
        for copy in DatasetCopy.objects.filter(dataset=dataset_id)
    )


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str]]:
    return {
        "added": [f"{name} ({after[name]})" for name in after if name not in before],
        "removed": [f"{name} ({before[name]})" for name in before if name not in after],
        "retyped": [
            f"{name} ({before[name]} to {after[name]})"
            for name in before
            if name in after and before[name] != after[name]
        ],
    }


def _message(detail: Mapping[str, list[str]]) -> str:
    """`removed: tailnum (string); added: carrier (string)`."""
    parts = []
    for how in ("removed", "retyped", "added"):
        names = detail[how]
        more = f" and {len(names) - MAX_NAMED_COLUMNS} more" if len(names) > MAX_NAMED_COLUMNS else ""
        parts += [f"{how}: {', '.join(names[:MAX_NAMED_COLUMNS])}{more}"] if names else []
    return "; ".join(parts)

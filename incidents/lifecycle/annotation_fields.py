"""What owners say of an incident: when it will be over, why it happened, how the data is repaired."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from incidents.models import Backfill, Incident, RootCause
from ingestion.models import JobRun
from lakehub.kernel.errors import Refused
from lakehub.kernel.suggest import did_you_mean

ANNOTATION_FIELDS = ("eta", "root_cause", "root_cause_text", "backfill", "backfill_run")
CHOICE_FIELDS = {"root_cause": RootCause.values, "backfill": Backfill.values}
"""Annotations that are one of a list of words."""
_LABELS = {"eta": "ETA", "root_cause_text": "what happened", "backfill_run": "run"}


def checked_annotations(changes: Mapping[str, Any], incident: Incident, *, now: datetime) -> dict[str, Any]:
    """The annotations as fields of the incident, `backfill_run` by its number. Raises Refused for all that make no sense."""
    problems = {
        name: f"There is nothing to annotate called `{name}`.{did_you_mean(name, ANNOTATION_FIELDS)}"
        for name in changes
        if name not in ANNOTATION_FIELDS
    }
    eta = changes.get("eta")
    if eta is not None and eta <= now and eta != incident.eta:
        problems["eta"] = (
            f"Recovery is expected in the future, and {eta.astimezone(UTC):%Y-%m-%d %H:%M} UTC has passed."
        )
    for name, words in CHOICE_FIELDS.items():
        value = changes.get(name, "")
        if value and value not in words:
            problems[name] = f"`{value}` is no {name.replace('_', ' ')}.{did_you_mean(value, words)}"
    fields = dict(changes)
    try:
        fields |= _linked_run(changes, incident)
    except Refused as refused:
        problems |= refused.fields
    if problems:
        raise Refused.for_fields(problems)
    return fields


def changed_fields(incident: Incident, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if getattr(incident, name) != value}


def annotation_text(fields: Mapping[str, Any]) -> str:
    """`ETA: 2026-11-17 20:32 UTC; root cause: replication; backfill: running; run: 9127`."""
    return "; ".join(f"{_label(name)}: {_value_text(name, value)}" for name, value in fields.items())


def _linked_run(changes: Mapping[str, Any], incident: Incident) -> dict[str, Any]:
    """A run is the incident's dataset's own, and says that the backfill runs where nothing else was said."""
    if "backfill_run" not in changes:
        return {}
    number = changes["backfill_run"]
    if number is None:
        return {"backfill_run": None}
    run = JobRun.objects.filter(pk=number, copy__dataset=incident.dataset_id).first()
    if run is None:
        raise Refused.for_fields(
            {"backfill_run": f"{incident.dataset.name} has no job run {number}. Its page lists them."}
        )
    return {"backfill_run": run, "backfill": changes.get("backfill") or Backfill.RUNNING.value}


def _label(name: str) -> str:
    return _LABELS.get(name, name.replace("_", " "))


def _value_text(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    if isinstance(value, JobRun):
        return str(value.pk)
    return str(value or "not known").replace("_", " ") if name in CHOICE_FIELDS else str(value or "not known")

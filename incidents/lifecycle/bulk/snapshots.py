"""The fields of an incident that actions change, as JSON, so that an undo can set them back exactly."""

from __future__ import annotations

from typing import Any

from django.db.models import ForeignKey

from incidents.models import Incident

EXCLUDED_FIELDS = frozenset({"id", "dataset", "category", "title", "opened_at", "reported", "revision"})
"""No action on many changes these; the title follows from what fails."""


def snapshot(incident: Incident) -> dict[str, Any]:
    """Every field that is not fixed, by its name; instants as ISO 8601, rows by their key."""
    fields = (field for field in Incident._meta.concrete_fields if field.name not in EXCLUDED_FIELDS)
    return {field.name: _json_value(field.value_from_object(incident)) for field in fields}


def changed_values(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What `before` had where `after` has something else."""
    return {name: value for name, value in before.items() if after[name] != value}


def values_for_update(values: dict[str, Any]) -> dict[str, Any]:
    """A snapshot as values for an update."""
    fields = (field for field in Incident._meta.concrete_fields if field.name in values)
    return {
        field.attname: values[field.name] if isinstance(field, ForeignKey) else field.to_python(values[field.name])
        for field in fields
    }


def _json_value(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value

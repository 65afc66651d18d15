"""What the page of a subject shows: the chosen version with its columns, and a page of all versions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.http import Http404

from ingestion.domain.avro.columns import AvroColumn, ColumnList, columns_of
from ingestion.models import SchemaSubject, SchemaVersion
from ingestion.schemas import registry
from ingestion.schemas.subjects.table_columns import ROW_PREFIX, column_count, is_change_event
from lakehub.kernel.errors import NotFound

VERSIONS_PER_PAGE = 20
_MAX_PRETTY = 64 * 1024
"""Of a longer schema the text is shown as it was registered: laid out it would be several times as long."""


@dataclass(frozen=True)
class ShownVersion:
    """`metadata`: of a change event what it has beside the row."""

    version: SchemaVersion
    columns: list[AvroColumn]
    metadata: list[AvroColumn]
    is_cut: bool
    count: int
    """Without the fields of structures."""
    doc: str
    json: str


def find_subject(name: str) -> SchemaSubject:
    """Raises Http404 with the nearest name."""
    try:
        return registry.find_subject(name)
    except NotFound as missing:
        raise Http404(str(missing)) from missing


def find_version(subject: SchemaSubject, number: int | None) -> SchemaVersion:
    """None: the newest. Raises Http404."""
    versions = subject.versions.order_by("-version")
    version = (versions if number is None else versions.filter(version=number)).first()
    if version is None:
        raise Http404(f"{subject} has no version {'yet' if number is None else number}.")
    return version


def version_page(subject: SchemaSubject, page: str | None) -> Page[SchemaVersion]:
    """Newest first. Two queries."""
    return Paginator(subject.versions.defer("text").order_by("-version"), VERSIONS_PER_PAGE).get_page(page)


def shown_version(version: SchemaVersion) -> ShownVersion:
    schema = registry.schema_of(version)
    listed: ColumnList = columns_of(schema)
    columns, metadata = list(listed.columns), []
    if is_change_event(schema):
        metadata = [column for column in columns if column.path.startswith("metadata.")]
        columns = [column for column in columns if column.path.startswith(ROW_PREFIX)]
    return ShownVersion(
        version, columns, metadata, listed.is_cut, column_count(schema), _doc(schema), pretty(version.text, schema)
    )


def pretty(text: str, schema: Any) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) if len(text) <= _MAX_PRETTY else text


def _doc(schema: Any) -> str:
    doc = schema.get("doc") if isinstance(schema, dict) else None
    return doc if isinstance(doc, str) else ""

"""What OpenLineage calls a table of a lake, by its URI: as its integrations for Spark and others name it, so that all mean one table."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from lakehub.catalog.lineage import TableName

_BUCKETS = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs"}
"""Storages whose names of objects begin without a slash."""


def table_in_lake(uri: str) -> TableName:
    """`file:///lake/dc1/flights`: the table `/lake/dc1/flights` of the namespace `file`; `s3a://lake/flights`: `flights` of `s3://lake`."""
    parts = urlsplit(uri)
    path, scheme = unquote(parts.path).rstrip("/"), parts.scheme or "file"
    if scheme == "file":
        return TableName("file", path)
    if scheme in _BUCKETS:
        return TableName(f"{_BUCKETS[scheme]}://{parts.netloc}", path.lstrip("/"))
    return TableName(f"{scheme}://{parts.netloc}", path)

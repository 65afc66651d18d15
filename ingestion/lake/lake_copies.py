"""Copies whose table lies in a lake: those that Lakehub writes, and those that others write and Lakehub only monitors. A pipeline reads both."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from lakehub.catalog.metadata import MetadataUnavailable
from lakehub.catalog.metadata.tables import HudiCopy
from lakehub.catalog.models import DatasetCopy
from lakehub.catalog.storages import lake_plugins


def lake_copies() -> QuerySet[DatasetCopy]:
    """Of datasets that are not off-boarded."""
    plugins = lake_plugins()
    monitored = Q(connection__plugin__in=plugins) | Q(connection=None, dataset__feed__connection__plugin__in=plugins)
    live = DatasetCopy.objects.filter(dataset__offboarded_at=None).filter(Q(dataset__ingested=True) | monitored)
    return live.select_related("dataset__feed__connection", "connection", "data_center")


def recorded_copies() -> QuerySet[DatasetCopy]:
    """Those whose commits are recorded: of monitored tables the ones that a pipeline reads."""
    is_read = Q(dataset__downstream_edges__downstream__pipeline__isnull=False)
    return lake_copies().filter(Q(dataset__ingested=True) | is_read).distinct()


def table_uri(copy: DatasetCopy) -> str:
    """Of its table in a lake. Raises MetadataUnavailable where it has none, or where the storage of its connection is not installed any more."""
    if copy.uri:
        return copy.uri
    table = None if copy.source is None else copy.source[0].storage.table(copy.source[1])
    if not isinstance(table, HudiCopy):
        raise MetadataUnavailable(f"{copy} is no table of a lake: it is monitored where its connection has it.")
    return table.uri

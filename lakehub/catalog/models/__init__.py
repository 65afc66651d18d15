"""The rows of the catalog: what data there is, where its copies lie, and what is made from what."""

from lakehub.catalog.models.dataset import TIERS, Dataset, DatasetKind, Feed, FeedKind, GracePeriod
from lakehub.catalog.models.dataset_copy import (
    MAX_COPIES,
    PARTITION_FIELDS,
    DatasetCopy,
    Rebuild,
    RebuildState,
)
from lakehub.catalog.models.lineage import LineageDay, LineageEdge, LineageLink, LineageTable, PostedRun
from lakehub.catalog.models.places import Connection, ConnectionTrial, DataCenter

__all__ = [
    "MAX_COPIES",
    "PARTITION_FIELDS",
    "TIERS",
    "Connection",
    "ConnectionTrial",
    "DataCenter",
    "Dataset",
    "DatasetCopy",
    "DatasetKind",
    "Feed",
    "FeedKind",
    "GracePeriod",
    "LineageDay",
    "LineageEdge",
    "LineageLink",
    "LineageTable",
    "PostedRun",
    "Rebuild",
    "RebuildState",
]

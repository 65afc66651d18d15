"""Which index the jobs of a copy use: that of its feed, or while that is being built, the one that they used before."""

from __future__ import annotations

from ingestion.models import IndexChange
from lakehub.catalog.datasets.feed_options import effective_options
from lakehub.catalog.models import DatasetCopy

HBASE = "hbase"
"""The index of a feed whose entries are in a cluster."""


def wanted_index(copy: DatasetCopy) -> str:
    """What its feed says."""
    feed = copy.dataset.feed_or_none
    return str(effective_options({} if feed is None else feed.options)["index"])


def standing_index(copy: DatasetCopy) -> str:
    """One query where `index_change` was not selected with the copy."""
    change: IndexChange | None = getattr(copy, "index_change", None)
    return wanted_index(copy) if change is None else change.former

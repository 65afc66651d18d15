"""What may be asked of a look at an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingestion.index_shares.shares import HBASE
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused


def check_repairs(dataset: Dataset, params: Mapping[str, Any]) -> None:
    """Raises Refused where entries are to be put right of an index that is only made anew as a whole."""
    feed = dataset.feed_or_none
    if params.get("repairs") and (feed is None or feed.options.get("index") != HBASE):
        raise Refused.for_fields(
            {
                "repairs": f"The index of `{dataset.name}` is not `{HBASE}`, the only one that is put right key by key. Verify it without `repairs`, and rebuild it where it is wrong."
            }
        )

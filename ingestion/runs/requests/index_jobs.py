"""What may be asked of a look at an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingestion.index_shares.shares import HBASE
from lakehub.catalog.datasets.feed_options import checked_options
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Refused


def check_repairs(dataset: Dataset, params: Mapping[str, Any]) -> None:
    """Raises Refused where entries are to be put right of an index that is only made anew as a whole."""
    feed = dataset.feed_or_none
    index = checked_options({} if feed is None else feed.options)["index"]
    if params.get("repairs") and index != HBASE:
        raise Refused.for_fields(
            {
                "repairs": f"The index `{index}` of `{dataset.name}` is not put right key by key. Verify it without `repairs`, and rebuild it where it is wrong."
            }
        )

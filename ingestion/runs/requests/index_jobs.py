"""What may be asked of a look at an index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingestion.index_shares.standing import HBASE, standing_index
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Refused


def check_repairs(copy: DatasetCopy, params: Mapping[str, Any]) -> None:
    """Raises Refused where entries are to be put right of an index that is only made anew as a whole."""
    if params.get("repairs") and standing_index(copy) != HBASE:
        raise Refused.for_fields(
            {
                "repairs": f"The index that jobs of {copy} use is not `{HBASE}`, the only one that is put right key by key. Verify it without `repairs`, and rebuild it where it is wrong."
            }
        )

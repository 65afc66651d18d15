"""Which columns of a captured dataset are left out, hashed or masked, with the key of this instance's hashes."""

from __future__ import annotations

from ingestion.capture.tap.hidden_columns import HiddenColumns, differences
from ingestion.models import Capture
from lakehub.catalog.models import Feed
from lakehub.db.encrypted_fields import keyed_digest

_KEY_OF = "hashed columns of captured tables"


def hidden_columns_of(feed: Feed) -> HiddenColumns:
    """As the settings of the dataset have them. The key is that of all datasets: what is equal in two tables has one hash, so that they can be joined.

    It is derived from LAKEHUB_ENCRYPTION_KEY, which stays as long as the instance; LAKEHUB_SECRET_KEY is replaced every now and then."""
    return HiddenColumns(
        frozenset(feed.columns_left_out),
        frozenset(feed.columns_hashed),
        frozenset(feed.columns_masked),
        keyed_digest(_KEY_OF) if feed.columns_hashed else "",
    )


def changed_columns(capture: Capture, hidden: HiddenColumns) -> str:
    """What is hidden otherwise than since the capture has begun, in words; empty: nothing."""
    return "; ".join(differences(capture.captured_columns, hidden.as_json()))

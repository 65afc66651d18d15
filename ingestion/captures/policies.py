"""What a captured dataset does about changes that the lake cannot follow as they are: by options of its feed."""

from __future__ import annotations

from lakehub.catalog.datasets.feed_options import (
    DROP_IS_APPLIED,
    MISFIT_IS_NULL,
    NARROWING_STOPS,
    ON_DROP,
    ON_MISFIT,
    ON_NARROWING,
    ON_TRUNCATE,
    TRUNCATE_IS_APPLIED,
)
from lakehub.catalog.models import Feed


def required_columns_of(feed: Feed) -> frozenset[str] | None:
    """Where it becomes null, the columns of which none may: those of the key and of the partition. None: its row goes to the error table."""
    if feed.options.get(ON_MISFIT) != MISFIT_IS_NULL:
        return None
    dataset = feed.dataset
    form = dataset.source_form
    partition = () if form is None else form.columns
    names = (*(dataset.record_key or dataset.primary_key), dataset.lake_partition_column, *partition)
    return frozenset(name for name in names if name)


def follows_truncate(feed: Feed) -> bool:
    """Whether the rows of the lake go where the table is emptied."""
    return bool(feed.options.get(ON_TRUNCATE) == TRUNCATE_IS_APPLIED)


def follows_drop(feed: Feed) -> bool:
    """Whether they go where it is dropped."""
    return bool(feed.options.get(ON_DROP) == DROP_IS_APPLIED)


def stops_at_narrowing(feed: Feed) -> bool:
    """Whether the capture stops where a column becomes narrower."""
    return bool(feed.options.get(ON_NARROWING) == NARROWING_STOPS)

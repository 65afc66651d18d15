"""What a captured dataset does about changes that the lake cannot follow as they are: by options of its feed."""

from __future__ import annotations

from lakehub.catalog.datasets.feed_options import MISFIT_IS_NULL, ON_MISFIT, ON_TRUNCATE, TRUNCATE_IS_APPLIED
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

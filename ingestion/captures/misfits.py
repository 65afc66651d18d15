"""What becomes of a value that does not fit its column: by the option `on_misfit` of the feed of a captured dataset."""

from __future__ import annotations

from lakehub.catalog.datasets.feed_options import MISFIT_IS_NULL, ON_MISFIT
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

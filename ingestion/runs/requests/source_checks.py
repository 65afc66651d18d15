"""What a job may read of a dataset's source, and what it may read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ingestion.captures.beginning import is_captured_feed
from ingestion.models import JobKind, Pipeline
from ingestion.spark.contract.job_kinds import READING_KINDS
from lakehub.catalog.models import Dataset, Feed, FeedKind
from lakehub.catalog.storages import lands_chunks
from lakehub.kernel.errors import Refused

MAX_KEYS = 10_000
"""Of rows that one run reads again."""
_REMEDIES = {
    FeedKind.PIPELINE: "It has no files: register the pipeline with `manage.py pipelines register FOLDER`.",
    FeedKind.CHANGELOG: "Its rows come with the events of the changelog; to load a table, onboard the table with its connection.",
}
"""What to do instead of a job that would read a table."""


def check_source(dataset: Dataset, kind: str) -> None:
    """Raises Refused where a job of this kind would read a source, and the dataset's feed is none that it can read."""
    feed = dataset.feed_or_none
    if kind not in READING_KINDS or (feed is not None and (feed.kind == FeedKind.CONNECTION or _is_registered(feed))):
        return
    if feed is None:
        raise Refused(
            "The dataset has no feed: it says where its rows come from. Onboard it with a connection and a table."
        )
    raise Refused(
        f"Dataset `{dataset.name}` cannot be loaded by the job `{kind}`: its feed is a {feed.kind} (`{feed.object}`), "
        f"and the job reads a table of a connection. {_REMEDIES[FeedKind(feed.kind)]}"
    )


def _is_registered(feed: Feed) -> bool:
    return feed.dataset.is_modelled and Pipeline.objects.filter(dataset=feed.dataset_id).exists()


def is_landed_feed(feed: Feed | None) -> bool:
    """Are the chunks kept for a while that its loads read?"""
    return feed is not None and feed.connection is not None and lands_chunks(feed.connection.plugin)


def check_rereading(dataset: Dataset, kind: str, params: Mapping[str, Any]) -> None:
    """Raises Refused for what cannot be read again of this dataset."""
    if kind == JobKind.BOOTSTRAP and params.get("from_chunks"):
        _check_chunks(dataset, params)
    if kind == JobKind.BACKFILL:
        _check_backfill(dataset, params)


def _check_backfill(dataset: Dataset, params: Mapping[str, Any]) -> None:
    """Of a captured dataset single rows, of any other partitions."""
    feed, keys = dataset.feed_or_none, params.get("keys") or ()
    is_landed = is_landed_feed(feed)
    if is_captured_feed(feed) and (not keys or not is_landed):
        single = "name the `keys` of rows that are to be read, or " if is_landed else ""
        raise Refused(
            f"Dataset `{dataset.name}` is captured: all changes of its table are in the lake, so no partition is read again. "
            f"Where rows are missing, {single}bootstrap it with `replace`."
        )
    if keys and not is_landed:
        raise Refused(
            f"Single rows of `{dataset.name}` cannot be read again: only those of tables that are captured from a MariaDB. Name partitions, or bootstrap it with `replace`."
        )
    if keys and params.get("partitions"):
        raise Refused("A backfill names `keys` or `partitions`, and not both.")
    if len(keys) > MAX_KEYS:
        raise Refused(
            f"{len(keys):,} keys are given: a backfill reads {MAX_KEYS:,} at most. Ask for the others in another."
        )
    width = len(dataset.record_key or dataset.primary_key)
    if any(len(key) != width for key in keys):
        raise Refused(
            f"Each of the `keys` has the {width} values of the record key, in its order: {', '.join(dataset.record_key or dataset.primary_key)}."
        )


def _check_chunks(dataset: Dataset, params: Mapping[str, Any]) -> None:
    """Whether the chunks are there is seen by the load."""
    if not params.get("replace"):
        raise Refused("`from_chunks` reads again what the last load has read: ask for `replace`, too.")
    feed = dataset.feed_or_none
    if not is_landed_feed(feed):
        raise Refused(
            f"Dataset `{dataset.name}` cannot be loaded from chunks: those of tables are kept that are captured from a MariaDB. Leave `from_chunks` out."
        )

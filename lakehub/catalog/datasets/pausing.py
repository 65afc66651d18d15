"""Pausing what brings a dataset's rows, and resuming it. A job that is at work stops after the commit that it is in, and keeps its position."""

from __future__ import annotations

from datetime import datetime

from lakehub.catalog.datasets.changes import MAX_REASON_LENGTH, write_changes
from lakehub.catalog.models import Dataset
from lakehub.kernel.errors import Conflict, Refused


def pause_ingestion(dataset: Dataset, *, why: str, actor: str, now: datetime) -> Dataset:
    """Nothing reads the source until it is resumed. Raises Refused without a reason or a feed, Conflict where it is paused already."""
    _check_feed(dataset)
    why = why.strip()
    if not why:
        raise Refused.for_fields({"why": "Say why it is paused: who waits for the data will ask."})
    if len(why) > MAX_REASON_LENGTH:
        raise Refused.for_fields({"why": f"The reason has {len(why):,} characters; at most {MAX_REASON_LENGTH:,} fit."})
    if dataset.feed.paused:
        raise Conflict(f"Ingestion of `{dataset.name}` is {dataset.feed.pause_text}. Nothing was changed.")
    return write_changes(dataset, {"paused": True, "paused_why": why}, actor=actor, now=now)


def resume_ingestion(dataset: Dataset, *, actor: str, now: datetime) -> Dataset:
    """Jobs go on where they were. Raises Refused without a feed, Conflict where it is not paused."""
    _check_feed(dataset)
    if not dataset.feed.paused:
        raise Conflict(f"Ingestion of `{dataset.name}` is not paused. Nothing was changed.")
    return write_changes(dataset, {"paused": False}, actor=actor, now=now)


def _check_feed(dataset: Dataset) -> None:
    if dataset.offboarded_at is not None:
        raise Refused(f"`{dataset.name}` is off-boarded: nothing loads it.")
    if dataset.feed_or_none is None:
        raise Refused(f"`{dataset.name}` is not fed: there is nothing to pause.")

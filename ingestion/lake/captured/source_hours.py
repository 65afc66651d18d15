"""How many messages the rows of captured sources were, by the hour, as their taps count them. What a tap has not handed over yet it keeps in the changelog."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from ingestion.capture.source_counts import HourCounts
from ingestion.models import Capture, SourceHour


def note_counting(topics: Collection[str], *, anew: bool, now: datetime) -> None:
    """From `now` on they are counted. `anew`: what was captured before was not, whoever captured it; otherwise those that were counted go on."""
    captures = Capture.objects.filter(topic__in=topics)
    (captures if anew else captures.filter(counted_since=None)).update(counted_since=now)


def keep_counts(server: str, counts: HourCounts) -> None:
    """As they are now, however often: of a server one process tells, the one that has its lease, or has just opened its place in the changelog."""
    topics = {topic for of in counts.values() for topic in of}
    captures = dict(Capture.objects.filter(topic__in=topics).values_list("topic", "pk"))
    rows = [
        SourceHour(capture_id=captures[topic], server=server, start=start_of(hour), messages=messages)
        for hour, of in counts.items()
        for topic, messages in of.items()
        if topic in captures
    ]
    SourceHour.objects.bulk_create(
        rows,
        batch_size=500,
        update_conflicts=True,
        unique_fields=["capture", "start", "server"],
        update_fields=["messages"],
    )


def messages_of(capture: Capture, start: datetime) -> int | None:
    """Of that hour. None: not known."""
    if not is_counted(capture, start):
        return None
    counts = [*SourceHour.objects.filter(capture=capture, start=start).values_list("messages", flat=True)]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def is_counted(capture: Capture, start: datetime) -> bool:
    """The whole hour."""
    return capture.counted_since is not None and capture.counted_since <= start


def start_of(hour: str) -> datetime:
    """`2026-11-16T05`"""
    return datetime.strptime(hour, "%Y-%m-%dT%H").replace(tzinfo=UTC)

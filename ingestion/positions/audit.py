"""Are all changes of the source in the log, and all messages of the log in commits? By copy and hour: how many the source's rows are, how many the log has, and how
many the commits of the copy have read.

Each commit proves that what it reads is applied, superseded, redelivered or an error. This proves that it was read at all, by counting the log itself; and that it came
there, by what the tap has counted of the source. An hour is counted once, when it is over, and the tap has told of it, and the copy has read on from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import F, Q, QuerySet

from ingestion.captures.changelog import retention_s
from ingestion.captures.topics import topic_to_read
from ingestion.changelog import ChangelogError
from ingestion.heatpipe.event_topic import EventTopic
from ingestion.lake import findings
from ingestion.lake.captured import source_hours
from ingestion.lake.captured.hours import HOUR, hour_at
from ingestion.models import Capture, CaptureHour, Commit, TapServer
from ingestion.positions.places import CopyPlace, place_of_copy
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import Busy, Refused
from lakehub.kernel.interval import EVERYTHING

logger = logging.getLogger(__name__)
SETTLED_AFTER = timedelta(minutes=10)
"""The clocks of those who write the log may be apart, and a commit is known a little later than it is made."""
LOOKS_BACK = timedelta(days=2)
"""Hours without any commit are looked at for so long."""
WAITS_FOR_TAP = timedelta(days=1)
"""A tap that is away for longer may have counted what it has not told: hours are compared without it."""
_MAX_NAMED = 5
_COUNTS = ("logged", "read", "source")


def count_due_hours(*, now: datetime, has_time: Callable[[], bool]) -> int:
    """Counts the log of hours that are over, oldest first, and tells what is missing. How many. `has_time`: to begin another one."""
    counted = 0
    for copy in copies_to_count(now=now):
        if not has_time():
            break
        try:
            counted += _count_copy(copy, now=now, has_time=has_time)
        except (Refused, Busy, ChangelogError) as problem:
            logger.info("The changelog of %s was not counted: %s", copy, problem)
    return counted


def copies_to_count(*, now: datetime) -> list[DatasetCopy]:
    """Captured, with an hour that is over and not counted."""
    _make_missing_hours(now=now)
    due = uncounted_hours(now=now).values("copy").distinct()
    live = DatasetCopy.objects.filter(pk__in=due, dataset__offboarded_at=None)
    return [*live.select_related("dataset__feed__connection", "data_center").order_by("pk")]


def uncounted_hours(*, now: datetime) -> QuerySet[CaptureHour]:
    return CaptureHour.objects.filter(logged=None, is_partial=False, start__lte=now - HOUR - SETTLED_AFTER)


def _make_missing_hours(*, now: datetime) -> None:
    """An hour of which the commits have read nothing has no row: the log may have messages of it. Hours before the first are not the copy's."""
    since, last = hour_at(now - LOOKS_BACK), hour_at(now - HOUR - SETTLED_AFTER)
    live = Q(copy__removed_at=None, copy__dataset__offboarded_at=None)
    known = set(CaptureHour.objects.filter(live, start__gte=since).values_list("copy", "start"))
    firsts: dict[int, datetime] = {}
    for copy, start in known:
        firsts[copy] = min(start, firsts.get(copy, start))
    missing = [
        CaptureHour(copy_id=copy, start=start)
        for copy, first in firsts.items()
        for number in range(1, int((last - first) / HOUR) + 1)
        if (copy, start := first + number * HOUR) not in known
    ]
    CaptureHour.objects.bulk_create(missing, batch_size=500, ignore_conflicts=True)


def _count_copy(copy: DatasetCopy, *, now: datetime, has_time: Callable[[], bool]) -> int:
    place, topic, counted = place_of_copy(copy), topic_to_read(copy.dataset, now=now), 0
    if not Commit.objects.filter(copy=copy, instant=place.instant).exists():
        return 0  # what it has read is not known yet
    capture = Capture.objects.filter(topic=topic.topic).first()
    for hour in uncounted_hours(now=now).filter(copy=copy).order_by("start"):
        if not has_time() or not _has_read_on(place, topic, hour.start + HOUR + SETTLED_AFTER / 2):
            break
        is_told = capture is not None and _is_told(capture, hour.start)
        if not is_told and _may_be_told(capture, hour.start, now=now):
            break
        is_gone = hour.start < now - timedelta(seconds=retention_s()) + HOUR
        counts = _Counts() if is_gone else _counts_of(capture if is_told else None, topic, hour.start)
        # Where the copy was put elsewhere meanwhile, the row has other values.
        mine = CaptureHour.objects.filter(pk=hour.pk, logged=None, is_partial=False, read=hour.read)
        counted += mine.update(logged=counts.logged, source=counts.source, is_partial=is_gone)
    tell_missing(copy, now=now)
    return counted


class _Counts(NamedTuple):
    logged: int | None = None
    source: int | None = None


def _counts_of(capture: Capture | None, topic: EventTopic, start: datetime) -> _Counts:
    """What was mended is not the source's: it counts as what ought to be there because it is. `capture` None: what its tap has counted is not known."""
    logged, mended = topic.count(start, start + HOUR)
    source = None if capture is None else source_hours.messages_of(capture, start)
    return _Counts(logged, None if source is None else source + mended)


def _is_told(capture: Capture, start: datetime) -> bool:
    """Has the tap of its server told what it has counted in the hour?"""
    server = capture.captured_table.partition("/")[0]
    return TapServer.objects.filter(address=server, seen_at__gte=start + HOUR).exists()


def _may_be_told(capture: Capture | None, start: datetime, *, now: datetime) -> bool:
    if capture is None or capture.is_stopped or not source_hours.is_counted(capture, start):
        return False
    return now <= start + HOUR + WAITS_FOR_TAP


def _has_read_on(place: CopyPlace, topic: EventTopic, upto: datetime) -> bool:
    """All that was logged before is read."""
    ends = topic.at(upto)
    return all(each.offset >= ends[each.topic].get(each.partition, 0) for each in place.partitions)


def tell_missing(copy: DatasetCopy, *, now: datetime) -> None:
    """As a finding, until the hours are counted anew, or the copy is loaded again."""
    hours = CaptureHour.objects.filter(copy=copy, is_partial=False, logged__isnull=False)
    unread = _apart(hours.exclude(logged=F("read")))
    missing = _apart(hours.filter(source__isnull=False).exclude(source=F("logged")))
    if not unread and not missing:
        findings.clear_findings(copy, findings.MESSAGES_UNACCOUNTED, now=now)
        return
    texts = []
    if missing:
        named = _named(missing, source="at the source", logged="logged")
        texts.append(
            f"Source and changelog disagree: {named}. Changes are missing or doubled: bootstrap the copy with `replace`."
        )
    if unread:
        named = _named(unread, logged="logged", read="read")
        texts.append(
            f"Changelog and commits disagree: {named}. "
            "Set the position of the copy back to before the first of these hours; where that does not help, bootstrap it with `replace`."
        )
    message = " ".join(texts)
    detail = {"hours": [[start.isoformat(), *counts] for start, *counts in sorted({*unread, *missing})[:100]]}
    findings.raise_finding(copy, findings.MESSAGES_UNACCOUNTED, EVERYTHING, message, detail, now=now)


def _apart(hours: QuerySet[CaptureHour]) -> list[tuple[Any, ...]]:
    return [*hours.order_by("start").values_list("start", *_COUNTS)]


def _named(apart: list[tuple[Any, ...]], **words: str) -> str:
    """`words`: by count, in the order in which they are told."""
    places = {count: number for number, count in enumerate(_COUNTS, 1)}
    hours = [
        f"{hour[0]:%Y-%m-%d %H}:00 UTC: "
        + ", ".join(f"{hour[places[count]]:,} {word}" for count, word in words.items())
        for hour in apart[:_MAX_NAMED]
    ]
    named = "; ".join(hours)
    return f"{named}; and {len(apart) - _MAX_NAMED:,} more hours" if len(apart) > _MAX_NAMED else named

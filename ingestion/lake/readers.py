"""Readers of increments that have said how far they are: what they have not read yet is not cleaned away, within a bound.

A position is the completion instant of the newest commit that the reader has taken in. Files are kept by time, so the oldest live
position says for how many hours.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from ingestion.lake import findings
from ingestion.models import Finding, ReaderPosition
from ingestion.spark.tables.timeline import instant_to_datetime
from lakehub.accounts.audit import audit_log
from lakehub.catalog.models import DatasetCopy
from lakehub.kernel.errors import NotFound, Refused
from lakehub.kernel.interval import EVERYTHING
from lakehub.kernel.suggest import did_you_mean

LASTS = timedelta(days=7)
"""A reader that has not been seen for so long holds nothing any more."""
MAX_READERS = 200
"""Of a copy, those that are over too."""
MAX_NAME_LENGTH = 100
_INSTANT = re.compile(r"\d{17}", re.ASCII)
_MAX_NAMED = 10


def note_position(
    copy: DatasetCopy, name: str, position: str, *, actor: str, now: datetime, lasts: timedelta = LASTS
) -> ReaderPosition:
    """The reader is known from here on, and has read up to `position`. Raises Refused for what is no instant."""
    if not _is_instant(position):
        raise Refused(
            f"The position of the reader `{name}` is {position!r}, which is no instant. Give the time of completion of the newest commit "
            "that it has read, in 17 digits as the timeline has it, such as 20261116080000000."
        )
    if not (name.isprintable() and 0 < len(name) <= MAX_NAME_LENGTH):
        raise Refused(f"A reader has a name of 1 to {MAX_NAME_LENGTH} characters, none of which controls a terminal.")
    facts = {"position": position, "seen_at": now, "expires_at": now + lasts}
    known = ReaderPosition.objects.filter(copy=copy)
    with transaction.atomic():
        if known.count() >= MAX_READERS and not known.filter(name=name).exists():
            known.filter(expires_at__lte=now).delete()
            if known.count() >= MAX_READERS:
                raise Refused(f"{copy} has {MAX_READERS} readers: remove one that reads no more.")
        reader, is_new = ReaderPosition.objects.update_or_create(copy=copy, name=name, defaults=facts)
        if is_new:
            audit_log.record(actor, "reader", f"copy:{copy}", now=now, reader=name, position=position)
    return reader


def forget_reader(copy: DatasetCopy, name: str, *, actor: str, now: datetime) -> None:
    """Raises NotFound."""
    readers = ReaderPosition.objects.filter(copy=copy)
    with transaction.atomic():
        if not readers.filter(name=name).delete()[0]:
            names = [*readers.values_list("name", flat=True)]
            raise NotFound(f"{copy} has no reader `{name}`.{did_you_mean(name, names)}")
        audit_log.record(actor, "reader-removed", f"copy:{copy}", now=now, reader=name)


def retention_hours(copy: DatasetCopy, *, now: datetime, wall: datetime) -> int:
    """For how long a version of a file is kept that was replaced. `wall`: the time of commits, where `now` is that of readers."""
    live = ReaderPosition.objects.filter(copy=copy, expires_at__gt=now)
    position = live.order_by("position").values_list("position", flat=True).first()
    least = least_retention_hours()
    return least if position is None else hours_to_keep(position, wall, least=least, most=_most_hours())


def least_retention_hours() -> int:
    """Where nobody reads."""
    hours: int = settings.LAKEHUB_LAKE_RETENTION_HOURS
    return hours


def hours_to_keep(position: str, wall: datetime, *, least: int, most: int) -> int:
    """So many that what was replaced after `position` is there still, and an hour more: the job that cleans may begin later."""
    behind = math.ceil((wall - instant_to_datetime(position)) / timedelta(hours=1)) + 1
    return max(least, min(behind, most))


def report_passed_readers(*, now: datetime, wall: datetime) -> None:
    """A finding for each copy whose live readers are further behind than files are kept; it is cleared when none is."""
    most = _most_hours()
    kept_since = f"{wall - timedelta(hours=most):%Y%m%d%H%M%S%f}"[:17]
    passed = defaultdict(list)
    live = ReaderPosition.objects.filter(expires_at__gt=now, position__lt=kept_since)
    for reader in live.select_related("copy__dataset", "copy__data_center").order_by("position"):
        passed[reader.copy].append(reader)
    for copy, readers in passed.items():
        more = f" and {len(readers) - _MAX_NAMED} more" if len(readers) > _MAX_NAMED else ""
        named = ", ".join(f"`{reader.name}` (at {reader.position})" for reader in readers[:_MAX_NAMED]) + more
        message = (
            f"Readers of increments are more than {most} hours behind, so what they have not read may be cleaned away: {named}. Let "
            "them read the whole table once, or raise LAKEHUB_LAKE_READER_HOURS before they fall behind."
        )
        detail = {"readers": {reader.name: reader.position for reader in readers}}
        findings.raise_finding(copy, findings.READER_PASSED, EVERYTHING, message, detail, now=now)
    over = Finding.objects.filter(kind=findings.READER_PASSED, cleared_at=None).exclude(copy__in=list(passed))
    over.update(cleared_at=now)


def _most_hours() -> int:
    return max(settings.LAKEHUB_LAKE_READER_HOURS, settings.LAKEHUB_LAKE_RETENTION_HOURS)


def _is_instant(text: str) -> bool:
    if not _INSTANT.fullmatch(text):
        return False
    try:
        instant_to_datetime(text)
    except ValueError:
        return False
    return True

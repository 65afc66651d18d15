"""How far the tap of each server is behind, and how much is not captured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Sum
from django.db.models.functions import Abs

from ingestion.domain.lag import LagCounts
from ingestion.lake.captured.hours import HOUR, hour_at
from ingestion.lake.findings import CHANGES_SKIPPED, COPY_BEHIND, MESSAGES_UNACCOUNTED
from ingestion.models import Capture, CaptureHour, Finding, TapServer


def tap_lags(*, now: datetime) -> dict[int, timedelta]:
    """By the number of the server, for how long what was committed there may not have been taken; of those from which something is captured, and which
    were reached once. One that is idle has none as long as its tap hears from it."""
    servers = TapServer.objects.filter(captured__gt=0)
    times = {server.pk: [at for at in (server.caught_up_at, server.event_at) if at is not None] for server in servers}
    return {number: max(now - max(known), timedelta()) for number, known in times.items() if known}


def change_lags(*, now: datetime) -> dict[int, LagCounts]:
    """By tier of the datasets, how long the changes took that came to the lake in this hour and the one before. One query."""
    hours = CaptureHour.objects.filter(start__gte=hour_at(now) - HOUR, copy__dataset__offboarded_at=None)
    lags: dict[int, LagCounts] = defaultdict(LagCounts)
    for tier, counts in hours.values_list("copy__dataset__tier", "lags"):
        lags[tier] += LagCounts.from_json(counts)
    return dict(lags)


def open_findings() -> dict[str, int]:
    """Of captured copies, by kind: too far behind, changes left out, messages that were not read."""
    kinds = (COPY_BEHIND, CHANGES_SKIPPED, MESSAGES_UNACCOUNTED)
    counted = Finding.objects.filter(kind__in=kinds, cleared_at=None).values("kind").annotate(copies=Count("pk"))
    return dict.fromkeys(kinds, 0) | {row["kind"]: row["copies"] for row in counted}


@dataclass(frozen=True)
class AuditedMessages:
    """`apart`: by pair the differences of all hours of copies, each without its sign, so that none makes up for another."""

    at: Mapping[str, int]
    apart: Mapping[str, int]


def audited_messages(*, now: datetime) -> AuditedMessages:
    """Of the last day, in hours of copies of which all are known: what the source has, what the log has, and what commits have read. One query."""
    hours = CaptureHour.objects.filter(start__gte=now - timedelta(days=1), is_partial=False, logged__isnull=False)
    known = hours.filter(source__isnull=False, copy__removed_at=None, copy__dataset__offboarded_at=None)
    sums = known.aggregate(
        *(Sum(field, default=0) for field in ("source", "logged", "read")),
        missing=Sum(Abs(F("source") - F("logged")), default=0),
        unread=Sum(Abs(F("logged") - F("read")), default=0),
    )
    at = {"source": sums["source__sum"], "log": sums["logged__sum"], "commits": sums["read__sum"]}
    return AuditedMessages(at, {"source_log": sums["missing"], "log_commits": sums["unread"]})


def failing_servers() -> int:
    """Those that cannot be tapped now."""
    return TapServer.objects.exclude(error="").count()


def stopped_captures() -> int:
    """Of datasets that are not off-boarded."""
    live = Capture.objects.filter(feed__dataset__offboarded_at=None)
    return live.filter(stopped_load=F("load")).count()

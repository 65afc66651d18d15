"""How far the tap of each server is behind, and how much is not captured."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F

from ingestion.models import Capture, TapServer


def tap_lags(*, now: datetime) -> dict[int, timedelta]:
    """By the number of the server, for how long what was committed there may not have been taken; of those from which something is captured, and which
    were reached once. One that is idle has none as long as its tap hears from it."""
    servers = TapServer.objects.filter(captured__gt=0)
    times = {server.pk: [at for at in (server.caught_up_at, server.event_at) if at is not None] for server in servers}
    return {number: max(now - max(known), timedelta()) for number, known in times.items() if known}


def failing_servers() -> int:
    """Those that cannot be tapped now."""
    return TapServer.objects.exclude(error="").count()


def stopped_captures() -> int:
    """Of datasets that are not off-boarded."""
    live = Capture.objects.filter(feed__dataset__offboarded_at=None)
    return live.filter(stopped_load=F("load")).count()

"""What the metrics say of taps: how far each is behind, idle or not, and how much is not captured. Never a name."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.test import Client

from ingestion.captures import lag
from ingestion.domain.lag import LagCounts
from ingestion.lake.captured.hours import HOUR, hour_at
from ingestion.lake.findings import COPY_BEHIND, raise_finding
from ingestion.models import Capture, CaptureHour, TapServer
from lakehub import clock
from lakehub.kernel.interval import EVERYTHING
from tests import factories as make
from tests.factories import NOW
from tests.query_plans import plans_of
from tests.web.ingestion.captures.taps import captured

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def server(address: str = "db.secret.example:3306", *, captured: int = 1, **times: datetime) -> TapServer:
    return TapServer.objects.create(address=address, captured=captured, **times)


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ({"caught_up_at": NOW - 4 * SECOND, "event_at": NOW - timedelta(days=9)}, 4),
        ({"caught_up_at": NOW - 900 * SECOND, "event_at": NOW - 70 * SECOND}, 70),
        ({"event_at": NOW + 5 * SECOND}, 0),
    ],
)
def test_a_tap_is_behind_by_what_it_may_not_have_taken(times: dict[str, datetime], seconds: int) -> None:
    number = server(**times).pk
    server("unused:1", captured=0, caught_up_at=NOW - timedelta(days=90))
    server("new:1")
    assert lag.tap_lags(now=NOW) == {number: seconds * SECOND}


def test_prometheus_has_it_without_a_name(client: Client) -> None:
    number = server(caught_up_at=NOW, event_at=NOW).pk
    server("down:1", error="It does not answer.")
    _, left = captured("trips", "left")
    left.offboarded_at = NOW
    left.save()
    Capture.objects.update(stopped_load=1)
    metrics = client.get("/metrics").content.decode()
    assert f'lakehub_tap_lag_seconds{{server="{number}"}}' in metrics
    assert "lakehub_tap_servers_failing 1.0" in metrics
    assert "lakehub_captures_stopped 1.0" in metrics
    assert "secret.example" not in metrics


def test_prometheus_has_how_long_changes_took_by_tier(client: Client) -> None:
    """Of this hour and the one before; and how many copies have which finding."""
    dataset, _ = captured("trips", "left")
    copy, now = make.copy_of(dataset), clock.now().replace(microsecond=500_000)
    for hours, seconds in ((0, 2), (1, 2), (5, 90_000)):
        lags = LagCounts.of_commit([int(now.timestamp()) - seconds] * 21, 10, now).to_json()
        CaptureHour.objects.create(copy=copy, start=hour_at(now) - hours * HOUR, lags=lags)
    facts = {"copy": copy, "source": 5, "logged": 4, "read": 3}
    for hours, more in (
        (10, {}),
        (11, {"source": 3, "read": 5}),
        (12, {"source": None}),
        (13, {"is_partial": True}),
        (30, {}),
    ):
        CaptureHour.objects.create(start=hour_at(now) - hours * HOUR, **(facts | more))
    raise_finding(copy, COPY_BEHIND, EVERYTHING, "It is behind.", {}, now=now)
    metrics = client.get("/metrics").content.decode()
    assert f'lakehub_change_lag_seconds{{quantile="0.95",tier="{dataset.tier}"}} 2.8' in metrics
    assert 'lakehub_captured_copies_with{finding="copy_behind"} 1.0' in metrics
    for at, messages in (("source", 8), ("log", 8), ("commits", 8)):
        assert f'lakehub_audited_messages{{at="{at}"}} {messages}.0' in metrics
    for pair in "source_log", "log_commits":
        assert f'lakehub_audited_differences{{between="{pair}"}} 2.0' in metrics
    assert 'lakehub_captured_copies_with{finding="messages_unaccounted"} 0.0' in metrics
    (plan,) = plans_of(lambda: lag.change_lags(now=now))
    assert "capture_hour_start" in plan

"""flights, whose changes are captured into a log of segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ingestion.captures.records import capture_of
from ingestion.models import Capture
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.web.ingestion.captures.taps import SERVER


def capture_flights(copy: DatasetCopy, settings: Any, log: Path, **facts: Any) -> None:
    """`facts`: of the capture, besides that its first load is captured."""
    settings.LAKEHUB_CHANGELOG, settings.LAKEHUB_CHANGELOG_URL = "segments", log.as_uri()
    feed = copy.dataset.feed
    feed.connection = given.connection("tapped", "mysql://reader:hunter2@db/ops", plugin="mysql")
    feed.save()
    capture_of(feed)
    Capture.objects.update(captured_load=1, captured_table=f"{SERVER}/ops.flights", **facts)

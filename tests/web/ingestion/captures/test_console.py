"""On-call sees captures and tapped servers in the console, and changes none."""

from __future__ import annotations

import pytest

from ingestion.models import Capture, TapServer
from tests import factories as make
from tests.web.ingestion.captures.taps import captured

pytestmark = pytest.mark.django_db


def test_the_console_shows_captures_and_servers_and_changes_none() -> None:
    captured("trips")
    Capture.objects.update(stopped_load=1, stopped_why="It was truncated.")
    TapServer.objects.create(address="db.example:3306", error="It does not answer.")
    client = make.staff("view_capture", "view_tapserver")
    shown = {name: client.get(f"/console/ingestion/{name}/").content.decode() for name in ("capture", "tapserver")}
    assert "It was truncated." in shown["capture"]
    assert "It does not answer." in shown["tapserver"]
    assert "hunter2" not in shown["capture"]
    assert client.get("/console/ingestion/capture/add/").status_code == 403

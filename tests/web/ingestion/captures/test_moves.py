"""A capture that has gone on at another server: whose it is, who is told, and what is left of the former one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ingestion.captures import moves
from ingestion.captures.servers import PlannedCapture, captures_by_server
from ingestion.models import Capture, TapServer
from lakehub.accounts.models import AuditEntry
from lakehub.catalog.models import Connection
from tests.factories import NOW
from tests.web.ingestion.captures.taps import SERVER, captured

pytestmark = pytest.mark.django_db
FORMER = "former:3306"


@pytest.fixture
def plan() -> list[PlannedCapture]:
    """Of SERVER, where both were captured from the former one."""
    for dataset in captured("trips", "riders"):
        table = f"{FORMER}/ops.{dataset.name}"
        Capture.objects.filter(feed__dataset=dataset).update(captured_load=1, captured_table=table)
    TapServer.objects.create(address=FORMER, leased_by="host:1:a")
    TapServer.objects.create(address=SERVER)
    return captures_by_server()[SERVER]


def moved(plan: Sequence[PlannedCapture]) -> bool:
    return moves.note_moved(plan, SERVER, actor="tap", position="0-1-7", now=NOW)


def test_the_former_server_goes_with_the_last_capture_that_leaves_it(plan: list[PlannedCapture]) -> None:
    trips, _ = Capture.objects.order_by("pk")
    assert (moves.leads_elsewhere(trips), moves.destination(trips)) == (True, SERVER)
    assert moved(plan[:1])
    trips.refresh_from_db()
    assert (trips.captured_table, moves.leads_elsewhere(trips), moves.destination(trips)) == (
        f"{SERVER}/ops.trips",
        False,
        "",
    )
    assert TapServer.objects.count() == 2
    assert [*moves.live_topics(FORMER)] == [plan[1].spec.topic]
    assert moved(captures_by_server()[SERVER][1:])
    assert [server.address for server in TapServer.objects.all()] == [SERVER]


def test_each_move_is_in_the_audit_log_without_a_secret(plan: list[PlannedCapture]) -> None:
    assert moved(plan)
    lines = AuditEntry.objects.filter(action="move capture").order_by("pk")
    assert [line.subject for line in lines] == ["dataset:trips", "dataset:riders"]
    assert lines[0].detail == {"before": FORMER, "after": SERVER, "position": "0-1-7"}
    assert lines[0].team_id == plan[0].team.pk


def test_nothing_moves_where_the_connection_leads_elsewhere_by_now(plan: list[PlannedCapture]) -> None:
    for connection in Connection.objects.all():
        connection.url = f"mysql://reader@{FORMER}/ops"
        connection.save()
    assert not moves.leads_to(plan, SERVER)
    assert not moved(plan)
    assert {moves.server_of_capture(capture) for capture in Capture.objects.all()} == {FORMER}
    assert (TapServer.objects.count(), AuditEntry.objects.count()) == (2, 0)

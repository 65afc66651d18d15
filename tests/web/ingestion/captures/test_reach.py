"""How far the changes of a copy are known to be in the changelog: never farther than its own tap has taken them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from ingestion.captures.reach import captured_upto
from ingestion.captures.states import note_captured
from ingestion.clock_set_back import put_right
from ingestion.models import Capture, TapServer
from lakehub.catalog.models import DatasetCopy
from tests import factories as make
from tests.factories import NOW
from tests.web.ingestion.captures.taps import captured

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
HERE = "a.example.org:3306"


@pytest.fixture
def copy() -> DatasetCopy:
    """Captured for an hour; its tap was at the end a minute ago."""
    dataset, _ = captured("trips", "riders")
    lead_to("a.example.org")
    begin(dataset.feed.capture, at=NOW - 60 * MINUTE)
    TapServer.objects.create(address=HERE, caught_up_at=NOW - MINUTE)
    return DatasetCopy.objects.get(pk=make.copy_of(dataset).pk)


def lead_to(host: str) -> None:
    connection = Capture.objects.earliest("pk").feed.connection
    assert connection is not None
    connection.url = f"mysql://tap:p@{host}:3306/shop"
    connection.save()


def begin(capture: Capture, *, at: datetime) -> None:
    note_captured(capture.topic, capture.load, since="0-1-9", table=f"{HERE}/shop.trips", columns={}, now=at)


def test_it_is_where_the_tap_has_taken_all_that_there_was(copy: DatasetCopy) -> None:
    assert captured_upto(copy, NOW) == NOW - MINUTE
    assert captured_upto(copy, NOW - 5 * MINUTE) == NOW - 5 * MINUTE


def test_a_tap_that_goes_on_for_others_says_nothing_of_who_waits_for_another_server(copy: DatasetCopy) -> None:
    lead_to("b.example.org")
    assert captured_upto(copy, NOW) is None
    lead_to("a.example.org")
    assert captured_upto(copy, NOW) == NOW - MINUTE


def test_what_was_taken_before_a_capture_began_is_not_its_own(copy: DatasetCopy) -> None:
    """A topic that is read from its beginning has days to come, and its cluster was at the end a moment ago."""
    begin(Capture.objects.get(feed__dataset=copy.dataset), at=NOW)
    assert captured_upto(copy, NOW) is None
    TapServer.objects.update(caught_up_at=NOW)
    assert captured_upto(copy, NOW) == NOW


def test_a_tap_was_not_at_the_end_at_a_time_that_is_to_come(copy: DatasetCopy) -> None:
    """The clock was ahead and was set back, and the tap is away since: when it was at the end is not known."""
    TapServer.objects.update(caught_up_at=NOW + 60 * MINUTE)
    put_right(now=NOW, back=timedelta(hours=1))
    assert captured_upto(copy, NOW + 5 * MINUTE) is None

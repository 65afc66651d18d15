"""How far the changes of a captured dataset are in the changelog: what its source has committed before is there."""

from __future__ import annotations

from datetime import datetime

from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.moves import leads_elsewhere, server_of_capture
from ingestion.models import Capture, TapServer
from lakehub.catalog.models import DatasetCopy

BEHIND = "behind"
"""In the place of a tap: the topics of the changelog without which all others are caught up."""


def captured_upto(copy: DatasetCopy, upto: datetime) -> datetime | None:
    """The earlier of `upto` and of when the tap had taken all that there was. None: it is not known, as nobody captures, changes are missing in the copy, the tap has not caught
    up since the capture began, its topic waits, or its connection leads to another server than the one whose tap goes on for others."""
    if not is_captured_feed(copy.dataset.feed_or_none):
        return upto
    capture = Capture.objects.select_related("feed__connection").filter(feed__dataset=copy.dataset_id).first()
    if capture is None or not capture.is_captured or copy.pk in capture.incomplete_copies or leads_elsewhere(capture):
        return None
    server = TapServer.objects.filter(address=server_of_capture(capture)).first()
    if server is None or server.caught_up_at is None or capture.topic in server.place.get(BEHIND, ()):
        return None
    is_older = capture.captured_at is not None and server.caught_up_at < capture.captured_at
    return None if is_older else min(upto, server.caught_up_at)

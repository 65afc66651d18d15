"""How far the changes of a captured dataset are in the changelog: what its source has committed before is there."""

from __future__ import annotations

from datetime import datetime

from ingestion.captures.beginning import is_captured_feed
from ingestion.captures.moves import server_of_capture
from ingestion.models import Capture, TapServer
from lakehub.catalog.models import DatasetCopy


def captured_upto(copy: DatasetCopy, upto: datetime) -> datetime | None:
    """The earlier of `upto` and of when the tap had taken all that there was. None: it is not known, as nobody captures, or changes are missing
    in the copy."""
    if not is_captured_feed(copy.dataset.feed_or_none):
        return upto
    capture = Capture.objects.filter(feed__dataset=copy.dataset_id).first()
    if capture is None or not capture.is_captured or copy.pk in capture.incomplete_copies:
        return None
    server = TapServer.objects.filter(address=server_of_capture(capture)).first()
    return None if server is None or server.caught_up_at is None else min(upto, server.caught_up_at)

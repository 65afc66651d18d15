from __future__ import annotations

from pathlib import Path

import pytest

from ingestion.models import JobKind
from ingestion.runs import feed_schedule
from lakehub.catalog.models import DatasetCopy
from tests import factories as given
from tests.factories import MINUTE, NOW
from tests.web.ingestion.following.shop import EVERY, Shop


@pytest.fixture
def shop(copy: DatasetCopy, tmp_path: Path) -> Shop:
    """Loaded, and asked to be followed."""
    made = Shop(copy, tmp_path / "ops.db")
    made.sql(
        "CREATE TABLE flights (id INTEGER PRIMARY KEY, flight_date TEXT, updated_at TEXT)",
        "INSERT INTO flights VALUES (1, '2026-11-16', '2026-11-16 08:00:00'), (2, '2026-11-16', '2026-11-16 09:00:00')",
    )
    feed = copy.dataset.feed
    feed.connection.url = f"sqlite:///{made.database}"
    feed.connection.save()
    type(feed).objects.filter(pk=feed.pk).update(every=EVERY)
    loaded = given.run(copy, JobKind.BOOTSTRAP, started_at=NOW - MINUTE, ended_at=NOW - MINUTE)
    made.commit(str(loaded.key))
    assert [run.kind for run in feed_schedule.request_due_runs(now=NOW)] == [JobKind.FOLLOW]
    return made

"""`manage.py tap` as an operator runs it: two processes, one of which is killed, and captures that come while they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models import Sum

from ingestion.captures.records import begin_load, topic_of
from ingestion.models import SourceHour, TapServer
from lakehub.catalog.models import Dataset
from lakehub.setup.artifacts import PROJECT_ROOT
from tests.polling import scaled, wait_until
from tests.services.captured_shop import CapturedShop, captured_shop

pytestmark = pytest.mark.django_db(transaction=True)
WITHIN_S = 60
ROWS = 30_000


@pytest.fixture
def shop(mariadb_url: str, tmp_path: Path, settings: Any) -> Iterator[CapturedShop]:
    settings.LAKEHUB_CHANGELOG_URL = (tmp_path / "log").as_uri()
    with captured_shop(mariadb_url, "lakehub_tapped", tmp_path) as captured:
        yield captured


@contextmanager
def tap_process(settings: Any, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """On the database of the test, which is a file."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    environment = own | {
        "LAKEHUB_HOME": str(settings.LAKEHUB_HOME),
        "LAKEHUB_DATABASE_URL": f"sqlite:///{connection.settings_dict['NAME']}",
        "LAKEHUB_CHANGELOG": settings.LAKEHUB_CHANGELOG,
        "LAKEHUB_CHANGELOG_URL": settings.LAKEHUB_CHANGELOG_URL,
    }
    command = [sys.executable, str(PROJECT_ROOT / "manage.py"), "tap"]
    with log.open("ab") as out:
        process = subprocess.Popen(command, cwd=PROJECT_ROOT, env=environment, stdout=out, stderr=out)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(scaled(WITHIN_S))


def wait_for(holds: Callable[[], bool], log: Path) -> None:
    wait_until(holds, within_s=WITHIN_S, otherwise=lambda: log.read_text(errors="replace")[-3000:])


def counted(dataset: Dataset) -> int:
    """Messages that the rows of its source are, as the taps have counted them."""
    hours = SourceHour.objects.filter(capture__topic=topic_of(dataset))
    return int(hours.aggregate(messages=Sum("messages", default=0))["messages"])


def holder_process() -> int:
    """0: nobody taps the server."""
    holder = TapServer.objects.values_list("leased_by", flat=True).first() or ""
    return int(holder.split(":")[1]) if holder else 0


def test_another_process_goes_on_where_one_was_killed_and_each_change_is_there_once(
    shop: CapturedShop, settings: Any, tmp_path: Path
) -> None:
    trips, riders, log = shop.dataset("trips"), shop.dataset("riders"), tmp_path / "log.txt"
    with tap_process(settings, log) as first, tap_process(settings, log) as second:
        wait_for(lambda: shop.is_captured(trips) and shop.is_captured(riders), log)
        processes = {process.pid: process for process in (first, second)}
        killed = processes.pop(holder_process())
        (other,) = processes
        shop.execute("INSERT INTO riders VALUES (1, 0)", f"INSERT INTO trips SELECT seq, 0 FROM seq_1_to_{ROWS}")
        wait_for(lambda: shop.messages(trips) > 0, log)
        killed.kill()
        killed.wait()
        shop.execute("UPDATE riders SET n = 1", "TRUNCATE riders", "UPDATE trips SET n = 1 WHERE id <= 10")
        fares = shop.dataset("fares")
        wait_for(lambda: shop.is_captured(fares), log)
        assert holder_process() == other
        shop.execute("INSERT INTO fares VALUES (5, 0)", "DELETE FROM trips WHERE id = 1")
        wait_for(lambda: shop.messages(trips) == ROWS + 11 and shop.messages(fares) == 1, log)
        wait_for(lambda: shop.capture(riders).is_stopped, log)
        # What was counted of the source is told a little later, and is what came, although a process was killed within the transaction.
        wait_for(lambda: counted(trips) >= ROWS + 11 and counted(fares) >= 1, log)
    assert (counted(trips), counted(fares)) == (ROWS + 11, 1)
    assert shop.rows(trips).keys() == {(number,) for number in range(2, ROWS + 1)}
    assert shop.rows(fares) == {(5,): {"id": 5, "n": 0}}
    assert shop.rows(riders) == {(1,): {"id": 1, "n": 1}}
    assert "Traceback" not in log.read_text()


def test_a_process_that_is_told_to_end_gives_its_servers_back(
    shop: CapturedShop, settings: Any, tmp_path: Path
) -> None:
    trips, log = shop.dataset("trips"), tmp_path / "log.txt"
    with tap_process(settings, log) as process:
        wait_for(lambda: shop.is_captured(trips), log)
        begin_load(shop.capture(trips), uuid4())
        wait_for(lambda: shop.is_captured(trips), log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(scaled(WITHIN_S)) == 0
    assert holder_process() == 0

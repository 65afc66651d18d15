"""`manage.py tap` at topics of a real Kafka, with a changelog in Kafka too: processes are killed, and each message is there once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingestion.models import TapServer
from tests.services.foreign_topics import ForeignTopics, foreign_topics
from tests.services.test_tap_process import counted, holder_process, tap_process, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
MESSAGES = 20_000
KEYS = 500


@pytest.fixture
def topics(kafka_url: str, settings: Any) -> Iterator[ForeignTopics]:
    with foreign_topics(kafka_url) as made:
        settings.LAKEHUB_CHANGELOG = "kafka"
        settings.LAKEHUB_CHANGELOG_URL = f"{kafka_url}/{made.prefix}-log?partitions=2"
        yield made
        log_topics = [
            name for name in made.admin.list_topics(timeout=10).topics if name.startswith(f"{made.prefix}-log.")
        ]
        made.made += log_topics


def test_processes_that_are_killed_lose_no_message_and_repeat_none(
    topics: ForeignTopics, settings: Any, tmp_path: Path
) -> None:
    topics.make("orders", partitions=3)
    orders, log = topics.dataset("orders"), tmp_path / "log.txt"
    sent = [(str(number % KEYS), {"id": number % KEYS, "n": number}) for number in range(MESSAGES)]
    topics.send("orders", *sent[: MESSAGES // 2])
    with tap_process(settings, log) as first, tap_process(settings, log) as second:
        wait_for(lambda: topics.messages(orders) > 0, log)
        processes = {process.pid: process for process in (first, second)}
        killed = processes.pop(holder_process())
        killed.kill()
        killed.wait()
        topics.send("orders", *sent[MESSAGES // 2 :])
        (other,) = processes
        wait_for(lambda: topics.messages(orders) >= MESSAGES, log)
        assert holder_process() == other
        wait_for(lambda: TapServer.objects.get().caught_up_at is not None, log)
        wait_for(lambda: counted(orders) >= MESSAGES, log)
    assert topics.messages(orders) == counted(orders) == MESSAGES
    newest = {number % KEYS: number for number in range(MESSAGES)}
    assert {key[0]: row["n"] for key, row in topics.rows(orders).items()} == newest
    assert "Traceback" not in log.read_text()

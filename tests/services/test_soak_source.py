"""The writers of the fault rounds for captured tables end with the round, even if it fails while they write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from threading import Thread
from uuid import uuid4

import pytest
import sqlalchemy as sa

from tests.polling import scaled, wait_until
from tests.soak.capture.source import WRITERS, CapturedSource


class RoundFailed(Exception):
    """What goes wrong in the middle of a round."""


@pytest.fixture
def source(mariadb_url: str) -> Iterator[CapturedSource]:
    """In a database of its own on the server that all tests share."""
    database = f"lakehub_soak_{uuid4().hex[:12]}"
    captured = CapturedSource(sa.make_url(mariadb_url).port or 3306, Random(7), database)
    captured.create_database()
    try:
        captured.create_tables()
        yield captured
    finally:
        captured.execute(f"DROP DATABASE {database}")


def test_writers_end_with_a_round_that_fails_while_they_write(source: CapturedSource) -> None:
    def fail_while_they_write() -> None:
        with suppress(RoundFailed), source.writers():
            source.resume()
            wait_until(lambda: source.transactions > WRITERS)
            raise RoundFailed

    failing_round = Thread(target=fail_while_they_write, daemon=True)
    failing_round.start()
    failing_round.join(scaled(30))
    assert not failing_round.is_alive(), "the writers go on"

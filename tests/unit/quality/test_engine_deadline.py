"""A deadline is kept also where the work began after it was over."""

from __future__ import annotations

from datetime import timedelta
from threading import Event

import pytest

from lakehub.source_databases import deadline as deadlines
from lakehub.source_databases.deadline import deadline
from tests.polling import scaled


def test_it_stops_again_what_had_not_begun_when_the_time_was_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "STOP_RETRY_INTERVAL", timedelta(milliseconds=1))
    begun, stopped, early = Event(), Event(), Event()

    def stop() -> None:
        (stopped if begun.is_set() else early).set()

    with deadline(timedelta(), stop):
        assert early.wait(scaled(5))
        begun.set()
        assert stopped.wait(scaled(5))


def test_what_ends_in_time_is_not_stopped() -> None:
    calls: list[int] = []
    with deadline(timedelta(seconds=60), lambda: calls.append(1)):
        pass
    assert not calls

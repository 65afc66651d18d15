"""A deadline is kept also where the work began after it was over; one thread watches over all."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
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


def test_one_thread_watches_over_all_blocks_and_keeps_none_that_has_ended() -> None:
    with deadline(timedelta(hours=1), lambda: None):
        before = set(threading.enumerate())
        with ExitStack() as blocks:
            for _ in range(50):
                blocks.enter_context(deadline(timedelta(hours=1), lambda: None))
            assert set(threading.enumerate()) <= before  # one of an earlier test may end meanwhile
            assert len(deadlines._watch.blocks) >= 51
        assert len(deadlines._watch.blocks) < 51


def test_a_block_that_is_over_first_is_stopped_first() -> None:
    """Also where the thread sleeps until another's time."""
    stopped = Event()
    with deadline(timedelta(hours=1), lambda: None), deadline(timedelta(milliseconds=20), stopped.set) as is_over:
        assert stopped.wait(scaled(5))
        assert is_over.is_set()


def test_what_does_not_come_back_from_stopping_holds_up_no_other_block() -> None:
    stuck, stopped = Event(), Event()
    with deadline(timedelta(), lambda: stuck.wait(scaled(30))), deadline(timedelta(milliseconds=20), stopped.set):
        assert stopped.wait(scaled(5))
    stuck.set()


def test_a_forked_process_has_a_watch_of_its_own() -> None:
    with deadline(timedelta(hours=1), lambda: None):
        child = os.fork()
        if child == 0:  # pragma: no cover
            stopped = Event()
            with deadline(timedelta(milliseconds=1), stopped.set):
                os._exit(0 if stopped.wait(scaled(5)) else 1)
        assert os.waitpid(child, 0)[1] == 0

"""So many a second on average, a burst at once, exact for all processes of a machine."""

from __future__ import annotations

import errno
import logging
import math
import multiprocessing
import os
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakehub.http.limits.rate_limit import RateLimit, SharedLimiter

NOW = datetime(2026, 11, 17, tzinfo=UTC)
TEN = RateLimit(rate=10, burst=5)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 5)), max_size=60))
def test_no_window_gives_more_than_the_rate_and_a_burst(asked: list[tuple[int, int]]) -> None:
    at, used_to, given_ = 1e9, 0.0, []
    for later_ms, cost in asked:
        at += later_ms / 1000
        used_to, wait = TEN.after_taking(used_to, cost, now=at)
        if wait == 0:
            given_.append((at, cost))
    for first, (start, _) in enumerate(given_):
        for end, _ in given_[first:]:
            within = sum(cost for when, cost in given_ if start <= when <= end)
            assert within <= TEN.burst + TEN.rate * (end - start) + 1e-3


def test_who_waits_as_long_as_it_is_told_is_answered() -> None:
    used_to, wait = TEN.after_taking(100.0 + TEN.burst / TEN.rate, 1, now=100.0)
    assert wait > 0
    assert TEN.after_taking(used_to, 1, now=100.0 + wait)[1] == 0


def test_a_clock_that_was_set_back_locks_nobody_out() -> None:
    assert TEN.after_taking(10_000.0, 1, now=100.0)[1] == 0


def test_what_costs_more_than_a_burst_can_pass() -> None:
    assert TEN.after_taking(0.0, 100, now=100.0)[1] == 0


def test_nothing_gives_back_what_was_taken() -> None:
    used_to = 100.0 + TEN.burst / TEN.rate
    assert TEN.after_taking(used_to, -1, now=100.0) == (used_to, 0.0)


def test_askers_do_not_share(tmp_path: Path) -> None:
    limiter = SharedLimiter(tmp_path / "rate")
    assert [limiter.take(7, TEN, now=NOW) for _ in range(5)] == [0] * 5
    assert limiter.take(7, TEN, now=NOW) > 0
    assert limiter.take(8, TEN, now=NOW) == 0
    assert limiter.take(7, TEN, now=NOW + timedelta(seconds=0.1)) == 0


def test_a_full_disk_lets_everybody_through_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = SharedLimiter(tmp_path / "rate")

    def is_full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "pwrite", is_full)
        assert [limiter.take(7, TEN, now=NOW) for _ in range(9)] == [0] * 9
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    assert "No space left on device" in caplog.messages[0], "one kind of line, once a minute: `lakehub.logs.repeats`"
    assert [limiter.take(7, TEN, now=NOW) for _ in range(5)] == [0] * 5
    assert limiter.take(7, TEN, now=NOW) > 0, "it counts again"


def test_a_folder_that_cannot_be_made_lets_everybody_through(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    assert SharedLimiter(tmp_path / "home" / "rate").take(7, TEN, now=NOW) == 0


@pytest.mark.parametrize("stored", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_no_time_counts_as_nothing_taken(tmp_path: Path, stored: float) -> None:
    (tmp_path / "rate").write_bytes(struct.pack("<d", stored))
    limiter = SharedLimiter(tmp_path / "rate")
    assert [limiter.take(0, TEN, now=NOW) for _ in range(5)] == [0] * 5
    assert limiter.take(0, TEN, now=NOW) > 0


def _takes(file: Path, times: int) -> int:
    limiter = SharedLimiter(file)
    return sum(limiter.take(3, RateLimit(1, 50), now=NOW) == 0 for _ in range(times))


def test_two_processes_share_one_limit(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        taken = pool.starmap(_takes, [(tmp_path / "rate", 200)] * 2)
    assert sum(taken) == 50

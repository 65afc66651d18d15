"""A fault that repeats is logged a few times a minute, a full disk once; what is new is always logged."""

from __future__ import annotations

import errno
import io
import logging
import logging.config
import random
import sqlite3
import string
from collections.abc import Callable

import pytest

from lakehub.logs import logging_config
from lakehub.logs.repeats import LINES_A_WINDOW, VISITORS_LINE, RepeatLimit


class Log:
    """A logger with the limit, its lines, and a clock that is set."""

    def __init__(self, name: str = "tests.repeats") -> None:
        self.now = 0.0
        self.out = io.StringIO()
        handler = logging.StreamHandler(self.out)
        handler.addFilter(RepeatLimit(clock=lambda: self.now))
        self.logger = logging.Logger(name)
        self.logger.addHandler(handler)
        self.logger.setLevel(logging.INFO)

    @property
    def lines(self) -> list[str]:
        return [line for line in self.out.getvalue().splitlines() if line.startswith("log:")]


@pytest.fixture
def log() -> Log:
    return Log()


def full_disk() -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "/lake/flights")


def full_database() -> None:
    raise sqlite3.OperationalError("database or disk is full")


def full_for_the_shared_index() -> None:
    """As SQLite says it where the index of its write-ahead log cannot grow."""
    refused = sqlite3.OperationalError("disk I/O error")
    refused.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    raise refused


def within_another() -> None:
    try:
        full_disk()
    except OSError as full:
        raise RuntimeError("the scheduled task could not be sent") from full


@pytest.mark.parametrize("fails", [full_disk, full_database, full_for_the_shared_index, within_another])
def test_a_full_disk_is_logged_once_a_minute_whoever_meets_it(log: Log, fails: Callable[[], None]) -> None:
    for second in range(180):
        for task in ("run_due", "watch", "judge_due"):
            log.now = second
            try:
                fails()
            except Exception:
                log.logger.exception("log: Task %s[%s] raised", task, second)
    remedy = "Make room; work goes on by itself then. This is logged once a minute."
    assert log.lines == [
        f"log: Task run_due[0] raised ({remedy})",
        f"log: Task run_due[60] raised ({remedy} 179 more lines like it were left out.)",
        f"log: Task run_due[120] raised ({remedy} 179 more lines like it were left out.)",
    ]


def test_what_repeats_is_logged_a_few_times_a_minute_and_counted(log: Log) -> None:
    for number in range(500):
        log.logger.warning("log: connection %d to %s was lost", number, "redis")
    assert len(log.lines) == LINES_A_WINDOW
    log.now = 60
    log.logger.warning("log: connection %d to %s was lost", 500, "redis")
    assert log.lines[-1] == "log: connection 500 to redis was lost (480 more lines like it were left out.)"
    log.logger.warning("log: connection %d to %s was lost", 501, "redis")
    assert log.lines[-1] == "log: connection 501 to redis was lost"


def test_what_is_not_the_same_is_logged(log: Log) -> None:
    for name in map(str, ("flights", "planes", "weather")):
        for _ in range(LINES_A_WINDOW):
            log.logger.warning("log: %s cannot be read", name)
    assert len(log.lines) == 3 * LINES_A_WINDOW


def test_what_is_no_fault_is_always_logged(log: Log) -> None:
    for _ in range(500):
        log.logger.info("log: done")
    assert len(log.lines) == 500


def random_words(length: int = 12) -> str:
    return "".join(random.choices(string.ascii_lowercase, k=length))


@pytest.mark.parametrize("name", ["django.request", "django.security.csrf", "gunicorn.error"])
def test_who_asks_for_other_paths_again_and_again_fills_no_disk(name: str) -> None:
    log = Log(name)
    for _ in range(500):
        log.logger.warning("log: %s: %s", "Not Found", f"/{random_words()}", extra={"status_code": 404})
    assert len(log.lines) == LINES_A_WINDOW
    log.logger.warning("log: %s: %s", "Forbidden", "/tokens", extra={"status_code": 403})
    assert log.lines[-1] == "log: Forbidden: /tokens"
    log.now = 60
    log.logger.warning("log: %s: %s", "Not Found", "/x", extra={"status_code": 404})
    assert log.lines[-1] == "log: Not Found: /x (480 more lines like it were left out.)"


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("gunicorn.error", "log: Invalid request from ip=10.1.2.3"),
        ("django.security.DisallowedHost", "log: Invalid HTTP_HOST header"),
    ],
)
def test_lines_that_were_put_together_before_they_were_logged_are_limited(name: str, begins: str) -> None:
    log = Log(name)
    for _ in range(500):
        log.logger.error(f"{begins}: {random_words()}")
    assert len(log.lines) == LINES_A_WINDOW


@pytest.mark.parametrize("words", ["log: A request from %s was refused: %s", "log: An answer to %s was broken off: %s"])
def test_what_gunicorn_tells_of_visitors_is_limited(words: str) -> None:
    log = Log("gunicorn.error")
    for _ in range(500):
        log.logger.info(words, random_words(), "408 Request Timeout")
    assert len(log.lines) == LINES_A_WINDOW


def test_the_line_of_a_long_path_is_cut() -> None:
    log = Log("django.request")
    log.logger.warning("log: %s: %s", "Not Found", "/" + "x" * 3999)
    begins = "log: Not Found: /"
    x = "x" * (VISITORS_LINE - len(begins))
    assert log.lines == [f"{begins}{x}... ({len(begins) + 3999 - VISITORS_LINE:,} more characters)"]


def test_no_path_passes_for_a_full_disk() -> None:
    log = Log("django.request")
    for _ in range(2):
        log.logger.warning("log: %s: %s", "Not Found", "/No space left on device")
    assert log.lines == ["log: Not Found: /No space left on device"] * 2


def first_fault() -> None:
    raise ValueError(random_words())


def second_fault() -> None:
    raise ValueError(random_words())


def test_a_fault_that_somebody_asks_for_again_and_again_hides_no_other() -> None:
    log = Log("django.request")
    for fault in (first_fault, second_fault):
        for _ in range(100):
            try:
                fault()
            except ValueError:
                log.logger.exception("log: %s: %s", "Internal Server Error", f"/{random_words()}")
    assert len(log.lines) == 2 * LINES_A_WINDOW


def test_lakehubs_own_lines_are_told_apart_by_what_they_name() -> None:
    log = Log("incidents.notifications.periodic.digests")
    for route in ("alpha", "beta", "gamma"):
        for _ in range(50):
            log.logger.warning("log: The digest of route %s was not sent", route)
    assert len(log.lines) == 3 * LINES_A_WINDOW


def test_kinds_are_forgotten_before_they_are_too_many(log: Log) -> None:
    limit = log.logger.handlers[0].filters[0]
    assert isinstance(limit, RepeatLimit)
    for number in range(3000):
        log.logger.warning("log: %s", "x" * (number % 190) + "y" * (number // 190))
    assert len(limit._windows) == 1000


def test_every_process_has_the_limit() -> None:
    (filters,) = [handler["filters"] for handler in logging_config()["handlers"].values()]
    assert [logging_config()["filters"][name]["()"] for name in filters] == ["lakehub.logs.repeats.RepeatLimit"]

"""What Spark's status may answer after a deadline, which hears of things late. With a real Spark: tests/spark/test_spark_limits.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ingestion.spark import session
from quality.engines.backends import spark_deadline as module


@pytest.fixture
def is_ended(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whether the JVM is ended, by pairs of answers: whether the job counts as running, and how many tasks nobody wants."""

    def ends(*answers: tuple[bool, int]) -> bool:
        coming, last = iter(answers), answers[-1]
        now = [answers[0]]

        def has_running_jobs(spark: Any, group: str) -> bool:
            now[0] = next(coming, last)
            return now[0][0]

        monkeypatch.setattr(module, "jvm_pid", lambda spark: 1)
        monkeypatch.setattr(module, "KILL_AFTER", timedelta(seconds=0.2))
        monkeypatch.setattr(session, "_POLL_S", 0.01)
        monkeypatch.setattr(session, "has_running_jobs", has_running_jobs)
        monkeypatch.setattr(session, "lost_tasks", lambda spark: now[0][1])
        monkeypatch.setattr(module._JvmWatch, "kill", lambda self: self.was_killed.set())
        monkeypatch.setattr(module._JvmWatch, "wait_for_end", lambda self: None)
        spark: Any = None
        watch = module._JvmWatch(spark, "a group")
        watch.was_late.set()
        watch.end_late_tasks()
        return watch.was_killed.is_set()

    return ends


def test_a_task_that_goes_on_ends_the_jvm(is_ended: Any) -> None:
    assert is_ended((False, 1))


def test_tasks_that_end_in_time_leave_it(is_ended: Any) -> None:
    assert not is_ended((False, 1), (False, 1), (False, 0))


def test_a_job_that_still_counts_as_running_hides_no_task(is_ended: Any) -> None:
    """Its task counts as wanted until the status hears that it was cancelled."""
    assert is_ended((True, 0), (True, 0), (False, 1))

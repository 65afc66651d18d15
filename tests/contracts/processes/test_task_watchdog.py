from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from lakehub.processes.task_watchdog import TaskWatchdog
from lakehub.setup.machine import scaled, slowness

WORKER = """
import os
from threading import Event
import django
django.setup()
from django.conf import settings
from lakehub.processes import task_watchdog
from lakehub.processes.celery_app import app

task_watchdog.AFTER_POOL_S = 0.3 - settings.CELERY_TASK_TIME_LIMIT
app.conf.update(broker_url="memory://", task_routes={})

@app.task(**OPTIONS)
def hang():
    print("hangs", flush=True)
    if OPTIONS:
        Event().wait(1.0)
        os._exit(7)
    Event().wait()

hang.delay()
app.worker_main(["--quiet", "worker", "--pool", POOL, "--concurrency", "1", "--without-gossip", "--without-mingle"])
"""


def worker(home: Path, pool: str, options: str = "{}") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"POOL, OPTIONS = {pool!r}, {options}\n{WORKER}"],
        env={"DJANGO_SETTINGS_MODULE": "lakehub.settings", "LAKEHUB_HOME": str(home), "PATH": "/usr/bin:/bin"},
        check=False, capture_output=True, text=True, timeout=60 * slowness(), stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.parametrize("pool", ["threads", "solo"])
def test_a_task_that_never_ends_ends_its_process_which_says_what_it_waited_for(tmp_path: Path, pool: str) -> None:
    ended = worker(tmp_path, pool)
    assert ended.returncode == 1, ended.stderr
    assert "hangs" in ended.stdout + ended.stderr
    assert "hang runs for much longer than LAKEHUB_TASK_MINUTES=60" in ended.stderr
    assert "in hang" in ended.stderr, "the stack of the thread that hangs"


def test_a_task_with_a_deadline_of_its_own_goes_on(tmp_path: Path) -> None:
    ended = worker(tmp_path, "solo", "{'has_own_deadline': True}")
    assert "hangs" in ended.stdout + ended.stderr
    assert ended.returncode == 7, ended.stderr


def test_what_has_ended_is_forgotten() -> None:
    overdue, seen = Event(), []
    watchdog = TaskWatchdog(0.05, lambda task: (seen.append(task), overdue.set())[-1])
    watchdog.begin("1", "first")
    watchdog.finish("1")
    watchdog.begin("2", "second")
    assert overdue.wait(scaled(10))
    assert seen == ["second"]

"""A disk that is full: it is logged once a minute, nothing ends, and work goes on by itself once there is room."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakehub.setup.artifacts import PROJECT_ROOT
from tests.polling import scaled, wait_until

SIZE = "48m"
WITHIN_S = 60
FULL_FOR_S = 10
"""Beat wakes seven tasks a second: without a limit each of them would log some 7 kB."""
GIVEN = """
import os, django
django.setup()
from tests import factories as given
flights = given.dataset("flights", copies=())
given.feed(flights, paused=True)
given.data_center("dc1", "file:///nowhere/lake")
given.copy(flights)
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted here ({mounted.stderr.strip()}): run this test as root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_it_is_logged_once_a_minute_and_work_goes_on_when_there_is_room(small_disk: Path, tmp_path: Path) -> None:
    home, log = small_disk / "home", tmp_path / "log"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("LAKEHUB_", "DJANGO_"))}
    env = own | {"LAKEHUB_HOME": str(home), "LAKEHUB_WORKERS": "1", "DJANGO_SETTINGS_MODULE": "lakehub.settings"}
    for command in (["manage.py", "migrate", "--verbosity", "0"], ["-c", GIVEN]):
        subprocess.run([sys.executable, *command], cwd=PROJECT_ROOT, env=env, check=True, stdin=subprocess.DEVNULL)
    with log.open("wb") as out:
        command = [sys.executable, "manage.py", "up", "worker", "beat"]
        processes = subprocess.Popen(command, cwd=PROJECT_ROOT, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        wait(lambda: "ready." in said(log) and "beat started" in said(log), log)
        before = log.stat().st_size
        wait(lambda: is_full(home, small_disk), log)
        wait(lambda: "Make room; work goes on by itself then." in said(log), log)
        full_upto = time.monotonic() + FULL_FOR_S
        wait(lambda: time.monotonic() > full_upto, log)
        lines = [line for line in said(log).splitlines() if "Make room" in line]
        # Supervisor, worker, its pool and beat: each of them may say it in each of the minutes.
        assert len(lines) <= 4 * 2
        assert log.stat().st_size - before < 60_000
        (small_disk / "filling").unlink()
        let_it_be_fed(home)
        wait(lambda: bool(rows(home, "SELECT id FROM ingestion_jobrun WHERE kind = 'bootstrap'")), log)
        assert processes.poll() is None
    finally:
        processes.send_signal(signal.SIGTERM)
        processes.wait(scaled(WITHIN_S))


def fill(file: Path) -> None:
    """Until not a byte fits; smaller pieces at the end, as others let go of some."""
    with file.open("ab", buffering=0) as out:
        for piece in (1 << 20, 4096, 1):
            try:
                while True:
                    out.write(b"x" * piece)
            except OSError:
                continue


def is_full(home: Path, disk: Path) -> bool:
    """The processes that run give bytes back now and then: it is filled until the database refuses a row."""
    fill(disk / "filling")
    try:
        rows(home, "UPDATE catalog_feed SET options = json_set(options, '$.chunk_rows', 1000)")
    except sqlite3.OperationalError as refused:
        return refused.sqlite_errorname in {"SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"}
    return False


def let_it_be_fed(home: Path) -> None:
    rows(
        home, "UPDATE catalog_feed SET paused = 0, options = json_set(options, '$.chunk_rows', 1000 + length(options))"
    )


def rows(home: Path, sql: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(home / "lakehub.db", timeout=10)
    try:
        with connection:
            return connection.execute(sql).fetchall()
    finally:
        connection.close()


def wait(holds: Callable[[], bool], log: Path) -> None:
    wait_until(holds, within_s=WITHIN_S, otherwise=lambda: said(log)[-3000:])


def said(log: Path) -> str:
    return log.read_text(errors="replace")

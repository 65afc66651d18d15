from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakehub.processes.supervisor import instance_lock
from lakehub.setup.locations import PACKAGES
from tests.polling import scaled

NOW = datetime(2026, 11, 17, 8, 30, tzinfo=UTC)


def test_a_second_start_is_told_who_runs_since_when_and_where(tmp_path: Path) -> None:
    lock = instance_lock.take(tmp_path, "127.0.0.1:8000", now=NOW)
    with pytest.raises(instance_lock.AlreadyRunning) as refused:
        instance_lock.take(tmp_path, "127.0.0.1:8001", now=NOW)
    os.close(lock)
    assert f"process {os.getpid()} on " in str(refused.value)
    assert "since 2026-11-17T08:30:00+00:00, at http://127.0.0.1:8000" in str(refused.value)
    os.close(instance_lock.take(tmp_path, "127.0.0.1:8001", now=NOW))


def test_a_file_that_was_left_behind_does_not_lock(tmp_path: Path) -> None:
    os.close(instance_lock.take(tmp_path, "127.0.0.1:8000", now=NOW))
    assert (tmp_path / instance_lock.LOCK_FILE).exists()
    os.close(instance_lock.take(tmp_path, "127.0.0.1:8000", now=NOW))


def test_a_start_waits_for_what_a_killed_one_has_left(tmp_path: Path) -> None:
    """The holder's process is gone, its child has the lock still and is about to end."""
    hold = (
        "import os, sys; from pathlib import Path; from datetime import datetime\n"
        "from lakehub.processes.supervisor import instance_lock\n"
        "lock = instance_lock.take(Path(sys.argv[1]), 'here', now=datetime.now())\n"
        "if os.fork(): os._exit(0)\n"
        "print('child', flush=True); sys.stdin.read()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], cwd=PACKAGES, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == b"child\n"
    child.wait()
    waiting = subprocess.Popen(
        [sys.executable, "-c", hold, str(tmp_path)], cwd=PACKAGES, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(scaled(1))
    child.communicate()
    assert waiting.wait(scaled(30)) == 0
    waiting.communicate()

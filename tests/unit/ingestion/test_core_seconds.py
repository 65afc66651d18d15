"""Core-seconds of a process and all that it has started, as Linux counts them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ingestion.spark.core_seconds import core_s_of_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
WORK_S, TICK_S = 0.2, 0.02
WORKS = f"import time\nwhile time.process_time() < {WORK_S}: pass\nprint(flush=True)\ninput()"


def work() -> None:
    ends_at = time.process_time() + WORK_S
    while time.process_time() < ends_at:
        pass


def started(program: str) -> subprocess.Popen[str]:
    """When it has printed a line. It ends when it gets one."""
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "\n"
    return process


def core_s(root: int | None = None) -> float:
    seconds = core_s_of_tree(os.getpid() if root is None else root)
    assert seconds is not None
    return seconds


def test_what_it_does_itself_is_counted() -> None:
    before = core_s()
    work()
    assert core_s() - before >= WORK_S - TICK_S


@pytest.mark.parametrize(
    "program", [WORKS, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORKS!r}])"]
)
def test_what_it_has_started_is_counted_while_it_runs_and_when_it_has_ended(program: str) -> None:
    before = core_s()
    process = started(program)
    assert core_s() - before >= WORK_S - TICK_S
    process.communicate("\n")
    assert process.returncode == 0
    assert core_s() - before >= WORK_S - TICK_S


def test_what_others_do_is_not_counted() -> None:
    process = started("print(flush=True)\ninput()")
    before = core_s(process.pid)
    work()
    assert core_s(process.pid) - before < WORK_S / 2
    process.communicate("\n")
    assert core_s_of_tree(process.pid) is None, "it has ended"

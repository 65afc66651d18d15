"""Core-seconds of a process and all that it has started, as Linux counts them."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ingestion.spark.core_seconds import Tree, core_s_between, tree_of

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


def core_s(before: Tree, root: int | None = None) -> float:
    return core_s_between(before, tree_of(os.getpid() if root is None else root))


def here() -> Tree:
    return tree_of(os.getpid())


def test_what_it_does_itself_is_counted() -> None:
    before = here()
    work()
    assert core_s(before) >= WORK_S - TICK_S


@pytest.mark.parametrize(
    "program", [WORKS, f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {WORKS!r}])"]
)
def test_what_it_has_started_is_counted_while_it_runs_and_when_it_has_ended(program: str) -> None:
    before = here()
    process = started(program)
    assert core_s(before) >= WORK_S - TICK_S
    process.communicate("\n")
    assert process.returncode == 0
    assert core_s(before) >= WORK_S - TICK_S


def test_what_others_do_is_not_counted() -> None:
    process = started("print(flush=True)\ninput()")
    before = tree_of(process.pid)
    work()
    assert core_s(before, process.pid) < WORK_S / 2
    process.communicate("\n")
    assert not tree_of(process.pid), "it has ended"


STARTS_A_WORKER = f"""
import signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.{{handler}})
worker = subprocess.Popen([sys.executable, "-c", {WORKS!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
print(worker.stdout.readline(), end="", flush=True)
input()
worker.communicate("\\n")
print(flush=True)
input()
"""


@pytest.mark.parametrize("handler", ["SIG_IGN", "SIG_DFL"])
def test_what_a_worker_did_before_is_neither_taken_off_nor_counted_when_it_ends(handler: str) -> None:
    """Spark ends workers of earlier jobs when they have been idle for a minute. Its daemon does not wait for them, so Linux adds their times to nobody's."""
    daemon = started(STARTS_A_WORKER.format(handler=handler))
    before = here()
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    daemon.stdin.write("\n")
    daemon.stdin.flush()
    assert daemon.stdout.readline() == "\n", "the worker has ended"
    work()
    assert WORK_S - TICK_S <= core_s(before) < 2 * WORK_S - TICK_S
    daemon.communicate("\n")

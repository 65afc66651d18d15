from __future__ import annotations

import array
import errno
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time

import pytest

from lakehub.processes.supervisor.log_writer import LogWriter
from tests.polling import scaled, wait_until

SUPERVISED = """
import sys
from lakehub.processes.supervisor.run import launch_shell, supervise
line = "a line that is logged, and goes on for a while as lines of a log do"
sys.exit(supervise({"talker": f"sh -c 'while :; do echo {line}; done'", "quiet": "sleep 600"}, launch_shell))
"""


def _say(writer: LogWriter, *lines: str) -> None:
    for line in lines:
        writer.write(line + "\n")
        writer.flush()


def test_lines_keep_their_order_and_are_written_at_the_end() -> None:
    receiver, sender = os.pipe()
    writer = LogWriter(sender)
    _say(writer, "before the thread")
    writer.start()
    _say(writer, *map(str, range(500)))
    writer.close()
    assert os.read(receiver, 1 << 16).decode().splitlines() == ["before the thread", *map(str, range(500))]


def test_what_does_not_fit_is_left_out_and_counted_in_its_place() -> None:
    receiver, sender = os.pipe()
    writer = LogWriter(sender, max_waiting=8)
    _say(writer, "one", "two", "three", "4")
    writer.start()
    assert os.read(receiver, 8) == b"one\ntwo\n"
    wait_until(lambda: writer._lost == 2)
    _say(writer, "five")
    writer.close()
    assert os.read(receiver, 100) == b"2 lines were left out\nfive\n"


def test_a_full_disk_ends_nothing_and_what_it_took_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver, sender = os.pipe()
    writer, write, free = LogWriter(sender), os.write, [6]

    def limited(descriptor: int, data: bytes) -> int:
        if not free[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = write(descriptor, data[: free[0]])
        free[0] -= count
        return count

    monkeypatch.setattr("lakehub.processes.supervisor.log_writer.os.write", limited)
    _say(writer, "one", "two", "three")
    writer.start()
    wait_until(lambda: writer._lost == 2)
    free[0] = 1000
    _say(writer, "four")
    writer.close()
    assert os.read(receiver, 200) == b"one\ntw\n2 lines were left out\nfour\n"


def test_a_reader_that_is_stuck_holds_nobody_up() -> None:
    _, sender = os.pipe()
    writer = LogWriter(sender, max_waiting=1 << 18)
    writer.start()
    began = time.monotonic()
    _say(writer, *["x" * 1000] * 2000)
    writer.close(0.2)
    assert time.monotonic() - began < scaled(5)


def _bytes_that_nobody_reads(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    count = array.array("i", [0])
    fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, count)
    return count[0]


def test_a_supervisor_whose_log_nobody_reads_ends_when_it_is_asked() -> None:
    with subprocess.Popen([sys.executable, "-c", SUPERVISED], stdout=subprocess.PIPE) as up:
        try:
            wait_until(lambda: _bytes_that_nobody_reads(up) > 60_000)
            up.send_signal(signal.SIGTERM)
            assert up.wait(scaled(20)) == 128 + signal.SIGTERM
        finally:
            up.kill()

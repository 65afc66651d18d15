"""A server of a bench's own: where it listens, and when it answers."""

from __future__ import annotations

import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from bench.harness import ChildFailed

Address = tuple[str, int]


def free_address() -> Address:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address: Address = free.getsockname()
    return address


def wait_until_ready(address: Address, process: subprocess.Popen[bytes], log: Path, *, timeout_s: float = 30) -> None:
    """Raises ChildFailed with what it logged last."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{address[1]}/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise ChildFailed(f"The server did not answer:\n{log.read_text()[-2000:]}")

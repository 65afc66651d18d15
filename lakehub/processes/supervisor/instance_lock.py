"""One `manage.py up` at a time runs a home folder's scheduler: a lock on a file, which the kernel frees when its holder ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from json import JSONDecodeError
from pathlib import Path

LOCK_FILE = "up.lock"
ENDING_TIMEOUT_S = 10
"""How long a start waits for the processes of one that was killed: its guard ends them."""
_LOOK_EVERY_S = 0.05


class AlreadyRunning(RuntimeError):
    """Another one runs in this folder. The message says which process, since when and where."""


@dataclass(frozen=True)
class Holder:
    """Who holds the lock."""

    pid: int
    since: str
    host: str
    address: str

    def is_gone(self) -> bool:
        """Its process has ended; what it started may be on its way out."""
        return self.host == socket.gethostname() and not Path(f"/proc/{self.pid}").exists()


def take(home: Path, address: str, *, now: datetime) -> int:
    """The descriptor of the locked file; the lock lasts until it is closed in this process and its forks. Raises AlreadyRunning."""
    file = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + ENDING_TIMEOUT_S
    while not _lock(file):
        holder = _read(file)
        if holder is None or not holder.is_gone() or time.monotonic() > deadline:
            os.close(file)
            raise AlreadyRunning(_refusal(home, holder))
        time.sleep(_LOOK_EVERY_S)
    holder = Holder(os.getpid(), now.isoformat(timespec="seconds"), socket.gethostname(), address)
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(asdict(holder)).encode(), 0)
    return file


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(file: int) -> Holder | None:
    """None where it has the lock and has not yet written who it is."""
    try:
        return Holder(**json.loads(os.pread(file, 4096, 0)))
    except (JSONDecodeError, TypeError):
        return None


def _refusal(home: Path, holder: Holder | None) -> str:
    who = (
        f"process {holder.pid} on {holder.host}, since {holder.since}, at http://{holder.address}"
        if holder
        else "a process that has just started"
    )
    return f"Lakehub already runs in {home}: {who}. Stop it first, or set LAKEHUB_HOME to another folder."

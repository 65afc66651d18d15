"""Temporary folders that say whose they are, so that what a killed process left behind is found and removed.

They lie in `scratch` of the instance's folder and are named after their owner: host, process id and start of the process, which
together no two processes share. A process removes its own when it ends; `sweep_scratch` removes those of processes that ended
otherwise. Those of another host that shares the folder are judged by their lease: the time of the folder, which its owner renews.
No Django: jobs on a cluster use this too.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import count
from pathlib import Path
from threading import Event, Thread

logger = logging.getLogger(__name__)

LEASE_INTERVAL = timedelta(minutes=10)
FOREIGN_LEASE = timedelta(days=1)
"""A folder of another host that was not renewed for as long is nobody's: its host is gone, or was made anew under another name."""
OWNERS_FILE = "owners"
"""In a folder that belongs to further processes as well: the name of each, one a line."""
_SEPARATOR = "~"
_serial = count(1)


@dataclass(frozen=True)
class Owner:
    """A process. `start`: its start in the system's own count; 0 where the system does not tell."""

    host: str
    pid: int
    start: int

    @property
    def name(self) -> str:
        return f"{self.host}{_SEPARATOR}{self.pid}{_SEPARATOR}{self.start}"

    @property
    def is_here(self) -> bool:
        return self.host == _host()

    @property
    def is_alive(self) -> bool:
        """Of a process of this host: whether it runs, and is not another one that got its number."""
        return self.start == _process_start(self.pid) and _has_process(self.pid)


def scratch_root() -> Path:
    """`scratch` of the instance's folder; on a node of a cluster, which has no instance, in the system's temporary folder."""
    try:
        from lakehub.setup.locations import home_folder
    except ImportError:  # only a part of Lakehub is in the zip of a job
        return Path(tempfile.gettempdir()) / "lakehub-scratch"
    return home_folder() / "scratch"


def owned_folder(purpose: str) -> Path:
    """A new folder of this process. It is removed when the process ends, unless it was before."""
    owner, root = _owner_of(os.getpid()), scratch_root()
    folder = root / f"{owner.name}{_SEPARATOR}{purpose}{next(_serial)}"
    folder.mkdir(parents=True)
    _keep_leases(root, owner)
    return folder


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """A folder of this process that is gone after the block."""
    folder = owned_folder(purpose)
    try:
        yield folder
    finally:
        remove_folder(folder)


def add_owner(folder: Path, pid: int) -> None:
    """The folder stays as long as this process of this host runs as well."""
    with (folder / OWNERS_FILE).open("a") as owners:
        owners.write(f"{_owner_of(pid).name}\n")


def remove_folder(folder: Path) -> None:
    """What cannot be removed now is left to the next sweep, and logged."""
    shutil.rmtree(folder, onerror=_log_leftover)


def sweep_scratch(root: Path | None = None) -> list[Path]:
    """Remove the folders of processes that ended, and return them. What has no owner's name is left alone."""
    root = root or scratch_root()
    if not root.is_dir():
        return []
    now = _file_time(root)
    ended = [folder for folder in sorted(root.iterdir()) if folder.is_dir() and not _is_in_use(folder, now)]
    for folder in ended:
        remove_folder(folder)
    if ended:
        logger.info("Removed the temporary folders of %d processes that ended: %s", len(ended), ended[0].parent)
    return ended


def _is_in_use(folder: Path, now: float) -> bool:
    named = _parse_owner(folder.name)
    if named is None:
        return True
    with suppress(FileNotFoundError):  # removed by its owner meanwhile
        if not named.is_here:
            return now - folder.stat().st_mtime < FOREIGN_LEASE.total_seconds()
        return any(owner.is_alive for owner in (named, *_further_owners(folder)))
    return True


def _further_owners(folder: Path) -> list[Owner]:
    file = folder / OWNERS_FILE
    names = file.read_text().splitlines() if file.is_file() else []
    return [owner for name in names if (owner := _parse_owner(name)) is not None]


def _parse_owner(name: str) -> Owner | None:
    host, *numbers = name.split(_SEPARATOR)
    if len(numbers) < 2 or not all(number.isdecimal() for number in numbers[:2]):
        return None
    return Owner(host, int(numbers[0]), int(numbers[1]))


def _file_time(root: Path) -> float:
    """Now, by the clock that the times of files in `root` are of: that of a file server, where it is on one."""
    with tempfile.NamedTemporaryFile(dir=root, prefix=".now-") as probe:
        return os.fstat(probe.fileno()).st_mtime


@lru_cache(maxsize=4)
def _keep_leases(root: Path, owner: Owner) -> None:
    """Once a process, also after a fork: its folders are renewed while it runs, and removed when it ends in order."""
    atexit.register(_remove_own, root, owner)
    Thread(target=_renew_leases, args=(root, owner, Event()), name="scratch lease", daemon=True).start()


def _renew_leases(root: Path, owner: Owner, never: Event) -> None:
    while not never.wait(LEASE_INTERVAL.total_seconds()):
        for folder in _folders_of(root, owner):
            with suppress(OSError):  # removed meanwhile, or renewed in ten minutes
                os.utime(folder)


def _remove_own(root: Path, owner: Owner) -> None:
    if os.getpid() == owner.pid:
        for folder in _folders_of(root, owner):
            if not any(other.is_alive for other in _further_owners(folder)):
                remove_folder(folder)


def _folders_of(root: Path, owner: Owner) -> list[Path]:
    prefix = f"{owner.name}{_SEPARATOR}"
    return [folder for folder in root.iterdir() if folder.name.startswith(prefix)] if root.is_dir() else []


def _owner_of(pid: int) -> Owner:
    return Owner(_host(), pid, _process_start(pid))


def _host() -> str:
    """With the namespace of its process numbers: containers may share a host's name, but not these."""
    namespace = Path("/proc/self/ns/pid")
    number = namespace.stat().st_ino if namespace.exists() else 0
    return f"{socket.gethostname().replace(_SEPARATOR, '-').replace('/', '-')}.{number}"


def _process_start(pid: int) -> int:
    """Field 22 of /proc/<pid>/stat, in ticks since the system started; -1 of one that has ended and only waits to be noticed."""
    with suppress(OSError):
        # The program's name comes before, in parentheses, and may hold anything.
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return -1 if state in ("Z", "X") else int(fields[18])
    return 0


def _has_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _log_leftover(_function: object, path: str, problem: object) -> None:
    error = problem[1] if isinstance(problem, tuple) else problem
    if not isinstance(error, FileNotFoundError):
        logger.warning("%s could not be removed, and is tried again by the next sweep: %s", path, error)

"""Parents and children, as Linux knows them: who adopts orphans, who ends with whom, and who is left.

Elsewhere than on Linux the kernel offers none of it: children are then ended by the signals that they get.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36  # linux/prctl.h
_LIBC = ctypes.CDLL(None)
"""Loaded before any fork: a child that is about to become another program loads nothing."""


def end_with_parent(parent: int) -> None:
    """Called in a child of `parent`: the kernel kills this process as soon as `parent` ends, however it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have ended before the kernel was asked.
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """What a descendant leaves behind becomes a child of this process, so that `kill_descendants` finds it."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def name_process(name: str) -> None:
    """What `ps -o comm` and `top` show, up to 15 characters: forks have the command line of who forked them."""
    _prctl(_PR_SET_NAME, name.encode())


def kill_descendants() -> int:
    """Kill children, their children and so on, whatever session they are in, until none is left. How many there were."""
    killed: set[int] = set()
    while pids := descendants(os.getpid()):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(pids)
        # Waits for one of our own: its children are ours then.
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)
    return len(killed)


def descendants(pid: int) -> list[int]:
    """Of the process `pid`, nearest first, without those that have ended and only wait to be noticed."""
    children: dict[int, list[int]] = {}
    for child, state, parent in _processes():
        if state != "Z":
            children.setdefault(parent, []).append(child)
    pids = list(children.get(pid, ()))
    for each in pids:  # grows as it goes
        pids += children.get(each, ())
    return pids


def _processes() -> list[tuple[int, str, int]]:
    """(process, state, parent) of all."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            # The program's name comes second, in parentheses, and may hold anything.
            state, parent, *_ = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            processes.append((int(folder.name), state, int(parent)))
    return processes


def _prctl(option: int, value: int | bytes) -> None:
    if not hasattr(_LIBC, "prctl"):
        return
    argument = ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_ulong(value)
    if _LIBC.prctl(option, argument, 0, 0, 0):
        raise OSError(f"prctl({option}, {value!r}) was refused by this kernel.")

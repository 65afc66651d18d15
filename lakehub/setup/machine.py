"""How slow this machine is, as a factor: deadlines of tests and of the demo are meant for a quiet machine of today, and are
multiplied by it. What is slow is not wrong.

Measured once, in less than two seconds on a quiet machine: the processor, the disk and the start of a process; the slowest counts.
Child processes take over what was measured, so that all of a run have one factor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, MutableMapping
from functools import cache
from pathlib import Path

from lakehub.environment import InvalidSetting

VARIABLE = "LAKEHUB_SLOWNESS"
MAX_FACTOR = 20.0
_QUIET_S = {"processor": 0.06, "disk": 0.05, "process": 0.02}
"""What each takes on two quiet cores of 2024 with a solid state disk, with some to spare."""
_ROUNDS = 3
_NUMBERS = 1_000_000
_BLOCKS, _BLOCK = 16, b"x" * 65_536


@cache
def slowness() -> float:
    """From 1, a quiet machine, to MAX_FACTOR; the variable LAKEHUB_SLOWNESS says it too. Raises InvalidSetting."""
    return read_or_measure(os.environ, measure)


def scaled(seconds: float) -> float:
    """A deadline of a quiet machine, for this one."""
    return seconds * slowness()


def read_or_measure(environ: MutableMapping[str, str], measure: Callable[[], float]) -> float:
    named = environ.get(VARIABLE)
    if not named:
        factor = measure()
        environ[VARIABLE] = f"{factor:.2f}"
        return factor
    try:
        factor = float(named)
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= MAX_FACTOR:
        raise InvalidSetting(f"{VARIABLE}={named!r} is not a factor: set a number from 1 to {MAX_FACTOR:g}.")
    return factor


def measure() -> float:
    probes = {"processor": _compute, "disk": _write, "process": _start_process}
    return factor_of({name: _seconds(probe) for name, probe in probes.items()})


def factor_of(seconds: dict[str, float]) -> float:
    """Of what each probe took; the worst, within bounds."""
    return max(1.0, min(MAX_FACTOR, *(max(seconds[name] / quiet for name, quiet in _QUIET_S.items()),)))


def _seconds(probe: Callable[[], None]) -> float:
    """The longest of some rounds: of a machine that others use too, now and then one is quick."""
    times = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        probe()
        times.append(time.perf_counter() - began)
    return max(times)


def _compute() -> None:
    total = 0
    for number in range(_NUMBERS):
        total += number * number % 7


def _write() -> None:
    """Written through to the disk, as databases do; of a folder that this user may not write to, the system's is taken."""
    here = Path.cwd()
    with tempfile.NamedTemporaryFile(dir=here if os.access(here, os.W_OK) else None, prefix=".speed-") as out:
        for _ in range(_BLOCKS):
            out.write(_BLOCK)
        out.flush()
        os.fsync(out.fileno())


def _start_process() -> None:
    subprocess.run([sys.executable, "-S", "-c", ""], check=True, stdin=subprocess.DEVNULL)

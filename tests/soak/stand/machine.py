"""What this machine is and can do: how slow it is now, and whether file systems can be mounted."""

from __future__ import annotations

import os
import subprocess
import sys
import time

_REFERENCE_S = 0.35
"""What starting a Python that imports a few modules takes, twice in a row, on an idle machine of 2020."""


def slowness() -> float:
    """1 on an idle machine, 4 on one where everything takes four times as long; deadlines are multiplied by it."""
    began = time.monotonic()
    for _ in range(2):
        subprocess.run([sys.executable, "-c", "import json, decimal, email, ssl; sum(range(10**6))"], check=True)
    return max(1.0, (time.monotonic() - began) / _REFERENCE_S)


def can_mount() -> bool:
    """Whether a process here may have mounts of its own."""
    return (
        os.geteuid() == 0
        and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    )

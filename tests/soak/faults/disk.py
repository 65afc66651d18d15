"""The disk of the instance's folder, with database and lake, fills up, and has space again."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.soak.faults import Fault
from tests.soak.stand.stage import Stage

_FULL_S = (3.0, 15.0)
_CHUNK = bytes(1 << 20)
_REFILL_EVERY_S = 0.2


def _fill_disk(stage: Stage, rng: Random) -> Sequence[str]:
    """Filled again and again: what the instance removes is gone at once."""
    ballast, until = stage.instance.home / "ballast", time.monotonic() + rng.uniform(*_FULL_S)
    try:
        while time.monotonic() < until:
            _fill(ballast)
            time.sleep(_REFILL_EVERY_S)
    finally:
        ballast.unlink()
    return ()


def _fill(ballast: Path) -> None:
    """To the last byte."""
    with ballast.open("ab", buffering=0) as out:
        chunk = _CHUNK
        while chunk:
            try:
                out.write(chunk)
            except OSError as problem:
                if problem.errno != errno.ENOSPC:
                    raise
                chunk = chunk[: len(chunk) // 2]


FAULTS = (
    Fault(
        "disk full",
        _fill_disk,
        missing=lambda stage: "" if stage.has_own_disk else "needs the right to mount",
        explains="No space left|disk is full|disk I/O error|unable to open database",
    ),
)

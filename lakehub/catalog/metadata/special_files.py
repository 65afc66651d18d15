"""Named pipes, sockets and devices: whoever opens one may wait for ever, so none is ever part of a table of files."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path


def without_special_files(paths: Iterable[Path]) -> list[Path]:
    """Links are followed. What is gone stays: whoever reads it says so."""
    return [path for path in paths if not _is_special(path)]


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)

"""Files that are never part of a table: named pipes, sockets and devices, which may never be read to their end, and links to elsewhere."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path


def without_special_files(paths: Iterable[Path]) -> list[Path]:
    """Links are followed. What is gone stays: whoever reads it says so."""
    return [path for path in paths if not _is_special(path)]


def inside_folder(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Without links that lead out of it, to what the operator lets nobody read."""
    root = os.path.join(os.path.realpath(folder), "")
    return [path for path in paths if os.path.realpath(path).startswith(root)]


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)

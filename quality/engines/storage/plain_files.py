"""Plain files on this machine: which a glob names, and a digest of their names, sizes and times."""

from __future__ import annotations

import glob
import hashlib
from pathlib import Path

from lakehub.catalog.metadata.special_files import without_special_files
from lakehub.catalog.metadata.tables import Files
from quality.engines.storage.hudi_snapshot import local_path


def local_files(files: Files) -> list[Path]:
    """The files of a glob on this machine."""
    return without_special_files(map(Path, sorted(glob.glob(local_path(files.glob), recursive=True))))


def files_version(files: Files) -> str:
    """Names, sizes and times of writing; empty where the files are not on this machine."""
    file_stats = [(str(path), stat.st_size, stat.st_mtime_ns) for path in local_files(files) for stat in [path.stat()]]
    return hashlib.sha256(repr(file_stats).encode()).hexdigest() if file_stats else ""

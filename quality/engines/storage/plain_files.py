"""Plain files on this machine: which a glob names, and a digest of their names, sizes and times."""

from __future__ import annotations

import glob
import hashlib
from pathlib import Path

from lakehub.catalog.metadata.special_files import inside_folder, without_special_files
from lakehub.catalog.metadata.tables import Files
from quality.engines.scans.parts import CannotRead
from quality.engines.storage.hudi_snapshot import local_path


def local_files(files: Files) -> list[Path]:
    """The files of a glob on this machine."""
    return _readable(files, _matches(files))


def paths_to_read(files: Files) -> str | list[str]:
    """The glob, or, where some of what it matches is not to be read, the others. Raises CannotRead where none is left."""
    matches = _matches(files)
    readable = _readable(files, matches)
    if len(readable) == len(matches):
        return local_path(files.glob)
    if not readable:
        raise CannotRead(f"There are no files {files.glob}: links that lead out of the folder are not read.")
    return [str(path) for path in readable]


def _matches(files: Files) -> list[Path]:
    return [Path(path) for path in sorted(glob.glob(local_path(files.glob), recursive=True))]


def _readable(files: Files, paths: list[Path]) -> list[Path]:
    readable = without_special_files(paths)
    return inside_folder(readable, Path(local_path(files.folder))) if files.folder else readable


def files_version(files: Files) -> str:
    """Names, sizes and times of writing; empty where the files are not on this machine."""
    file_stats = [(str(path), stat.st_size, stat.st_mtime_ns) for path in local_files(files) for stat in [path.stat()]]
    return hashlib.sha256(repr(file_stats).encode()).hexdigest() if file_stats else ""

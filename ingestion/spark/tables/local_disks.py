"""Which folders are on a disk of this machine, so that nobody writes there by another clock."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

MOUNTS = Path("/proc/self/mountinfo")
_LOCAL_TYPES = {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}


def is_on_local_disk(folder: PurePosixPath, mounts: Path = MOUNTS) -> bool:
    """False also where the system does not say: macOS, or a kind of disk that is not known here. `folder` need not exist yet."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return False
    types = dict(map(_mount, lines))
    nearest = next((types[place] for place in (folder, *folder.parents) if place in types), "")
    return nearest in _LOCAL_TYPES


def _mount(line: str) -> tuple[PurePosixPath, str]:
    """Where it is and its type: of two at one place the later one is seen. Spaces are written as octal numbers."""
    described, _, kind = line.partition(" - ")
    place = re.sub(r"\\([0-7]{3})", lambda escaped: chr(int(escaped[1], 8)), described.split()[4])
    return PurePosixPath(place), kind.split()[0]

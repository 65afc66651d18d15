"""Files from one folder to another: to a temporary name, read back and compared, and only then given their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from ingestion.domain.pace import Pace
from ingestion.spark.replication.table_folder import TableFolder

if TYPE_CHECKING:
    from pyarrow import NativeFile

INCOMING = ".hoodie/.replica/incoming"
"""No reader looks there."""
_PIECE = 1024**2
_NAP_S = 5.0


class ChecksumMismatch(OSError):
    """What was written is not what was read."""


@dataclass
class Bandwidth:
    """`alive` is asked with each piece, and raises when the time of the job is up. `pace`: in bytes; None: as fast as can be."""

    alive: Callable[[], None] = lambda: None
    pace: Pace | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep

    def after(self, piece: bytes) -> None:
        self.alive()
        seconds = 0.0 if self.pace is None else self.pace.delay(len(piece), now=self.clock())
        while seconds > 0:
            self.sleep(min(seconds, _NAP_S))
            self.alive()
            seconds -= _NAP_S


@dataclass
class Copier:
    """Copies to `target` what it does not have. `files` and `size`: copied from the source; `reused`: taken from `near`, which lies beside the target."""

    source: TableFolder
    target: TableFolder
    bandwidth: Bandwidth
    near: TableFolder | None = None
    files: int = 0
    size: int = 0
    reused: int = 0

    def copy(self, path: str) -> None:
        """A file that is there under its own name is whole. Raises FileNotFoundError where the source has it no longer, ChecksumMismatch."""
        size = self.source.size(path)
        if size is None:
            raise FileNotFoundError(f"{self.source.uri}/{path}")
        if self.target.size(path) == size:
            return
        if self.near is not None and self.near.size(path) == size:
            self._write(self.near, path, size, Bandwidth(self.bandwidth.alive))
            self.reused += 1
        else:
            self._write(self.source, path, size, self.bandwidth)
            self.files += 1
            self.size += size

    def _write(self, origin: TableFolder, path: str, size: int, bandwidth: Bandwidth) -> None:
        incoming = f"{INCOMING}/{path.rpartition('/')[2].lstrip('.')}"
        with origin.open(path) as read, self.target.create(incoming) as write:
            sent = _digest(read, bandwidth, write)
        with self.target.open(incoming) as read:
            stored = _digest(read, Bandwidth(bandwidth.alive))
        if stored != sent or sent[1] != size:
            raise ChecksumMismatch(
                f"The file {path} was read with {sent[1]} bytes from {origin.uri}, which has {size}, and is stored with {stored[1]} bytes in {self.target.uri}"
                f"{', with another checksum' if stored[1] == sent[1] else ''}. It was not published. Run the job again; if this goes on, look at the disk."
            )
        self.target.move(incoming, path)


def _digest(read: NativeFile, bandwidth: Bandwidth, write: NativeFile | None = None) -> tuple[str, int]:
    """Of all that is read, and how long it is; it is written as well where `write` is given."""
    digest, size = blake2b(digest_size=20), 0
    while piece := read.read(_PIECE):
        if write is not None:
            write.write(piece)
        digest.update(piece)
        size += len(piece)
        bandwidth.after(piece)
    return digest.hexdigest(), size
